//! The JSON-RPC surface through the real program: frames, sessions, questions, ends, and a client that does not read.

mod asking;
mod client;
mod ending;
mod flood;
mod frames;
mod sessions;
