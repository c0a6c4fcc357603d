//! What the model is told beside the conversation: the system prompt, the runtime context, instruction files.

mod context;
mod git;
mod instructions;
mod local_time;
mod own_folders;
mod system;

pub(crate) use context::snapshot_message;
pub use git::{GitState, git_state};
pub(crate) use instructions::Instructions;
pub use instructions::{DeniedPaths, InstructionOptions};
pub(crate) use own_folders::OwnFolders;
pub(crate) use system::system_prompt;
