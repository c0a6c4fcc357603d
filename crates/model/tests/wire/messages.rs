//! The Messages protocol over real sockets.

use std::sync::Arc;

use futures_util::StreamExt;
use lorimer_model::{
    ApiKey, Assembled, EffortStyle, MessagesConfig, MessagesOverrides, MessagesProvider, ModelRequest,
    Provider, anthropic,
};
use lorimer_protocol::{
    ContentBlock, Extra, Failure, FinishReason, Message, Role, Source, StreamChunk, ToolResultBlock, ToolSpec,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::server::{Server, Step};
use crate::{KEY, assemble, assert_good, failure_of, request, write};

fn config(url: &str) -> MessagesConfig {
    let mut config = MessagesConfig::new("test", "Test", url);
    config.api_key = ApiKey::new(KEY);
    config.key_variable = Some("TEST_KEY".into());
    config
}

async fn ask(config: MessagesConfig) -> Assembled {
    assemble(&MessagesProvider::new(config), request()).await
}

async fn failure(config: MessagesConfig) -> Failure {
    failure_of(ask(config).await)
}

#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn event(data: Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn start() -> String {
    let usage = json!({
        "input_tokens":10,"output_tokens":1,"cache_read_input_tokens":64,"cache_creation_input_tokens":8,
    });
    event(json!({"type":"message_start","message":{"id":"x","role":"assistant","content":[],"usage":usage}}))
}

#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn block(index: u32, start: Value, deltas: &[Value]) -> String {
    let mut events = event(json!({"type":"content_block_start","index":index,"content_block":start}));
    for delta in deltas {
        events.push_str(&event(json!({"type":"content_block_delta","index":index,"delta":delta})));
    }
    events + &event(json!({"type":"content_block_stop","index":index}))
}

fn text(index: u32, piece: &str) -> String {
    block(index, json!({"type":"text","text":""}), &[json!({"type":"text_delta","text":piece})])
}

fn thinking(index: u32, piece: &str, signature: &str) -> String {
    let deltas = [
        json!({"type":"thinking_delta","thinking":piece}),
        json!({"type":"signature_delta","signature":signature}),
    ];
    block(index, json!({"type":"thinking","thinking":"","signature":""}), &deltas)
}

fn end(reason: &str) -> String {
    event(json!({"type":"message_delta","delta":{"stop_reason":reason},"usage":{"output_tokens":20}}))
}

const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
const STOP: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

fn body(server: &Server, at: usize) -> Value {
    serde_json::from_str(server.requests()[at].split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn sends_one_post_with_only_the_headers_it_needs() {
    let server = Server::stream(vec![write(&[&start(), PING, &text(0, "a"), &end("end_turn"), STOP])]);
    let reply = ask(config(&server.url)).await;
    assert_good(&reply, "a");
    let usage = reply.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (10, 20));
    assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (Some(64), Some(8)));
    assert_eq!(reply.replay_state, None);
    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<String> = head.lines().map(str::to_lowercase).collect();
    assert_eq!(lines.remove(0), "post /v1/messages http/1.1");
    let mut names: Vec<&str> = lines.iter().filter_map(|line| line.split(':').next()).collect();
    names.sort_unstable();
    let expected =
        ["accept", "anthropic-version", "content-length", "content-type", "host", "user-agent", "x-api-key"];
    assert_eq!(names, expected);
    assert!(lines.contains(&format!("x-api-key: {KEY}")));
    assert!(lines.contains(&"anthropic-version: 2023-06-01".to_owned()));
    assert_eq!(
        body,
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"model":"m-1","stream":true,"max_tokens":32000}"#
    );
}

#[tokio::test]
async fn takes_frames_cut_at_every_byte_with_any_line_ending() {
    for line_end in ["\n", "\r\n", "\r"] {
        let frames = [&start(), ": hi\n\n", &text(0, "漢字 é!"), &end("end_turn"), STOP].concat();
        let server = Server::stream(vec![Step::Each(frames.replace('\n', line_end).into_bytes())]);
        assert_good(&ask(config(&server.url)).await, "漢字 é!");
    }
}

