//! The payload of a `tool/result`, as the fold takes it.

use lorimer_protocol::{ContentBlock, ErrorInfo, Message, Source};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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

#[cfg(test)]
mod tests {
    use lorimer_protocol::{Extra, Role, ToolResultBlock};
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
