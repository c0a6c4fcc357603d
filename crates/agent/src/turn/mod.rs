//! One turn: steps until the model is done (llm spec 8).

mod request_step;
mod stream;

use lorimer_model::cost_usd;
use lorimer_protocol::{
    AbortCause, Draft, Failure, Message, SessionTitle, StepEnd, StepStart, TitleSource, TokenUsage, TurnEnd,
    TurnEndReason, TurnStart,
};
use lorimer_session::AppendError;
use lorimer_tools::StepPlace;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, AgentError, TurnReport};
use crate::inbox;
use crate::prompt::{Instructions, OwnFolders, snapshot_message};
use crate::title::fallback_title;

/// What a step means for its turn.
enum StepOutcome {
    /// Tool results wait for the model.
    Continue,
    /// The turn may end for this reason.
    Finished(TurnEndReason),
}

/// Runs one turn to its end in the log.
pub(crate) async fn run(agent: &Agent, cancel: &CancellationToken) -> Result<TurnReport, AgentError> {
    let session = &agent.session;
    let (turn, usage_before) = session.with_log(|log| (log.turn().last_turn() + 1, *log.usage()));
    session.append(Draft::new(&TurnStart { turn }))?;
    let instructions = Instructions::default();
    let mut run = TurnRun { usage_before, agent, cancel, turn, steps: 0, text: String::new(), instructions };
    let reason = run.steps().await?;
    if cancel.is_cancelled() {
        inbox::clear(session)?;
    }
    session.append(Draft::new(&TurnEnd { turn, reason: reason.clone() }))?;
    let unsaved = session.flush().await.err();
    let usage = session.with_log(|log| usage_since(log.usage(), &usage_before));
    Ok(TurnReport { turn, reason, text: run.text, steps: run.steps, usage, unsaved })
}

pub(super) struct TurnRun<'a> {
    pub agent: &'a Agent,
    pub cancel: &'a CancellationToken,
    pub turn: u64,
    pub steps: u64,
    /// Token counts of all replies before this turn.
    pub usage_before: TokenUsage,
    /// Text of the latest reply.
    pub text: String,
    /// What the turn knows of instruction files.
    instructions: Instructions,
}

impl TurnRun<'_> {
    async fn steps(&mut self) -> Result<TurnEndReason, AppendError> {
        let mut finished: Option<TurnEndReason> = None;
        loop {
            let opens_turn = self.steps == 0;
            let waits = inbox::waits(&self.agent.session, opens_turn);
            match &finished {
                None if opens_turn && !waits => return Ok(TurnEndReason::Completed),
                Some(reason) if !waits => return Ok(reason.clone()),
                _ => {}
            }
            // What waits is only taken by a step that runs.
            if self.cancel.is_cancelled() {
                return Ok(self.aborted());
            }
            if let Some(limit) = self.agent.options.max_steps.filter(|limit| self.steps >= *limit) {
                return Ok(step_limit(limit));
            }
            if let Some(reason) = self.cost_limit() {
                return Ok(reason);
            }
            let claimed = inbox::claim(&self.agent.session, opens_turn)?;
            let outcome = self.step(claimed).await?;
            match outcome {
                StepOutcome::Continue => {}
                // An answer that was cut stays cut, whatever follows in the turn.
                StepOutcome::Finished(TurnEndReason::Completed)
                    if finished == Some(TurnEndReason::MaxTokens) => {}
                StepOutcome::Finished(reason @ (TurnEndReason::Completed | TurnEndReason::MaxTokens)) => {
                    finished = Some(reason);
                }
                StepOutcome::Finished(reason) => return Ok(reason),
            }
        }
    }

    async fn step(&mut self, claimed: Vec<Message>) -> Result<StepOutcome, AppendError> {
        let session = &self.agent.session;
        self.steps += 1;
        let place = StepPlace { turn: self.turn, step: self.steps };
        session.append(Draft::new(&StepStart { turn: place.turn, step: place.step }))?;
        self.enter_messages(claimed)?;
        let outcome = self.request_and_run(place).await?;
        session.append(Draft::new(&StepEnd { turn: place.turn, step: place.step }))?;
        Ok(outcome)
    }

    /// What the person said, then what has changed around it: instructions and the runtime context.
    fn enter_messages(&mut self, claimed: Vec<Message>) -> Result<(), AppendError> {
        let (session, options) = (&self.agent.session, &self.agent.options);
        let mut first_user = None;
        for message in claimed {
            let text = (message.source.kind() == "user").then(|| message.text());
            let seq = session.append(Draft::new(&message).on_surface())?;
            first_user = first_user.or(text.map(|text| (seq, text)));
        }
        let mut own = OwnFolders::above(&options.cwd);
        let told = self.instructions.next_message(session, &options.instructions, &options.cwd, &mut own);
        if let Some(message) = told {
            session.append(Draft::new(&message).on_surface())?;
        }
        if let Some(message) = snapshot_message(session, options, &mut own) {
            session.append(Draft::new(&message).on_surface())?;
        }
        if let Some((seq, text)) = first_user
            && session.with_log(|log| log.title().is_none())
            && let Some(title) = fallback_title(&text)
        {
            let source = TitleSource::Fallback;
            session.append(Draft::new(&SessionTitle { title, message_seqs: vec![seq], source }))?;
        }
        Ok(())
    }

    /// The end of a turn whose replies have cost what they may.
    fn cost_limit(&self) -> Option<TurnEndReason> {
        let (limit, prices) = (self.agent.options.max_cost_usd?, self.agent.model.prices?);
        let usage = self.agent.session.with_log(|log| usage_since(log.usage(), &self.usage_before));
        let cost = cost_usd(&usage, &prices);
        (cost >= limit).then(|| {
            let message = format!(
                "the turn has cost ${cost:.4}, and its limit is ${limit:.4}; continue the session, or raise --max-cost"
            );
            TurnEndReason::Error { error: Failure::new("COST_LIMIT", message) }
        })
    }

    fn aborted(&self) -> TurnEndReason {
        TurnEndReason::Aborted { reason: self.agent.cancel_cause() }
    }
}

fn step_limit(limit: u64) -> TurnEndReason {
    let message = format!(
        "the turn reached its limit of {limit} steps before the model was done; continue the session, or raise \
         --max-steps"
    );
    TurnEndReason::Error { error: Failure::new("STEP_LIMIT", message) }
}

fn usage_since(now: &TokenUsage, before: &TokenUsage) -> TokenUsage {
    let part = |now: Option<u64>, before: Option<u64>| now.map(|now| now - before.unwrap_or(0).min(now));
    TokenUsage {
        input_tokens: now.input_tokens - before.input_tokens,
        output_tokens: now.output_tokens - before.output_tokens,
        cache_read_tokens: part(now.cache_read_tokens, before.cache_read_tokens),
        cache_write_tokens: part(now.cache_write_tokens, before.cache_write_tokens),
        reasoning_tokens: part(now.reasoning_tokens, before.reasoning_tokens),
    }
}

impl StepOutcome {
    fn failed(failure: Failure) -> Self {
        Self::Finished(TurnEndReason::Error { error: failure })
    }

    fn aborted(cause: AbortCause) -> Self {
        Self::Finished(TurnEndReason::Aborted { reason: cause })
    }
}