/// The message that a reply leaves in the log.
fn logged(reply: Assembled, provider: &str) -> Arc<Message> {
    let source = Source::Model {
        provider: provider.into(),
        model: "m-1".into(),
        replay_state: reply.replay_state,
        extra: Extra::new(),
    };
    Arc::new(Message {
        id: "a".into(),
        role: Role::Assistant,
        content: reply.content,
        source,
        extra: Extra::new(),
    })
}

fn result(id: &str, text: &str, is_error: bool) -> Arc<Message> {
    let content = if text.is_empty() { vec![] } else { vec![ContentBlock::text(text)] };
    let block =
        ToolResultBlock { tool_call_id: id.into(), content, is_error: Some(is_error), extra: Extra::new() };
    let mut message = Message::user_text("r", "", Source::tool(id.into()));
    message.content = vec![ContentBlock::ToolResult(block)];
    Arc::new(message)
}

fn tool_turn() -> String {
    let call = |index, id: &str, pieces: &[&str]| {
        let deltas: Vec<Value> =
            pieces.iter().map(|piece| json!({"type":"input_json_delta","partial_json":piece})).collect();
        block(index, json!({"type":"tool_use","id":id,"name":"read","input":{}}), &deltas)
    };
    let hidden = block(1, json!({"type":"redacted_thinking","data":"c2VjcmV0"}), &[]);
    let parts = [
        start(),
        thinking(0, "let me see", "c2ln"),
        hidden,
        text(2, "Reading."),
        call(3, "toolu_1", &["{\"p\" : ", "1.0}"]),
        call(4, "toolu_2", &[""]),
        end("tool_use"),
        STOP.to_owned(),
    ];
    parts.concat()
}

#[tokio::test]
async fn a_tool_turn_goes_back_with_its_signatures_in_place() {
    let server = Server::stream(vec![Step::Write(tool_turn().into_bytes())]);
    let provider = MessagesProvider::new(config(&server.url));
    let mut request = request();
    request.system = Some("Be brief.".into());
    let tool =
        ToolSpec { name: "read".into(), description: "d".into(), parameters: json!({"type":"object"}) };
    request.tools = Arc::new(vec![tool]);
    let reply = assemble(&provider, request.clone()).await;
    assert_eq!(reply.finish, FinishReason::ToolCalls);
    let expected = [
        ContentBlock::reasoning("let me see"),
        ContentBlock::reasoning(""),
        ContentBlock::text("Reading."),
        ContentBlock::tool_call("toolu_1", "read", "{\"p\" : 1.0}"),
        ContentBlock::tool_call("toolu_2", "read", "{}"),
    ];
    assert_eq!(reply.content, expected);

    request.messages.extend([
        logged(reply, "test"),
        result("toolu_1", "one", false),
        result("toolu_2", "", true),
        Arc::new(Message::user_text("n", "and now?", Source::user())),
    ]);
    assemble(&provider, request).await;
    let cache = json!({"type":"ephemeral"});
    let sent = body(&server, 1);
    let expected = json!([
        {"role":"user","content":[{"type":"text","text":"hi"}]},
        {"role":"assistant","content":[
            {"type":"thinking","thinking":"let me see","signature":"c2ln"},
            {"type":"redacted_thinking","data":"c2VjcmV0"},
            {"type":"text","text":"Reading."},
            {"type":"tool_use","id":"toolu_1","name":"read","input":{"p":1.0}},
            {"type":"tool_use","id":"toolu_2","name":"read","input":{}},
        ]},
        {"role":"user","content":[
            {"type":"tool_result","tool_use_id":"toolu_1","content":"one"},
            {"type":"tool_result","tool_use_id":"toolu_2","content":"(no output)","is_error":true,"cache_control":cache},
        ]},
        {"role":"user","content":[{"type":"text","text":"and now?","cache_control":cache}]},
    ]);
    assert_eq!(sent["messages"], expected);
    assert_eq!(sent["system"], json!([{"type":"text","text":"Be brief.","cache_control":cache}]));
    assert_eq!(sent["tools"][0]["input_schema"], json!({"type":"object"}));
}

