//! Stream chunks to one message: the same algorithm live and on replay.
//!
//! What must hold:
//! - Blocks stand in the order they were first seen in.
//! - A closed block is what its `block-end` said; whatever comes for it later is ignored.
//! - A reply that hit the output limit has no tool calls: they may be cut in the middle.

use std::collections::HashMap;

use lorimer_protocol::{
    CallId, ContentBlock, Extra, Failure, FinishReason, StreamChunk, TokenUsage, ToolCallBlock,
};
use serde_json::Value;

/// What a stream came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// The blocks in first-seen order.
    pub content: Vec<ContentBlock>,
    /// How the reply ended; `stop` when the stream did not say.
    pub finish: FinishReason,
    /// The last counts that were streamed.
    pub usage: Option<TokenUsage>,
    /// Adapter data for lossless continuation, pruned along with `content`.
    pub replay_state: Option<Value>,
}

/// Collects the chunks of one reply.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    blocks: Vec<(u32, Slot)>,
    by_index: HashMap<u32, usize>,
    usage: Option<TokenUsage>,
    finish: Option<(FinishReason, Option<Value>)>,
}

#[derive(Clone, Debug)]
enum Slot {
    Text(String),
    Reasoning(String),
    ToolCall { id: String, name: String, arguments: String },
    Closed(ContentBlock),
    Other(String),
}

impl Slot {
    fn open(block_type: &str) -> Self {
        match block_type {
            "text" => Self::Text(String::new()),
            "reasoning" => Self::Reasoning(String::new()),
            "tool-call" => {
                Self::ToolCall { id: String::new(), name: String::new(), arguments: String::new() }
            }
            other => Self::Other(other.to_owned()),
        }
    }

    /// The block as far as it came, or the type that cannot be assembled from deltas.
    fn into_block(self, index: u32) -> Result<ContentBlock, String> {
        match self {
            Self::Text(text) => Ok(ContentBlock::text(text)),
            Self::Reasoning(text) => Ok(ContentBlock::reasoning(text)),
            Self::ToolCall { id, name, arguments } => {
                let block = ToolCallBlock { id: CallId(id), name, arguments, extra: Extra::new() };
                Ok(with_call_id(ContentBlock::ToolCall(block), index))
            }
            Self::Closed(block) => Ok(with_call_id(block, index)),
            Self::Other(block_type) => Err(block_type),
        }
    }
}

/// The id of a call that the provider gave none.
pub(crate) fn fallback_call_id(index: u32) -> CallId {
    CallId(format!("call-{index}"))
}

fn with_call_id(mut block: ContentBlock, index: u32) -> ContentBlock {
    if let ContentBlock::ToolCall(call) = &mut block
        && call.id.as_str().is_empty()
    {
        call.id = fallback_call_id(index);
    }
    block
}

impl Assembler {
    /// An assembler that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next chunk. Chunks after the finish are ignored.
    pub fn push(&mut self, chunk: &StreamChunk) {
        if self.finish.is_some() {
            return;
        }
        match chunk {
            StreamChunk::BlockStart { index, block_type } => {
                self.slot(*index, block_type);
            }
            StreamChunk::TextDelta { index, text } => {
                if let Slot::Text(so_far) = self.slot(*index, "text") {
                    so_far.push_str(text);
                }
            }
            StreamChunk::ReasoningDelta { index, text } => {
                if let Slot::Reasoning(so_far) = self.slot(*index, "reasoning") {
                    so_far.push_str(text);
                }
            }
            StreamChunk::ToolCallDelta { index, id, name, arguments_delta } => {
                self.push_call(*index, id, name.as_deref(), arguments_delta);
            }
            StreamChunk::BlockEnd { index, block } => {
                let slot = self.slot(*index, "");
                if !matches!(slot, Slot::Closed(_)) {
                    *slot = Slot::Closed(block.clone());
                }
            }
            StreamChunk::Usage { usage } => self.usage = Some(*usage),
            StreamChunk::Finish { reason, replay_state } => {
                self.finish = Some((reason.clone(), replay_state.clone()));
            }
            StreamChunk::Unknown(_) => {}
        }
    }

