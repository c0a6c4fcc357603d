//! The inside of a step: header, request, retries, reply, tools.

use std::sync::PoisonError;
use std::time::Duration;

use lorimer_model::ModelInfo;
use lorimer_protocol::{
    AdapterDefaults, CallConfig, ContentBlock, Draft, Extra, Failure, FinishReason, InboxTarget, LlmRetry,
    LlmRetryStarted, RequestContext, RequestHeader, RequestHeaderEvent, RequestHeaderReason, RetryMode, TurnEndReason,
};
use lorimer_session::{AppendError, JournalError};
use lorimer_tools::{CallRequest, Scheduler, SchedulerError, StepPlace};
use serde_json::Value;

use super::stream::{Attempt, attempt, log_reply};
use super::{StepOutcome, TurnRun};
use crate::inbox;
use crate::options::AgentOptions;
use crate::pressure::{relieve, relieve_all};
use crate::prompt::system_prompt;
use crate::request::build_request;
use crate::retry::{chance, retry_delay_ms};

/// What a finished attempt asks for.
enum Next {
    Done(StepOutcome),
    Retry,
}

/// What was already tried within a step.
#[derive(Default)]
struct Tries {
    retries: u32,
    relieved: bool,
}

impl TurnRun<'_> {
    /// Asks for a reply until there is one or the failure stands, then runs its calls.
    pub(super) async fn request_and_run(&mut self, place: StepPlace) -> Result<StepOutcome, AppendError> {
        let mut tries = Tries::default();
        loop {
            if self.cancel.is_cancelled() {
                return Ok(StepOutcome::aborted(self.agent.cancel_cause()));
            }
            match self.attempt(place, &mut tries).await? {
                Next::Done(outcome) => return Ok(outcome),
                Next::Retry => {}
            }
        }
    }

    async fn attempt(&mut self, place: StepPlace, tries: &mut Tries) -> Result<Next, AppendError> {
        let agent = self.agent;
        self.log_header()?;
        if let Some(window) = agent.model.context_window {
            relieve(&agent.session, &agent.options, window)?;
        }
        if let Err(error) = agent.session.flush().await {
            return Ok(Next::Done(unsaved(&error)));
        }
        let Some(request) = agent.session.with_log(build_request) else {
            return Ok(Next::Done(StepOutcome::failed(Failure::new("UNKNOWN", "there is no request header"))));
        };
        let mut attempt = attempt(agent, request, place, self.cancel).await?;
        match attempt.reply.finish.clone() {
            FinishReason::Aborted { .. } => self.interrupted(place, attempt).map(Next::Done),
            FinishReason::Error { .. } if self.cancel.is_cancelled() => {
                self.interrupted(place, attempt).map(Next::Done)
            }
            FinishReason::Error { failure } => self.failed(place, failure, tries).await,
            FinishReason::MaxTokens => {
                self.reply(place, &mut attempt)?;
                Ok(Next::Done(StepOutcome::Finished(TurnEndReason::MaxTokens)))
            }
            FinishReason::Stop | FinishReason::ToolCalls => {
                let calls = self.reply(place, &mut attempt)?;
                self.run_calls(place, calls).await.map(Next::Done)
            }
        }
    }

    /// Logs the reply and returns the calls it makes.
    fn reply(&mut self, place: StepPlace, attempt: &mut Attempt) -> Result<Vec<CallRequest>, AppendError> {
        let content = std::mem::take(&mut attempt.reply.content);
        self.text = content.iter().filter_map(ContentBlock::as_text).collect();
        let calls = content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::ToolCall(call) => Some(CallRequest {
                    call_id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                }),
                _ => None,
            })
            .collect();
        let replay_state = attempt.reply.replay_state.take();
        log_reply(self.agent, place, content, replay_state, attempt, false)?;
        Ok(calls)
    }

    /// Keeps what was streamed before the cancellation.
    fn interrupted(&mut self, place: StepPlace, mut attempt: Attempt) -> Result<StepOutcome, AppendError> {
        let content = std::mem::take(&mut attempt.interrupted);
        if !content.is_empty() {
            self.text = content.iter().filter_map(ContentBlock::as_text).collect();
            log_reply(self.agent, place, content, None, &attempt, true)?;
        }
        Ok(StepOutcome::aborted(self.agent.cancel_cause()))
    }

    async fn run_calls(&self, place: StepPlace, calls: Vec<CallRequest>) -> Result<StepOutcome, AppendError> {
        if calls.is_empty() {
            return Ok(StepOutcome::Finished(TurnEndReason::Completed));
        }
        let agent = self.agent;
        let scheduler = Scheduler {
            pipeline: &agent.pipeline,
            session: &agent.session,
            place,
            max_parallel_tool_calls: agent.options.max_parallel_tool_calls,
            cancel: self.cancel.clone(),
        };
        let end = match scheduler.run(calls).await {
            Ok(end) => end,
            Err(SchedulerError::Append(error)) => return Err(error),
            Err(SchedulerError::Journal(error)) => return self.close_unsaved(place, &error),
        };
        for context in end.contexts {
            inbox::push(&agent.session, InboxTarget::NextStep, context)?;
        }
        if self.cancel.is_cancelled() {
            return Ok(StepOutcome::aborted(agent.cancel_cause()));
        }
        Ok(if end.concludes_turn { StepOutcome::Finished(TurnEndReason::Completed) } else { StepOutcome::Continue })
    }

    /// The log could not be written between calls: every call still gets its one result in memory, so that the turn
    /// closes in order if the log can be written again.
    fn close_unsaved(&self, _place: StepPlace, error: &JournalError) -> Result<StepOutcome, AppendError> {
        let session = &self.agent.session;
        let closing = session.with_log(lorimer_session::closers);
        for event in closing.into_iter().filter(|event| event.kind == "tool/result") {
            session.append(Draft {
                kind: event.kind,
                data: event.data,
                source_event_seqs: event.source_event_seqs,
                surface_op: event.surface_op,
                ignorable: false,
            })?;
        }
        Ok(unsaved(error))
    }

    async fn failed(&self, place: StepPlace, failure: Failure, tries: &mut Tries) -> Result<Next, AppendError> {
        let agent = self.agent;
        if failure.code == "CONTEXT_WINDOW_EXCEEDED" {
            if !tries.relieved && relieve_all(&agent.session, &agent.options)? > 0 {
                tries.relieved = true;
                return Ok(Next::Retry);
            }
            return Ok(Next::Done(StepOutcome::failed(overflow(failure, &agent.model))));
        }
        let policy = agent.options.retry_policy.clone().unwrap_or_else(|| agent.provider.retry_policy());
        let retry = tries.retries + 1;
        let Some(delay_ms) = retry_delay_ms(&policy, &failure, retry, chance()) else {
            return Ok(Next::Done(StepOutcome::failed(failure)));
        };
        tries.retries = retry;
        let retry_id = uuid::Uuid::new_v4().to_string();
        agent.session.append(Draft::new(&LlmRetry {
            retry_id: retry_id.clone(),
            turn: place.turn,
            step: place.step,
            provider: agent.provider.id().to_owned(),
            mode: RetryMode::Normal,
            max_retries: Some(policy.max_retries),
            policy_key: policy.key,
            retry,
            delay_ms,
            failure,
        }))?;
        tokio::select! {
            () = self.cancel.cancelled() => {
                return Ok(Next::Done(StepOutcome::aborted(agent.cancel_cause())));
            }
            () = tokio::time::sleep(Duration::from_millis(delay_ms)) => {}
        }
        let started = LlmRetryStarted { retry_id, turn: place.turn, step: place.step, retry };
        agent.session.append(Draft::new(&started))?;
        Ok(Next::Retry)
    }

    /// Logs the request header when it is this process's first or differs from the last, then the context likewise.
    fn log_header(&self) -> Result<(), AppendError> {
        let agent = self.agent;
        let header = request_header(agent.provider.id(), &agent.model, &agent.options, &agent.pipeline, agent.session.id().as_str());
        let last = agent.session.with_log(|log| log.request_header().cloned());
        let mut progress = agent.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = match (&last, progress.header_logged) {
            (None, _) => Some(RequestHeaderReason::Initial),
            (Some(_), false) => Some(RequestHeaderReason::Resume),
            (Some(last), true) => (*last != header).then_some(RequestHeaderReason::Change),
        };
        if let Some(reason) = reason {
            agent.session.append(Draft::new(&RequestHeaderEvent { header, reason }))?;
            progress.header_logged = true;
        }
        drop(progress);
        let context = RequestContext {
            provider: agent.provider.id().to_owned(),
            model: agent.model.id.clone(),
            context_window: agent.model.context_window,
        };
        if agent.session.with_log(|log| log.request_context() != Some(&context)) {
            agent.session.append(Draft::new(&context))?;
        }
        Ok(())
    }
}

