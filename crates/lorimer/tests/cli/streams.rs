//! Streams as servers really send them, and servers that fail.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::lab::{Ended, Lab};
use crate::server::{Server, delta, done, finish, text};

/// The answer to a stream of these steps.
#[track_caller]
fn answer(steps: Vec<Value>) -> String {
    let (lab, server) = (Lab::new(), Server::raw(&[steps]));
    let answer = lab.run(&server, &["go"]).end().answer().to_owned();
    assert!(lab.log().of("llm/retry").is_empty());
    answer
}

fn frames() -> String {
    text("käse ") + ": a comment\n\n" + &text("und 中文") + &done()
}

#[test]
fn line_ends_of_every_kind() {
    assert_eq!(answer(vec![frames().into()]), "käse und 中文\n");
    assert_eq!(answer(vec![frames().replace('\n', "\r\n").into()]), "käse und 中文\n");
    assert_eq!(answer(vec![frames().replace('\n', "\r").into()]), "käse und 中文\n");
}

#[test]
fn no_space_after_the_colon() {
    assert_eq!(answer(vec![frames().replace("data: ", "data:").into()]), "käse und 中文\n");
}

#[test]
fn a_byte_a_write() {
    assert_eq!(answer(vec![json!({"each": frames()})]), "käse und 中文\n");
    assert_eq!(answer(vec![json!({"each": frames().replace('\n', "\r\n")})]), "käse und 中文\n");
}

