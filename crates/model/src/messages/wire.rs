//! The events of a Messages stream, read leniently: only fields that matter have a type.

use lorimer_protocol::{Failure, FinishReason, TokenUsage};
use serde::Deserialize;
use serde_json::Value;

use crate::failure;

/// One event.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event {
    #[serde(default)]
    pub r#type: Option<String>,
    #[serde(default)]
    pub index: Option<u64>,
    /// Of `message_start`; holds the first counts.
    #[serde(default)]
    pub message: Option<Value>,
    #[serde(default)]
    pub content_block: Option<Piece>,
    #[serde(default)]
    pub delta: Option<Piece>,
    #[serde(default)]
    pub usage: Option<Value>,
    #[serde(default)]
    pub error: Option<Value>,
    /// Of chat completions, which this is not.
    #[serde(default)]
    pub choices: Option<Value>,
}

/// A block as it starts, or what is added to one.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Piece {
    #[serde(default)]
    pub r#type: Option<String>,
    #[serde(default)]
    pub text: Option<String>,
    #[serde(default)]
    pub thinking: Option<String>,
    #[serde(default)]
    pub signature: Option<String>,
    #[serde(default)]
    pub data: Option<String>,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub input: Option<Value>,
    #[serde(default)]
    pub partial_json: Option<String>,
    #[serde(default)]
    pub stop_reason: Option<String>,
}

/// Counts so far; later events repeat and add some.
#[derive(Debug, Default)]
pub(super) struct Counts {
    seen: bool,
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
}

impl Counts {
    /// Takes what a `usage` object says and leaves what it does not.
    pub(super) fn take(&mut self, usage: &Value) {
        let count = |name: &str| usage.get(name).and_then(Value::as_u64);
        self.seen |= usage.is_object();
        self.input = count("input_tokens").or(self.input);
        self.output = count("output_tokens").or(self.output);
        self.cache_read = count("cache_read_input_tokens").or(self.cache_read);
        self.cache_write = count("cache_creation_input_tokens").or(self.cache_write);
    }

    /// The counts, when there were any. The wire's `input_tokens` leaves out what the cache had to do with already.
    pub(super) fn usage(&self) -> Option<TokenUsage> {
        self.seen.then(|| TokenUsage {
            input_tokens: self.input.unwrap_or(0),
            output_tokens: self.output.unwrap_or(0),
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            reasoning_tokens: None,
        })
    }
}

/// A stop reason of the wire; one that is not known is an error with its name as the code.
///
/// `pause_turn` only follows tools that run on the server, of which none is ever asked for: it is a plain stop.
pub(super) fn finish_reason(wire: &str) -> FinishReason {
    let error = |code: &str, message: &str| FinishReason::Error { failure: Failure::new(code, message) };
    match wire {
        "end_turn" | "stop_sequence" | "pause_turn" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" => FinishReason::MaxTokens,
        "refusal" => error(
            "REFUSAL",
            "the model refused to answer: rephrase the request, or choose another model with -m",
        ),
        "model_context_window_exceeded" => {
            error("CONTEXT_WINDOW_EXCEEDED", "the reply went beyond the model's context window")
        }
        other => {
            let name = failure::safe_text(other, failure::MAX_EXCERPT_CHARS);
            error(&name.to_uppercase(), &format!("the model stopped with the reason \"{name}\""))
        }
    }
}
