//! The inside of a step: header, request, retries, reply, tools.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lorimer_model::ModelInfo;
use lorimer_protocol::{
    ContentBlock, Draft, Failure, FinishReason, InboxTarget, LlmRetry, LlmRetryStarted, RequestContext,
    RequestHeaderEvent, RequestHeaderReason, RetryMode, TurnEndReason,
};
use lorimer_session::{AppendError, Attachments, JournalError};
use lorimer_tools::{CallRequest, Scheduler, SchedulerError, StepPlace};

use super::stream::{Attempt, attempt, log_reply};
use super::{StepOutcome, TurnRun};
use crate::inbox;
use crate::pressure::{measure_tokens, relieve, relieve_all};
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
        let Some(mut request) = agent.session.with_log(build_request) else {
            return Ok(Next::Done(StepOutcome::failed(Failure::new(
                "UNKNOWN",
                "there is no request header",
            ))));
        };
        if agent.model.accepts_images {
            agent.images.fill(&mut request, agent.session.directory().map(Attachments::of).as_ref());
        }
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
            Err(SchedulerError::Journal(error)) => return self.close_unsaved(&error),
        };
        for context in end.contexts {
            inbox::push(&agent.session, InboxTarget::NextStep, context)?;
        }
        if self.cancel.is_cancelled() {
            return Ok(StepOutcome::aborted(agent.cancel_cause()));
        }
        Ok(if end.concludes_turn {
            StepOutcome::Finished(TurnEndReason::Completed)
        } else {
            StepOutcome::Continue
        })
    }

    /// The log could not be written between calls: every call still gets its one result in memory, so that the turn
    /// closes in order if the log can be written again.
    fn close_unsaved(&self, error: &JournalError) -> Result<StepOutcome, AppendError> {
        let session = &self.agent.session;
        let closing = session.with_log(lorimer_session::closers);
        for event in closing.into_iter().filter(|event| event.kind == "tool/result") {
            session.append(Draft::from(event))?;
        }
        Ok(unsaved(error))
    }

    async fn failed(
        &self,
        place: StepPlace,
        failure: Failure,
        tries: &mut Tries,
    ) -> Result<Next, AppendError> {
        let agent = self.agent;
        if failure.code == "CONTEXT_WINDOW_EXCEEDED" || self.may_be_overflow(&failure) {
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

    /// Some servers answer a prompt beyond their window with an empty body.
    fn may_be_overflow(&self, failure: &Failure) -> bool {
        let agent = self.agent;
        failure.code == "EMPTY_RESPONSE"
            && agent
                .model
                .context_window
                .is_some_and(|window| agent.session.with_log(measure_tokens) > window)
    }

    /// Logs the request header before this agent's first request, and the context when it differs from the last.
    fn log_header(&self) -> Result<(), AppendError> {
        let agent = self.agent;
        if !agent.header_logged.load(Ordering::Relaxed) {
            let first = agent.session.with_log(|log| log.request_header().is_none());
            let reason = if first { RequestHeaderReason::Initial } else { RequestHeaderReason::Resume };
            let header = agent.header.clone();
            agent.session.append(Draft::new(&RequestHeaderEvent { header, reason }))?;
            agent.header_logged.store(true, Ordering::Relaxed);
        }
        let (provider, model) = (agent.provider.id(), &agent.model);
        let stands = |context: &RequestContext| {
            context.provider == provider
                && context.model == model.id
                && context.context_window == model.context_window
        };
        if !agent.session.with_log(|log| log.request_context().is_some_and(stands)) {
            agent.session.append(Draft::new(&RequestContext {
                provider: provider.to_owned(),
                model: model.id.clone(),
                context_window: model.context_window,
            }))?;
        }
        Ok(())
    }
}

fn unsaved(error: &JournalError) -> StepOutcome {
    StepOutcome::failed(Failure::new(
        "PERSISTENCE",
        format!("{error}; nothing further was run, set LORIMER_HOME to a folder that can be written"),
    ))
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
