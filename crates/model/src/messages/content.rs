//! The messages of a request.
//!
//! What must hold:
//! - Equal requests give equal bytes, and a longer conversation only adds to the end of `messages`.
//! - All results of one reply's calls stand in the one message that follows it. Messages of a person that come after
//!   are messages of their own, never added to one that may have been sent.
//! - Thinking goes back as it came, in its place, with its signature. Thinking without one (made by another protocol,
//!   or cut off) is left out, but for servers that take efforts by name: those want it back and check no signature.
//! - A call's arguments go back as they were streamed. What is no JSON object cannot be sent and becomes `{}`; its
//!   result says what was wrong with it.
//! - Text that is only white space is refused by servers and not sent. Blocks that are not known here are left out.

use std::borrow::Cow;
use std::sync::Arc;

use lorimer_protocol::{ContentBlock, Message, ReasoningBlock, Role, ToolCallBlock, ToolResultBlock};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::replay::{self, Entry};
use crate::Attachment;
use crate::http::{EffortStyle, ProviderConfig};
use crate::images::{Images, placeholder, shown_text};

/// What a tool result without text says.
const NO_OUTPUT: &str = "(no output)";
/// What a message without anything to send says.
const NO_TEXT: &str = "(no text)";
const NO_ARGUMENTS: &str = "{}";

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: ImageSource<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: Cow<'a, str>,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: &'a RawValue,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: ResultContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct ImageSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

/// Consecutive messages with tool results are one message; any other message is alone.
pub(super) fn group(messages: &[Arc<Message>]) -> usize {
    messages.iter().take_while(|message| has_results(message)).count().max(1)
}

fn has_results(message: &Message) -> bool {
    message.role == Role::User
        && message.content.iter().any(|block| matches!(block, ContentBlock::ToolResult(_)))
}

/// Writes messages for one provider.
pub(super) struct Writer<'a> {
    pub images: Images<'a>,
    pub config: &'a ProviderConfig,
}

impl<'a> Writer<'a> {
    /// Adds what a group comes to, to the members of a `messages` array.
    pub(super) fn push_group(&self, json: &mut Vec<u8>, group: &'a [Arc<Message>]) -> serde_json::Result<()> {
        let is_assistant = group.iter().any(|message| message.role == Role::Assistant);
        let (role, content) = match is_assistant {
            true => ("assistant", group.iter().flat_map(|message| self.assistant(message)).collect()),
            false => ("user", self.user(group)),
        };
        if content.is_empty() {
            return Ok(());
        }
        if !json.is_empty() {
            json.push(b',');
        }
        serde_json::to_writer(json, &WireMessage { role, content })
    }

    fn assistant(&self, message: &'a Message) -> Vec<Block<'a>> {
        let entries = replay::from_message(message, &self.config.id).unwrap_or_default();
        let mut entries = entries.into_iter();
        let mut content: Vec<Block<'a>> = Vec::with_capacity(message.content.len());
        for block in &message.content {
            let entry = entries.next().flatten();
            content.extend(match block {
                ContentBlock::Text(block) => text_block(&block.text),
                ContentBlock::Reasoning(block) => self.thinking(block, entry),
                ContentBlock::ToolCall(call) => Some(tool_use(call)),
                _ => None,
            });
        }
        // A reply must not end in thinking, where signatures are checked.
        let ends_in_thinking =
            |last: &Block<'_>| matches!(last, Block::Thinking { .. } | Block::RedactedThinking { .. });
        while self.checks_signatures() && content.last().is_some_and(ends_in_thinking) {
            content.pop();
        }
        content
    }

    fn checks_signatures(&self) -> bool {
        self.config.effort_style == EffortStyle::Budget
    }

    fn thinking(&self, block: &'a ReasoningBlock, entry: Option<Entry>) -> Option<Block<'a>> {
        let thinking = block.text.as_str();
        match entry {
            Some(Entry::Thinking { signature }) => {
                Some(Block::Thinking { thinking, signature: signature.into() })
            }
            Some(Entry::RedactedThinking { data }) => Some(Block::RedactedThinking { data }),
            None if self.checks_signatures() => None,
            None => Some(Block::Thinking { thinking, signature: "".into() }),
        }
    }

    /// Tool results come first, as servers want it.
    fn user(&self, group: &'a [Arc<Message>]) -> Vec<Block<'a>> {
        let blocks = || group.iter().flat_map(|message| &message.content);
        let results = blocks().filter_map(|block| match block {
            ContentBlock::ToolResult(result) => Some(self.tool_result(result)),
            _ => None,
        });
        let mut content: Vec<Block<'a>> =
            results.chain(blocks().filter_map(|block| self.shown(block))).collect();
        if content.is_empty() {
            content.push(Block::Text { text: NO_TEXT.into() });
        }
        content
    }

    fn shown(&self, block: &'a ContentBlock) -> Option<Block<'a>> {
        match (block, self.images.find(block)) {
            (_, Some(image)) => Some(image_block(image)),
            (ContentBlock::Text(block), None) => text_block(&block.text),
            (ContentBlock::Image(image), None) => Some(Block::Text { text: placeholder(image).into() }),
            _ => None,
        }
    }

    fn tool_result(&self, result: &'a ToolResultBlock) -> Block<'a> {
        let shows_images = result.content.iter().any(|block| self.images.find(block).is_some());
        let content = match shows_images {
            true => {
                ResultContent::Blocks(result.content.iter().filter_map(|block| self.shown(block)).collect())
            }
            false => ResultContent::Text(match shown_text(&result.content) {
                text if text.trim().is_empty() => NO_OUTPUT.into(),
                text => text,
            }),
        };
        Block::ToolResult {
            tool_use_id: wire_id(result.tool_call_id.as_str()),
            content,
            is_error: result.is_error.unwrap_or(false),
        }
    }
}

fn text_block(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text: text.into() })
}

fn image_block(image: &Attachment) -> Block<'_> {
    let source = ImageSource { r#type: "base64", media_type: &image.media_type, data: &image.base64 };
    Block::Image { source }
}

fn tool_use(call: &ToolCallBlock) -> Block<'_> {
    let is_object = serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
    let text = if is_object { call.arguments.trim() } else { NO_ARGUMENTS };
    // An object that was just read is JSON.
    let input = serde_json::from_str(text).unwrap_or(RawValue::NULL);
    Block::ToolUse { id: wire_id(call.id.as_str()), name: &call.name, input }
}

/// A call's id with the characters that the protocol allows in one. Ids of its own servers stay as they are.
fn wire_id(id: &str) -> Cow<'_, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match id.chars().all(is_allowed) {
        true => Cow::Borrowed(id),
        false => id.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect(),
    }
}
