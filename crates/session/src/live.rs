//! A live session: the fold, its journal, and whoever watches.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lorimer_protocol::{AssistantMessage, Draft, Event, SessionHeader, SessionId, ToolResult};
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::fold::{FoldError, Log, ResultData};
use crate::journal::{Flush, Journal, JournalError, JournalWriter, MemoryJournal};

/// A draft that the log refuses.
#[derive(Debug, Error)]
#[error("cannot append to session \"{session}\": {source}")]
pub struct AppendError {
    /// The session.
    pub session: SessionId,
    /// Why.
    #[source]
    pub source: FoldError,
}

/// A session that is being written. Shared by the agent and its tools.
pub struct Session {
    id: SessionId,
    directory: Option<PathBuf>,
    state: Mutex<State>,
}

struct State {
    log: Log,
    journal: JournalWriter,
    subscribers: Vec<UnboundedSender<Arc<Event>>>,
}

impl Session {
    /// A session on an existing fold. `directory` is where files of the session may be put.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(
        log: Log,
        directory: Option<PathBuf>,
        journal: Box<dyn Journal>,
        max_delay: Duration,
    ) -> std::io::Result<Self> {
        let id = log.header().id.clone();
        let journal = JournalWriter::start(journal, max_delay)?;
        Ok(Self { id, directory, state: Mutex::new(State { log, journal, subscribers: Vec::new() }) })
    }

    /// A session that is not saved.
    ///
    /// # Panics
    /// When the system cannot start a thread.
    pub fn in_memory(header: SessionHeader) -> Self {
        Self::new(Log::new(header), None, Box::new(MemoryJournal::default()), Duration::from_millis(200))
            .expect("the system starts a thread")
    }

    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The folder of the session's own files; `None` when it is not saved. It may not exist yet.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Appends one event and returns its seq. It is durable after the next [`Session::flush`].
    ///
    /// # Errors
    /// When the event does not fit the log, which is then unchanged.
    pub fn append(&self, draft: Draft) -> Result<u64, AppendError> {
        self.append_to(&mut self.state(), draft, Log::apply)
    }

    /// Appends the result of the call at `call_seq` to the surface, and returns the result's seq.
    ///
    /// # Errors
    /// See [`Session::append`].
    pub fn append_result(&self, data: ResultData, call_seq: u64) -> Result<u64, AppendError> {
        let draft = Draft::written::<ToolResult>(&data).citing(vec![call_seq]).on_surface();
        // What was just written need not be read.
        self.append_to(&mut self.state(), draft, |log, event| log.apply_result(event, data))
    }

    /// Appends what `make` makes of the fold, with nothing appended in between. `None` appends nothing. Do not call
    /// back into the session from `make`.
    ///
    /// # Errors
    /// When the event does not fit the log, which is then unchanged.
    pub fn append_with<R>(
        &self,
        make: impl FnOnce(&Log) -> Option<(Draft, R)>,
    ) -> Result<Option<R>, AppendError> {
        let mut state = self.state();
        match make(&state.log) {
            Some((draft, made)) => self.append_to(&mut state, draft, Log::apply).map(|_| Some(made)),
            None => Ok(None),
        }
    }

    /// Appends a reply that was streamed as the chunks at `chunk_seqs` to the surface, and returns its seq.
    ///
    /// # Errors
    /// See [`Session::append`].
    pub fn append_reply(&self, data: AssistantMessage, chunk_seqs: Vec<u64>) -> Result<u64, AppendError> {
        let draft = Draft::new(&data).citing(chunk_seqs).on_surface();
        self.append_to(&mut self.state(), draft, |log, event| log.apply_reply(event, data))
    }

    fn append_to(
        &self,
        state: &mut State,
        draft: Draft,
        apply: impl FnOnce(&mut Log, &Event) -> Result<(), FoldError>,
    ) -> Result<u64, AppendError> {
        let event = draft.into_event(state.log.next_seq(), now_ms());
        apply(&mut state.log, &event).map_err(|source| AppendError { session: self.id.clone(), source })?;
        let seq = event.seq;
        let event = Arc::new(event);
        state.journal.append(Arc::clone(&event));
        state.subscribers.retain(|subscriber| subscriber.send(Arc::clone(&event)).is_ok());
        Ok(seq)
    }

    /// Returns once everything appended before is on disk.
    ///
    /// # Errors
    /// When it could not be written; the events are kept for the next flush.
    pub async fn flush(&self) -> Result<(), JournalError> {
        // The journal is not written under the session's lock: others go on appending.
        let flusher = self.state().journal.flusher();
        let done = match flusher.flush() {
            Flush::Done(result) => return result,
            Flush::Waits(done) => done,
        };
        done.await.unwrap_or_else(|_| {
            Err(JournalError {
                path: self.directory.clone().unwrap_or_default(),
                reason: "the writer has ended".to_owned(),
            })
        })
    }

    /// Looks at the fold. Do not call back into the session from `look`.
    pub fn with_log<R>(&self, look: impl FnOnce(&Log) -> R) -> R {
        look(&self.state().log)
    }

    /// Every event that is appended from now on, in order.
    pub fn subscribe(&self) -> UnboundedReceiver<Arc<Event>> {
        let (sender, receiver) = unbounded_channel();
        self.state().subscribers.push(sender);
        receiver
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
