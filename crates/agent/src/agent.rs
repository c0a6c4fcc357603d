//! One agent on one session.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use lorimer_model::{ModelError, ModelInfo, Provider};
use lorimer_protocol::{
    AbortCause, ContentBlock, Draft, EventData, InboxTarget, Message, MessageId, PermissionMode,
    RequestHeader, SandboxModeEvent, Source, TokenUsage, TurnEnd, TurnEndReason,
};
use lorimer_session::{AppendError, JournalError, Session};
use lorimer_tools::Pipeline;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::header::request_header;
use crate::images::Images;
use crate::inbox;
use crate::options::AgentOptions;
use crate::turn;

/// A failure that is not a failed turn.
#[derive(Debug, Error)]
pub enum AgentError {
    /// The log refused an event.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The model cannot be called at all.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// How a turn ended.
#[derive(Clone, Debug)]
pub struct TurnReport {
    /// Turn number.
    pub turn: u64,
    /// Why it ended.
    pub reason: TurnEndReason,
    /// Text of the turn's last reply; empty when it has none.
    pub text: String,
    /// Steps of the turn.
    pub steps: u64,
    /// Token counts of the turn's replies.
    pub usage: TokenUsage,
    /// Why the log could not be saved, when it could not.
    pub unsaved: Option<JournalError>,
}

/// Runs a model over a session, one turn at a time.
pub struct Agent {
    pub(crate) session: Arc<Session>,
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) model: ModelInfo,
    pub(crate) pipeline: Pipeline,
    pub(crate) options: AgentOptions,
    activity: Mutex<Activity>,
    pub(crate) header: RequestHeader,
    pub(crate) header_logged: AtomicBool,
    pub(crate) images: Images,
}

/// What is running and how it is told to stop.
struct Activity {
    cancel: CancellationToken,
    cause: Option<AbortCause>,
}

