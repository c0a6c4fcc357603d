//! Model providers behind one trait: a request goes in, [`StreamChunk`](lorimer_protocol::StreamChunk)s come out.
//!
//! What must hold:
//! - A stream ends with exactly one `finish` chunk; every failure is a `finish` of kind `error` in the server's words.
//!   Success needs a finish reason from the server.
//! - A request is a pure function of its [`ModelRequest`]; nothing else about the person or the session is sent.
//! - Retries are not made here: they belong to the loop.

mod offline;
mod provider;

pub use provider::{ChunkStream, ModelError, ModelInfo, ModelRequest, Provider, RetryPolicy};
