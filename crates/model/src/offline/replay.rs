//! `replay/SESSION`: the replies of a stored session, once more, against today's tools and files.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream;
use lorimer_protocol::{
    CallId, ContentBlock, Failure, FinishReason, Message, Role, StreamChunk, TokenUsage, ToolResultBlock,
};
use tokio_util::sync::CancellationToken;

use crate::{ChunkStream, ModelError, ModelInfo, ModelRequest, Provider};

/// Route id of recorded replies.
pub const REPLAY_ROUTE: &str = "replay";

/// One recorded reply.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedReply {
    /// Its blocks.
    pub content: Vec<ContentBlock>,
    /// How it ended.
    pub finish: FinishReason,
    /// Its token counts.
    pub usage: Option<TokenUsage>,
}

/// A tool result that is not what it was when the session was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The call.
    pub call_id: CallId,
    /// The recorded text.
    pub recorded: String,
    /// Today's text.
    pub now: String,
}

/// Says what a recorded model said, reply by reply. Which one is due is the number of replies in the request.
pub struct ReplayProvider {
    session: String,
    replies: Vec<RecordedReply>,
    results: HashMap<CallId, String>,
    differences: Arc<Mutex<Vec<Difference>>>,
}

impl ReplayProvider {
    /// The replies of `session`, and the texts its tool results had.
    pub fn new(
        session: impl Into<String>,
        replies: Vec<RecordedReply>,
        results: HashMap<CallId, String>,
    ) -> Self {
        Self { session: session.into(), replies, results, differences: Arc::default() }
    }

    /// Where results differ from the recorded ones, in the order that was noticed. Filled while the replay runs.
    pub fn differences(&self) -> Arc<Mutex<Vec<Difference>>> {
        Arc::clone(&self.differences)
    }

    fn compare(&self, messages: &[Arc<Message>]) {
        let mut found = self.differences.lock().unwrap_or_else(PoisonError::into_inner);
        for block in messages.iter().filter_map(|message| message.tool_result()) {
            let Some(recorded) = self.results.get(&block.tool_call_id) else {
                continue;
            };
            let now = result_text(block);
            if now != *recorded && !found.iter().any(|known| known.call_id == block.tool_call_id) {
                found.push(Difference {
                    call_id: block.tool_call_id.clone(),
                    recorded: recorded.clone(),
                    now,
                });
            }
        }
    }

    fn reply(&self, request: &ModelRequest) -> Vec<StreamChunk> {
        let at = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        match self.replies.get(at) {
            Some(reply) => chunks(reply),
            None => {
                let message = format!(
                    "the recorded session {} has no more replies than {}",
                    self.session,
                    self.replies.len()
                );
                vec![finish(FinishReason::Error { failure: Failure::new("REPLAY_END", message) })]
            }
        }
    }
}

/// The text of a tool result, all text blocks joined.
pub fn result_text(block: &ToolResultBlock) -> String {
    block.content.iter().filter_map(ContentBlock::as_text).collect()
}

fn finish(reason: FinishReason) -> StreamChunk {
    StreamChunk::Finish { reason, replay_state: None }
}

fn chunks(reply: &RecordedReply) -> Vec<StreamChunk> {
    let mut chunks = Vec::new();
    for (index, block) in (0..).zip(&reply.content) {
        let (kind, delta) = match block {
            ContentBlock::Text(text) => ("text", StreamChunk::TextDelta { index, text: text.text.clone() }),
            ContentBlock::Reasoning(text) => {
                ("reasoning", StreamChunk::ReasoningDelta { index, text: text.text.clone() })
            }
            ContentBlock::ToolCall(call) => (
                "tool-call",
                StreamChunk::ToolCallDelta {
                    index,
                    id: call.id.clone(),
                    name: Some(call.name.clone()),
                    arguments_delta: call.arguments.clone(),
                },
            ),
            _ => continue,
        };
        chunks.push(StreamChunk::BlockStart { index, block_type: kind.to_owned() });
        chunks.push(delta);
        chunks.push(StreamChunk::BlockEnd { index, block: block.clone() });
    }
    chunks.extend(reply.usage.map(|usage| StreamChunk::Usage { usage }));
    chunks.push(finish(reply.finish.clone()));
    chunks
}

impl Provider for ReplayProvider {
    fn id(&self) -> &str {
        REPLAY_ROUTE
    }

    fn name(&self) -> &str {
        "Replay"
    }

    fn models(&self) -> Vec<ModelInfo> {
        self.resolve(&self.session).into_iter().collect()
    }

    fn missing(&self) -> Option<ModelError> {
        None
    }

    fn resolve(&self, model: &str) -> Result<ModelInfo, ModelError> {
        Ok(ModelInfo {
            id: model.to_owned(),
            name: format!("replies of session {model}"),
            context_window: None,
            default_max_tokens: None,
            efforts: Vec::new(),
            default_effort: None,
            accepts_images: false,
            prices: None,
        })
    }

    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ChunkStream {
        self.compare(&request.messages);
        if cancel.is_cancelled() {
            let failure = Failure::new("ABORTED", "cancelled");
            return Box::pin(stream::iter([finish(FinishReason::Aborted { failure })]));
        }
        Box::pin(stream::iter(self.reply(&request)))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use lorimer_protocol::{Extra, Source};

    use super::*;

    fn reply(content: Vec<ContentBlock>) -> RecordedReply {
        RecordedReply { content, finish: FinishReason::Stop, usage: None }
    }

    fn result(text: &str) -> Arc<Message> {
        let block = ToolResultBlock {
            tool_call_id: "c".into(),
            content: vec![ContentBlock::text(text)],
            is_error: Some(false),
            extra: Extra::new(),
        };
        let content = vec![ContentBlock::ToolResult(block)];
        Arc::new(Message { content, ..Message::user_text("r", "", Source::tool("c".into())) })
    }

    #[tokio::test]
    async fn replies_come_in_order_and_differences_are_noticed_once() {
        let replies = vec![
            reply(vec![ContentBlock::tool_call("c", "read", "{}")]),
            reply(vec![ContentBlock::text("done")]),
        ];
        let recorded = HashMap::from([("c".into(), "as it was".to_owned())]);
        let provider = ReplayProvider::new("s", replies, recorded);
        let said = |messages: Vec<Arc<Message>>| {
            let request = ModelRequest { messages, ..ModelRequest::default() };
            provider.stream(request, CancellationToken::new()).collect::<Vec<_>>()
        };
        assert_eq!(said(vec![]).await.len(), 4);
        let assistant =
            Arc::new(Message { role: Role::Assistant, ..Message::user_text("a", "", Source::user()) });
        let history = vec![assistant.clone(), result("as it is")];
        assert!(
            matches!(&said(history.clone()).await[1], StreamChunk::TextDelta { text, .. } if text == "done")
        );
        said(history).await;
        let found = provider.differences().lock().expect("unpoisoned").clone();
        assert_eq!((found.len(), found[0].now.as_str()), (1, "as it is"));
        let end = said(vec![assistant.clone(), assistant, result("as it was")]).await;
        assert!(
            matches!(&end[0], StreamChunk::Finish { reason: FinishReason::Error { failure }, .. } if failure.code == "REPLAY_END")
        );
    }
}
