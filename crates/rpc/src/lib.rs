//! The JSON-RPC surface: a program drives agents over standard input and output.
//!
//! One JSON object a line in each direction. DSH's published clients speak the first part of the protocol; the rest is
//! for our own, see [`wire`]. [`serve`] runs it for one client on a [`Host`], the program around it.
//!
//! What must hold:
//! - **Nothing but frames goes out**, each whole and in one piece.
//! - **Order**: an event is told before any answer that follows from it; requests of one session are served in the
//!   order they came.
//! - **Bounded**: a client that stops reading holds up its own sessions, which then stand still; memory does not grow.
//! - **Fail closed**: a stored session is never replaced by a new one, and a question that nobody has declared to answer
//!   is a no.
//! - Every session is closed in its log before [`serve`] returns.
//!
//! ```
//! let description = lorimer_rpc::describe();
//! assert!(description["requests"]["session/prompt"]["params"]["$ref"].is_string());
//! ```

mod describe;
mod error;
mod frame;
mod host;
mod notes;
mod opening;
mod outbox;
mod reverse;
mod server;
mod session;
mod stored;
pub mod wire;

pub use describe::describe;
pub use error::RpcError;
pub use host::{Channels, Host, Route};
pub use server::{ServerOptions, serve};

use notes::note;
