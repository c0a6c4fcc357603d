//! Whole exchanges over real sockets: what servers send, and what becomes of it.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod messages;
mod server;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use lorimer_model::{
    ApiKey, Assembled, Assembler, ChatConfig, ChatOverrides, ChatProvider, ModelRequest, Provider, deepseek,
};
use lorimer_protocol::{ContentBlock, Failure, FinishReason, Message, Source, StreamChunk};
use server::{Server, Step};
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-very-secret-key";
/// Far beyond what any exchange here takes; only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(120);

fn config(url: &str) -> ChatConfig {
    let mut config = ChatConfig::new("test", "Test", url);
    config.api_key = ApiKey::new(KEY);
    config.key_variable = Some("TEST_KEY".into());
    config
}

fn request() -> ModelRequest {
    let message = Message::user_text("m", "hi", Source::user());
    let mut request = ModelRequest { messages: vec![Arc::new(message)], ..ModelRequest::default() };
    request.config.model = "m-1".into();
    request
}

async fn ask(config: ChatConfig) -> Assembled {
    assemble(&ChatProvider::new(config), request()).await
}

async fn assemble(provider: &dyn Provider, request: ModelRequest) -> Assembled {
    let mut stream = provider.stream(request, CancellationToken::new());
    let mut assembler = Assembler::new();
    let mut finishes = 0;
    while let Some(chunk) = tokio::time::timeout(PATIENCE, stream.next()).await.expect("the stream hangs") {
        assert_eq!(finishes, 0, "a chunk after the finish");
        finishes += usize::from(matches!(chunk, StreamChunk::Finish { .. }));
        assembler.push(&chunk);
    }
    assert_eq!(finishes, 1);
    assembler.finish()
}

async fn failure(config: ChatConfig) -> Failure {
    failure_of(ask(config).await)
}

fn failure_of(reply: Assembled) -> Failure {
    match reply.finish {
        FinishReason::Error { failure } => {
            assert!(!format!("{failure:?}").contains(KEY), "the key shows: {failure:?}");
            let is_named = failure.status.is_none() || failure.message.starts_with("Test: ");
            assert!(is_named && !failure.message.contains('\n'), "{failure:?}");
            failure
        }
        other => panic!("no failure: {other:?}"),
    }
}

fn text(piece: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{piece}\"}},\"finish_reason\":null}}]}}\n\n"
    )
}

fn stop() -> String {
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n".to_owned()
}

const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn write(pieces: &[&str]) -> Step {
    Step::Write(pieces.concat().into_bytes())
}

fn assert_good(reply: &Assembled, expected: &str) {
    assert_eq!(reply.finish, FinishReason::Stop);
    assert_eq!(reply.content, [ContentBlock::text(expected)]);
}

#[tokio::test]
async fn sends_one_post_with_only_the_headers_it_needs() {
    let server = Server::stream(vec![write(&[&text("a"), &stop(), USAGE, DONE])]);
    let reply = ask(config(&server.url)).await;
    assert_good(&reply, "a");
    assert_eq!(reply.usage.map(|usage| (usage.input_tokens, usage.output_tokens)), Some((9, 4)));
    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<String> = head.lines().map(str::to_lowercase).collect();
    assert_eq!(lines.remove(0), "post /v1/chat/completions http/1.1");
    let mut names: Vec<&str> = lines.iter().filter_map(|line| line.split(':').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "authorization", "content-length", "content-type", "host", "user-agent"]);
    assert!(lines.contains(&format!("authorization: bearer {KEY}")));
    assert!(lines.contains(&format!("user-agent: lorimer/{}", env!("CARGO_PKG_VERSION"))));
    assert_eq!(
        body,
        r#"{"messages":[{"role":"user","content":"hi"}],"model":"m-1","stream":true,"stream_options":{"include_usage":true}}"#
    );
}

#[tokio::test]
async fn takes_frames_cut_at_every_byte_with_any_line_ending() {
    for end in ["\n", "\r\n", "\r"] {
        let frames = [": hi\n\n", &text("漢字 é"), &text("!"), &stop(), USAGE, DONE].concat();
        let bytes = frames.replace('\n', end).into_bytes();
        let server = Server::stream(vec![Step::Each(bytes)]);
        assert_good(&ask(config(&server.url)).await, "漢字 é!");
    }
}

#[tokio::test]
async fn needs_a_finish_reason_but_no_done() {
    let server = Server::stream(vec![write(&[&text("a"), &stop()])]);
    assert_good(&ask(config(&server.url)).await, "a");

    for cut in
        [vec![text("half")], vec![text("half"), DONE.to_owned()], vec![text("half"), "data: {\"ch".into()]]
    {
        let server = Server::stream(vec![Step::Write(cut.concat().into_bytes())]);
        let failure = failure(config(&server.url)).await;
        assert_eq!((failure.code.as_str(), failure.request_id.as_deref()), ("STREAM_CLOSED", Some("r-1")));
    }
}

