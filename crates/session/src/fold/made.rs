//! Payloads that the fold takes as they were made, without reading what was written of them.

use lorimer_protocol::{AssistantMessage, ContentBlock, ErrorInfo, Message, Source};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The payload of an event that was just written.
pub(super) enum Made {
    Result(ResultData),
    Reply(AssistantMessage),
}

/// A `tool/result` whose `meta` stays text: the fold only carries it on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResultData {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// A user message with exactly one `tool-result` block.
    pub message: Message,
    /// Only for typed errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// What the tool keeps for its card, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl ResultData {
    /// Whether reading what this is written as gives the same for certain: with nothing but text and known fields
    /// there is nothing that JSON could change. A fold of it is then the fold of its event.
    pub(super) fn reads_back_equal(&self) -> bool {
        let message = &self.message;
        let is_plain =
            |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if text.extra.is_empty());
        message.extra.is_empty()
            && matches!(&message.source, Source::Tool { extra, .. } if extra.is_empty())
            && message
                .tool_result()
                .is_some_and(|result| result.extra.is_empty() && result.content.iter().all(is_plain))
            && self.meta.as_ref().is_none_or(|meta| meta.get() != "null")
    }
}

/// The same of a reply.
pub(super) fn reply_reads_back_equal(data: &AssistantMessage) -> bool {
    let message = &data.message;
    let is_plain = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => text.extra.is_empty(),
        ContentBlock::Reasoning(reasoning) => reasoning.extra.is_empty(),
        ContentBlock::ToolCall(call) => call.extra.is_empty(),
        _ => false,
    };
    message.extra.is_empty()
        && matches!(&message.source, Source::Model { replay_state: None, extra, .. } if extra.is_empty())
        && message.content.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use lorimer_protocol::{Extra, Role, TokenUsage, ToolResultBlock};
    use serde_json::json;

    use super::*;

    fn data(content: Vec<ContentBlock>) -> ResultData {
        let block = ToolResultBlock { tool_call_id: "c".into(), content, ..ToolResultBlock::default() };
        let message = Message {
            id: "m".into(),
            role: Role::User,
            content: vec![ContentBlock::ToolResult(block)],
            source: Source::tool("c".into()),
            extra: Extra::new(),
        };
        ResultData { turn: 1, step: 2, message, error: None, meta: None }
    }

    #[test]
    fn a_reply_of_known_blocks_is_taken_as_it_was_made() {
        let source = Source::Model {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            replay_state: None,
            extra: Extra::new(),
        };
        let blocks = [
            ContentBlock::reasoning(""),
            ContentBlock::text("é\u{7}"),
            ContentBlock::tool_call("c", "read", "{\"a\" : 1"),
        ];
        let message = Message {
            id: "m".into(),
            role: Role::Assistant,
            content: blocks.to_vec(),
            source,
            extra: Extra::new(),
        };
        let usage =
            TokenUsage { input_tokens: u64::MAX, cache_read_tokens: Some(0), ..TokenUsage::default() };
        let made =
            AssistantMessage { turn: 1, step: 1, message, usage: Some(usage), interrupted: Some(true) };
        assert!(reply_reads_back_equal(&made));
        let read: AssistantMessage = serde_json::from_str(&serde_json::to_string(&made).unwrap()).unwrap();
        assert_eq!(read, made);
        let mut kept = made;
        if let Source::Model { replay_state, .. } = &mut kept.message.source {
            *replay_state = Some(json!(null));
        }
        assert!(!reply_reads_back_equal(&kept));
    }

    #[test]
    fn only_text_is_taken_as_it_was_made() {
        let texts = vec![ContentBlock::text("a\u{0}\"\\é"), ContentBlock::text("")];
        let made = data(texts);
        assert!(made.reads_back_equal());
        let read: ResultData = serde_json::from_str(&serde_json::to_string(&made).unwrap()).unwrap();
        assert_eq!(read.message, made.message);
        let odd = ContentBlock::Unknown(json!({"type": "text", "text": "known after all"}));
        assert!(!data(vec![odd]).reads_back_equal());
        let mut extra = data(Vec::new());
        extra.message.extra.insert("k".to_owned(), json!(1));
        assert!(!extra.reads_back_equal());
    }
}
