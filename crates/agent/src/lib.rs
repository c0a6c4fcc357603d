//! The turn and step loop: inbox, prompt assembly, instructions, retries, pruning, cancellation.
//!
//! What must hold:
//! - **What the model sees is logged.** [`build_request`] makes the request from the log alone.
//! - **The prefix is stable.** From one request to the next, system and tools stay equal and messages only grow at
//!   their end, unless a replacement event says otherwise.
//! - **Durable before effect.** Everything appended is on disk before a request goes out and before a tool runs.
//! - A turn that starts also ends in the log, whatever the model, a tool or the person does.

mod agent;
mod directory;
mod header;
mod images;
mod inbox;
mod options;
mod pressure;
mod prompt;
mod request;
mod retry;
mod title;
mod turn;

pub use agent::{Agent, AgentError, TurnReport};
pub use directory::DirectoryError;
pub use options::AgentOptions;
pub use prompt::{DeniedPaths, GitState, InstructionOptions, git_state};
pub use request::build_request;
pub use title::fallback_title;
