//! The frames of a chat completions stream, read leniently: only fields that matter have a type.

use lorimer_protocol::{Failure, FinishReason, TokenUsage};
use serde::Deserialize;
use serde_json::Value;

use crate::failure;

/// One frame.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Frame {
    #[serde(default)]
    pub choices: Option<Vec<Choice>>,
    #[serde(default)]
    pub usage: Option<Value>,
    #[serde(default)]
    pub error: Option<Value>,
}

/// One of the answers of a frame; only the first answer is asked for.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(default)]
    pub delta: Option<Delta>,
    #[serde(default)]
    pub finish_reason: Option<String>,
}

/// What a frame adds.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    pub reasoning_content: Option<String>,
    /// The name that some servers give `reasoning_content`.
    #[serde(default)]
    pub reasoning: Option<Value>,
    #[serde(default)]
    pub content: Option<String>,
    #[serde(default)]
    pub tool_calls: Option<Vec<CallDelta>>,
}

/// What a frame adds to a tool call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CallDelta {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub function: Option<FunctionDelta>,
}

/// Name and arguments of a tool call's piece.
#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta {
    #[serde(default)]
    pub name: Option<String>,
    /// Raw text, or (from some servers) the parsed object.
    #[serde(default)]
    pub arguments: Option<Value>,
}

/// Counts of the wire's `usage` object; a missing count is zero, and a value of another shape counts nothing.
pub(crate) fn usage_from_wire(usage: &Value) -> Option<TokenUsage> {
    let count = |value: Option<&Value>| value.and_then(Value::as_u64);
    let fields = usage.as_object()?;
    let detail = |group: &str, name: &str| count(fields.get(group).and_then(|group| group.get(name)));
    let cache_read_tokens = detail("prompt_tokens_details", "cached_tokens")
        .or_else(|| count(fields.get("prompt_cache_hit_tokens")));
    let prompt_tokens = count(fields.get("prompt_tokens")).unwrap_or(0);
    Some(TokenUsage {
        input_tokens: prompt_tokens.saturating_sub(cache_read_tokens.unwrap_or(0)),
        output_tokens: count(fields.get("completion_tokens")).unwrap_or(0),
        cache_read_tokens,
        cache_write_tokens: None,
        reasoning_tokens: detail("completion_tokens_details", "reasoning_tokens"),
    })
}

/// A finish reason of the wire; one that is not known is an error with its name as the code.
pub(crate) fn finish_reason(wire: &str) -> FinishReason {
    match wire {
        "stop" => FinishReason::Stop,
        "tool_calls" => FinishReason::ToolCalls,
        "length" => FinishReason::MaxTokens,
        other => {
            let name = failure::safe_text(other, failure::MAX_EXCERPT_CHARS);
            let message = format!("the model stopped with the reason \"{name}\"");
            FinishReason::Error { failure: Failure::new(name.to_uppercase(), message) }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_counts_of_both_dialects() {
        let usage = usage_from_wire(&json!({
            "prompt_tokens": 100, "completion_tokens": 7, "prompt_cache_hit_tokens": 64,
            "completion_tokens_details": {"reasoning_tokens": 3},
        }));
        let expected = TokenUsage {
            input_tokens: 36,
            output_tokens: 7,
            cache_read_tokens: Some(64),
            cache_write_tokens: None,
            reasoning_tokens: Some(3),
        };
        assert_eq!(usage, Some(expected));
        let detailed = json!({"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":4},"prompt_cache_hit_tokens":9});
        assert_eq!(usage_from_wire(&detailed).map(|usage| usage.input_tokens), Some(6));
        assert_eq!(usage_from_wire(&json!(null)), None);
    }
}