    /// The whole reply.
    ///
    /// A block of an unknown type that never closed cannot be assembled: it is left out, and a reply that would
    /// otherwise count as good fails with `MALFORMED_RESPONSE`.
    pub fn finish(self) -> Assembled {
        let (mut finish, replay_state) = self.finish.unwrap_or((FinishReason::Stop, None));
        let seen = self.blocks.len();
        let cut = matches!(finish, FinishReason::MaxTokens);
        let mut content = Vec::with_capacity(seen);
        let mut kept = Vec::with_capacity(seen);
        let mut unknown = None;
        for (position, (index, slot)) in self.blocks.into_iter().enumerate() {
            match slot.into_block(index) {
                Ok(ContentBlock::ToolCall(_)) if cut => {}
                Ok(block) => {
                    content.push(block);
                    kept.push(position);
                }
                Err(block_type) => unknown = Some(block_type),
            }
        }
        if let Some(block_type) = unknown
            && !matches!(finish, FinishReason::Error { .. } | FinishReason::Aborted { .. })
        {
            let message = format!("the reply has an unfinished block of the unknown type \"{block_type}\"");
            finish = FinishReason::Error { failure: Failure::new("MALFORMED_RESPONSE", message) };
        }
        let replay_state = replay_state.and_then(|state| prune_replay(state, seen, &kept));
        Assembled { content, finish, usage: self.usage, replay_state }
    }

    /// What a cancelled reply leaves: its text and reasoning that is more than white space, and never a tool call.
    pub fn interrupted_content(&self) -> Vec<ContentBlock> {
        let blocks = self.blocks.iter().filter_map(|(_, slot)| match slot {
            Slot::Text(text) => Some(ContentBlock::text(text.as_str())),
            Slot::Reasoning(text) => Some(ContentBlock::reasoning(text.as_str())),
            Slot::Closed(block) => Some(block.clone()),
            Slot::ToolCall { .. } | Slot::Other(_) => None,
        });
        blocks.filter(is_visible).collect()
    }

    fn slot(&mut self, index: u32, block_type: &str) -> &mut Slot {
        let position = *self.by_index.entry(index).or_insert_with(|| {
            self.blocks.push((index, Slot::open(block_type)));
            self.blocks.len() - 1
        });
        &mut self.blocks[position].1
    }

    fn push_call(&mut self, index: u32, new_id: &CallId, new_name: Option<&str>, delta: &str) {
        if let Slot::ToolCall { id, name, arguments } = self.slot(index, "tool-call") {
            if !new_id.as_str().is_empty() {
                new_id.as_str().clone_into(id);
            }
            if let Some(new_name) = new_name.filter(|name| !name.is_empty()) {
                new_name.clone_into(name);
            }
            arguments.push_str(delta);
        }
    }
}

fn is_visible(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(block) => !block.text.trim().is_empty(),
        ContentBlock::Reasoning(block) => !block.text.trim().is_empty(),
        _ => false,
    }
}

