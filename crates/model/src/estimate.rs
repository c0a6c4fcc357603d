//! The token estimator: a fixed rule that live use and replay share.
//!
//! It prices four UTF-16 units as one token and adds a constant for each block and each message. It is rough by
//! design; a provider's own counts take precedence wherever they exist.

use lorimer_protocol::{ContentBlock, Message, ToolSpec};
use serde::Serialize;

const UNITS_PER_TOKEN: u64 = 4;
const TOKENS_PER_BLOCK: u64 = 4;
const TOKENS_PER_MESSAGE: u64 = 4;

/// Tokens of one message, with its role and its blocks.
pub fn estimate_message_tokens(message: &Message) -> u64 {
    TOKENS_PER_MESSAGE + message.content.iter().map(block_tokens).sum::<u64>()
}

/// Tokens of what every request sends beside its messages. An absent part costs nothing.
pub fn estimate_header_tokens(system: Option<&str>, tools: &[ToolSpec]) -> u64 {
    let system = system.map_or(0, |text| text_tokens(text) + TOKENS_PER_BLOCK);
    let tools = if tools.is_empty() { 0 } else { json_tokens(tools) + TOKENS_PER_BLOCK };
    system + tools
}

/// Tokens of a piece of text alone.
pub(crate) fn text_tokens(text: &str) -> u64 {
    let units = if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
    (units as u64).div_ceil(UNITS_PER_TOKEN)
}

fn block_tokens(block: &ContentBlock) -> u64 {
    let inner = match block {
        ContentBlock::Text(block) => text_tokens(&block.text),
        ContentBlock::Reasoning(block) => text_tokens(&block.text),
        ContentBlock::ToolCall(call) => text_tokens(&call.name) + text_tokens(&call.arguments),
        ContentBlock::ToolResult(result) => result.content.iter().map(block_tokens).sum(),
        ContentBlock::Image(_) | ContentBlock::Unknown(_) => json_tokens(block),
    };
    inner + TOKENS_PER_BLOCK
}

fn json_tokens<T: Serialize + ?Sized>(value: &T) -> u64 {
    serde_json::to_string(value).map_or(0, |json| text_tokens(&json))
}

#[cfg(test)]
mod tests {
    use lorimer_protocol::Source;
    use serde_json::json;

    use super::*;

    fn message(content: serde_json::Value) -> Message {
        let mut message = Message::user_text("m", "", Source::user());
        message.content = serde_json::from_value(content).unwrap();
        message
    }

    #[test]
    fn prices_each_kind_of_block() {
        assert_eq!(estimate_message_tokens(&message(json!([]))), 4);
        assert_eq!(estimate_message_tokens(&message(json!([{"type":"text","text":"abcde"}]))), 4 + 4 + 2);
        assert_eq!(estimate_message_tokens(&message(json!([{"type":"reasoning","text":"😀😀"}]))), 4 + 4 + 1);
        let call = json!([{"type":"tool-call","id":"x","name":"read","arguments":"{\"a\":1}"}]);
        assert_eq!(estimate_message_tokens(&message(call)), 4 + 4 + 1 + 2);
        let result =
            json!([{"type":"tool-result","toolCallId":"x","content":[{"type":"text","text":"abcd"}]}]);
        assert_eq!(estimate_message_tokens(&message(result)), 4 + 4 + (4 + 1));
        let unknown = json!([{"type":"x","a":1}]);
        assert_eq!(estimate_message_tokens(&message(unknown)), 4 + 4 + 5);
    }

    #[test]
    fn prices_the_header() {
        assert_eq!(estimate_header_tokens(None, &[]), 0);
        assert_eq!(estimate_header_tokens(Some("abcde"), &[]), 6);
        let tool = ToolSpec { name: "a".into(), description: "b".into(), parameters: json!({}) };
        let json = r#"[{"name":"a","description":"b","parameters":{}}]"#;
        assert_eq!(estimate_header_tokens(None, &[tool]), (json.len() as u64).div_ceil(4) + 4);
    }
}
