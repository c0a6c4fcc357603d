//! One open session: a task that runs its turns, tells its events in their order, and takes commands one by one.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use lorimer_agent::Agent;
use lorimer_protocol::{AbortCause, ContentBlock, Event, InboxTarget, SessionId};
use lorimer_session::{Log, Session};
use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::RpcError;
use crate::frame::RequestId;
use crate::opening::{Opened, Opening, open};
use crate::outbox::Outbox;
use crate::wire::{
    CancelResult, Delivery, Empty, PromptResult, SESSION_EVENT, SESSION_STATUS, SessionState,
    SessionStatusParams, WorkingDirectory,
};

/// What a client wants of one session.
pub(crate) enum Command {
    /// Answer once the session is open.
    Resume,
    /// Queue a message.
    Prompt { content: Vec<ContentBlock>, delivery: Delivery },
    /// Say where the session works.
    GetDirectory,
    /// Work elsewhere.
    SetDirectory { path: String },
    /// End the running turn.
    Cancel,
}

/// The way to a session's task.
pub(crate) struct SessionHandle {
    commands: UnboundedSender<(RequestId, Command)>,
    /// Ends the session in an orderly way.
    closing: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl SessionHandle {
    /// Starts a task that opens the session. What it is asked before it is open waits.
    pub fn start(opening: Opening, outbox: Outbox, shutdown_grace: Duration) -> Self {
        let (commands, received) = unbounded_channel();
        let closing = CancellationToken::new();
        let task = Task { outbox, closing: closing.clone(), shutdown_grace };
        Self { commands, closing, task: tokio::spawn(task.run(opening, received)) }
    }

    /// Hands a request over; gives it back when the task has ended.
    pub fn send(&self, id: RequestId, command: Command) -> Result<(), (RequestId, Command)> {
        self.commands.send((id, command)).map_err(|unsent| unsent.0)
    }

    /// Whether the task still takes commands.
    pub fn is_open(&self) -> bool {
        !self.commands.is_closed()
    }

    /// Ends the session: a running turn is cancelled and closed in the log.
    pub async fn close(&mut self) {
        self.closing.cancel();
        if !self.task.is_finished() {
            // A panic in the task has been told by the task.
            let _ = (&mut self.task).await;
        }
    }
}

struct Task {
    outbox: Outbox,
    closing: CancellationToken,
    shutdown_grace: Duration,
}

impl Task {
    async fn run(self, opening: Opening, mut commands: UnboundedReceiver<(RequestId, Command)>) {
        let session_id = opening.id().clone();
        let opened = match open(opening).await {
            Ok(opened) => opened,
            Err(error) => return self.refuse_all(&mut commands, &error).await,
        };
        let Opened { agent, session, events, .. } = opened;
        let events_of_opening = opened.appended;
        let mut open = Open {
            prefix: format!("{{\"sessionId\":{},\"event\":", json(&session_id)),
            session_id: session_id.clone(),
            agent: Arc::new(agent),
            session,
            events,
            running: false,
            task: &self,
        };
        let work = async {
            for event in events_of_opening {
                open.tell(&event).await;
            }
            open.serve(&mut commands).await;
        };
        if AssertUnwindSafe(work).catch_unwind().await.is_err() {
            crate::note(&format!("session {session_id} failed unexpectedly and is closed; its log is kept"));
            self.outbox
                .notify(SESSION_STATUS, &SessionStatusParams { session_id, status: SessionState::Idle })
                .await;
        }
        let ended = RpcError::new("the session was closed");
        self.refuse_all(&mut commands, &ended).await;
    }

    async fn refuse_all(&self, commands: &mut UnboundedReceiver<(RequestId, Command)>, error: &RpcError) {
        commands.close();
        while let Some((id, command)) = commands.recv().await {
            let error = match command {
                Command::Cancel => RpcError::new("the session is not open"),
                _ => error.clone(),
            };
            self.outbox.answer::<Empty>(&id, Err(error)).await;
        }
    }
}

/// A session that is open.
struct Open<'a> {
    session_id: SessionId,
    /// The beginning of every event's parameters.
    prefix: String,
    agent: Arc<Agent>,
    session: Arc<Session>,
    events: UnboundedReceiver<Arc<Event>>,
    running: bool,
    task: &'a Task,
}

