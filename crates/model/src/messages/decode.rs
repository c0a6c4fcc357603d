//! Events of a Messages stream to chunks: a state machine without I/O.
//!
//! What must hold:
//! - A block opens at its first piece and closes at the end, whole; indexes follow first appearance.
//! - Counts and the finish come last, and only once the whole stream is known to be good.
//! - Thinking is a block even when it has no text, since its signature must be sent back; empty text is none.
//! - Events and blocks that are not known here are ignored.

use lorimer_protocol::{CallId, ContentBlock, Failure, FinishReason, StreamChunk};
use serde_json::Value;

use super::replay::{self, Entry};
use super::wire::{Counts, Event, Piece, finish_reason};
use crate::assembler::fallback_call_id;
use crate::failure;
use crate::http::{Decode, MAX_BLOCKS, Progress, loose_value, too_many_blocks};

/// The data of a frame with which some servers end every stream.
const DONE: &str = "[DONE]";
/// The arguments of a call that was streamed without any.
const NO_ARGUMENTS: &str = "{}";

/// The state of one stream.
#[derive(Debug, Default)]
pub struct MessagesDecoder {
    blocks: Vec<Block>,
    counts: Counts,
    stop_reason: Option<String>,
    done: bool,
}

#[derive(Debug)]
struct Block {
    /// The block's index on the wire.
    wire_index: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Thinking { text: String, signature: String },
    Redacted { data: String },
    Call { id: CallId, name: String, arguments: String, whole: Option<String> },
}

impl Decode for MessagesDecoder {
    fn frame(
        &mut self,
        name: &str,
        data: &str,
        chunks: &mut impl Extend<StreamChunk>,
    ) -> Result<Progress, Failure> {
        let trimmed = data.trim();
        if trimmed == DONE {
            self.done = true;
        } else if !trimmed.is_empty() {
            let event = parse(name, trimmed)?;
            self.event(name, event, chunks);
        }
        if self.blocks.len() > MAX_BLOCKS {
            return Err(too_many_blocks());
        }
        Ok(self.progress())
    }

    fn progress(&self) -> Progress {
        match self.stop_reason {
            _ if self.done => Progress::Done,
            Some(_) => Progress::Finishing,
            None => Progress::Open,
        }
    }

    fn end(self, chunks: &mut impl Extend<StreamChunk>) {
        let reason = self.reason();
        let usage = self.counts.usage();
        let mut replay_state = None;
        if !matches!(&reason, FinishReason::Error { failure } if failure.code == "STREAM_CLOSED") {
            let entries: Vec<Option<Entry>> = self.blocks.iter().map(|block| block.content.entry()).collect();
            replay_state =
                replay::to_state(&entries).filter(|_| !matches!(reason, FinishReason::Error { .. }));
            chunks.extend(self.blocks.into_iter().enumerate().map(|(index, block)| StreamChunk::BlockEnd {
                index: wide(index),
                block: block.content.into_block(),
            }));
        }
        chunks.extend(usage.map(|usage| StreamChunk::Usage { usage }));
        chunks.extend([StreamChunk::Finish { reason, replay_state }]);
    }
}

impl MessagesDecoder {
    fn reason(&self) -> FinishReason {
        let Some(wire) = &self.stop_reason else {
            let message = "the server closed the stream before it gave a stop reason";
            return FinishReason::Error { failure: Failure::new("STREAM_CLOSED", message) };
        };
        let reason = finish_reason(wire);
        if reason == FinishReason::Stop && self.blocks.iter().all(|block| block.content.is_empty()) {
            let message = "the model answered with nothing";
            return FinishReason::Error { failure: Failure::new("EMPTY_RESPONSE", message) };
        }
        reason
    }

