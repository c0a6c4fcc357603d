//! The JSON-RPC surface through the real program: frames, sessions, questions, ends, and a client that does not read.

#![allow(clippy::needless_pass_by_value, reason = "calls read better with `json!(…)` than with `&json!(…)`")]

mod asking;
mod client;
mod ending;
mod flood;
mod frames;
mod sessions;
