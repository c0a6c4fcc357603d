//! The offline provider as a caller sees it.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use std::io::Write;
use std::sync::Arc;

use futures_util::StreamExt;
use lorimer_model::{Assembled, Assembler, ModelError, ModelRequest, OfflineProvider, Provider};
use lorimer_protocol::{ContentBlock, Extra, FinishReason, Message, Role, Source, StreamChunk, ToolSpec};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

fn script(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// A request to a script after `replies` replies, with one tool on offer.
fn request(file: &tempfile::NamedTempFile, replies: usize) -> ModelRequest {
    let mut request = ModelRequest::default();
    request.config.model = file.path().to_str().unwrap().to_owned();
    Arc::make_mut(&mut request.tools).push(ToolSpec {
        name: "read".into(),
        description: String::new(),
        parameters: json!({}),
    });
    let reply = Message {
        id: "a".into(),
        role: Role::Assistant,
        content: vec![ContentBlock::text("x")],
        source: Source::user(),
        extra: Extra::new(),
    };
    request.messages = std::iter::repeat_n(Arc::new(reply), replies).collect();
    request
}

async fn ask(provider: &OfflineProvider, request: ModelRequest) -> Assembled {
    let mut assembler = Assembler::new();
    let chunks: Vec<StreamChunk> = provider.stream(request, CancellationToken::new()).collect().await;
    chunks.iter().for_each(|chunk| assembler.push(chunk));
    assembler.finish()
}

fn full_script() -> Value {
    json!({
        "turns": [
            {"reasoning": "hm", "text": "one", "calls": [
                {"name": "read", "arguments": {"b": 1, "a": 2}},
                {"id": "mine", "name": "read", "arguments": "{broken"},
            ]},
            {"empty_reasoning": true, "text": "two", "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
            {"text": "three", "finish": "length"},
        ],
        "fail": {"2": {"status": 503, "message": "busy"}},
    })
}

#[tokio::test]
async fn plays_a_script_by_the_number_of_replies() {
    let file = script(&full_script().to_string());
    let provider = OfflineProvider::new();
    let first = ask(&provider, request(&file, 0)).await;
    let expected = [
        ContentBlock::reasoning("hm"),
        ContentBlock::text("one"),
        ContentBlock::tool_call("call_0_0", "read", "{\"b\":1,\"a\":2}"),
        ContentBlock::tool_call("mine", "read", "{broken"),
    ];
    assert_eq!((first.content.as_slice(), &first.finish), (&expected[..], &FinishReason::ToolCalls));

    let second = ask(&provider, request(&file, 1)).await;
    assert!(matches!(second.finish, FinishReason::Error { failure }
        if failure.code == "SERVER" && failure.status == Some(503) && failure.message == "busy"));

    let again = ask(&provider, request(&file, 1)).await;
    assert_eq!(again.content, [ContentBlock::reasoning(""), ContentBlock::text("two")]);
    assert_eq!(again.usage.map(|usage| usage.input_tokens), Some(7));

    let past_the_end = ask(&provider, request(&file, 9)).await;
    assert_eq!(past_the_end.content, [ContentBlock::text("three")]);
    assert_eq!(past_the_end.finish, FinishReason::MaxTokens);
}

#[tokio::test]
async fn a_request_without_tools_is_answered_by_a_helper() {
    let file = script(&full_script().to_string());
    let mut request = request(&file, 0);
    request.tools = Arc::default();
    let reply = ask(&OfflineProvider::new(), request).await;
    assert_eq!(reply.content, [ContentBlock::text("Helper text")]);
}

#[tokio::test]
async fn says_where_a_script_is_wrong() {
    let file = script("{\n  \"turns\": [{\"text\": 5}]\n}");
    let provider = OfflineProvider::new();
    let error = provider.resolve(file.path().to_str().unwrap()).unwrap_err();
    assert!(error.to_string().contains("at line 2 column"), "{error}");
    let missing = provider.resolve("no/such/script.json");
    assert!(
        matches!(missing, Err(ModelError::Unusable { reason, .. }) if reason.contains("no/such/script.json"))
    );
    let reply = ask(&provider, request(&file, 0)).await;
    assert!(matches!(reply.finish, FinishReason::Error { failure } if failure.code == "UNUSABLE_PROVIDER"));
}

#[tokio::test]
async fn a_cancelled_reply_ends_aborted() {
    let file = script(&json!({"turns": [{"text": "x".repeat(1000)}]}).to_string());
    let cancel = CancellationToken::new();
    let mut stream = OfflineProvider::new().stream(request(&file, 0), cancel.clone());
    assert!(matches!(stream.next().await, Some(StreamChunk::BlockStart { .. })));
    cancel.cancel();
    let rest: Vec<StreamChunk> = stream.collect().await;
    assert!(matches!(rest.as_slice(), [StreamChunk::Finish { reason: FinishReason::Aborted { .. }, .. }]));
}

#[test]
fn the_planner_is_the_default_model() {
    let provider = OfflineProvider::new();
    for name in ["", "planner", "demo"] {
        assert_eq!(provider.resolve(name).unwrap().id, "planner");
    }
}