#[tokio::test]
async fn waits_for_nothing_after_done() {
    let server = Server::stream(vec![write(&[&text("a"), &stop(), DONE]), Step::Hold]);
    let mut config = config(&server.url);
    config.settle_timeout_ms = 1_000_000;
    assert_good(&ask(config).await, "a");
}

#[tokio::test]
async fn waits_only_shortly_after_a_finish_reason() {
    for rest in [Step::Hold, Step::Forever(b": ping\n\n".to_vec())] {
        let server = Server::stream(vec![write(&[&text("a"), &stop(), USAGE]), rest]);
        let mut config = config(&server.url);
        config.settle_timeout_ms = 50;
        let reply = ask(config).await;
        assert_good(&reply, "a");
        assert!(reply.usage.is_some());
    }
}

#[tokio::test]
async fn a_broken_connection_fails_only_an_unfinished_reply() {
    let cut_body = |frames: String| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        Server::raw(vec![Step::Write(format!("{head}{:x}\r\n{frames}\r\n", frames.len()).into_bytes())])
    };
    let server = cut_body(text("half"));
    assert_eq!(failure(config(&server.url)).await.code, "TRANSPORT");
    let server = cut_body([text("whole"), stop()].concat());
    assert_good(&ask(config(&server.url)).await, "whole");
}

#[tokio::test]
async fn error_statuses_keep_the_servers_words() {
    let body = format!(r#"{{"error":{{"message":"Slow down, {KEY}!"}}}}"#);
    let server = Server::status(429, &["retry-after: 7", "x-request-id: r-9"], &body);
    let limited = failure(config(&server.url)).await;
    assert_eq!(
        limited,
        Failure {
            message: "Test: Slow down, ***! (too many requests: go on in 7 s)".into(),
            code: "RATE_LIMIT".into(),
            status: Some(429),
            provider_retry_after_ms: Some(7000),
            request_id: Some("r-9".into()),
        }
    );

    let server = Server::status(401, &[], &body);
    let refused = failure(config(&server.url)).await;
    assert_eq!(refused.code, "AUTH");
    assert!(refused.message.contains("TEST_KEY"), "{}", refused.message);

    let server = Server::status(404, &[], "<html>nope</html>");
    let lost = failure(config(&server.url)).await;
    assert_eq!(lost.code, "HTTP_404");
    assert!(lost.message.contains("/v1/chat/completions"), "{}", lost.message);

    let server = Server::status(503, &[], "");
    assert_eq!(failure(config(&server.url)).await.code, "SERVER");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Server::stream(vec![write(&[&text("a"), &stop(), DONE])]);
    for status in [301, 302, 307, 308] {
        let location = format!("location: {}/chat/completions", target.url);
        let server = Server::status(status, &[&location], "");
        let moved = failure(config(&server.url)).await;
        assert_eq!(moved.code, format!("HTTP_{status}"));
        assert!(moved.message.contains(&target.url), "{}", moved.message);
    }
    assert!(target.requests().is_empty());
}

#[tokio::test]
async fn tells_what_a_200_is_when_it_is_no_stream() {
    let server = Server::status(200, &[], "");
    assert_eq!(failure(config(&server.url)).await.code, "EMPTY_RESPONSE");

    let server = Server::status(200, &["content-type: text/html"], "<html>\n<h1>Sign in</h1>\n</html>");
    let page = failure(config(&server.url)).await;
    assert_eq!(page.code, "MALFORMED_RESPONSE");
    assert!(page.message.ends_with("<html> <h1>Sign in</h1> </html>"), "{}", page.message);

    let server = Server::status(200, &[], "{\n \"error\": {\"message\": \"model is loading\"}\n}");
    let error = failure(config(&server.url)).await;
    assert_eq!((error.code.as_str(), error.message.as_str()), ("SERVER", "Test: model is loading"));

    let server = Server::stream(vec![write(&[": ping\n\n", ": ping\n\n"])]);
    assert_eq!(failure(config(&server.url)).await.code, "STREAM_CLOSED");

    let server = Server::raw(vec![
        Step::Write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n".to_vec()),
        Step::Forever(b"<p>on and on</p>".repeat(4096)),
    ]);
    assert_eq!(failure(config(&server.url)).await.code, "MALFORMED_RESPONSE");
}

#[tokio::test]
async fn tells_errors_inside_a_stream() {
    let error = "data: {\"error\":{\"message\":\"the engine broke\",\"code\":503}}\n\n";
    let server = Server::stream(vec![write(&[&text("half"), error, &stop(), DONE])]);
    let broke = failure(config(&server.url)).await;
    assert_eq!((broke.code.as_str(), broke.message.as_str()), ("SERVER", "Test: the engine broke"));

    let noise = format!("data: oops {KEY}\n\n");
    let server = Server::stream(vec![write(&[&text("half"), &noise, DONE])]);
    let malformed = failure(config(&server.url)).await;
    assert_eq!(malformed.code, "MALFORMED_RESPONSE");
    assert!(malformed.message.contains("oops ***"), "{}", malformed.message);

    let server = Server::stream(vec![Step::Write(b"data: {\"choices\":[\xff]}\n\n".to_vec())]);
    assert_eq!(failure(config(&server.url)).await.code, "MALFORMED_RESPONSE");
}

#[tokio::test]
async fn tells_a_server_of_the_other_protocol() {
    let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{}}}\n\n";
    let server = Server::stream(vec![write(&[start])]);
    let other = failure(config(&server.url)).await;
    assert_eq!(other.code, "MALFORMED_RESPONSE");
    assert!(
        other.message.starts_with("Test: the server answers in the Messages protocol"),
        "{}",
        other.message
    );

    let body = r#"{"type":"error","error":{"type":"not_found_error","message":"Not found"}}"#;
    let server = Server::status(404, &[], body);
    let lost = failure(config(&server.url)).await;
    assert!(lost.message.starts_with("Test: Not found (asked http://"), "{}", lost.message);
    assert!(lost.message.ends_with("that the server speaks chat completions)"), "{}", lost.message);
}