/// Keeps the per-block entries of the blocks that were kept; an envelope that does not fit the blocks is dropped.
fn prune_replay(mut state: Value, seen: usize, kept: &[usize]) -> Option<Value> {
    if let Some(entries) = state.get_mut("blocks").and_then(Value::as_array_mut) {
        if entries.len() != seen {
            return None;
        }
        *entries = kept.iter().map(|position| entries[*position].take()).collect();
    }
    Some(state)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn assembler(chunks: Value) -> Assembler {
        let chunks: Vec<StreamChunk> = serde_json::from_value(chunks).unwrap();
        let mut assembler = Assembler::new();
        chunks.iter().for_each(|chunk| assembler.push(chunk));
        assembler
    }

    fn assemble(chunks: Value) -> Assembled {
        assembler(chunks).finish()
    }

    #[test]
    fn orders_blocks_by_first_appearance() {
        let reply = assemble(json!([
            {"type":"text-delta","index":4,"text":"a"},
            {"type":"reasoning-delta","index":1,"text":"r"},
            {"type":"text-delta","index":4,"text":"b"},
        ]));
        assert_eq!(reply.content, [ContentBlock::text("ab"), ContentBlock::reasoning("r")]);
        assert_eq!(reply.finish, FinishReason::Stop);
    }

    #[test]
    fn the_first_block_end_is_authoritative() {
        let reply = assemble(json!([
            {"type":"block-start","index":0,"blockType":"text"},
            {"type":"text-delta","index":0,"text":"draft"},
            {"type":"block-end","index":0,"block":{"type":"text","text":"final"}},
            {"type":"text-delta","index":0,"text":"late"},
            {"type":"block-end","index":0,"block":{"type":"text","text":"second"}},
        ]));
        assert_eq!(reply.content, [ContentBlock::text("final")]);
    }

    #[test]
    fn collects_calls_from_pieces() {
        let reply = assemble(json!([
            {"type":"tool-call-delta","index":0,"id":"a","name":"read","argumentsDelta":"{\"p\""},
            {"type":"tool-call-delta","index":0,"id":"b","name":"","argumentsDelta":":1}"},
            {"type":"tool-call-delta","index":3,"id":"","argumentsDelta":""},
            {"type":"usage","usage":{"inputTokens":1,"outputTokens":2}},
            {"type":"finish","reason":{"kind":"tool-calls"}},
            {"type":"text-delta","index":9,"text":"after the end"},
        ]));
        let calls =
            [ContentBlock::tool_call("b", "read", "{\"p\":1}"), ContentBlock::tool_call("call-3", "", "")];
        assert_eq!(reply.content, calls);
        assert_eq!(reply.finish, FinishReason::ToolCalls);
        assert_eq!(reply.usage.map(|usage| usage.output_tokens), Some(2));
    }

    #[test]
    fn the_output_limit_drops_calls_and_their_replay_entries() {
        let chunks = |blocks: Value| {
            json!([
                {"type":"tool-call-delta","index":0,"id":"a","name":"read","argumentsDelta":"{"},
                {"type":"text-delta","index":1,"text":"t"},
                {"type":"finish","reason":{"kind":"max-tokens"},"replayState":{"response":1,"blocks":blocks}},
            ])
        };
        let reply = assemble(chunks(json!(["call", "text"])));
        assert_eq!(reply.content, [ContentBlock::text("t")]);
        assert_eq!(reply.replay_state, Some(json!({"response":1,"blocks":["text"]})));
        assert_eq!(assemble(chunks(json!(["one too few"]))).replay_state, None);
    }

    #[test]
    fn an_unfinished_unknown_block_fails_the_reply() {
        let reply = assemble(json!([{"type":"block-start","index":0,"blockType":"audio"}]));
        assert!(reply.content.is_empty());
        assert!(
            matches!(reply.finish, FinishReason::Error { failure } if failure.code == "MALFORMED_RESPONSE")
        );
    }

    #[test]
    fn an_interrupted_reply_keeps_what_was_visible() {
        let assembler = assembler(json!([
            {"type":"reasoning-delta","index":0,"text":" \n"},
            {"type":"text-delta","index":1,"text":"seen"},
            {"type":"tool-call-delta","index":2,"id":"a","name":"read","argumentsDelta":"{}"},
            {"type":"block-end","index":3,"block":{"type":"reasoning","text":"closed"}},
        ]));
        let expected = [ContentBlock::text("seen"), ContentBlock::reasoning("closed")];
        assert_eq!(assembler.interrupted_content(), expected);
    }
}
