//! The calls of one assistant message: order, overlap, durability (core spec 3.9).

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use lorimer_protocol::{
    CallId, ContentBlock, Draft, Extra, Message, Role, Source, ToolCall, ToolResultBlock,
};
use lorimer_session::{AppendError, JournalError, ResultData, Session};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::meta::Meta;
use crate::outcome::{Outcome, ToolError};
use crate::pipeline::{CallRequest, Checked, Pipeline, Prepared, Ran, contained};
use crate::tool::Concurrency;

/// The open turn and step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPlace {
    /// Turn number.
    pub turn: u64,
    /// Step number.
    pub step: u64,
}

/// What a batch of calls leaves for the loop.
#[derive(Debug, Default)]
pub struct BatchEnd {
    /// Messages for the next step, in order.
    pub contexts: Vec<Message>,
    /// Whether a successful call ends the turn.
    pub concludes_turn: bool,
}

/// The log could not take or keep a call; nothing further was run.
#[derive(Debug, Error)]
pub enum SchedulerError {
    /// The log refused an event.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The log could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Runs the calls of one assistant message.
pub struct Scheduler<'a> {
    /// What the calls pass through.
    pub pipeline: &'a Pipeline,
    /// Where they are logged.
    pub session: &'a Arc<Session>,
    /// The open turn and step.
    pub place: StepPlace,
    /// Most bodies at a time.
    pub max_parallel_tool_calls: usize,
    /// Ends the batch early; every call still gets a result.
    pub cancel: CancellationToken,
}

struct Slot {
    call_id: CallId,
    call_seq: u64,
    ran: Option<Result<Ran, ToolError>>,
}

/// The started calls of a group, in model order.
struct Pool<'a> {
    slots: Vec<Slot>,
    bodies: FuturesUnordered<Body<'a>>,
    committed: usize,
    /// Why nothing further may start.
    failed: Option<JournalError>,
}

impl Pool<'_> {
    fn take(&mut self, ended: Result<(usize, Result<Ran, ToolError>), JournalError>) {
        match ended {
            Ok((at, ran)) => self.slots[at].ran = Some(ran),
            Err(error) => self.failed = Some(error),
        }
    }
}

type Body<'a> = BoxFuture<'a, Result<(usize, Result<Ran, ToolError>), JournalError>>;

impl<'a> Scheduler<'a> {
    /// Runs all calls. Consecutive parallel calls overlap; an exclusive call runs alone; results are committed in
    /// model order.
    ///
    /// # Errors
    /// When the log cannot be written, which no further call survives, or refuses an event. Calls without a result are
    /// closed by recovery.
    pub async fn run(&self, calls: Vec<CallRequest>) -> Result<BatchEnd, SchedulerError> {
        let mut end = BatchEnd::default();
        let mut waiting: VecDeque<CallRequest> = calls.into();
        while let Some(first) = waiting.front() {
            if self.cancel.is_cancelled() {
                break;
            }
            let checked = self.check(first);
            self.run_group(&mut waiting, checked, &mut end).await?;
        }
        for call in waiting {
            self.refuse_unstarted(&call)?;
        }
        Ok(end)
    }

    fn check(&self, call: &CallRequest) -> Checked {
        self.pipeline.check(self.session.id().as_str(), call)
    }

    /// A rolling pool over the calls at the front, of which the first is checked, until one that is not parallel.
    async fn run_group(
        &self,
        waiting: &mut VecDeque<CallRequest>,
        first: Checked,
        end: &mut BatchEnd,
    ) -> Result<(), SchedulerError> {
        let parallel = first.concurrency() == Concurrency::Parallel;
        let width = if parallel { self.max_parallel_tool_calls.max(1) } else { 1 };
        let mut first = Some(first);
        let mut pool =
            Pool { slots: Vec::new(), bodies: FuturesUnordered::new(), committed: 0, failed: None };
        let mut open = true;
        loop {
            while open && pool.failed.is_none() && pool.bodies.len() < width && !self.cancel.is_cancelled() {
                let Some(front) = waiting.front() else {
                    break;
                };
                let is_first = first.is_some();
                let checked = first.take().unwrap_or_else(|| self.check(front));
                if !is_first && checked.concurrency() != Concurrency::Parallel {
                    break;
                }
                if let Some(call) = waiting.pop_front() {
                    self.start_beside(&call, checked, &mut pool).await?;
                }
                open = parallel;
            }
            match pool.bodies.next().await {
                Some(ended) => pool.take(ended),
                None => return pool.failed.map_or(Ok(()), |error| Err(error.into())),
            }
            self.commit_ready(&mut pool, end).await?;
        }
    }

