//! How a call ended.

use lorimer_protocol::{ContentBlock, ErrorInfo, Message};
use serde_json::Value;
use thiserror::Error;

use crate::meta::Meta;

/// A failed call. The model reads `Error: <message>`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ToolError {
    /// What happened, to what, and what to do.
    pub message: String,
    /// Name and code, for typed errors only.
    pub info: Option<ErrorInfo>,
}

impl ToolError {
    /// A failure without a code.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { message: message.into(), info: None }
    }

    /// A failure with a name and a code.
    pub fn typed(name: &str, code: &str, message: impl Into<String>) -> Self {
        Self { message: message.into(), info: Some(ErrorInfo::new(name, code)) }
    }

    /// The caller cancelled while the body ran.
    pub fn aborted() -> Self {
        Self::typed("AbortError", "ABORTED", "tool call aborted")
    }

    /// The caller cancelled before the body ran.
    pub fn aborted_before_dispatch() -> Self {
        Self::typed("AbortError", "ABORTED_BEFORE_DISPATCH", "tool call aborted before dispatch")
    }

    /// No tool of this name is visible.
    pub fn unknown_tool(name: &str) -> Self {
        Self::typed("ToolNotFoundError", "UNKNOWN_TOOL", format!("unknown tool \"{name}\""))
    }

    /// The error's code, if it has one.
    pub fn code(&self) -> Option<&str> {
        self.info.as_ref().map(|info| info.code.as_str())
    }
}

/// How a call ended: what is logged and what goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What the model is shown.
    pub content: Vec<ContentBlock>,
    /// Whether it failed.
    pub is_error: bool,
    /// Name and code of a typed failure.
    pub error: Option<ErrorInfo>,
    /// What is stored for the card.
    pub meta: Option<Meta>,
    /// The canonical value of a success that no policy replaced by content, when values are kept.
    pub value: Option<Value>,
    /// Messages for the model's next step, in order.
    pub contexts: Vec<Message>,
    /// Whether the turn ends after this step.
    pub concludes_turn: bool,
}

impl Outcome {
    /// A failure.
    pub fn failed(error: &ToolError) -> Self {
        Self {
            content: vec![ContentBlock::text(format!("Error: {}", error.message))],
            is_error: true,
            error: error.info.clone(),
            meta: None,
            value: None,
            contexts: Vec::new(),
            concludes_turn: false,
        }
    }

    /// All text blocks joined; `None` when there is any other block.
    pub fn plain_text(&self) -> Option<String> {
        self.content.iter().map(ContentBlock::as_text).collect()
    }
}
