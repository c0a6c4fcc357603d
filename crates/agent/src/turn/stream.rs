//! One attempt at a reply: streaming it into the log.

use futures_util::StreamExt;
use lorimer_model::{Assembled, Assembler, ModelRequest};
use lorimer_protocol::{AssistantChunk, AssistantMessage, ContentBlock, Draft, Extra, Message, Role, Source};
use lorimer_session::AppendError;
use lorimer_tools::StepPlace;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;

/// One attempt, as far as it came.
pub(super) struct Attempt {
    /// The finished reply.
    pub reply: Assembled,
    /// What a cancellation leaves of it.
    pub interrupted: Vec<ContentBlock>,
    /// The events of its chunks.
    pub chunk_seqs: Vec<u64>,
}

/// Streams one reply, logging every chunk as it comes.
pub(super) async fn attempt(
    agent: &Agent,
    request: ModelRequest,
    place: StepPlace,
    cancel: &CancellationToken,
) -> Result<Attempt, AppendError> {
    let mut stream = agent.provider.stream(request, cancel.clone());
    let mut assembler = Assembler::new();
    let mut chunk_seqs = Vec::new();
    while let Some(chunk) = stream.next().await {
        assembler.push(&chunk);
        let event = AssistantChunk { turn: place.turn, step: place.step, chunk };
        chunk_seqs.push(agent.session.append(Draft::new(&event))?);
    }
    let interrupted = assembler.interrupted_content();
    Ok(Attempt { reply: assembler.finish(), interrupted, chunk_seqs })
}

/// Logs a reply as a message of the conversation.
pub(super) fn log_reply(
    agent: &Agent,
    place: StepPlace,
    content: Vec<ContentBlock>,
    replay_state: Option<Value>,
    attempt: &Attempt,
    interrupted: bool,
) -> Result<(), AppendError> {
    let (provider, model) = agent.session.with_log(|log| {
        let config = log.request_header().map(|header| &header.config);
        config.map(|config| (config.provider.clone(), config.model.clone())).unwrap_or_default()
    });
    let source = Source::Model { provider, model, replay_state, extra: Extra::new() };
    let message = Message {
        id: uuid::Uuid::new_v4().to_string().into(),
        role: Role::Assistant,
        content,
        source,
        extra: Extra::new(),
    };
    let event = AssistantMessage {
        turn: place.turn,
        step: place.step,
        message,
        usage: attempt.reply.usage,
        interrupted: interrupted.then_some(true),
    };
    agent.session.append_reply(event, attempt.chunk_seqs.clone())?;
    Ok(())
}
