//! Frames of a chat completions stream to chunks: a state machine without I/O.
//!
//! What must hold:
//! - A block opens at its first piece and closes at the end, whole; indexes follow first appearance.
//! - Counts and the finish come last, and only once the whole stream is known to be good.
//! - Reasoning that was streamed empty is a block too, since it must be sent back; empty text is none.

use lorimer_protocol::{CallId, ContentBlock, Failure, FinishReason, StreamChunk, TokenUsage};
use serde_json::Value;

use super::wire::{CallDelta, Choice, Delta, Frame, finish_reason, usage_from_wire};
use crate::assembler::fallback_call_id;
use crate::failure;
use crate::http::{Decode, MAX_BLOCKS, Progress, loose_value, too_many_blocks};

/// The data of the frame that ends a stream.
const DONE: &str = "[DONE]";

/// The state of one stream.
#[derive(Debug, Default)]
pub struct ChatDecoder {
    /// Whether there were more blocks than a reply may have.
    overflown: bool,
    blocks: Vec<Block>,
    text: Option<usize>,
    reasoning: Option<usize>,
    usage: Option<TokenUsage>,
    finish: Option<String>,
    done: bool,
}

#[derive(Debug)]
enum Block {
    Text(String),
    Reasoning(String),
    Call { wire_index: Option<u64>, id: Option<String>, name: Option<String>, arguments: String },
}

impl Decode for ChatDecoder {
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
            let frame = parse(name, trimmed)?;
            if let Some(usage) = frame.usage.as_ref().and_then(usage_from_wire) {
                self.usage = Some(usage);
            }
            for choice in frame.choices.unwrap_or_default() {
                self.choice(choice, chunks);
            }
        }
        if self.overflown {
            return Err(too_many_blocks());
        }
        Ok(self.progress())
    }

    fn progress(&self) -> Progress {
        match self.finish {
            _ if self.done => Progress::Done,
            Some(_) => Progress::Finishing,
            None => Progress::Open,
        }
    }

    fn end(self, chunks: &mut impl Extend<StreamChunk>) {
        let reason = self.reason();
        if !matches!(&reason, FinishReason::Error { failure } if failure.code == "STREAM_CLOSED") {
            chunks.extend(self.blocks.into_iter().enumerate().map(|(index, block)| {
                let index = wide(index);
                StreamChunk::BlockEnd { index, block: block.into_content(index) }
            }));
        }
        chunks.extend(self.usage.map(|usage| StreamChunk::Usage { usage }));
        chunks.extend([StreamChunk::Finish { reason, replay_state: None }]);
    }
}

impl ChatDecoder {
    fn reason(&self) -> FinishReason {
        let Some(wire) = &self.finish else {
            let message = "the server closed the stream before it gave a finish reason";
            return FinishReason::Error { failure: Failure::new("STREAM_CLOSED", message) };
        };
        let reason = finish_reason(wire);
        let is_empty = |block: &Block| matches!(block, Block::Reasoning(text) if text.is_empty());
        if reason == FinishReason::Stop && self.blocks.iter().all(is_empty) {
            let message = "the model answered with nothing";
            return FinishReason::Error { failure: Failure::new("EMPTY_RESPONSE", message) };
        }
        reason
    }

    fn choice(&mut self, choice: Choice, chunks: &mut impl Extend<StreamChunk>) {
        if choice.index.unwrap_or(0) != 0 {
            return;
        }
        if let Some(delta) = choice.delta {
            self.delta(delta, chunks);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish = Some(reason);
        }
    }

    fn delta(&mut self, delta: Delta, chunks: &mut impl Extend<StreamChunk>) {
        let other_name = || match delta.reasoning {
            Some(Value::String(text)) => Some(text).filter(|text| !text.is_empty()),
            _ => None,
        };
        if let Some(text) = delta.reasoning_content.or_else(other_name) {
            self.reasoning_delta(text, chunks);
        }
        if let Some(text) = delta.content.filter(|text| !text.is_empty()) {
            self.text_delta(text, chunks);
        }
        for call in delta.tool_calls.unwrap_or_default() {
            if self.overflown {
                return;
            }
            self.call_delta(call, chunks);
        }
    }

    fn reasoning_delta(&mut self, text: String, chunks: &mut impl Extend<StreamChunk>) {
        let position = match self.reasoning {
            Some(position) => position,
            None => *self.reasoning.insert(open(&mut self.blocks, Block::Reasoning(String::new()), chunks)),
        };
        if let Some(Block::Reasoning(whole)) = self.blocks.get_mut(position)
            && !text.is_empty()
        {
            whole.push_str(&text);
            chunks.extend([StreamChunk::ReasoningDelta { index: wide(position), text }]);
        }
    }

    fn text_delta(&mut self, text: String, chunks: &mut impl Extend<StreamChunk>) {
        let position = match self.text {
            Some(position) => position,
            None => *self.text.insert(open(&mut self.blocks, Block::Text(String::new()), chunks)),
        };
        if let Some(Block::Text(whole)) = self.blocks.get_mut(position) {
            whole.push_str(&text);
            chunks.extend([StreamChunk::TextDelta { index: wide(position), text }]);
        }
    }

