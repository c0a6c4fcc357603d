//! What goes to the model beside the messages: header, context, retries, pruning.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Extra, Failure};

/// `request/header`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestHeaderEvent {
    /// What every request sends beside its messages.
    pub header: RequestHeader,
    /// Why it is logged.
    pub reason: RequestHeaderReason,
}

/// Why a request header is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RequestHeaderReason {
    /// First of the session.
    Initial,
    /// First of this process.
    Resume,
    /// It differs from the last.
    Change,
}

/// Model, sampling, system prompt and tools of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequestHeader {
    /// Route and sampling.
    pub config: CallConfig,
    /// Which config fields the adapter filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter_defaults: Option<AdapterDefaults>,
    /// The system prompt; absent when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The tools that are offered; absent when there are none.
    // Recorded logs may hold a placeholder here, so it is kept as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<ToolSpec>>"))]
    pub tools: Option<Value>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl RequestHeader {
    /// The tools as specs; empty when absent or of another shape.
    pub fn tool_specs(&self) -> Vec<ToolSpec> {
        self.tools.as_ref().and_then(|tools| Vec::<ToolSpec>::deserialize(tools).ok()).unwrap_or_default()
    }
}

/// Route and sampling of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallConfig {
    /// Provider route id.
    pub provider: String,
    /// Model id.
    pub model: String,
    /// Effort id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Output limit in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Stop sequences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Config fields that the adapter filled in; each `true` or absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AdapterDefaults {
    /// The effort is the adapter's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<bool>,
    /// The output limit is the adapter's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<bool>,
}

/// What the model is told of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolSpec {
    /// The name it is called by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// `request/context`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequestContext {
    /// Provider route id.
    pub provider: String,
    /// Model id.
    pub model: String,
    /// The model's window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

/// `llm/retry`: a failed request will be repeated after a wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LlmRetry {
    /// Names the retry.
    pub retry_id: String,
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// Provider route id.
    pub provider: String,
    /// Whether retries are bounded.
    pub mode: RetryMode,
    /// The bound, for `normal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Identifies the policy that decided.
    pub policy_key: String,
    /// 1-based count.
    pub retry: u32,
    /// The wait in milliseconds.
    pub delay_ms: u64,
    /// Why.
    pub failure: Failure,
}

/// Whether retries are bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RetryMode {
    /// Up to a count.
    Normal,
    /// Until success or cancellation.
    Always,
}

/// `llm/retry-started`: the wait is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LlmRetryStarted {
    /// Names the retry.
    pub retry_id: String,
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// 1-based count.
    pub retry: u32,
}

/// `compaction/prune`: the next event replaces a tool result by a shorter one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionPrune {
    /// First and last shadowed seq.
    pub shadowed_range: SeqRange,
    /// All shadowed seqs.
    pub shadowed_seqs: Vec<u64>,
    /// Their estimated tokens.
    pub shadowed_token_count: u64,
}

/// First and last seq, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeqRange {
    /// First.
    pub start: u64,
    /// Last.
    pub end: u64,
}
