//! The replies of a stored session, for `replay/SESSION`.

use std::collections::HashMap;

use lorimer_model::{RecordedReply, ReplayProvider, result_text};
use lorimer_protocol::{CallId, ContentBlock, Event, FinishReason, Payload, SurfaceOp, TurnEndReason};
use lorimer_session::Store;

use crate::exit::CommandError;

/// Reads what a session's model said and what its tools returned.
///
/// # Errors
/// When there is no such session, or its log is damaged.
pub fn replay(store: &Store, id: &str) -> Result<ReplayProvider, CommandError> {
    let id = store.resolve(id)?;
    let mut recorded = Recorded::default();
    for event in store.events(&id)? {
        let event = event.map_err(|problem| CommandError::usage(format!("session {id}: {problem}")))?;
        recorded.take(&event);
    }
    if recorded.replies.is_empty() {
        return Err(CommandError::usage(format!("session {id} has no replies to replay")));
    }
    Ok(ReplayProvider::new(id.to_string(), recorded.replies, recorded.results))
}

#[derive(Default)]
struct Recorded {
    replies: Vec<RecordedReply>,
    results: HashMap<CallId, String>,
}

impl Recorded {
    fn take(&mut self, event: &Event) {
        match event.payload() {
            Ok(Payload::AssistantMessage(data)) if data.interrupted != Some(true) => {
                let content = data.message.content;
                let calls = content.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
                let finish = if calls { FinishReason::ToolCalls } else { FinishReason::Stop };
                self.replies.push(RecordedReply { content, finish, usage: data.usage });
            }
            Ok(Payload::ToolResult(result)) if event.surface_op == Some(SurfaceOp::Append) => {
                if let Some(block) = result.message.tool_result() {
                    self.results.insert(block.tool_call_id.clone(), result_text(block));
                }
            }
            Ok(Payload::TurnEnd(end)) if end.reason == TurnEndReason::MaxTokens => {
                if let Some(last) = self.replies.last_mut() {
                    last.finish = FinishReason::MaxTokens;
                }
            }
            _ => {}
        }
    }
}
