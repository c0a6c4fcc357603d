//! The messages and tools of a request.
//!
//! What must hold:
//! - Equal requests give equal bytes, and a longer conversation only adds to the end of `messages`.
//! - The arguments of a call and the reasoning of a reply go back exactly as they were streamed.
//! - Nothing absent is sent as `null`; blocks that are not known here are left out.
//! - Nothing stands between the results of one reply's calls: their images follow all of them.

use std::borrow::Cow;
use std::sync::Arc;

use lorimer_protocol::{ContentBlock, Message, Role, ToolResultBlock, ToolSpec};
use serde::Serialize;

use crate::Attachment;
use crate::images::{Images, append, placeholder, short_digest, shown_text, text_of};

/// What a tool result without text says.
const NO_OUTPUT: &str = "(no output)";
/// What precedes the images of tool results.
const IMAGES_CAPTION: &str = "The images of the tool results above:";

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: Cow<'a, str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: &'a ToolSpec,
}

/// The `tools` array.
pub(super) fn tools_json(tools: &[ToolSpec]) -> serde_json::Result<Vec<u8>> {
    let wire: Vec<WireTool<'_>> =
        tools.iter().map(|tool| WireTool { r#type: "function", function: tool }).collect();
    serde_json::to_vec(&wire)
}

/// Adds the system prompt to the members of a `messages` array.
pub(super) fn push_system(json: &mut Vec<u8>, system: Option<&str>) -> serde_json::Result<()> {
    match system.filter(|system| !system.is_empty()) {
        Some(system) => push_wire(json, &WireMessage::System { content: Cow::Borrowed(system) }),
        None => Ok(()),
    }
}

/// Consecutive messages with tool results go together; any other message is alone.
pub(super) fn group(messages: &[Arc<Message>]) -> usize {
    messages.iter().take_while(|message| results(message).next().is_some()).count().max(1)
}

/// Adds what a group comes to, to the members of a `messages` array.
pub(super) fn push_group(
    json: &mut Vec<u8>,
    group: &[Arc<Message>],
    images: Images<'_>,
) -> serde_json::Result<()> {
    for message in group {
        match message.role {
            Role::System => push_wire(json, &WireMessage::System { content: shown_text(&message.content) })?,
            Role::Assistant => push_wire(json, &assistant(message))?,
            Role::User => push_user(json, message, images)?,
        }
    }
    let blocks = group.iter().flat_map(|message| results(message)).flat_map(|result| &result.content);
    let shown: Vec<Part<'_>> = blocks.filter_map(|block| images.find(block)).map(image_part).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let caption = Part::Text { text: Cow::Borrowed(IMAGES_CAPTION) };
    let parts = std::iter::once(caption).chain(shown).collect();
    push_wire(json, &WireMessage::User { content: Content::Parts(parts) })
}

fn push_wire(json: &mut Vec<u8>, message: &WireMessage<'_>) -> serde_json::Result<()> {
    if !json.is_empty() {
        json.push(b',');
    }
    serde_json::to_writer(json, message)
}

/// The tool results of a message of the user role.
fn results(message: &Message) -> impl Iterator<Item = &ToolResultBlock> {
    let is_user = message.role == Role::User;
    message.content.iter().filter_map(move |block| match block {
        ContentBlock::ToolResult(result) if is_user => Some(result),
        _ => None,
    })
}

/// `content` is always a string: servers refuse a `null` without calls, and the session could never go on.
fn assistant(message: &Message) -> WireMessage<'_> {
    let mut content = Cow::Borrowed("");
    let mut reasoning_content: Option<Cow<'_, str>> = None;
    let mut tool_calls = Vec::new();
    for block in &message.content {
        match block {
            ContentBlock::Text(block) => append(&mut content, &block.text),
            ContentBlock::Reasoning(block) => {
                append(reasoning_content.get_or_insert(Cow::Borrowed("")), &block.text);
            }
            ContentBlock::ToolCall(call) => tool_calls.push(WireCall {
                id: call.id.as_str(),
                r#type: "function",
                function: WireFunction { name: &call.name, arguments: &call.arguments },
            }),
            _ => {}
        }
    }
    WireMessage::Assistant { content, reasoning_content, tool_calls }
}

fn push_user(json: &mut Vec<u8>, message: &Message, images: Images<'_>) -> serde_json::Result<()> {
    let content = user_content(&message.content, images);
    let says_nothing = matches!(&content, Content::Text(text) if text.is_empty());
    if !says_nothing || results(message).next().is_none() {
        push_wire(json, &WireMessage::User { content })?;
    }
    for result in results(message) {
        let content = text_of(&result.content, |block, image| match images.find(block) {
            Some(_) => format!("[image sha256:{} follows the tool results]", short_digest(image)),
            None => placeholder(image),
        });
        let content = if content.is_empty() { Cow::Borrowed(NO_OUTPUT) } else { content };
        push_wire(json, &WireMessage::Tool { tool_call_id: result.tool_call_id.as_str(), content })?;
    }
    Ok(())
}

/// Text alone stays a string; images that are sent stand between pieces of text.
fn user_content<'a>(blocks: &'a [ContentBlock], images: Images<'a>) -> Content<'a> {
    if blocks.iter().all(|block| images.find(block).is_none()) {
        return Content::Text(shown_text(blocks));
    }
    let mut parts = Vec::new();
    let push_text = |parts: &mut Vec<Part<'a>>, blocks: &'a [ContentBlock]| {
        let text = shown_text(blocks);
        if !text.is_empty() {
            parts.push(Part::Text { text });
        }
    };
    let mut rest = blocks;
    while let Some((at, image)) =
        rest.iter().enumerate().find_map(|(at, block)| Some((at, images.find(block)?)))
    {
        push_text(&mut parts, &rest[..at]);
        parts.push(image_part(image));
        rest = &rest[at + 1..];
    }
    push_text(&mut parts, rest);
    Content::Parts(parts)
}

fn image_part<'a>(image: &Attachment) -> Part<'a> {
    let url = format!("data:{};base64,{}", image.media_type, image.base64);
    Part::ImageUrl { image_url: ImageUrl { url } }
}
