//! A model that says what it was given to say, and a tool that does what it is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use lorimer_agent::build_request;
use lorimer_model::{ChunkStream, ModelError, ModelInfo, ModelRequest, Provider};
use lorimer_protocol::{
    ContentBlock, Event, Failure, FinishReason, Message, Payload, SessionHeader, Source, StreamChunk,
    TokenUsage,
};
use lorimer_session::Log;
use lorimer_tools::{Meta, Registry, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// One reply.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub reasoning: Option<String>,
    pub text: String,
    pub calls: Vec<(String, String, String)>,
    pub finish: Option<FinishReason>,
    /// Streams its text, then waits for a cancel.
    pub hang: bool,
}

impl Reply {
    pub fn text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    pub fn calls(calls: &[(&str, &str, &str)]) -> Self {
        let calls =
            calls.iter().map(|(id, name, args)| ((*id).to_owned(), (*name).to_owned(), (*args).to_owned()));
        Self { calls: calls.collect(), ..Self::default() }
    }

    pub fn failure(failure: Failure) -> Self {
        Self { finish: Some(FinishReason::Error { failure }), ..Self::default() }
    }

    fn chunks(&self) -> Vec<StreamChunk> {
        let mut chunks = Vec::new();
        let mut index = 0;
        let mut block = |block: ContentBlock, delta: StreamChunk, kind: &str| {
            chunks.push(StreamChunk::BlockStart { index, block_type: kind.to_owned() });
            chunks.push(with_index(delta, index));
            chunks.push(StreamChunk::BlockEnd { index, block });
            index += 1;
        };
        if let Some(text) = &self.reasoning {
            block(
                ContentBlock::reasoning(text),
                StreamChunk::ReasoningDelta { index: 0, text: text.clone() },
                "reasoning",
            );
        }
        if !self.text.is_empty() {
            block(
                ContentBlock::text(&self.text),
                StreamChunk::TextDelta { index: 0, text: self.text.clone() },
                "text",
            );
        }
        for (id, name, arguments) in &self.calls {
            let delta = StreamChunk::ToolCallDelta {
                index: 0,
                id: id.as_str().into(),
                name: Some(name.clone()),
                arguments_delta: arguments.clone(),
            };
            block(ContentBlock::tool_call(id.as_str(), name, arguments), delta, "tool-call");
        }
        if self.hang {
            return chunks;
        }
        let usage = TokenUsage { input_tokens: 10, output_tokens: 5, ..TokenUsage::default() };
        let reason = self.finish.clone().unwrap_or(match self.calls.is_empty() {
            true => FinishReason::Stop,
            false => FinishReason::ToolCalls,
        });
        if !matches!(reason, FinishReason::Error { .. }) && self.text != "done" && self.calls.is_empty() {
            chunks.push(StreamChunk::Usage { usage });
        }
        chunks.push(StreamChunk::Finish { reason, replay_state: None });
        chunks
    }
}

fn with_index(chunk: StreamChunk, at: u32) -> StreamChunk {
    match chunk {
        StreamChunk::TextDelta { text, .. } => StreamChunk::TextDelta { index: at, text },
        StreamChunk::ReasoningDelta { text, .. } => StreamChunk::ReasoningDelta { index: at, text },
        StreamChunk::ToolCallDelta { id, name, arguments_delta, .. } => {
            StreamChunk::ToolCallDelta { index: at, id, name, arguments_delta }
        }
        other => other,
    }
}

/// Says its replies in order and remembers what it was asked.
pub struct Model {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<ModelRequest>>,
    window: Mutex<Option<u64>>,
    streaming: Arc<Notify>,
}

impl Model {
    pub fn new(replies: Vec<Reply>) -> Self {
        Self {
            replies: Mutex::new(replies.into()),
            requests: Mutex::default(),
            window: Mutex::default(),
            streaming: Arc::default(),
        }
    }

    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().expect("unpoisoned").clone()
    }

    pub fn set_window(&self, tokens: u64) {
        *self.window.lock().expect("unpoisoned") = Some(tokens);
    }

    /// Told when a reply that hangs has said its text.
    pub fn streaming(&self) -> Arc<Notify> {
        self.streaming.clone()
    }
}

