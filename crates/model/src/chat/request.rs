//! A request's body: a pure function of the request and the provider's settings.
//!
//! What must hold:
//! - Equal requests give equal bytes, and a longer conversation only adds to the end of `messages`.
//! - The arguments of a call and the reasoning of a reply go back exactly as they were streamed.
//! - Nothing absent is sent as `null`; blocks that are not known here are left out.

use std::borrow::Cow;

use lorimer_protocol::{ContentBlock, ImageBlock, Message, Role, ToolSpec};
use serde::Serialize;
use serde_json::Value;

use crate::http::{ProviderConfig, ThinkingMode};
use crate::{ModelError, ModelRequest};

/// What a tool result without text says.
const NO_OUTPUT: &str = "(no output)";
/// How much of an image's digest its placeholder names, in characters.
const DIGEST_CHARS: usize = 8;

#[derive(Serialize)]
struct Settings<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'a [String]>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Thinking {
    r#type: ThinkingMode,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: Cow<'a, str>,
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

/// Every member of the body but `messages` and `tools`.
///
/// # Errors
/// [`ModelError::UnsupportedEffort`] when the provider does not offer the effort that is asked for.
pub(super) fn settings(request: &ModelRequest, config: &ProviderConfig) -> Result<Vec<u8>, ModelError> {
    let (thinking, reasoning_effort) = resolve_thinking(request, config)?;
    let call = &request.config;
    let effort = reasoning_effort.map(Cow::into_owned);
    let settings = Settings {
        model: &call.model,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
        thinking: thinking.map(|mode| Thinking { r#type: mode }),
        reasoning_effort: effort.as_deref(),
        temperature: call.temperature.filter(|temperature| temperature.is_finite()),
        max_tokens: config.max_tokens_for(call),
        stop: call.stop.as_deref().filter(|stop| !stop.is_empty()),
    };
    serde_json::to_vec(&settings).map_err(|error| config.unwritable(&error))
}

/// The `tools` array.
pub(super) fn tools_json(tools: &[ToolSpec]) -> serde_json::Result<Vec<u8>> {
    let wire: Vec<WireTool<'_>> =
        tools.iter().map(|tool| WireTool { r#type: "function", function: tool }).collect();
    serde_json::to_vec(&wire)
}

type Resolved<'a> = (Option<ThinkingMode>, Option<Cow<'a, str>>);

fn resolve_thinking<'a>(
    request: &'a ModelRequest,
    config: &ProviderConfig,
) -> Result<Resolved<'a>, ModelError> {
    Ok(match config.effort_for(&request.config)? {
        None => (config.thinking, None),
        Some(effort) if effort == "off" => (Some(ThinkingMode::Disabled), None),
        Some(effort) => (Some(ThinkingMode::Enabled), Some(effort)),
    })
}

/// Adds the system prompt to the members of a `messages` array.
pub(super) fn push_system(json: &mut Vec<u8>, system: Option<&str>) -> serde_json::Result<()> {
    match system.filter(|system| !system.is_empty()) {
        Some(system) => push_wire(json, &WireMessage::System { content: Cow::Borrowed(system) }),
        None => Ok(()),
    }
}

/// Adds what a message comes to, to the members of a `messages` array. It depends on this message alone.
pub(super) fn push_message(json: &mut Vec<u8>, message: &Message) -> serde_json::Result<()> {
    match message.role {
        Role::System => push_wire(json, &WireMessage::System { content: shown_text(&message.content) }),
        Role::Assistant => push_wire(json, &assistant(message)),
        Role::User => push_user(json, message),
    }
}

fn push_wire(json: &mut Vec<u8>, message: &WireMessage<'_>) -> serde_json::Result<()> {
    if !json.is_empty() {
        json.push(b',');
    }
    serde_json::to_writer(json, message)
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

fn push_user(json: &mut Vec<u8>, message: &Message) -> serde_json::Result<()> {
    let mut results = message
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::ToolResult(result) => Some(result),
            _ => None,
        })
        .peekable();
    let content = shown_text(&message.content);
    if results.peek().is_none() || !content.is_empty() {
        push_wire(json, &WireMessage::User { content })?;
    }
    results.try_for_each(|result| {
        let content = shown_text(&result.content);
        let content = if content.is_empty() { Cow::Borrowed(NO_OUTPUT) } else { content };
        push_wire(json, &WireMessage::Tool { tool_call_id: result.tool_call_id.as_str(), content })
    })
}

