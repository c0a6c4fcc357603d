//! The settings of a request: a pure function of the request and the provider's configuration. Nothing absent is sent
//! as `null`.

use std::borrow::Cow;

use serde::Serialize;

use crate::http::{ChatDialect, ProviderConfig, ThinkingMode};
use crate::{ModelError, ModelRequest};

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
    max_completion_tokens: Option<u64>,
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
        max_tokens: config.max_tokens_for(call).filter(|_| config.chat_dialect != ChatDialect::OpenAi),
        max_completion_tokens: config
            .max_tokens_for(call)
            .filter(|_| config.chat_dialect == ChatDialect::OpenAi),
        stop: call.stop.as_deref().filter(|stop| !stop.is_empty()),
    };
    serde_json::to_vec(&settings).map_err(|error| config.unwritable(&error))
}

type Resolved<'a> = (Option<ThinkingMode>, Option<Cow<'a, str>>);

fn resolve_thinking<'a>(
    request: &'a ModelRequest,
    config: &ProviderConfig,
) -> Result<Resolved<'a>, ModelError> {
    let effort = config.effort_for(&request.config)?;
    if config.chat_dialect != ChatDialect::DeepSeek {
        return Ok((None, effort.filter(|effort| effort != "off")));
    }
    Ok(match effort {
        None => (config.thinking, None),
        Some(effort) if effort == "off" => (Some(ThinkingMode::Disabled), None),
        Some(effort) => (Some(ThinkingMode::Enabled), Some(effort)),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lorimer_protocol::{Message, ToolSpec};
    use serde_json::{Value, json};

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
        conversation.body::<Chat>(request, config).map(Vec::from)
    }

    fn wire(request: &ModelRequest) -> Value {
        serde_json::from_slice(&encode(request, &config(), &mut Conversation::default()).unwrap()).unwrap()
    }

    #[test]
    fn other_dialects_send_what_their_servers_know() {
        let sent = |dialect, effort: &str| {
            let mut config = config();
            (config.chat_dialect, config.max_tokens) = (dialect, Some(9));
            let mut request = request(json!([]));
            request.config.reasoning_effort = Some(effort.into());
            let body = encode(&request, &config, &mut Conversation::default()).unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap();
            ["thinking", "reasoning_effort", "max_tokens", "max_completion_tokens"]
                .map(|key| body[key].clone())
        };
        assert_eq!(sent(ChatDialect::Common, "high"), [json!(null), json!("high"), json!(9), json!(null)]);
        assert_eq!(sent(ChatDialect::OpenAi, "low"), [json!(null), json!("low"), json!(null), json!(9)]);
        assert_eq!(sent(ChatDialect::OpenAi, "off"), [json!(null), json!(null), json!(null), json!(9)]);
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
        let expected =
            "see\n[image omitted because this model accepts text only; attachment sha256:01234567]\nthere";
        assert_eq!(body["messages"][0]["content"], expected);
    }

    #[test]
    fn images_with_bytes_are_sent_to_models_that_take_them() {
        let image = |id: &str| json!({"type":"image","attachment":{"attachmentId":id}});
        let (seen, lost) = (image("sha256:0123456789"), image("sha256:ffff"));
        let result = |id: &str, content: Value| json!({"role":"user","content":[{"type":"tool-result","toolCallId":id,"content":content}]});
        let mut request = request(json!([
            {"role":"user","content":[{"type":"text","text":"see"},seen,lost,{"type":"text","text":"?"}]},
            result("a", json!([{"type":"text","text":"read"},seen])),
            result("b", json!([])),
            {"role":"user","content":[seen]},
        ]));
        let png = crate::Attachment { media_type: "image/png".into(), base64: "AAAA".into() };
        request.attachments = Arc::new([("sha256:0123456789".to_owned(), png)].into());
        let mut config = config();
        let messages = |config: &ChatConfig| -> Value {
            let body = encode(&request, config, &mut Conversation::default()).unwrap();
            serde_json::from_slice::<Value>(&body).unwrap()["messages"].take()
        };
        assert!(!messages(&config).to_string().contains("image_url"));
        config.models[0].accepts_images = true;
        let url = json!({"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}});
        let text = |text: &str| json!({"type":"text","text":text});
        let omitted = "[image omitted because this model accepts text only; attachment sha256:ffff]\n?";
        let expected = json!([
            {"role":"user","content":[text("see"), url, text(omitted)]},
            {"role":"tool","tool_call_id":"a","content":"read\n[image sha256:01234567 follows the tool results]"},
            {"role":"tool","tool_call_id":"b","content":"(no output)"},
            {"role":"user","content":[text("The images of the tool results above:"), url]},
            {"role":"user","content":[url]},
        ]);
        assert_eq!(messages(&config), expected);
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