impl Provider for Model {
    fn id(&self) -> &str {
        "scripted"
    }
    fn name(&self) -> &str {
        "Scripted"
    }
    fn models(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
    fn missing(&self) -> Option<ModelError> {
        None
    }
    fn resolve(&self, model: &str) -> Result<ModelInfo, ModelError> {
        Ok(ModelInfo {
            id: model.to_owned(),
            name: model.to_owned(),
            context_window: *self.window.lock().expect("unpoisoned"),
            default_max_tokens: Some(1000),
            efforts: Vec::new(),
            default_effort: None,
            accepts_images: false,
            prices: None,
        })
    }
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ChunkStream {
        self.requests.lock().expect("unpoisoned").push(request);
        let reply = self.replies.lock().expect("unpoisoned").pop_front().expect("a reply is left");
        let said = futures_util::stream::iter(reply.chunks());
        if !reply.hang {
            return Box::pin(said);
        }
        let streaming = self.streaming.clone();
        let end = futures_util::stream::once(async move {
            streaming.notify_one();
            cancel.cancelled().await;
            StreamChunk::Finish {
                reason: FinishReason::Aborted { failure: Failure::new("ABORTED", "cancelled") },
                replay_state: None,
            }
        });
        Box::pin(futures_util::StreamExt::chain(said, end))
    }
}

/// Says its text back, or does what it names.
struct Echo;

#[derive(Deserialize, JsonSchema)]
struct EchoArgs {
    text: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct EchoOutput {
    text: String,
}

impl Tool for Echo {
    type Args = EchoArgs;
    type Output = EchoOutput;
    fn name(&self) -> &str {
        "echo"
    }
    fn description(&self) -> String {
        "Says a text back.".to_owned()
    }
    async fn execute(&self, args: &EchoArgs, context: &ToolContext) -> Result<EchoOutput, ToolError> {
        match args.text.as_str() {
            "defer" => context.defer_context(Message::user_text("deferred", "deferred", Source::user())),
            "conclude" => context.conclude_turn(),
            _ => {}
        }
        let text = if args.text == "big" { "x".repeat(20_000) } else { args.text.clone() };
        Ok(EchoOutput { text })
    }
    fn render(&self, _args: &EchoArgs, output: &EchoOutput) -> Vec<ContentBlock> {
        vec![ContentBlock::text(&output.text)]
    }
    fn presentation_meta(&self, _args: &EchoArgs, _output: &EchoOutput) -> Option<Meta> {
        Some(json!({"kept": true}).into())
    }
}

pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.register(Echo).expect("registered");
    registry
}

/// Every request is what the log before it says, and each grows the one before.
pub fn assert_requests_come_from_the_log(header: SessionHeader, seen: &[Event], requests: &[ModelRequest]) {
    assert_requests_are_rebuilt(header, seen, requests);
    for pair in requests.windows(2) {
        assert_eq!((&pair[0].system, &pair[0].tools), (&pair[1].system, &pair[1].tools));
        assert!(pair[1].messages.starts_with(&pair[0].messages), "messages only grow");
    }
}

/// Every request is what the log before it says.
pub fn assert_requests_are_rebuilt(header: SessionHeader, seen: &[Event], requests: &[ModelRequest]) {
    let mut log = Log::new(header);
    let mut rebuilt: Vec<ModelRequest> = Vec::new();
    let mut in_attempt = false;
    for event in seen {
        let chunk = event.kind == "assistant/chunk";
        if chunk && !in_attempt {
            rebuilt.push(build_request(&log).expect("a request"));
        }
        let finished = matches!(event.payload(), Ok(Payload::AssistantChunk(data))
            if matches!(data.chunk, StreamChunk::Finish { .. }));
        in_attempt = chunk && !finished;
        log.apply(event).expect("fits");
    }
    assert_eq!(rebuilt.len(), requests.len());
    for (rebuilt, sent) in rebuilt.iter().zip(requests) {
        assert_eq!(rebuilt, sent);
    }
}