    fn call_delta(&mut self, delta: CallDelta, chunks: &mut impl Extend<StreamChunk>) {
        let new_id = delta.id.filter(|id| !id.is_empty());
        let function = delta.function.unwrap_or_default();
        let new_name = function.name.filter(|name| !name.is_empty());
        let piece = match function.arguments {
            Some(Value::String(text)) => text,
            None | Some(Value::Null) => String::new(),
            Some(parsed) => parsed.to_string(),
        };
        let known = self.call_position(delta.index, new_id.as_deref());
        if known.is_none() && self.blocks.len() >= MAX_BLOCKS {
            self.overflown = true;
            return;
        }
        let position = known.unwrap_or_else(|| {
            let block =
                Block::Call { wire_index: delta.index, id: None, name: None, arguments: String::new() };
            open(&mut self.blocks, block, chunks)
        });
        if let Some(Block::Call { id, name, arguments, .. }) = self.blocks.get_mut(position) {
            *id = new_id.or(id.take());
            *name = new_name.or(name.take());
            arguments.push_str(&piece);
            let index = wide(position);
            let known_id = id.as_deref().map_or_else(|| fallback_call_id(index), CallId::from);
            let name = name.clone();
            chunks.extend([StreamChunk::ToolCallDelta { index, id: known_id, name, arguments_delta: piece }]);
        }
    }

    /// The block of a call's piece. Without an index a piece belongs to the last call, unless its id is another.
    fn call_position(&self, index: Option<u64>, new_id: Option<&str>) -> Option<usize> {
        self.blocks.iter().rposition(|block| match block {
            Block::Call { wire_index, id, .. } => match index {
                Some(_) => *wire_index == index,
                None => new_id.is_none() || new_id == id.as_deref(),
            },
            _ => false,
        })
    }
}

impl Block {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Reasoning(_) => "reasoning",
            Self::Call { .. } => "tool-call",
        }
    }

    fn into_content(self, index: u32) -> ContentBlock {
        match self {
            Self::Text(text) => ContentBlock::text(text),
            Self::Reasoning(text) => ContentBlock::reasoning(text),
            Self::Call { id, name, arguments, .. } => {
                let id = id.map_or_else(|| fallback_call_id(index), CallId::from);
                ContentBlock::tool_call(id, name.unwrap_or_default(), arguments)
            }
        }
    }
}

fn open(blocks: &mut Vec<Block>, block: Block, chunks: &mut impl Extend<StreamChunk>) -> usize {
    let position = blocks.len();
    chunks.extend([StreamChunk::BlockStart { index: wide(position), block_type: block.kind().to_owned() }]);
    blocks.push(block);
    position
}