    /// Starts a call while the bodies before it go on: a question to a person holds up nobody else.
    async fn start_beside(
        &self,
        call: &CallRequest,
        checked: Checked,
        pool: &mut Pool<'a>,
    ) -> Result<(), AppendError> {
        let call_seq = self.log_call(call)?;
        let at = pool.slots.len();
        pool.slots.push(Slot { call_id: call.call_id.clone(), call_seq, ran: None });
        let preparing =
            contained(self.pipeline.prepare(call, checked, Arc::clone(self.session), self.cancel.clone()));
        futures_util::pin_mut!(preparing);
        let prepared = loop {
            tokio::select! {
                biased;
                prepared = &mut preparing => break prepared,
                Some(ended) = pool.bodies.next(), if !pool.bodies.is_empty() => pool.take(ended),
            }
        };
        pool.bodies.push(self.body(at, prepared));
        Ok(())
    }

    /// A body, which waits until its call is on disk.
    fn body(&self, at: usize, prepared: Result<Prepared, ToolError>) -> Body<'a> {
        let (pipeline, session) = (self.pipeline, Arc::clone(self.session));
        Box::pin(async move {
            session.flush().await?;
            let ran = match prepared {
                Ok(prepared) => contained(pipeline.run(prepared)).await,
                Err(error) => Err(error),
            };
            Ok((at, ran))
        })
    }

    /// Commits, in model order, what has ended.
    async fn commit_ready(&self, pool: &mut Pool<'a>, end: &mut BatchEnd) -> Result<(), AppendError> {
        while let Some(slot) = pool.slots.get_mut(pool.committed)
            && let Some(ran) = slot.ran.take()
        {
            let (call_id, call_seq) = (slot.call_id.clone(), slot.call_seq);
            let outcome = self.outcome(ran).await;
            self.commit(&call_id, call_seq, outcome, end)?;
            pool.committed += 1;
        }
        Ok(())
    }

    async fn outcome(&self, ran: Result<Ran, ToolError>) -> Outcome {
        let finished = match ran {
            Ok(ran) => contained(self.pipeline.finish(ran)).await,
            Err(error) => Err(error),
        };
        finished.unwrap_or_else(|error| Outcome::failed(&error))
    }

    fn log_call(&self, call: &CallRequest) -> Result<u64, AppendError> {
        self.session.append(Draft::new(&ToolCall {
            turn: self.place.turn,
            step: self.place.step,
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        }))
    }

    fn commit(
        &self,
        call_id: &CallId,
        call_seq: u64,
        outcome: Outcome,
        end: &mut BatchEnd,
    ) -> Result<(), AppendError> {
        end.concludes_turn |= outcome.concludes_turn && !outcome.is_error;
        end.contexts.extend(outcome.contexts);
        let block = ToolResultBlock {
            tool_call_id: call_id.clone(),
            content: outcome.content,
            is_error: Some(outcome.is_error),
            extra: Extra::new(),
        };
        let message = Message {
            id: uuid::Uuid::new_v4().to_string().into(),
            role: Role::User,
            content: vec![ContentBlock::ToolResult(block)],
            source: Source::tool(call_id.clone()),
            extra: Extra::new(),
        };
        let StepPlace { turn, step } = self.place;
        let meta = outcome.meta.map(Meta::into_text);
        let result = ResultData { turn, step, message, error: outcome.error, meta };
        self.session.append_result(result, call_seq)?;
        Ok(())
    }

    fn refuse_unstarted(&self, call: &CallRequest) -> Result<(), AppendError> {
        let call_seq = self.log_call(call)?;
        let outcome = Outcome::failed(&ToolError::aborted_before_dispatch());
        self.commit(&call.call_id, call_seq, outcome, &mut BatchEnd::default())
    }
}
