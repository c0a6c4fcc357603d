//! A planned turn as a stream, the way a network service would send it.

use futures_util::stream;
use lorimer_protocol::{CallId, ContentBlock, Failure, FinishReason, Message, Role, StreamChunk, TokenUsage};
use tokio_util::sync::CancellationToken;

use super::PlannedTurn;
use crate::chat::finish_reason;
use crate::estimate::text_tokens;
use crate::{ChunkStream, ModelRequest, estimate_header_tokens, estimate_message_tokens};

/// Size of a delta in characters.
const DELTA_CHARS: usize = 64;

/// The number of replies that a request already holds, which is the 0-based number of the turn it asks for.
pub(super) fn turn_number(messages: &[impl AsRef<Message>]) -> usize {
    messages.iter().filter(|message| message.as_ref().role == Role::Assistant).count()
}

/// The chunks of a planned turn. The same turn and request always give the same chunks.
pub(super) fn turn_chunks(turn: &PlannedTurn, request: &ModelRequest) -> Vec<StreamChunk> {
    let number = turn_number(&request.messages);
    let mut chunks = Vec::new();
    let mut index = 0;
    if let Some(text) = &turn.reasoning {
        let block = ContentBlock::reasoning(text.as_str());
        push_block(&mut chunks, &mut index, "reasoning", block, |index, text| StreamChunk::ReasoningDelta {
            index,
            text,
        });
    }
    if !turn.text.is_empty() {
        let block = ContentBlock::text(turn.text.as_str());
        push_block(&mut chunks, &mut index, "text", block, |index, text| StreamChunk::TextDelta {
            index,
            text,
        });
    }
    for (position, call) in turn.calls.iter().enumerate() {
        let id = CallId(call.id.clone().unwrap_or_else(|| format!("call_{number}_{position}")));
        let block = ContentBlock::tool_call(id.clone(), call.name.as_str(), call.arguments.as_str());
        push_block(&mut chunks, &mut index, "tool-call", block, |index, arguments_delta| {
            StreamChunk::ToolCallDelta {
                index,
                id: id.clone(),
                name: Some(call.name.clone()),
                arguments_delta,
            }
        });
    }
    let usage = turn.usage.unwrap_or_else(|| estimate_usage(turn, request));
    chunks.push(StreamChunk::Usage { usage });
    chunks.push(StreamChunk::Finish { reason: reason(turn), replay_state: None });
    chunks
}

fn push_block(
    chunks: &mut Vec<StreamChunk>,
    next_index: &mut u32,
    block_type: &str,
    block: ContentBlock,
    delta: impl Fn(u32, String) -> StreamChunk,
) {
    let index = *next_index;
    *next_index += 1;
    chunks.push(StreamChunk::BlockStart { index, block_type: block_type.to_owned() });
    match &block {
        ContentBlock::Text(block) => chunks.extend(pieces(&block.text).map(|piece| delta(index, piece))),
        ContentBlock::Reasoning(block) => chunks.extend(pieces(&block.text).map(|piece| delta(index, piece))),
        ContentBlock::ToolCall(call) => {
            // The name is known before the first argument is.
            chunks.push(delta(index, String::new()));
            chunks.extend(pieces(&call.arguments).map(|piece| delta(index, piece)));
        }
        _ => {}
    }
    chunks.push(StreamChunk::BlockEnd { index, block });
}

/// The text in pieces of [`DELTA_CHARS`] characters.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(DELTA_CHARS).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then(|| piece.to_owned())
    })
}

fn reason(turn: &PlannedTurn) -> FinishReason {
    match turn.finish.as_deref() {
        Some(wire) => finish_reason(wire),
        None if turn.calls.is_empty() => FinishReason::Stop,
        None => FinishReason::ToolCalls,
    }
}

fn estimate_usage(turn: &PlannedTurn, request: &ModelRequest) -> TokenUsage {
    let header = estimate_header_tokens(request.system.as_deref(), &request.tools);
    let messages = request.messages.iter().map(|message| estimate_message_tokens(message));
    let reasoning = turn.reasoning.as_deref().map(text_tokens);
    let calls = turn.calls.iter().map(|call| text_tokens(&call.name) + text_tokens(&call.arguments));
    TokenUsage {
        input_tokens: header + messages.sum::<u64>(),
        output_tokens: text_tokens(&turn.text) + reasoning.unwrap_or(0) + calls.sum::<u64>(),
        reasoning_tokens: reasoning.filter(|tokens| *tokens > 0),
        ..TokenUsage::default()
    }
}

/// The only chunk of a reply that failed.
pub(super) fn failed(failure: Failure) -> Vec<StreamChunk> {
    vec![StreamChunk::Finish { reason: FinishReason::Error { failure }, replay_state: None }]
}

/// Streams chunks, giving other tasks a turn after each one; a cancellation replaces what is left.
pub(super) fn play(chunks: Vec<StreamChunk>, cancel: CancellationToken) -> ChunkStream {
    Box::pin(stream::unfold((chunks.into_iter(), cancel), |(mut chunks, cancel)| async move {
        tokio::task::yield_now().await;
        let chunk = chunks.next()?;
        if cancel.is_cancelled() {
            let reason = FinishReason::Aborted { failure: Failure::new("ABORTED", "cancelled") };
            let finish = StreamChunk::Finish { reason, replay_state: None };
            return Some((finish, (Vec::new().into_iter(), cancel)));
        }
        Some((chunk, (chunks, cancel)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Assembler;
    use crate::offline::PlannedCall;

    #[test]
    fn a_turn_comes_out_as_it_was_planned() {
        let turn = PlannedTurn {
            reasoning: Some(String::new()),
            text: "漢".repeat(150),
            calls: vec![PlannedCall { id: None, name: "read".into(), arguments: "{\"p\":1}".into() }],
            ..PlannedTurn::default()
        };
        let chunks = turn_chunks(&turn, &ModelRequest::default());
        let deltas = chunks.iter().filter(|chunk| matches!(chunk, StreamChunk::TextDelta { .. })).count();
        assert_eq!(deltas, 3);
        let mut assembler = Assembler::new();
        chunks.iter().for_each(|chunk| assembler.push(chunk));
        let reply = assembler.finish();
        let expected = [
            ContentBlock::reasoning(""),
            ContentBlock::text(turn.text),
            ContentBlock::tool_call("call_0_0", "read", "{\"p\":1}"),
        ];
        assert_eq!(reply.content, expected);
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        assert_eq!(reply.usage.map(|usage| usage.output_tokens), Some(38 + 1 + 2));
    }
}