impl Open<'_> {
    async fn serve(&mut self, commands: &mut UnboundedReceiver<(RequestId, Command)>) {
        loop {
            self.tell_events().await;
            tokio::select! {
                biased;
                () = self.task.closing.cancelled() => break,
                command = commands.recv() => match command {
                    Some((id, command)) => self.take(id, command).await,
                    None => break,
                },
            }
            if self.has_work() {
                self.work(commands).await;
            }
        }
        if let Err(error) = self.session.flush().await {
            crate::note(&error.to_string());
        }
    }

    /// Runs turns until nothing waits.
    async fn work(&mut self, commands: &mut UnboundedReceiver<(RequestId, Command)>) {
        self.running = true;
        self.tell_events().await;
        self.tell_status(SessionState::Running).await;
        while self.has_work() && !self.task.closing.is_cancelled() {
            if let Err(error) = self.turn(commands).await {
                crate::note(&format!("session {}: {error}", self.session_id));
                break;
            }
        }
        self.running = false;
        self.tell_events().await;
        self.tell_status(SessionState::Idle).await;
    }

    /// One turn to its end. While the client does not read, the turn stands still.
    async fn turn(
        &mut self,
        commands: &mut UnboundedReceiver<(RequestId, Command)>,
    ) -> Result<(), lorimer_agent::AgentError> {
        let agent = Arc::clone(&self.agent);
        let turn = agent.run_turn();
        tokio::pin!(turn);
        let mut deadline: Option<Instant> = None;
        let closing = self.task.closing.clone();
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled(), if deadline.is_none() => {
                    agent.cancel(AbortCause::Disposed);
                    deadline = Some(Instant::now() + self.task.shutdown_grace);
                }
                Some((id, command)) = commands.recv() => self.take(id, command).await,
                Some(event) = self.events.recv() => self.tell(&event).await,
                ended = &mut turn => return ended.map(drop),
                () = until(deadline) => return agent.close_now(AbortCause::Disposed),
            }
        }
    }

    async fn take(&mut self, id: RequestId, command: Command) {
        match command {
            Command::Resume => self.resumed(&id).await,
            Command::Prompt { content, delivery } => self.prompt(&id, content, delivery).await,
            Command::GetDirectory => {
                let directory = self.agent.working_directory().map_err(RpcError::from);
                self.answer_directory(&id, directory).await;
            }
            Command::SetDirectory { path } => {
                let directory = self.agent.change_working_directory(&path).map_err(RpcError::from);
                self.answer_directory(&id, directory).await;
            }
            Command::Cancel => {
                if self.running {
                    self.agent.cancel(AbortCause::User);
                }
                self.answer(&id, Ok(CancelResult { cancelled: self.running })).await;
            }
        }
    }

    /// The answer says that a turn which a dead process left open is closed on disk.
    async fn resumed(&mut self, id: &RequestId) {
        let flushed = self.session.flush().await;
        let answer = flushed
            .map(|()| Empty {})
            .map_err(|error| RpcError::new(format!("the session cannot be written: {error}")));
        self.answer(id, answer).await;
    }

    /// The receipt says that the message is on disk, and comes after its event.
    async fn prompt(&mut self, id: &RequestId, content: Vec<ContentBlock>, delivery: Delivery) {
        if let Err(error) = check_blocks(&content) {
            return self.answer::<Empty>(id, Err(error)).await;
        }
        let queued = match delivery {
            Delivery::NextStep if self.running => self.agent.steer_with(content),
            _ => self.agent.follow_up_with(content),
        };
        let message_id = match queued {
            Ok(message_id) => message_id,
            Err(error) => return self.answer::<Empty>(id, Err(error.into())).await,
        };
        let receipt = match self.session.flush().await {
            Ok(()) => Ok(PromptResult { message_id }),
            Err(error) => Err(RpcError::new(format!("the message is not saved: {error}"))),
        };
        self.answer(id, receipt).await;
    }

    async fn answer_directory(&mut self, id: &RequestId, directory: Result<std::path::PathBuf, RpcError>) {
        let directory = directory.map(|path| WorkingDirectory { cwd: path.to_string_lossy().into_owned() });
        self.answer(id, directory).await;
    }

    /// Answers after everything that has happened before.
    async fn answer<R: Serialize>(&mut self, id: &RequestId, answer: Result<R, RpcError>) {
        self.tell_events().await;
        self.task.outbox.answer(id, answer).await;
    }

    async fn tell_events(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.tell(&event).await;
        }
    }

    async fn tell(&self, event: &Event) {
        let params = format!("{}{}}}", self.prefix, event.to_json());
        self.task.outbox.notify_text(SESSION_EVENT, &params).await;
    }

    async fn tell_status(&self, status: SessionState) {
        let params = SessionStatusParams { session_id: self.session_id.clone(), status };
        self.task.outbox.notify(SESSION_STATUS, &params).await;
    }

    /// Whether a person's message waits. What the harness itself has to say waits for the next one.
    fn has_work(&self) -> bool {
        self.session.with_log(has_message)
    }
}

/// Anything but what a person can say would be lost on its way to the model, or be refused by it in every turn to come.
fn check_blocks(content: &[ContentBlock]) -> Result<(), RpcError> {
    let sayable = |block: &ContentBlock| matches!(block, ContentBlock::Text(_) | ContentBlock::Image(_));
    if let Some(at) = content.iter().position(|block| !sayable(block)) {
        let problem = match &content[at] {
            ContentBlock::Unknown(_) => "is of no known type or lacks a field",
            _ => "is nothing that a person says",
        };
        let block = serde_json::to_value(&content[at]).unwrap_or_default();
        let (number, kind) = (at + 1, block["type"].as_str().unwrap_or("no type"));
        return Err(RpcError::new(format!(
            "session/prompt: block {number} ({kind}) {problem}; send {{\"type\":\"text\",\"text\":…}}"
        )));
    }
    let is_empty = |block: &ContentBlock| block.as_text().is_some_and(|text| text.trim().is_empty());
    if content.iter().all(is_empty) {
        return Err(RpcError::new("session/prompt: the message is empty"));
    }
    Ok(())
}

fn has_message(log: &Log) -> bool {
    let inbox = log.inbox();
    let from_person = |message: &lorimer_protocol::Message| message.source.kind() == "user";
    !inbox.list(InboxTarget::NextTurn).is_empty() || inbox.list(InboxTarget::NextStep).iter().any(from_person)
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn json(id: &SessionId) -> String {
    serde_json::to_string(id).unwrap_or_default()
}
