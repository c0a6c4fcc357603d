//! Calls, their results and the todo list.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, Message};

/// `tool/call`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// The call.
    pub call_id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The raw text of the arguments.
    pub arguments: String,
}

/// `tool/result`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// A user message with exactly one `tool-result` block.
    pub message: Message,
    /// Only for typed errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// What the tool keeps for its card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A typed error's name and code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorInfo {
    /// `FsError`, `ToolArgsError`, ….
    pub name: String,
    /// `FS_NOT_FOUND`, `INVALID_ARGS`, ….
    pub code: String,
}

impl ErrorInfo {
    /// An error's name and code.
    pub fn new(name: impl Into<String>, code: impl Into<String>) -> Self {
        Self { name: name.into(), code: code.into() }
    }
}

/// `todo/write`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoWrite {
    /// The whole list.
    pub todos: Vec<TodoItem>,
}

/// One item of the todo list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoItem {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a todo item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}