#[tokio::test]
async fn silence_and_idle_talk_both_time_out() {
    let silent = Server::stream(vec![write(&[&text("half")]), Step::Hold]);
    let mut settings = config(&silent.url);
    settings.idle_timeout_ms = 50;
    let idle = failure(settings).await;
    assert_eq!(idle.code, "TIMEOUT");
    assert!(idle.message.contains("for 50 ms"), "{}", idle.message);

    let mute = Server::raw(vec![Step::Hold]);
    let mut settings = config(&mute.url);
    settings.idle_timeout_ms = 50;
    assert_eq!(failure(settings).await.code, "TIMEOUT");

    let chatty = Server::stream(vec![write(&[&text("half")]), Step::Forever(b": ping\n\n".to_vec())]);
    let mut settings = config(&chatty.url);
    settings.content_timeout_ms = 100;
    let empty = failure(settings).await;
    assert_eq!(empty.code, "TIMEOUT");
    assert!(empty.message.contains("no content for 100 ms"), "{}", empty.message);
}

#[tokio::test]
async fn a_cancel_ends_the_stream_wherever_it_is() {
    let aborted = |chunk: Option<StreamChunk>| match chunk {
        Some(StreamChunk::Finish { reason: FinishReason::Aborted { failure }, .. }) => {
            failure.code == "ABORTED"
        }
        other => panic!("not aborted: {other:?}"),
    };
    let server = Server::stream(vec![write(&[&text("half")]), Step::Hold]);
    let cancel = CancellationToken::new();
    let mut stream = ChatProvider::new(config(&server.url)).stream(request(), cancel.clone());
    assert!(matches!(stream.next().await, Some(StreamChunk::BlockStart { .. })));
    assert!(matches!(stream.next().await, Some(StreamChunk::TextDelta { .. })));
    let (last, ()) = tokio::join!(stream.next(), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert!(aborted(last));
    assert_eq!(stream.next().await, None);

    let mut stream = ChatProvider::new(config("http://127.0.0.1:1")).stream(request(), cancel);
    assert!(aborted(stream.next().await));
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn says_that_nothing_answers() {
    let refused = failure(config("http://127.0.0.1:1")).await;
    assert_eq!(refused.code, "TRANSPORT");
    assert!(refused.message.contains("http://127.0.0.1:1/chat/completions"), "{}", refused.message);
    assert!(refused.message.contains("check the base URL"), "{}", refused.message);
}

#[tokio::test]
async fn calls_that_cannot_be_made_fail_without_a_request() {
    let server = Server::stream(vec![]);
    let overrides = ChatOverrides { base_url: Some(server.url.clone()), ..ChatOverrides::default() };
    let keyless = deepseek(|_| None, overrides.clone()).config().clone();
    assert_eq!(failure(keyless).await.code, "MISSING_CREDENTIAL");
    let mut settings = deepseek(|_| Some("k".into()), overrides).config().clone();
    settings.effort = Some("huge".into());
    assert_eq!(failure(settings).await.code, "UNSUPPORTED_REASONING_EFFORT");
    assert_eq!(failure(config("gopher://h")).await.code, "UNUSABLE_PROVIDER");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn many_tiny_deltas_add_up() {
    const DELTAS: usize = 50_000;
    let frames = [text("x").repeat(DELTAS), stop(), DONE.to_owned()].concat();
    let server = Server::stream(vec![Step::Write(frames.into_bytes())]);
    assert_good(&ask(config(&server.url)).await, &"x".repeat(DELTAS));
}
