//! Where appended events become durable.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lorimer_protocol::Event;
use thiserror::Error;
use tokio::sync::oneshot;

/// A batch that could not be written. The events are kept and tried again with the next batch.
#[derive(Clone, Debug, Error)]
#[error("cannot save the session to {}: {reason}", path.display())]
pub struct JournalError {
    /// The log.
    pub path: PathBuf,
    /// In the system's words.
    pub reason: String,
}

/// Makes events durable, a batch at a time, in order.
///
/// `write` returns after the batch is on disk; when it fails nothing of the batch is there and it may be called
/// again with the same events and more.
pub trait Journal: Send {
    /// Writes one batch and syncs it.
    ///
    /// # Errors
    /// When any part of the batch could not be written or synced.
    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), JournalError>;
}

/// A journal that keeps events in memory, for tests and for sessions that are not saved.
#[derive(Clone, Default)]
pub struct MemoryJournal {
    events: Arc<Mutex<Vec<Arc<Event>>>>,
}

impl MemoryJournal {
    /// What was written so far.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

impl Journal for MemoryJournal {
    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), JournalError> {
        self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(events);
        Ok(())
    }
}

enum Command {
    Append(Arc<Event>),
    Flush(oneshot::Sender<Result<(), JournalError>>),
}

/// The thread that owns a journal. Dropping it writes what is left.
pub(crate) struct JournalWriter {
    commands: Option<std::sync::mpsc::Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

impl JournalWriter {
    /// Starts the thread. An event waits at most `max_delay` before it is written.
    pub fn start(journal: Box<dyn Journal>, max_delay: Duration) -> std::io::Result<Self> {
        let (commands, received) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("lorimer-journal".to_owned())
            .spawn(move || Writer { journal, max_delay, pending: Vec::new(), due: None, failed: None }.run(&received))?;
        Ok(Self { commands: Some(commands), thread: Some(thread) })
    }

    pub fn append(&self, event: Arc<Event>) {
        if let Some(commands) = &self.commands {
            // The thread ends only after the sender is dropped.
            let _ = commands.send(Command::Append(event));
        }
    }

    /// Asks for everything appended before to be durable.
    pub fn flush(&self) -> oneshot::Receiver<Result<(), JournalError>> {
        let (done, result) = oneshot::channel();
        if let Some(commands) = &self.commands {
            let _ = commands.send(Command::Flush(done));
        }
        result
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Writer {
    journal: Box<dyn Journal>,
    max_delay: Duration,
    pending: Vec<Arc<Event>>,
    due: Option<Instant>,
    failed: Option<JournalError>,
}

impl Writer {
    fn run(mut self, commands: &std::sync::mpsc::Receiver<Command>) {
        use std::sync::mpsc::RecvTimeoutError;
        loop {
            let received = match self.due {
                None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => commands.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match received {
                Ok(Command::Append(event)) => {
                    self.pending.push(event);
                    // After a failure nothing is tried until the next flush.
                    if self.due.is_none() && self.failed.is_none() {
                        self.due = Some(Instant::now() + self.max_delay);
                    }
                }
                Ok(Command::Flush(done)) => {
                    self.write();
                    let _ = done.send(self.failed.clone().map_or(Ok(()), Err));
                }
                Err(RecvTimeoutError::Timeout) => self.write(),
                Err(RecvTimeoutError::Disconnected) => {
                    self.write();
                    return;
                }
            }
        }
    }

    fn write(&mut self) {
        self.due = None;
        if self.pending.is_empty() {
            return;
        }
        match self.journal.write(&self.pending) {
            Ok(()) => {
                self.pending.clear();
                self.failed = None;
            }
            Err(error) => self.failed = Some(error),
        }
    }
}
