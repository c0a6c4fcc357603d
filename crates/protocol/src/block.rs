//! Content blocks (core spec 2.1). The set is open: unknown types are kept as they came.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, Extra};

/// One piece of a message. Tagged by `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ContentBlock {
    /// Plain text.
    Text(TextBlock),
    /// What the model thought, exactly as streamed.
    Reasoning(ReasoningBlock),
    /// A durable image reference; the bytes live in an attachment store.
    Image(ImageBlock),
    /// The model asks for a tool.
    ToolCall(ToolCallBlock),
    /// What a tool call came to.
    ToolResult(ToolResultBlock),
    /// A block of another type, or one that is malformed for its type: kept verbatim, and skipped by serializers.
    #[serde(untagged)]
    Unknown(Value),
}

/// The fields of a `text` block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The fields of a `reasoning` block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReasoningBlock {
    /// The reasoning text; may be empty when the provider streamed the field empty.
    pub text: String,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The fields of an `image` block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ImageBlock {
    /// `{attachmentId, mediaType, bytes, width, height, name?, originalDimensions?}`.
    pub attachment: Value,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The fields of a `tool-call` block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCallBlock {
    /// The call's id.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The raw JSON text exactly as the model sent it.
    pub arguments: String,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The fields of a `tool-result` block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResultBlock {
    /// The call that is answered.
    pub tool_call_id: CallId,
    /// What the model is shown.
    pub content: Vec<ContentBlock>,
    /// Whether the call failed; always present on results made live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ContentBlock {
    /// A `text` block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock { text: text.into(), extra: Extra::new() })
    }

    /// A `reasoning` block.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::Reasoning(ReasoningBlock { text: text.into(), extra: Extra::new() })
    }

    /// A `tool-call` block.
    pub fn tool_call(id: impl Into<CallId>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::ToolCall(ToolCallBlock {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            extra: Extra::new(),
        })
    }

    /// The text of a `text` block, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}