#[tokio::test]
async fn thinking_of_another_provider_is_left_out_where_signatures_are_checked() {
    let server = Server::stream(vec![Step::Write(tool_turn().into_bytes())]);
    let sent = async |config: MessagesConfig, maker: &str| {
        let provider = MessagesProvider::new(config);
        let mut request = request();
        let mut reply = assemble(&provider, request.clone()).await;
        reply.content.truncate(3);
        if let Some(blocks) = reply.replay_state.as_mut().and_then(|state| state["blocks"].as_array_mut()) {
            blocks.truncate(3);
        }
        request.messages.push(logged(reply, maker));
        assemble(&provider, request).await;
        body(&server, server.requests().len() - 1)["messages"][1]["content"].take()
    };
    let text = json!({"type":"text","text":"Reading."});
    assert_eq!(sent(config(&server.url), "other").await, json!([text]));
    let mut named = config(&server.url);
    named.effort_style = EffortStyle::OutputConfig;
    let bare = |thinking: &str| json!({"type":"thinking","thinking":thinking,"signature":""});
    assert_eq!(sent(named, "other").await, json!([bare("let me see"), bare(""), text]));
}

#[tokio::test]
async fn needs_a_stop_reason_but_no_message_stop() {
    let server = Server::stream(vec![write(&[&start(), &text(0, "a"), &end("end_turn")])]);
    assert_good(&ask(config(&server.url)).await, "a");
    for cut in [vec![text(0, "half")], vec![text(0, "half"), STOP.to_owned()]] {
        let server = Server::stream(vec![Step::Write(cut.concat().into_bytes())]);
        let closed = failure(config(&server.url)).await;
        assert_eq!((closed.code.as_str(), closed.request_id.as_deref()), ("STREAM_CLOSED", Some("r-1")));
        assert!(closed.message.starts_with("Test: "), "{}", closed.message);
    }
}

#[tokio::test]
async fn maps_stop_reasons() {
    let finish = async |reason: &str| {
        let server = Server::stream(vec![write(&[&start(), &text(0, "a"), &end(reason), STOP])]);
        ask(config(&server.url)).await
    };
    assert_eq!(finish("stop_sequence").await.finish, FinishReason::Stop);
    assert_eq!(finish("pause_turn").await.finish, FinishReason::Stop);
    assert_eq!(finish("max_tokens").await.finish, FinishReason::MaxTokens);
    let refused = failure_of(finish("refusal").await);
    assert_eq!(refused.code, "REFUSAL");
    assert!(refused.message.starts_with("Test: the model refused to answer"), "{}", refused.message);
    assert_eq!(failure_of(finish("odd").await).code, "ODD");
}

#[tokio::test]
async fn tells_errors_inside_a_stream() {
    let error = event(json!({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}));
    let server = Server::stream(vec![write(&[&start(), &text(0, "half"), &error, &end("end_turn"), STOP])]);
    let broke = failure(config(&server.url)).await;
    assert_eq!((broke.code.as_str(), broke.message.as_str()), ("SERVER", "Test: Overloaded"));

    let unknown = event(json!({"type":"content_block_start","index":7,"content_block":{"type":"later"}}))
        + &event(
            json!({"type":"content_block_delta","index":7,"delta":{"type":"input_json_delta","partial_json":"x"}}),
        )
        + &event(json!({"type":"later","index":1}));
    let server = Server::stream(vec![write(&[&start(), &unknown, &text(0, "a"), &end("end_turn"), STOP])]);
    assert_good(&ask(config(&server.url)).await, "a");
}

#[tokio::test]
async fn tells_what_a_200_is_when_it_is_no_stream_of_its_own() {
    let server = Server::status(200, &["content-type: text/html"], "<html>\n<h1>Sign in</h1>\n</html>");
    let page = failure(config(&server.url)).await;
    assert_eq!(page.code, "MALFORMED_RESPONSE");
    assert!(
        page.message.starts_with("Test: ") && page.message.contains("check the base URL"),
        "{}",
        page.message
    );

    let chat =
        "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let server = Server::stream(vec![write(&[chat])]);
    let other = failure(config(&server.url)).await;
    assert_eq!(other.code, "MALFORMED_RESPONSE");
    assert!(other.message.starts_with("Test: the server answers in chat completions"), "{}", other.message);
}

