//! What a provider streams (core spec 2.3), persisted one by one as `assistant/chunk`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CallId, ContentBlock};

/// One streamed piece. Tagged by `type`. Usage comes before finish; nothing follows finish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum StreamChunk {
    /// A block opens.
    BlockStart {
        /// Block index; blocks are ordered by first appearance.
        index: u32,
        /// `text`, `reasoning`, `tool-call`, ….
        block_type: String,
    },
    /// More text.
    TextDelta {
        /// Block index.
        index: u32,
        /// The piece.
        text: String,
    },
    /// More reasoning.
    ReasoningDelta {
        /// Block index.
        index: u32,
        /// The piece.
        text: String,
    },
    /// More of a tool call's arguments.
    ToolCallDelta {
        /// Block index.
        index: u32,
        /// Call id; the last one wins.
        id: CallId,
        /// Tool name when known.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The piece of raw JSON.
        arguments_delta: String,
    },
    /// A block closes; its content is authoritative.
    BlockEnd {
        /// Block index.
        index: u32,
        /// The whole block.
        block: ContentBlock,
    },
    /// Token counts of this reply.
    Usage {
        /// The counts.
        usage: TokenUsage,
    },
    /// The reply ended.
    Finish {
        /// How.
        reason: FinishReason,
        /// Opaque adapter data for lossless continuation.
        #[serde(skip_serializing_if = "Option::is_none")]
        replay_state: Option<Value>,
    },
    /// Anything else, verbatim.
    #[serde(untagged)]
    Unknown(Value),
}

/// How a reply ended. Tagged by `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FinishReason {
    /// The model is done.
    Stop,
    /// The model waits for tool results.
    ToolCalls,
    /// The output limit was reached.
    MaxTokens,
    /// The caller cancelled.
    Aborted {
        /// What is known of it.
        failure: Failure,
    },
    /// The request failed.
    Error {
        /// What is known of it.
        failure: Failure,
    },
}

/// A failed request in the provider's words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// For a person.
    pub message: String,
    /// For a program: `AUTH`, `RATE_LIMIT`, `STREAM_CLOSED`, ….
    pub code: String,
    /// HTTP status, 100–599.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the provider asks to wait, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_retry_after_ms: Option<u64>,
    /// The provider's id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl Failure {
    /// A failure with a code and a message.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), code: code.into(), ..Self::default() }
    }
}

/// Token counts. The parts are disjoint: `input_tokens` leaves out what the cache served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Prompt tokens not read from a cache.
    pub input_tokens: u64,
    /// Generated tokens, reasoning included.
    pub output_tokens: u64,
    /// Prompt tokens read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Prompt tokens written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// The reasoning part of `output_tokens`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl TokenUsage {
    /// All tokens of the prompt, cached or not.
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens + self.cache_read_tokens.unwrap_or(0) + self.cache_write_tokens.unwrap_or(0)
    }

    /// Adds another reply's counts.
    pub fn add(&mut self, other: &TokenUsage) {
        fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
            }
        }
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens = sum(self.cache_read_tokens, other.cache_read_tokens);
        self.cache_write_tokens = sum(self.cache_write_tokens, other.cache_write_tokens);
        self.reasoning_tokens = sum(self.reasoning_tokens, other.reasoning_tokens);
    }
}
