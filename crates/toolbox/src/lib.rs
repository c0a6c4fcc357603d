//! The tools a model may call on a person's files: read, write, edit, glob, grep, bash and todo_write.
//!
//! What must hold:
//! - A tool ends soon after its caller cancels, whatever the file system does; no file can hang it or swell it.
//! - What is outside of an edit's match keeps its bytes.
//! - What a deny rule forbids, nothing allows.
//! - Cards are pure functions of logged data.

mod bash;
mod deny;
mod edit;
mod escalation;
mod files;
mod protected;
mod question;
mod read;
mod search;
mod todo;
mod write;

pub use bash::{
    AskAboutCommands, BashArgs, BashOptions, BashOutput, BashTool, Confinement, ConfinementOptions,
    ForegroundKind, StreamOutput,
};
pub use deny::{BadDenyRule, DenyRules};
pub use edit::{EditOptions, EditTool, EditValue};
pub use escalation::{Escalation, WiderMode};
pub use files::{FsCode, FsError, FsTarget, ModeFence, WriteFence, WriteRequest};
pub use question::{
    Answer, AskUserQuestionTool, Question, QuestionOption, QuestionRequest, Questioner, Unanswered,
};
pub use read::{ReadLine, ReadMeta, ReadOptions, ReadTool, ReadValue, read_meta_from_meta};
pub use search::{GlobArgs, GlobOutput, GlobTool, GrepArgs, GrepMatch, GrepOutput, GrepTool, SearchOptions};
pub use todo::TodoWriteTool;
pub use write::{WriteOperation, WriteOptions, WriteTool, WriteValue};
