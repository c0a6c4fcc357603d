//! Messages (core spec 2.2) and where they came from.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::{CallId, ContentBlock, Extra, MessageId, ToolResultBlock};

/// Who speaks. A tool result is a `user` message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions of the harness.
    System,
    /// The person, the harness on the person's behalf, or a tool.
    User,
    /// The model.
    Assistant,
}

/// Where a message came from. Tagged by `kind`; unknown kinds are kept verbatim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// Typed by a person.
    User {
        /// Unknown fields.
        #[serde(flatten)]
        extra: Extra,
    },
    /// Made by a part of the harness.
    Plugin {
        /// Which part.
        plugin: String,
        /// `form`, `sections`, `summary` and others.
        #[serde(flatten)]
        extra: Extra,
    },
    /// Said by a model.
    Model {
        /// Provider route id.
        provider: String,
        /// Model id.
        model: String,
        /// Opaque adapter data for lossless continuation.
        #[serde(rename = "replayState", skip_serializing_if = "Option::is_none")]
        replay_state: Option<Value>,
        /// Unknown fields.
        #[serde(flatten)]
        extra: Extra,
    },
    /// Returned by a tool call.
    Tool {
        /// The call.
        #[serde(rename = "callId")]
        call_id: CallId,
        /// Unknown fields.
        #[serde(flatten)]
        extra: Extra,
    },
    /// Any other kind (`agent-instructions`, `goal`, `subagent-report`, …), verbatim.
    #[serde(untagged)]
    Other(Value),
}

impl Source {
    /// A person's message.
    pub fn user() -> Self {
        Self::User { extra: Extra::new() }
    }

    /// A tool's message.
    pub fn tool(call_id: CallId) -> Self {
        Self::Tool { call_id, extra: Extra::new() }
    }

    /// The `kind` tag, or an empty string when there is none.
    pub fn kind(&self) -> &str {
        match self {
            Self::User { .. } => "user",
            Self::Plugin { .. } => "plugin",
            Self::Model { .. } => "model",
            Self::Tool { .. } => "tool",
            Self::Other(value) => value.get("kind").and_then(Value::as_str).unwrap_or(""),
        }
    }
}

/// One message of the conversation. Immutable once made.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message {
    /// UUID v4, except for synthetic messages.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// The blocks.
    pub content: Vec<ContentBlock>,
    /// Where it came from.
    pub source: Source,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Message {
    /// A user message with one text block.
    pub fn user_text(id: impl Into<MessageId>, text: impl Into<String>, source: Source) -> Self {
        Self {
            id: id.into(),
            role: Role::User,
            content: vec![ContentBlock::text(text)],
            source,
            extra: Extra::new(),
        }
    }

    /// All text blocks joined without a separator.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect()
    }

    /// The one `tool-result` block of a tool's message.
    pub fn tool_result(&self) -> Option<&ToolResultBlock> {
        match self.content.as_slice() {
            [ContentBlock::ToolResult(block)] => Some(block),
            _ => None,
        }
    }
}

/// Writes the keys in the order DSH emits for this kind of message (core spec 2.2).
impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match (self.role, &self.source) {
            (Role::Assistant, _) => {
                map.serialize_entry("role", &self.role)?;
                map.serialize_entry("content", &self.content)?;
                map.serialize_entry("source", &self.source)?;
            }
            (_, Source::Tool { .. }) => {
                map.serialize_entry("source", &self.source)?;
                map.serialize_entry("content", &self.content)?;
                map.serialize_entry("role", &self.role)?;
            }
            _ => {
                map.serialize_entry("content", &self.content)?;
                map.serialize_entry("source", &self.source)?;
                map.serialize_entry("role", &self.role)?;
            }
        }
        map.serialize_entry("id", &self.id)?;
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