#[test]
fn characters_split_between_writes() {
    let bytes = text("中").into_bytes();
    let middle = bytes.iter().position(|byte| *byte > 0x7f).expect("the character") + 1;
    let hex =
        |bytes: &[u8]| json!({"hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()});
    let steps = vec![hex(&bytes[..middle]), json!({"ms": 20}), hex(&bytes[middle..]), done().into()];
    assert_eq!(answer(steps), "中\n");
}

#[test]
fn chunked_bodies() {
    let all = frames();
    let (first, second) = all.split_at(30);
    assert_eq!(
        answer(vec![json!({"chunk": first}), json!({"chunk": second}), json!({"end": true})]),
        "käse und 中文\n"
    );
}

#[test]
fn nothing_is_waited_for_after_the_end() {
    assert_eq!(answer(vec![frames().into(), json!({"ms": 600_000})]), "käse und 中文\n");
}

#[test]
fn an_end_without_done_is_good_when_the_finish_was_told() {
    assert_eq!(answer(vec![text("whole").into(), finish("stop").into()]), "whole\n");
}

/// A run on these turns; the log and how it ended.
fn failing(turns: &[Vec<Value>], more: &[&str]) -> (Lab, Server, Ended) {
    let (lab, server) = (Lab::new(), Server::raw(turns));
    let ended = lab.run(&server, &["go"]).and(more).end();
    lab.log().assert_closed();
    (lab, server, ended)
}

/// The codes of the failures that were tried again.
fn repeats(lab: &Lab) -> Vec<String> {
    let log = lab.log();
    let (planned, begun) = (log.of("llm/retry"), log.of("llm/retry-started"));
    let ids = |events: &[&Value]| events.iter().map(|data| data["retryId"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&planned), ids(&begun));
    planned.iter().map(|data| data["failure"]["code"].as_str().expect("a code").to_owned()).collect()
}

#[test]
fn a_stream_that_stops_short_is_asked_for_again() {
    let (lab, server, ended) = failing(&[vec![text("half").into()]], &[]);
    insta::assert_snapshot!(ended.complaint(1), @"lorimer: DeepSeek: the server closed the stream before it gave a finish reason [STREAM_CLOSED]; go on with `lorimer run --session [SHORT-ID]`");
    assert_eq!(ended.stdout, "");
    assert_eq!(repeats(&lab), ["STREAM_CLOSED", "STREAM_CLOSED"]);
    assert_eq!(server.requests().len(), 3);
    let log = lab.log();
    assert!(log.of("assistant/message").is_empty());
    assert_eq!(log.ends()[0]["error"]["code"], "STREAM_CLOSED");
}

#[test]
fn a_reset_connection_is_made_good() {
    let broken = vec![text("lost words").into(), json!({"ms": 1000}), json!({"rst": true})];
    let (lab, server, ended) = failing(&[broken, vec![text("kept words").into(), done().into()]], &[]);
    assert_eq!(ended.answer(), "kept words\n");
    assert_eq!(repeats(&lab), ["TRANSPORT"]);
    assert_eq!(server.requests()[0], server.requests()[1]);
    let log = lab.log();
    let [reply] = log.of("assistant/message")[..] else { panic!("one reply") };
    assert_eq!(reply["message"]["content"], json!([{"type": "text", "text": "kept words"}]));
    let cited = log.events.iter().find(|event| event["type"] == "assistant/message").expect("a reply");
    let cited: Vec<u64> = serde_json::from_value(cited["sourceEventSeqs"].clone()).expect("seqs");
    let begun = log.events.iter().find(|event| event["type"] == "llm/retry-started").expect("a repeat");
    assert!(
        cited.iter().all(|seq| *seq > begun["seq"].as_u64().expect("a seq")),
        "only chunks of the repeat"
    );
    let chunks = log.of("assistant/chunk");
    assert!(chunks.iter().any(|data| data["chunk"]["text"] == "lost words"), "they stay in the log");
}

#[test]
fn a_server_that_is_busy_says_when_to_come_back() {
    let busy = json!({"status": 429, "headers": {"Retry-After": "0.02"}, "body": "{\"error\":{\"message\":\"slow down\"}}"});
    let (lab, _server, ended) = failing(&[vec![busy], vec![text("in").into(), done().into()]], &[]);
    assert_eq!(ended.answer(), "in\n");
    assert_eq!(repeats(&lab), ["RATE_LIMIT"]);
    let log = lab.log();
    let retry = log.of("llm/retry")[0];
    assert_eq!(
        (&retry["delayMs"], &retry["failure"]["message"]),
        (&json!(20), &json!("DeepSeek: slow down (too many requests: go on in 1 s)"))
    );
    assert_eq!(
        (&retry["failure"]["status"], &retry["failure"]["providerRetryAfterMs"]),
        (&json!(429), &json!(20))
    );
}

#[test]
fn a_wait_that_is_too_long_is_a_failure() {
    let busy = json!({"status": 429, "headers": {"Retry-After": "3600"}, "body": "{\"error\":{\"message\":\"slow down\"}}"});
    let (lab, server, ended) = failing(&[vec![busy]], &[]);
    insta::assert_snapshot!(ended.complaint(1), @"lorimer: DeepSeek: slow down (too many requests: go on in 3600 s) [RATE_LIMIT]; go on with `lorimer run --session [SHORT-ID]`");
    assert!(repeats(&lab).is_empty());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_in_trouble_is_asked_again() {
    let trouble = json!({"status": 503, "body": "upstream is down"});
    let (lab, server, ended) = failing(&[vec![trouble]], &[]);
    let line = ended.complaint(1).replace(&server.url(), "[URL]");
    insta::assert_snapshot!(line, @"lorimer: DeepSeek: upstream is down (trouble at [URL]/chat/completions: go on later) [SERVER]; go on with `lorimer run --session [SHORT-ID]`");
    assert_eq!(repeats(&lab), ["SERVER", "SERVER"]);
}

#[test]
fn a_refused_key_names_its_variable() {
    let refusal = json!({"status": 401, "body": "{\"error\":{\"message\":\"Authentication Fails\"}}"});
    let (lab, server, ended) = failing(&[vec![refusal]], &[]);
    let line = ended.complaint(1).replace(&server.url(), "[URL]");
    insta::assert_snapshot!(line, @"lorimer: DeepSeek: Authentication Fails ([URL]/chat/completions refused the key: check DEEPSEEK_API_KEY) [AUTH]; go on with `lorimer run --session [SHORT-ID]`");
    assert!(repeats(&lab).is_empty());
}

#[test]
fn a_conversation_that_is_too_long_says_what_to_do() {
    let overflow = json!({"status": 400, "body": "{\"error\":{\"message\":\"This model's maximum context length is 10 tokens.\"}}"});
    let (lab, _server, ended) = failing(&[vec![overflow]], &[]);
    insta::assert_snapshot!(ended.complaint(1), @"lorimer: DeepSeek: This model's maximum context length is 10 tokens. The conversation no longer fits deepseek-v4-flash: start a new session, or continue this one with a model that has a larger window (-m) [CONTEXT_WINDOW_EXCEEDED]");
    assert!(repeats(&lab).is_empty());
}

#[test]
fn a_page_instead_of_a_stream_is_told() {
    let page = json!({"status": 200, "headers": {"content-type": "text/html"}, "body": "<html><body>Sign in to the network</body></html>"});
    let (lab, _server, ended) = failing(&[vec![page]], &[]);
    insta::assert_snapshot!(ended.complaint(1), @"lorimer: DeepSeek: the server answered 200 with something other than an event stream (check the base URL): <html><body>Sign in to the network</body></html> [MALFORMED_RESPONSE]; go on with `lorimer run --session [SHORT-ID]`");
    assert!(repeats(&lab).is_empty());
}

#[test]
fn nothing_instead_of_a_stream_is_told() {
    let nothing = json!({"status": 200, "headers": {"content-type": "text/event-stream"}, "body": ""});
    let (_lab, server, ended) = failing(&[vec![nothing]], &[]);
    insta::assert_snapshot!(ended.complaint(1), @"lorimer: DeepSeek: the server answered 200 with an empty body [EMPTY_RESPONSE]; go on with `lorimer run --session [SHORT-ID]`");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn an_error_inside_a_stream_is_told() {
    let error = "data: {\"error\":{\"message\":\"the engine broke\",\"code\":\"boom\"}}\n\n";
    let (lab, _server, ended) = failing(&[vec![text("half").into(), error.into()]], &[]);
    insta::assert_snapshot!(ended.complaint(1), @"lorimer: DeepSeek: the engine broke [SERVER]; go on with `lorimer run --session [SHORT-ID]`");
    assert_eq!(repeats(&lab).len(), 2);
}

#[test]
fn a_frame_that_is_no_json_is_told() {
    let (lab, _server, ended) = failing(&[vec![text("half").into(), "data: {oops\n\n".into()]], &[]);
    insta::assert_snapshot!(ended.complaint(1), @"lorimer: DeepSeek: the server sent a frame that is no chat completion: {oops [MALFORMED_RESPONSE]; go on with `lorimer run --session [SHORT-ID]`");
    assert!(repeats(&lab).is_empty());
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let (lab, _server, ended) = failing(
        &[vec![json!({"ms": 600_000})]],
        &["-c", "request.idle_timeout_ms=800", "-c", "retry.max_retries=1"],
    );
    insta::assert_snapshot!(ended.complaint(1), @"lorimer: DeepSeek: the server sent nothing for 800 ms [TIMEOUT]; go on with `lorimer run --session [SHORT-ID]`");
    assert_eq!(repeats(&lab), ["TIMEOUT"]);
}

#[test]
fn nobody_listening_is_told() {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let lab = Lab::new();
    let url = format!("http://127.0.0.1:{port}");
    let ended = lab
        .lorimer(&["run", "-c", "retry.initial_delay_ms=1", "-c", "retry.max_retries=2", "go"])
        .variable("DEEPSEEK_API_KEY", "k")
        .variable("DEEPSEEK_BASE_URL", &url)
        .end();
    let line = ended.complaint(1).replace(&url, "[URL]");
    insta::assert_snapshot!(line, @"lorimer: DeepSeek: nothing answers at [URL]/chat/completions: check the base URL and that the server runs (Connection refused (os error 111)) [TRANSPORT]; go on with `lorimer run --session [SHORT-ID]`");
    assert_eq!(repeats(&lab), ["TRANSPORT", "TRANSPORT"]);
}

#[test]
fn calls_in_pieces_are_put_together() {
    let pieces = [
        delta(json!({"reasoning_content": "", "content": ""})),
        delta(
            json!({"tool_calls": [{"index": 0, "id": "call_a", "type": "function", "function": {"name": "read", "arguments": ""}}]}),
        ),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"file_"}}]})),
        delta(
            json!({"tool_calls": [{"index": 1, "id": "call_b", "type": "function", "function": {"name": "read", "arguments": "{"}}]}),
        ),
        delta(
            json!({"tool_calls": [{"index": 0, "function": {"arguments": "path\":\"a\"}"}}, {"index": 1, "function": {"arguments": "oops"}}]}),
        ),
        finish("tool_calls"),
        "data: [DONE]\n\n".to_owned(),
    ];
    let calling = pieces.map(Value::from).to_vec();
    let (lab, server) = (Lab::new(), Server::raw(&[calling, vec![text("ok").into(), done().into()]]));
    lab.put("a", "alpha\n");
    assert_eq!(lab.run(&server, &["go"]).end().answer(), "ok\n");
    let results = lab.log().results();
    assert!(results[0].text.contains("1: alpha"), "{results:?}");
    assert_eq!(results[1].code.as_deref(), Some("INVALID_ARGS"));
    let sent = server.last_messages();
    let reply = sent.iter().find(|message| message["role"] == "assistant").expect("the reply");
    assert_eq!((&reply["content"], &reply["reasoning_content"]), (&json!(""), &json!("")));
    assert_eq!(reply["tool_calls"][0]["function"]["arguments"], "{\"file_path\":\"a\"}");
}
