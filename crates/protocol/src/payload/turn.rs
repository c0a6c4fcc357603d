//! Turns, steps and what the model said in them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Failure, Message, StreamChunk, TokenUsage};

/// `turn/start`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnStart {
    /// 1-based, increasing by one.
    pub turn: u64,
}

/// `turn/end`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnEnd {
    /// The open turn.
    pub turn: u64,
    /// Why it ended.
    pub reason: TurnEndReason,
}

/// Why a turn ended. Tagged by `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TurnEndReason {
    /// The model finished.
    Completed,
    /// The input was refused.
    Blocked,
    /// The output limit cut the answer.
    MaxTokens,
    /// Written by recovery: the process died.
    Interrupted,
    /// Cancelled.
    Aborted {
        /// By whom.
        reason: AbortCause,
    },
    /// Failed.
    Error {
        /// How.
        error: Failure,
    },
    /// A reason of a later version, verbatim.
    #[serde(untagged)]
    Other(Value),
}

/// Who cancelled a turn. Tagged by `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AbortCause {
    /// The person.
    User,
    /// The agent that delegated.
    Parent,
    /// A hook.
    Hook {
        /// In the hook's words.
        reason: String,
    },
    /// The host shut down.
    Disposed,
    /// A log of an older writer.
    Legacy,
}

/// `step/start`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepStart {
    /// The open turn.
    pub turn: u64,
    /// 1-based within the turn.
    pub step: u64,
}

/// `step/end`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepEnd {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
}

/// `assistant/chunk`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssistantChunk {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// What was streamed.
    pub chunk: StreamChunk,
}

/// `assistant/message`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssistantMessage {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// The reply.
    pub message: Message,
    /// Token counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// `true` when a cancellation cut it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<bool>,
}