    fn event(&mut self, name: &str, event: Event, chunks: &mut impl Extend<StreamChunk>) {
        let index = event.index.unwrap_or(0);
        match event.r#type.as_deref().unwrap_or(name) {
            "message_start" => {
                let usage = event.message.as_ref().and_then(|message| message.get("usage"));
                usage.into_iter().for_each(|usage| self.counts.take(usage));
            }
            "content_block_start" => self.start(index, event.content_block.unwrap_or_default(), chunks),
            "content_block_delta" => self.delta(index, event.delta.unwrap_or_default(), chunks),
            "message_delta" => {
                event.usage.iter().for_each(|usage| self.counts.take(usage));
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                self.stop_reason = reason.filter(|reason| !reason.is_empty()).or(self.stop_reason.take());
            }
            "message_stop" => self.done = true,
            // `ping`, `content_block_stop` (blocks close at the end) and whatever else there may be.
            _ => {}
        }
    }

    fn start(&mut self, index: u64, piece: Piece, chunks: &mut impl Extend<StreamChunk>) {
        match piece.r#type.as_deref().unwrap_or_default() {
            "thinking" => {
                let content = Content::Thinking { text: String::new(), signature: String::new() };
                self.open(index, content, chunks);
            }
            "redacted_thinking" => {
                let content = Content::Redacted { data: piece.data.clone().unwrap_or_default() };
                self.open(index, content, chunks);
            }
            "tool_use" => return self.start_call(index, piece, chunks),
            // A text block opens with its first text.
            _ => {}
        }
        self.delta(index, piece, chunks);
    }

    fn start_call(&mut self, index: u64, piece: Piece, chunks: &mut impl Extend<StreamChunk>) {
        let position = wide(self.blocks.len());
        let id =
            piece.id.filter(|id| !id.is_empty()).map_or_else(|| fallback_call_id(position), CallId::from);
        let name = piece.name.unwrap_or_default();
        let is_whole = |input: &Value| input.as_object().is_some_and(|members| !members.is_empty());
        let whole = piece.input.filter(is_whole).map(|input| input.to_string());
        let known = (id.clone(), name.clone());
        self.open(index, Content::Call { id, name, arguments: String::new(), whole }, chunks);
        let (id, name) = (known.0, Some(known.1));
        chunks.extend([StreamChunk::ToolCallDelta {
            index: position,
            id,
            name,
            arguments_delta: String::new(),
        }]);
    }

    fn delta(&mut self, index: u64, piece: Piece, chunks: &mut impl Extend<StreamChunk>) {
        if let Some(more) = piece.thinking.filter(|more| !more.is_empty()) {
            self.thinking_delta(index, more, chunks);
        }
        if let Some(more) = piece.text.filter(|more| !more.is_empty()) {
            self.text_delta(index, more, chunks);
        }
        match (self.latest(index), piece.signature, piece.partial_json) {
            (Some((_, Content::Thinking { signature, .. })), Some(more), _) => signature.push_str(&more),
            (Some((position, Content::Call { id, name, arguments, .. })), _, Some(more))
                if !more.is_empty() =>
            {
                arguments.push_str(&more);
                let (id, name) = (id.clone(), Some(name.clone()));
                let position = wide(position);
                chunks.extend([StreamChunk::ToolCallDelta {
                    index: position,
                    id,
                    name,
                    arguments_delta: more,
                }]);
            }
            _ => {}
        }
    }

    fn thinking_delta(&mut self, index: u64, more: String, chunks: &mut impl Extend<StreamChunk>) {
        if !matches!(self.latest(index), Some((_, Content::Thinking { .. }))) {
            let content = Content::Thinking { text: String::new(), signature: String::new() };
            self.open(index, content, chunks);
        }
        if let Some((position, Content::Thinking { text, .. })) = self.latest(index) {
            text.push_str(&more);
            chunks.extend([StreamChunk::ReasoningDelta { index: wide(position), text: more }]);
        }
    }

    fn text_delta(&mut self, index: u64, more: String, chunks: &mut impl Extend<StreamChunk>) {
        if !matches!(self.latest(index), Some((_, Content::Text(_)))) {
            self.open(index, Content::Text(String::new()), chunks);
        }
        if let Some((position, Content::Text(text))) = self.latest(index) {
            text.push_str(&more);
            chunks.extend([StreamChunk::TextDelta { index: wide(position), text: more }]);
        }
    }

    fn open(&mut self, wire_index: u64, content: Content, chunks: &mut impl Extend<StreamChunk>) {
        let index = wide(self.blocks.len());
        chunks.extend([StreamChunk::BlockStart { index, block_type: content.kind().to_owned() }]);
        self.blocks.push(Block { wire_index, content });
    }

    /// The block of a wire index, with its position.
    fn latest(&mut self, index: u64) -> Option<(usize, &mut Content)> {
        let found = self.blocks.iter_mut().enumerate().rev().find(|(_, block)| block.wire_index == index);
        found.map(|(position, block)| (position, &mut block.content))
    }
}

impl Content {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Thinking { .. } | Self::Redacted { .. } => "reasoning",
            Self::Call { .. } => "tool-call",
        }
    }

    /// Whether a reader gets nothing from it.
    fn is_empty(&self) -> bool {
        match self {
            Self::Thinking { text, .. } => text.is_empty(),
            Self::Redacted { .. } => true,
            Self::Text(_) | Self::Call { .. } => false,
        }
    }

    fn entry(&self) -> Option<Entry> {
        match self {
            Self::Thinking { signature, .. } if !signature.is_empty() => {
                Some(Entry::Thinking { signature: signature.clone() })
            }
            Self::Redacted { data } => Some(Entry::RedactedThinking { data: data.clone() }),
            _ => None,
        }
    }

    fn into_block(self) -> ContentBlock {
        match self {
            Self::Text(text) => ContentBlock::text(text),
            Self::Thinking { text, .. } => ContentBlock::reasoning(text),
            Self::Redacted { .. } => ContentBlock::reasoning(""),
            Self::Call { id, name, arguments, whole } => {
                let streamed = Some(arguments).filter(|arguments| !arguments.trim().is_empty());
                let arguments = streamed.or(whole).unwrap_or_else(|| NO_ARGUMENTS.to_owned());
                ContentBlock::tool_call(id, name, arguments)
            }
        }
    }
}