#[tokio::test]
async fn error_statuses_name_the_provider_the_cause_and_the_next_step() {
    let cases = [
        (401, "authentication_error", "AUTH", "refused the key: check TEST_KEY"),
        (402, "billing_error", "QUOTA", "top it up"),
        (404, "not_found_error", "HTTP_404", "that the server speaks the Messages protocol"),
        (429, "rate_limit_error", "RATE_LIMIT", "go on in a while"),
        (529, "overloaded_error", "SERVER", "go on later"),
        (400, "invalid_request_error", "INVALID_REQUEST", "check the model id"),
    ];
    for (status, kind, code, next) in cases {
        let answer = json!({"type":"error","error":{"type":kind,"message":format!("No, {KEY}.")}});
        let server = Server::status(status, &["request-id: r-7"], &answer.to_string());
        let failed = failure(config(&server.url)).await;
        assert_eq!((failed.code.as_str(), failed.request_id.as_deref()), (code, Some("r-7")));
        assert!(failed.message.starts_with("Test: No, *** ("), "{}", failed.message);
        assert!(failed.message.contains(next), "{}", failed.message);
    }
}

#[tokio::test]
async fn pings_keep_a_stream_alive_but_are_no_content() {
    let server = Server::stream(vec![write(&[&start()]), Step::Forever(PING.into())]);
    let mut settings = config(&server.url);
    settings.content_timeout_ms = 100;
    let empty = failure(settings).await;
    assert_eq!(empty.code, "TIMEOUT");
    assert!(empty.message.contains("no content for 100 ms"), "{}", empty.message);
}

#[tokio::test]
async fn a_cancel_ends_the_stream() {
    let server = Server::stream(vec![write(&[&start(), &text(0, "half")]), Step::Hold]);
    let cancel = CancellationToken::new();
    let mut stream = MessagesProvider::new(config(&server.url)).stream(request(), cancel.clone());
    assert!(matches!(stream.next().await, Some(StreamChunk::BlockStart { .. })));
    assert!(matches!(stream.next().await, Some(StreamChunk::TextDelta { .. })));
    cancel.cancel();
    let last = stream.next().await;
    assert!(matches!(last, Some(StreamChunk::Finish { reason: FinishReason::Aborted { .. }, .. })));
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_longer_conversation_never_changes_what_was_sent() {
    let server = Server::stream(vec![write(&[&start(), &text(0, "ok"), &end("end_turn"), STOP])]);
    let overrides = MessagesOverrides { base_url: Some(server.url.clone()), ..MessagesOverrides::default() };
    let provider = anthropic(|_| Some("k".into()), overrides);
    let call = Assembled {
        content: vec![ContentBlock::tool_call("call 1", "read", "not json")],
        finish: FinishReason::ToolCalls,
        usage: None,
        replay_state: None,
    };
    let user = |text: &str| Arc::new(Message::user_text("u", text, Source::user()));
    let log = [
        user("a"),
        user("b"),
        logged(call, "chat"),
        result("call 1", "x", false),
        user("c"),
        user(" "),
        user("d"),
    ];
    let mut sent: Vec<Vec<Value>> = Vec::new();
    for length in [1, 2, 4, 5, 6, 7] {
        let messages = log[..length].to_vec();
        assemble(&provider, ModelRequest { messages, ..request() }).await;
        let mut messages = body(&server, sent.len())["messages"].as_array().unwrap().clone();
        for block in messages.iter_mut().flat_map(|message| message["content"].as_array_mut().unwrap()) {
            block.as_object_mut().unwrap().remove("cache_control");
        }
        sent.push(messages);
    }
    assert!(sent.windows(2).all(|pair| pair[1].starts_with(&pair[0])), "{sent:#?}");
    let last = sent.last().unwrap();
    assert_eq!(last[2]["content"], json!([{"type":"tool_use","id":"call_1","name":"read","input":{}}]));
    assert_eq!(last[3]["content"][0]["tool_use_id"], "call_1");
    assert_eq!(last[5]["content"][0]["text"], "(no text)");
}
