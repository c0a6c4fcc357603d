//! The JSON-RPC surface through the real program: frames, sessions, questions, ends, and a client that does not read.

#![expect(clippy::needless_pass_by_value, reason = "json! makes values")]

mod asking;
mod client;
mod ending;
mod flood;
mod frames;
mod sessions;