/// What every request of this agent sends beside its messages. The same for the same settings, to the byte.
fn request_header(
    provider: &str,
    model: &ModelInfo,
    options: &AgentOptions,
    pipeline: &lorimer_tools::Pipeline,
    agent_id: &str,
) -> RequestHeader {
    let mut tools = pipeline.registry().visible(agent_id);
    tools.sort_by(|a, b| a.name().cmp(b.name()));
    let specs: Vec<Value> =
        tools.iter().filter_map(|tool| serde_json::to_value(tool.spec()).ok()).collect();
    let system = system_prompt(options, &tools);
    let defaults = AdapterDefaults {
        reasoning_effort: (options.reasoning_effort.is_none() && model.default_effort.is_some()).then_some(true),
        max_tokens: (options.max_tokens.is_none() && model.default_max_tokens.is_some()).then_some(true),
    };
    RequestHeader {
        config: CallConfig {
            provider: provider.to_owned(),
            model: model.id.clone(),
            reasoning_effort: options.reasoning_effort.clone().or_else(|| model.default_effort.clone()),
            temperature: options.temperature,
            max_tokens: options.max_tokens.or(model.default_max_tokens),
            stop: None,
            extra: Extra::new(),
        },
        adapter_defaults: (defaults != AdapterDefaults::default()).then_some(defaults),
        system: (!system.is_empty()).then_some(system),
        tools: (!specs.is_empty()).then_some(Value::Array(specs)),
        extra: Extra::new(),
    }
}

fn unsaved(error: &JournalError) -> StepOutcome {
    StepOutcome::failed(Failure::new("PERSISTENCE", format!("{error}; nothing further was run")))
}

fn overflow(mut failure: Failure, model: &ModelInfo) -> Failure {
    failure.message = format!(
        "{}. The conversation no longer fits {}: start a new session, or continue this one with a model that has a \
         larger window (-m)",
        failure.message.trim_end_matches('.'),
        model.id
    );
    failure
}
