//! The tools a model may call on a person's files: read, write, edit, glob, grep, bash and todo_write.
//!
//! What must hold:
//! - A tool ends soon after its caller cancels, whatever the file system does; no file can hang it or swell it.
//! - What is outside of an edit's match keeps its bytes.
//! - Cards are pure functions of logged data.

mod bash;
mod search;

pub use bash::{BashArgs, BashOptions, BashOutput, BashTool, ForegroundKind, StreamOutput};
pub use search::{GlobArgs, GlobOutput, GlobTool, GrepArgs, GrepMatch, GrepOutput, GrepTool, SearchOptions};