/// A block's index on the wire of chunks. There are never so many blocks that this saturates.
fn wide(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Reads one event, telling errors in all the shapes that servers give them.
fn parse(name: &str, data: &str) -> Result<Event, Failure> {
    let event = match serde_json::from_str::<Event>(data) {
        Ok(event) if data.starts_with('{') => event,
        _ if name == "error" => return Err(failure::from_error_object(&loose_value(data))),
        _ => {
            return Err(failure::malformed(
                "the server sent a frame that is no event of the Messages protocol",
                data,
            ));
        }
    };
    if let Some(error) = event.error.as_ref().filter(|error| !error.is_null()) {
        return Err(failure::from_error_object(error));
    }
    if event.choices.is_some() {
        return Err(failure::other_protocol("chat completions", "the Messages protocol"));
    }
    if event.r#type.is_none() {
        let whole = loose_value(data);
        if name == "error" || failure::message_of(&whole).is_some() {
            return Err(failure::from_error_object(&whole));
        }
    }
    Ok(event)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::sse::SseDecoder;

    /// The chunks of a stream that arrives in these pieces.
    fn run<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<StreamChunk> {
        let (mut sse, mut decoder) = (SseDecoder::default(), MessagesDecoder::default());
        let (mut events, mut chunks) = (Vec::new(), Vec::new());
        for piece in pieces {
            sse.feed(piece, &mut events).unwrap();
            for event in events.drain(..) {
                decoder.frame(&event.name, &event.data, &mut chunks).unwrap();
            }
        }
        decoder.end(&mut chunks);
        chunks
    }

    fn any_event() -> impl Strategy<Value = Value> {
        let index = 0u64..3;
        let kind = prop_oneof![
            Just(json!({"type":"text","text":""})),
            Just(json!({"type":"thinking","thinking":""})),
            Just(json!({"type":"redacted_thinking","data":"eA=="})),
            Just(json!({"type":"tool_use","id":"t","name":"read","input":{}})),
            Just(json!({"type":"later"})),
        ];
        let delta = prop_oneof![
            "[a-z漢é😀\n]{0,6}".prop_map(|text| json!({"type":"text_delta","text":text})),
            "[a-z漢é😀\n]{0,6}".prop_map(|text| json!({"type":"thinking_delta","thinking":text})),
            "[a-z]{0,6}".prop_map(|text| json!({"type":"input_json_delta","partial_json":text})),
            Just(json!({"type":"signature_delta","signature":"c2ln"})),
        ];
        prop_oneof![
            (index.clone(), kind).prop_map(
                |(index, block)| json!({"type":"content_block_start","index":index,"content_block":block})
            ),
            (index, delta)
                .prop_map(|(index, delta)| json!({"type":"content_block_delta","index":index,"delta":delta})),
            Just(json!({"type":"ping"})),
            Just(
                json!({"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}})
            ),
            Just(json!({"type":"message_start","message":{"usage":{"input_tokens":5}}})),
        ]
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_chunks(
            events in prop::collection::vec(any_event(), 0..20),
            size in 1usize..40,
        ) {
            let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
            let whole = run([stream.as_bytes()]);
            prop_assert_eq!(&whole, &run(stream.as_bytes().chunks(size)));
            let finishes = whole.iter().filter(|chunk| matches!(chunk, StreamChunk::Finish { .. })).count();
            prop_assert_eq!(finishes, 1);
        }
    }

    #[test]
    fn a_flood_of_blocks_is_refused() {
        let mut decoder = MessagesDecoder::default();
        let refused = (0..5000).find_map(|index| {
            let start = json!({"type":"content_block_start","index":index,
                "content_block":{"type":"text","text":"x"}});
            decoder.frame("", &start.to_string(), &mut Vec::new()).err().map(|failure| (index, failure.code))
        });
        assert_eq!(refused, Some((MAX_BLOCKS, "MALFORMED_RESPONSE".into())));
    }

    #[test]
    fn arguments_that_come_whole_count_when_none_are_streamed() {
        let start = json!({"type":"content_block_start","index":0,
            "content_block":{"type":"tool_use","id":"t","name":"read","input":{"a":1}}});
        let end = json!({"type":"message_delta","delta":{"stop_reason":"tool_use"}});
        let chunks = run([format!("data: {start}\n\ndata: {end}\n\n").as_bytes()]);
        let block = ContentBlock::tool_call("t", "read", "{\"a\":1}");
        assert!(chunks.contains(&StreamChunk::BlockEnd { index: 0, block }));
    }

    #[test]
    fn a_signature_without_thinking_text_is_kept() {
        let start = json!({"type":"content_block_start","index":0,
            "content_block":{"type":"thinking","thinking":"","signature":"c2ln"}});
        let text =
            json!({"type":"content_block_start","index":1,"content_block":{"type":"text","text":"hi"}});
        let end = json!({"type":"message_delta","delta":{"stop_reason":"end_turn"}});
        let chunks = run([format!("data: {start}\n\ndata: {text}\n\ndata: {end}\n\n").as_bytes()]);
        let state = json!({
            "response": {"kind":"messages"},
            "blocks": [{"type":"thinking","signature":"c2ln"}, null],
        });
        let finish = StreamChunk::Finish { reason: FinishReason::Stop, replay_state: Some(state) };
        assert_eq!(chunks.last(), Some(&finish));
    }
}