impl Agent {
    /// An agent that goes on with a session. Logs the permission mode when it is not what the log says. What a provider
    /// [misses](Provider::missing) shows in the turn.
    ///
    /// # Errors
    /// When there is no such model or effort, or the log refuses the mode.
    pub fn new(
        session: Arc<Session>,
        provider: Arc<dyn Provider>,
        pipeline: Pipeline,
        options: AgentOptions,
    ) -> Result<Self, AgentError> {
        let model = provider.resolve(&options.model)?;
        if let Some(effort) = &options.reasoning_effort
            && !model.efforts.contains(effort)
        {
            return Err(AgentError::Model(ModelError::UnsupportedEffort {
                model: model.id,
                effort: effort.clone(),
                offered: model.efforts,
            }));
        }
        log_permission_mode(&session, options.permission_mode)?;
        let activity = Mutex::new(Activity { cancel: CancellationToken::new(), cause: None });
        let header = request_header(provider.id(), &model, &options, &pipeline, session.id().as_str());
        let header_logged = AtomicBool::new(false);
        let images = Images::default();
        Ok(Self { session, provider, model, pipeline, options, activity, header, header_logged, images })
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// What is known of the model.
    pub fn model(&self) -> &ModelInfo {
        &self.model
    }

    /// The tools with everything around them.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The workspace.
    pub fn workspace(&self) -> &Path {
        &self.options.cwd
    }

    /// Queues a person's message for a turn of its own.
    ///
    /// # Errors
    /// When the log refuses it.
    pub fn follow_up(&self, text: &str) -> Result<(), AgentError> {
        self.queue(InboxTarget::NextTurn, text)
    }

    /// Queues a person's message of several blocks, images among them, for a turn of its own. The bytes of an image have
    /// to be among the session's [`Attachments`](lorimer_session::Attachments).
    ///
    /// # Errors
    /// When the log refuses it.
    pub fn follow_up_with(&self, content: Vec<ContentBlock>) -> Result<MessageId, AgentError> {
        self.queue_blocks(InboxTarget::NextTurn, content)
    }

    /// Gives a person's message to the running turn at its next step.
    ///
    /// # Errors
    /// When the log refuses it.
    pub fn steer(&self, text: &str) -> Result<(), AgentError> {
        self.queue(InboxTarget::NextStep, text)
    }

    /// Gives a person's message of several blocks to the running turn at its next step.
    ///
    /// # Errors
    /// When the log refuses it.
    pub fn steer_with(&self, content: Vec<ContentBlock>) -> Result<MessageId, AgentError> {
        self.queue_blocks(InboxTarget::NextStep, content)
    }

    fn queue(&self, target: InboxTarget, text: &str) -> Result<(), AgentError> {
        self.queue_blocks(target, vec![ContentBlock::text(text)]).map(drop)
    }

    fn queue_blocks(&self, target: InboxTarget, content: Vec<ContentBlock>) -> Result<MessageId, AgentError> {
        let id = MessageId(uuid::Uuid::new_v4().to_string());
        let message = Message { content, ..Message::user_text(id.clone(), "", Source::user()) };
        inbox::push(&self.session, target, message)?;
        Ok(id)
    }

    /// Ends what is running, keeps what was streamed, and throws away what waits. The turn's end still goes through
    /// the log.
    pub fn cancel(&self, cause: AbortCause) {
        let mut activity = self.activity.lock().unwrap_or_else(PoisonError::into_inner);
        activity.cause.get_or_insert(cause);
        activity.cancel.cancel();
    }

    /// Ends an open turn in the log at once, without waiting for whatever runs: what has no result gets the one of an
    /// interrupted call, and what waits is thrown away. Nothing may run on this agent afterwards.
    ///
    /// # Errors
    /// When the log refuses an event.
    pub fn close_now(&self, cause: AbortCause) -> Result<(), AgentError> {
        for event in self.session.with_log(lorimer_session::closers) {
            if event.kind != TurnEnd::TYPE {
                self.session.append(Draft::from(event))?;
            }
        }
        inbox::clear(&self.session)?;
        if let Some(turn) = self.session.with_log(|log| log.turn().open_turn()) {
            let reason = TurnEndReason::Aborted { reason: cause };
            self.session.append(Draft::new(&TurnEnd { turn, reason }))?;
        }
        Ok(())
    }

    /// Why the running turn was cancelled.
    pub(crate) fn cancel_cause(&self) -> AbortCause {
        let activity = self.activity.lock().unwrap_or_else(PoisonError::into_inner);
        activity.cause.clone().unwrap_or(AbortCause::User)
    }

    /// Runs one turn. With nothing queued it ends at once as completed, without a step.
    ///
    /// # Errors
    /// When the log refuses an event of the loop's own; the turn may then be left open for recovery.
    pub async fn run_turn(&self) -> Result<TurnReport, AgentError> {
        let cancel = self.activity.lock().unwrap_or_else(PoisonError::into_inner).cancel.clone();
        let report = turn::run(self, &cancel).await?;
        if cancel.is_cancelled() {
            let mut activity = self.activity.lock().unwrap_or_else(PoisonError::into_inner);
            *activity = Activity { cancel: CancellationToken::new(), cause: None };
        }
        Ok(report)
    }

    /// Runs turns until nothing waits or one did not end well, and returns the last one's report.
    ///
    /// # Errors
    /// See [`Agent::run_turn`].
    pub async fn run_until_idle(&self) -> Result<TurnReport, AgentError> {
        loop {
            let report = self.run_turn().await?;
            let goes_on = matches!(report.reason, TurnEndReason::Completed | TurnEndReason::MaxTokens);
            if !goes_on || self.session.with_log(|log| log.inbox().is_empty()) {
                return Ok(report);
            }
        }
    }
}

fn log_permission_mode(session: &Session, mode: PermissionMode) -> Result<(), AppendError> {
    let logged = session.with_log(|log| log.permission_mode()).unwrap_or_default();
    if logged != mode {
        session.append(Draft::new(&SandboxModeEvent { mode, source: None }))?;
    }
    Ok(())
}
