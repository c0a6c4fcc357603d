//! The one trait every model sits behind.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use lorimer_protocol::{CallConfig, Failure, Message, StreamChunk, ToolSpec};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::{Attachment, Prices};

/// What one reply is made from. Built from the session log alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// Route and sampling.
    pub config: CallConfig,
    /// The system prompt, when there is one.
    pub system: Option<String>,
    /// The tools, in the order they are sent.
    pub tools: Arc<Vec<ToolSpec>>,
    /// The conversation, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The bytes of the images that the messages name, by `attachmentId`. An image without bytes here, or for a model
    /// that takes text only, is sent as a line of text.
    pub attachments: Arc<BTreeMap<String, Attachment>>,
}

/// The pieces of one reply. Ends after its only [`StreamChunk::Finish`].
pub type ChunkStream = Pin<Box<dyn Stream<Item = StreamChunk> + Send>>;

/// What is known of a model before it is called.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelInfo {
    /// The id that is sent.
    pub id: String,
    /// The name that is shown.
    pub name: String,
    /// Window in tokens, when known.
    pub context_window: Option<u64>,
    /// Output limit in tokens that is asked for when the caller names none.
    pub default_max_tokens: Option<u64>,
    /// Effort ids the model takes; empty when it has none.
    pub efforts: Vec<String>,
    /// The effort that is asked for when the caller names none.
    pub default_effort: Option<String>,
    /// Whether image blocks may be sent.
    pub accepts_images: bool,
    /// What its tokens cost, when that is configured.
    pub prices: Option<Prices>,
}

/// How often and how long after one another a failed request is repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Identifies the policy in `llm/retry` events.
    pub key: String,
    /// Most repeats of one request.
    pub max_retries: u32,
    /// Failure codes that are worth a repeat.
    pub retryable_codes: Vec<String>,
    /// First wait in milliseconds; doubled each time.
    pub initial_delay_ms: u64,
    /// Longest wait of our own in milliseconds.
    pub max_delay_ms: u64,
    /// Longest `Retry-After` that is obeyed, in milliseconds; beyond it the failure stands.
    pub max_retry_after_ms: u64,
    /// Share of the wait that is random, 0 to 1.
    pub jitter_ratio: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        let codes = ["EMPTY_RESPONSE", "RATE_LIMIT", "SERVER", "TIMEOUT", "TRANSPORT", "STREAM_CLOSED"];
        Self {
            key: "default".to_owned(),
            max_retries: 5,
            retryable_codes: codes.map(str::to_owned).to_vec(),
            initial_delay_ms: 500,
            max_delay_ms: 10_000,
            max_retry_after_ms: 120_000,
            jitter_ratio: 0.1,
        }
    }
}

/// A call that cannot be made at all.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ModelError {
    /// The provider needs a key and has none.
    #[error("{provider} needs a key: set {variable}, or run with `-m offline` for the keyless demo model")]
    MissingCredential {
        /// Provider route id.
        provider: String,
        /// The environment variable that would hold it.
        variable: String,
    },
    /// The key cannot be sent in a header. The key itself is never shown.
    #[error("the key in {variable} is not usable: it must be printable ASCII without spaces; set it again")]
    InvalidCredential {
        /// The environment variable that holds it.
        variable: String,
    },
    /// No such provider.
    #[error("there is no provider \"{name}\"{}; see `lorimer models`", hint(nearest.as_ref()))]
    UnknownProvider {
        /// As it was asked for.
        name: String,
        /// The nearest known id.
        nearest: Option<String>,
    },
    /// No such model at this provider.
    #[error("{provider} has no model \"{model}\"{}; see `lorimer models`", hint(nearest.as_ref()))]
    UnknownModel {
        /// Provider route id.
        provider: String,
        /// As it was asked for.
        model: String,
        /// The nearest known id.
        nearest: Option<String>,
    },
    /// The model has no such effort.
    #[error("{model} does not take the effort \"{effort}\"; it takes: {}", efforts(offered))]
    UnsupportedEffort {
        /// Model id.
        model: String,
        /// As it was asked for.
        effort: String,
        /// What it takes.
        offered: Vec<String>,
    },
    /// Anything else that makes the provider unusable: a bad base URL, an unreadable script, ….
    #[error("{provider} cannot be used: {reason}")]
    Unusable {
        /// Provider route id.
        provider: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

fn efforts(offered: &[String]) -> String {
    match offered.is_empty() {
        true => "none; leave it out".to_owned(),
        false => offered.join(", "),
    }
}

fn hint(nearest: Option<&String>) -> String {
    nearest.map(|name| format!(" (did you mean \"{name}\"?)")).unwrap_or_default()
}

impl ModelError {
    /// The error's code in logs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingCredential { .. } => "MISSING_CREDENTIAL",
            Self::InvalidCredential { .. } => "INVALID_CREDENTIAL",
            Self::UnknownProvider { .. } => "NO_ADAPTER",
            Self::UnknownModel { .. } => "UNKNOWN_MODEL",
            Self::UnsupportedEffort { .. } => "UNSUPPORTED_REASONING_EFFORT",
            Self::Unusable { .. } => "UNUSABLE_PROVIDER",
        }
    }

    /// The error as a failed finish.
    pub fn failure(&self) -> Failure {
        Failure::new(self.code(), self.to_string())
    }
}

/// A source of model replies.
pub trait Provider: Send + Sync {
    /// Route id, the part of `-m` before the first `/`.
    fn id(&self) -> &str;

    /// Name for people.
    fn name(&self) -> &str;

    /// The models that are known, for listing. Advisory: a provider may take others.
    fn models(&self) -> Vec<ModelInfo>;

    /// What the provider needs before it can be called, in one line; `None` when it is ready.
    fn missing(&self) -> Option<ModelError>;

    /// What is known of one model.
    ///
    /// # Errors
    /// When the provider does not have it, or cannot be used at all.
    fn resolve(&self, model: &str) -> Result<ModelInfo, ModelError>;

    /// How failed requests are repeated.
    fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy::default()
    }

    /// Asks for one reply. Cancelling `cancel` ends the stream with a finish of kind `aborted`.
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ChunkStream;
}