/// The text of blocks, joined without a separator; images stand in it as a line of their own.
fn shown_text(blocks: &[ContentBlock]) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed("");
    let mut after_image = false;
    for block in blocks {
        match block {
            ContentBlock::Text(block) if !block.text.is_empty() => {
                if std::mem::take(&mut after_image) && !block.text.starts_with('\n') {
                    append(&mut shown, "\n");
                }
                append(&mut shown, &block.text);
            }
            ContentBlock::Image(image) => {
                if !shown.is_empty() && !shown.ends_with('\n') {
                    append(&mut shown, "\n");
                }
                shown.to_mut().push_str(&image_placeholder(image));
                after_image = true;
            }
            _ => {}
        }
    }
    shown
}

/// Appends without a copy while there is only one piece.
fn append<'a>(text: &mut Cow<'a, str>, more: &'a str) {
    match more {
        "" => {}
        _ if text.is_empty() => *text = Cow::Borrowed(more),
        _ => text.to_mut().push_str(more),
    }
}

/// What stands for an image that the model cannot see. The same image always gives the same text.
fn image_placeholder(image: &ImageBlock) -> String {
    let id = image.attachment.get("attachmentId").and_then(Value::as_str).unwrap_or_default();
    let digest = id.strip_prefix("sha256:").unwrap_or(id);
    let digest: String = digest.chars().filter(char::is_ascii_hexdigit).take(DIGEST_CHARS).collect();
    let name = if digest.is_empty() { String::new() } else { format!(" {digest}") };
    format!("[image{name} left out: this model takes text only]")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::chat::{Chat, ChatConfig, ChatOverrides, deepseek};
    use crate::http::Conversation;

    fn config() -> ChatConfig {
        deepseek(|_| None, ChatOverrides::default()).config().clone()
    }

    #[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
    fn request(messages: Value) -> ModelRequest {
        let messages: Vec<Message> = messages
            .as_array()
            .unwrap()
            .iter()
            .map(|message| {
                let mut message = message.clone();
                message["id"] = json!("m");
                message["source"] = json!({"kind":"user"});
                serde_json::from_value(message).unwrap()
            })
            .collect();
        let mut request =
            ModelRequest { messages: messages.into_iter().map(Arc::new).collect(), ..Default::default() };
        request.config.model = "deepseek-v4-flash".into();
        request
    }

    fn encode(
        request: &ModelRequest,
        config: &ChatConfig,
        conversation: &mut Conversation,
    ) -> Result<Vec<u8>, ModelError> {
        conversation.body::<Chat>(request, config)
    }

    fn wire(request: &ModelRequest) -> Value {
        serde_json::from_slice(&encode(request, &config(), &mut Conversation::default()).unwrap()).unwrap()
    }

    #[test]
    fn writes_the_fields_in_a_fixed_order_and_leaves_out_what_is_absent() {
        let mut request = request(json!([{"role":"user","content":[{"type":"text","text":"hi"}]}]));
        request.system = Some("be brief".into());
        let parameters = json!({"b":1,"a":2});
        request.tools = Arc::new(vec![ToolSpec { name: "t".into(), description: "d".into(), parameters }]);
        let body =
            String::from_utf8(encode(&request, &config(), &mut Conversation::default()).unwrap()).unwrap();
        assert_eq!(
            body,
            r#"{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"t","description":"d","parameters":{"b":1,"a":2}}}],"model":"deepseek-v4-flash","stream":true,"stream_options":{"include_usage":true},"thinking":{"type":"enabled"},"reasoning_effort":"high","max_tokens":256000}"#
        );
    }

    #[test]
    fn sends_reasoning_back_exactly_even_when_it_is_empty() {
        let messages = |blocks: Value| {
            wire(&request(json!([{"role":"assistant","content":blocks}])))["messages"][0].clone()
        };
        let empty = messages(json!([{"type":"reasoning","text":""},{"type":"text","text":"x"}]));
        assert_eq!(empty, json!({"role":"assistant","content":"x","reasoning_content":""}));
        let none = messages(json!([{"type":"text","text":"x"}]));
        assert_eq!(none, json!({"role":"assistant","content":"x"}));
        let call = messages(json!([
            {"type":"reasoning","text":"a "},{"type":"reasoning","text":"b"},{"type":"later"},
            {"type":"tool-call","id":"c","name":"read","arguments":"{\"p\" : 1"},
        ]));
        let calls = json!([{"id":"c","type":"function","function":{"name":"read","arguments":"{\"p\" : 1"}}]);
        assert_eq!(
            call,
            json!({"role":"assistant","content":"","reasoning_content":"a b","tool_calls":calls})
        );
    }

    #[test]
    fn tool_results_become_tool_messages() {
        let body = wire(&request(json!([
            {"role":"user","content":[{"type":"tool-result","toolCallId":"a","content":[]}]},
            {"role":"user","content":[
                {"type":"text","text":"note"},
                {"type":"tool-result","toolCallId":"b","isError":true,"content":[{"type":"text","text":"Error: x"}]},
            ]},
            {"role":"user","content":[]},
            {"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
        ])));
        let expected = json!([
            {"role":"tool","tool_call_id":"a","content":"(no output)"},
            {"role":"user","content":"note"},
            {"role":"tool","tool_call_id":"b","content":"Error: x"},
            {"role":"user","content":""},
            {"role":"system","content":"ab"},
        ]);
        assert_eq!(body["messages"], expected);
    }

    #[test]
    fn a_longer_conversation_only_adds_to_the_end() {
        let mut request = request(json!([
            {"role":"user","content":[{"type":"text","text":"a"}]},
            {"role":"assistant","content":[{"type":"text","text":"b"}]},
            {"role":"user","content":[{"type":"text","text":"c"}]},
        ]));
        let whole =
            String::from_utf8(encode(&request, &config(), &mut Conversation::default()).unwrap()).unwrap();
        request.messages.pop();
        let shorter =
            String::from_utf8(encode(&request, &config(), &mut Conversation::default()).unwrap()).unwrap();
        let (prefix, _) = shorter.split_once("],\"model\"").unwrap();
        assert!(whole.starts_with(prefix), "{whole}\n{prefix}");
    }

    #[test]
    fn a_kept_conversation_gives_the_bytes_of_a_new_one() {
        let mut kept = Conversation::default();
        let mut request = request(json!([
            {"role":"user","content":[{"type":"text","text":"a"}]},
            {"role":"assistant","content":[{"type":"text","text":"b"}]},
            {"role":"user","content":[{"type":"tool-result","toolCallId":"c","content":[]}]},
        ]));
        let all = request.messages.clone();
        let other = Arc::new(Message { id: "other".into(), ..all[0].as_ref().clone() });
        let steps: [(Option<&str>, Vec<Arc<Message>>); 6] = [
            (None, vec![]),
            (Some("s"), all[..1].to_vec()),
            (Some("s"), all.clone()),
            (Some("s"), vec![all[0].clone(), other, all[2].clone()]),
            (Some("s"), all[..2].to_vec()),
            (Some("t"), all.clone()),
        ];
        for (system, messages) in steps {
            request.system = system.map(str::to_owned);
            request.messages = messages;
            let anew = encode(&request, &config(), &mut Conversation::default()).unwrap();
            assert_eq!(encode(&request, &config(), &mut kept).unwrap(), anew);
        }
    }

    #[test]
    fn images_become_a_stable_line() {
        let body = wire(&request(json!([{"role":"user","content":[
            {"type":"text","text":"see"},
            {"type":"image","attachment":{"attachmentId":"sha256:0123456789abcdef"}},
            {"type":"text","text":"there"},
        ]}])));
        let expected = "see\n[image 01234567 left out: this model takes text only]\nthere";
        assert_eq!(body["messages"][0]["content"], expected);
    }

    #[test]
    fn resolves_thinking() {
        let resolve = |effort: Option<&str>, config: &ChatConfig| {
            let mut request = request(json!([]));
            request.config.reasoning_effort = effort.map(str::to_owned);
            let body: Value =
                serde_json::from_slice(&encode(&request, config, &mut Conversation::default())?).unwrap();
            Ok::<_, ModelError>((body["thinking"]["type"].clone(), body["reasoning_effort"].clone()))
        };
        let mut config = config();
        assert_eq!(resolve(Some("off"), &config), Ok((json!("disabled"), Value::Null)));
        assert_eq!(resolve(Some("max"), &config), Ok((json!("enabled"), json!("max"))));
        let refused = resolve(Some("huge"), &config).unwrap_err();
        assert_eq!(refused.code(), "UNSUPPORTED_REASONING_EFFORT");
        config.thinking = Some(ThinkingMode::Disabled);
        assert_eq!(resolve(None, &config), Ok((json!("disabled"), Value::Null)));
        assert!(resolve(Some("high"), &config).is_err());
        let plain = ChatConfig::new("p", "P", "http://h");
        assert_eq!(resolve(None, &plain), Ok((Value::Null, Value::Null)));
    }
}