/// A block's index on the wire of chunks. There are never so many blocks that this saturates.
fn wide(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// Reads one frame, telling errors in all the shapes that servers give them.
fn parse(name: &str, data: &str) -> Result<Frame, Failure> {
    let frame = match serde_json::from_str::<Frame>(data) {
        Ok(frame) if data.starts_with('{') => frame,
        _ if name == "error" => return Err(failure::from_error_object(&loose_value(data))),
        _ => return Err(failure::malformed("the server sent a frame that is no chat completion", data)),
    };
    if let Some(error) = frame.error.as_ref().filter(|error| !error.is_null()) {
        return Err(failure::from_error_object(error));
    }
    if frame.choices.is_none() && frame.usage.is_none() {
        let whole = loose_value(data);
        if whole.get("type").is_some_and(|kind| kind == "message_start") {
            return Err(failure::other_protocol("the Messages protocol", "chat completions"));
        }
        if name == "error" || failure::message_of(&whole).is_some() {
            return Err(failure::from_error_object(&whole));
        }
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Assembled, Assembler};

    fn run(frames: &[Value]) -> (Vec<StreamChunk>, Assembled) {
        let mut decoder = ChatDecoder::default();
        let mut chunks = Vec::new();
        for frame in frames {
            decoder.frame("", &frame.to_string(), &mut chunks).unwrap();
        }
        decoder.end(&mut chunks);
        let mut assembler = Assembler::new();
        chunks.iter().for_each(|chunk| assembler.push(chunk));
        (chunks, assembler.finish())
    }

    #[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
    fn delta(delta: Value) -> Value {
        json!({"choices":[{"index":0,"delta":delta,"finish_reason":null}],"usage":null})
    }

    fn finish(reason: &str) -> Value {
        json!({"choices":[{"index":0,"delta":{},"finish_reason":reason}]})
    }

    fn failure_of(assembled: &Assembled) -> &str {
        match &assembled.finish {
            FinishReason::Error { failure } => &failure.code,
            other => panic!("no failure: {other:?}"),
        }
    }

    #[test]
    fn a_flood_of_calls_is_refused() {
        let mut decoder = ChatDecoder::default();
        let calls: Vec<_> = (0..5000).map(|index| serde_json::json!({"index": index, "id": "c"})).collect();
        let frame =
            serde_json::json!({"choices": [{"index": 0, "delta": {"tool_calls": calls}}]}).to_string();
        let refused = decoder.frame("", &frame, &mut Vec::new()).unwrap_err();
        assert_eq!(refused.code, "MALFORMED_RESPONSE");
    }

    #[test]
    fn streams_reasoning_text_and_calls() {
        let (chunks, reply) = run(&[
            delta(json!({"role":"assistant","content":"","reasoning_content":""})),
            delta(json!({"reasoning_content":"th"})),
            delta(json!({"reasoning_content":"ink"})),
            delta(json!({"content":"hi","reasoning_content":null})),
            delta(json!({"tool_calls":[{"index":0,"id":"c1","function":{"name":"read","arguments":""}}]})),
            delta(json!({"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]})),
            delta(json!({"tool_calls":[{"index":1,"function":{"name":"ls","arguments":"{}"}}]})),
            delta(json!({"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]})),
            finish("tool_calls"),
            json!({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}),
        ]);
        let expected = [
            ContentBlock::reasoning("think"),
            ContentBlock::text("hi"),
            ContentBlock::tool_call("c1", "read", "{\"a\":1}"),
            ContentBlock::tool_call("call-3", "ls", "{}"),
        ];
        assert_eq!(reply.content, expected);
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        assert_eq!(reply.usage.map(|usage| usage.input_tokens), Some(5));
        let kinds: Vec<String> = chunks
            .iter()
            .map(|chunk| serde_json::to_value(chunk).unwrap()["type"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(
            kinds[kinds.len() - 6..].join(" "),
            "block-end block-end block-end block-end usage finish"
        );
    }

    #[test]
    fn an_empty_reasoning_field_is_a_block_but_empty_text_is_not() {
        let (_, reply) = run(&[
            delta(json!({"content":"","reasoning_content":""})),
            delta(json!({"content":"x"})),
            finish("stop"),
        ]);
        assert_eq!(reply.content, [ContentBlock::reasoning(""), ContentBlock::text("x")]);
        let (_, reply) = run(&[delta(json!({"content":"x","reasoning_content":null})), finish("stop")]);
        assert_eq!(reply.content, [ContentBlock::text("x")]);
    }

    #[test]
    fn nothing_at_all_is_an_empty_response() {
        let (_, reply) = run(&[delta(json!({"content":"","reasoning_content":""})), finish("stop")]);
        assert_eq!(failure_of(&reply), "EMPTY_RESPONSE");
    }

    #[test]
    fn no_finish_reason_is_a_closed_stream() {
        let (_, reply) = run(&[delta(json!({"content":"half"}))]);
        assert_eq!(failure_of(&reply), "STREAM_CLOSED");
        assert_eq!(reply.content, [ContentBlock::text("half")]);
    }

    #[test]
    fn maps_finish_reasons() {
        assert_eq!(finish_reason("length"), FinishReason::MaxTokens);
        let (_, reply) = run(&[delta(json!({"content":"x"})), finish("content_filter")]);
        assert_eq!(failure_of(&reply), "CONTENT_FILTER");
    }

    #[test]
    fn calls_without_an_index_are_told_by_their_id() {
        let (_, reply) = run(&[
            delta(json!({"tool_calls":[{"id":"a","function":{"name":"x","arguments":{"k":1}}}]})),
            delta(json!({"tool_calls":[{"id":"b","function":{"name":"y","arguments":"{"}}]})),
            delta(json!({"tool_calls":[{"function":{"arguments":"}"}}]})),
            finish("tool_calls"),
        ]);
        let expected =
            [ContentBlock::tool_call("a", "x", "{\"k\":1}"), ContentBlock::tool_call("b", "y", "{}")];
        assert_eq!(reply.content, expected);
    }

    #[test]
    fn tells_errors_from_frames() {
        let fail = |name: &str, data: &str| {
            let mut chunks = Vec::new();
            ChatDecoder::default().frame(name, data, &mut chunks).unwrap_err()
        };
        let error = fail("", r#"{"error":{"message":"the engine broke","code":"boom"}}"#);
        assert_eq!((error.code.as_str(), error.message.as_str()), ("SERVER", "the engine broke"));
        assert_eq!(fail("", r#"{"object":"error","message":"no","code":400}"#).code, "INVALID_REQUEST");
        assert_eq!(fail("error", "gone").message, "gone");
        let malformed = fail("", &"x".repeat(500));
        assert_eq!(malformed.code, "MALFORMED_RESPONSE");
        assert!(
            malformed.message.contains(&"x".repeat(120)) && !malformed.message.contains(&"x".repeat(121))
        );
        for odd in ["1", "\"text\"", "[]", "{\"choices\":1}"] {
            assert_eq!(fail("", odd).code, "MALFORMED_RESPONSE", "{odd}");
        }
    }

    #[test]
    fn progress_follows_finish_and_done() {
        let mut decoder = ChatDecoder::default();
        let mut chunks = Vec::new();
        assert_eq!(decoder.frame("", "", &mut chunks), Ok(Progress::Open));
        assert_eq!(decoder.frame("", &finish("stop").to_string(), &mut chunks), Ok(Progress::Finishing));
        assert_eq!(decoder.frame("", " [DONE]", &mut chunks), Ok(Progress::Done));
    }
}
