//! Child processes: groups, trees, pipes, output caps and a scrubbed environment.
//!
//! A [`Runner`] runs a [`CommandSpec`] and gives a [`Finished`]. What must hold:
//!
//! * When a command has ended, was stopped, ran out of time, or lost Lorimer (also by `kill -9`), everything it
//!   started is gone too. Between Lorimer and every command stands a supervisor for that: Lorimer's own program,
//!   started again with [`SUPERVISE_ARGS`]. Children that call `setsid` or fork twice do not escape on Linux; on
//!   other systems they may, as only the process group is known there. A command that kills its own supervisor with
//!   SIGKILL fails with [`ProcessError::SupervisorLost`]; its session is killed, and only what had left that session
//!   before may stay behind.
//! * A command reads nothing: its standard input is empty, and it has no terminal.
//! * A child that keeps the output pipes open does not hold up the call once the command itself has ended.
//! * Memory is bounded however much a command prints ([`HeadTail`]), and no character is cut in two.
//! * How a command ends is a value. A [`ProcessError`] means that it did not run, or that its end is not known.
//!
//! The program calls [`supervise_if_asked`] first thing in its `main`. Test programs, which have no `main` of their
//! own, use [`supervise_in_tests!`] instead.

#![cfg(unix)]

mod capture;
mod environment;
mod error;
mod head_tail;
mod runner;
mod signal;
mod spec;
mod supervise;
mod watch;
mod wire;

pub use environment::{looks_secret, scrubbed_env, set_variable};
pub use error::ProcessError;
pub use head_tail::{HeadTail, Kept};
pub use runner::{Runner, Running, Supervisor};
pub use spec::{CaptureSpec, Captured, CommandSpec, Finished};
pub use supervise::{SUPERVISE_ARGS, supervise_if_asked, supervise_main};
