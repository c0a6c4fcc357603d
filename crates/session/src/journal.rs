//! Where appended events become durable.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Journal for MemoryJournal {
    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), JournalError> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(events);
        Ok(())
    }
}

/// The thread that owns a journal. Dropping it writes what is left.
pub(crate) struct JournalWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the session and the thread pass to each other.
#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Told when the thread has to look: at the first event after a while, at a flush, at the end.
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    events: Vec<Arc<Event>>,
    flushes: Vec<oneshot::Sender<Result<(), JournalError>>>,
    closed: bool,
    /// Whether the thread has ended; nothing is written any more.
    dead: bool,
    /// Whether the thread sleeps until it is told; otherwise it looks by itself within the longest wait.
    asleep: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JournalWriter {
    /// Starts the thread. An event waits at most `max_delay` before it is written.
    pub fn start(journal: Box<dyn Journal>, max_delay: Duration) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let writer = Writer { journal, max_delay, shared: Arc::clone(&shared), unwritten: Vec::new() };
        let ended = Ended(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("lorimer-journal".to_owned()).spawn(move || {
            let _ended = ended;
            writer.run();
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub fn append(&self, event: Arc<Event>) {
        let mut queue = self.shared.queue();
        queue.events.push(event);
        // Waking a thread costs more than appending, and a thread that has just written looks again by itself.
        if std::mem::take(&mut queue.asleep) {
            self.shared.changed.notify_one();
        }
    }

    /// Asks for everything appended before to be durable.
    pub fn flush(&self) -> oneshot::Receiver<Result<(), JournalError>> {
        let (done, result) = oneshot::channel();
        let mut queue = self.shared.queue();
        // Dropping `done` tells the caller that there is nobody left to write.
        if !queue.dead {
            queue.flushes.push(done);
            self.shared.changed.notify_one();
        }
        result
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Tells those who wait when the thread has ended, also by a panic.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.dead = true;
        queue.flushes.clear();
    }
}

struct Writer {
    journal: Box<dyn Journal>,
    max_delay: Duration,
    shared: Arc<Shared>,
    /// Events of batches that could not be written; they go first next time.
    unwritten: Vec<Arc<Event>>,
}

impl Writer {
    fn run(mut self) {
        loop {
            let (flushes, closed) = self.next_batch();
            let result = self.write();
            for flush in flushes {
                let _ = flush.send(result.clone());
            }
            if closed {
                return;
            }
        }
    }

    /// Waits for a flush, the end, or a batch that is old enough, and takes what is there.
    fn next_batch(&mut self) -> (Vec<oneshot::Sender<Result<(), JournalError>>>, bool) {
        let shared = Arc::clone(&self.shared);
        let mut queue = shared.queue();
        let mut due = Instant::now() + self.max_delay;
        while queue.flushes.is_empty() && !queue.closed {
            let left = due.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                queue = shared.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
            } else if queue.events.is_empty() {
                queue.asleep = true;
                queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                due = Instant::now() + self.max_delay;
            } else {
                break;
            }
        }
        self.unwritten.append(&mut queue.events);
        (std::mem::take(&mut queue.flushes), queue.closed)
    }

    fn write(&mut self) -> Result<(), JournalError> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        self.journal.write(&self.unwritten)?;
        self.unwritten.clear();
        Ok(())
    }
}
