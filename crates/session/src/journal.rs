//! Where appended events become durable.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
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

/// A write that took no longer than this is no reason to wait for another thread: changing threads twice takes about as
/// much processor time as the write itself.
const QUICK_WRITE: Duration = Duration::from_millis(2);

/// Writes events when they are due, on a thread of its own, or at a flush. Dropping it writes what is left.
pub(crate) struct JournalWriter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the session and the thread pass to each other.
struct Shared {
    queue: Mutex<Queue>,
    /// Told when the thread has to look: at the first event after a while, at a flush, at the end.
    changed: Condvar,
    /// Locked before the queue, and kept until what was taken from it is written: batches go in order.
    writer: Mutex<Writer>,
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

/// What a flush comes to.
pub(crate) enum Flush {
    /// It was done at once.
    Done(Result<(), JournalError>),
    /// The thread will tell; it drops the sender when it has ended.
    Waits(oneshot::Receiver<Result<(), JournalError>>),
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer, when nobody writes and writing is quick.
    fn quick_writer(&self) -> Option<MutexGuard<'_, Writer>> {
        let writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        writer.is_quick.then_some(writer)
    }
}

impl JournalWriter {
    /// Starts the thread. An event waits at most `max_delay` before it is written.
    pub fn start(journal: Box<dyn Journal>, max_delay: Duration) -> std::io::Result<Self> {
        let writer = Writer { journal, unwritten: Vec::new(), is_quick: false };
        let shared =
            Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new(), writer: Mutex::new(writer) });
        let ended = Ended(Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("lorimer-journal".to_owned()).spawn(move || {
            run(&ended.0, max_delay);
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub fn append(&self, event: Arc<Event>) {
        let mut queue = self.shared.queue();
        queue.events.push(event);
        // Waking a thread costs more than appending, and a thread that has just written looks again by itself.
        let was_asleep = std::mem::take(&mut queue.asleep);
        drop(queue);
        if was_asleep {
            self.shared.changed.notify_one();
        }
    }

    /// What makes everything appended before durable.
    pub fn flusher(&self) -> Flusher {
        Flusher(Arc::clone(&self.shared))
    }
}

/// Flushes a journal, whatever else holds the journal meanwhile.
pub(crate) struct Flusher(Arc<Shared>);

impl Flusher {
    /// Makes everything appended before durable: here and now where that has been quick, else on the thread, so that
    /// a slow disk holds up nobody else.
    pub fn flush(&self) -> Flush {
        if let Some(mut writer) = self.0.quick_writer() {
            let mut queue = self.0.queue();
            if !queue.dead {
                writer.unwritten.append(&mut queue.events);
                drop(queue);
                return Flush::Done(writer.write());
            }
        }
        let (done, result) = oneshot::channel();
        let mut queue = self.0.queue();
        // Dropping `done` tells the caller that there is nobody left to write.
        if !queue.dead {
            queue.flushes.push(done);
            queue.asleep = false;
            drop(queue);
            self.0.changed.notify_one();
        }
        Flush::Waits(result)
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
    /// Events that were taken from the queue and are not written; they go first next time.
    unwritten: Vec<Arc<Event>>,
    /// Whether the last write was quick.
    is_quick: bool,
}

impl Writer {
    fn write(&mut self) -> Result<(), JournalError> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let written = self.journal.write(&self.unwritten);
        self.is_quick = written.is_ok() && begun.elapsed() <= QUICK_WRITE;
        written?;
        self.unwritten.clear();
        Ok(())
    }
}

/// The thread.
fn run(shared: &Shared, max_delay: Duration) {
    loop {
        wait_until_due(shared, max_delay);
        let mut writer = shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut queue = shared.queue();
        writer.unwritten.append(&mut queue.events);
        let (flushes, closed) = (std::mem::take(&mut queue.flushes), queue.closed);
        drop(queue);
        let result = writer.write();
        drop(writer);
        for flush in flushes {
            let _ = flush.send(result.clone());
        }
        if closed {
            return;
        }
    }
}

/// Waits for a flush, the end, or a batch that is old enough.
fn wait_until_due(shared: &Shared, max_delay: Duration) {
    let mut queue = shared.queue();
    let mut due = Instant::now() + max_delay;
    while queue.flushes.is_empty() && !queue.closed {
        let left = due.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            queue = shared.changed.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        } else if queue.events.is_empty() {
            queue.asleep = true;
            queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            due = Instant::now() + max_delay;
        } else {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes its time, and notes on which threads it was.
    struct Slow(Duration, Arc<Mutex<Vec<std::thread::ThreadId>>>);

    impl Journal for Slow {
        fn write(&mut self, _: &[Arc<Event>]) -> Result<(), JournalError> {
            std::thread::sleep(self.0);
            self.1.lock().unwrap().push(std::thread::current().id());
            Ok(())
        }
    }

    fn flushes_here(takes: Duration) -> Vec<bool> {
        let threads = Arc::new(Mutex::default());
        let writer =
            JournalWriter::start(Box::new(Slow(takes, Arc::clone(&threads))), Duration::from_secs(60))
                .unwrap();
        for seq in 0..3 {
            let text = format!(r#"{{"type":"turn/end","seq":{seq},"time":0,"data":{{}}}}"#);
            writer.append(Arc::new(Event::from_json(&text).unwrap()));
            match writer.flusher().flush() {
                Flush::Done(result) => result.unwrap(),
                Flush::Waits(done) => done.blocking_recv().unwrap().unwrap(),
            }
        }
        let here = std::thread::current().id();
        threads.lock().unwrap().iter().map(|thread| *thread == here).collect()
    }

    #[test]
    fn a_slow_disk_holds_up_the_thread_alone() {
        assert_eq!(flushes_here(QUICK_WRITE * 2), [false; 3]);
    }

    #[test]
    fn the_first_batch_is_written_by_the_thread() {
        assert!(!flushes_here(Duration::ZERO)[0]);
    }
}
