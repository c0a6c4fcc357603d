//! What goes to the client: one queue of bounded size, written by a thread of its own, so that a client that stops
//! reading holds up those who have something to say and nobody else.

use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::error::RpcError;
use crate::frame::RequestId;

/// Most bytes that go out with one write, as long as no single frame is longer.
const WRITE_BYTES: usize = 64 * 1024;

struct Queued {
    frame: String,
    /// Given back when the frame is written.
    _room: Option<OwnedSemaphorePermit>,
}

/// The way to the client. Clones share the queue.
#[derive(Clone)]
pub(crate) struct Outbox {
    queue: UnboundedSender<Queued>,
    /// For what is told: a client that does not read holds up its sessions.
    room: Arc<Semaphore>,
    /// For answers, so that full sessions do not hold up requests.
    answers_room: Arc<Semaphore>,
    max_queued_bytes: u32,
    /// Nobody is told anything any more; answers still go out.
    muted: CancellationToken,
    broken: CancellationToken,
}

/// Fires when the queue is written and the thread has ended.
pub(crate) type Written = oneshot::Receiver<()>;

impl Outbox {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system cannot start one.
    pub fn start(
        output: impl Write + Send + 'static,
        max_queued_bytes: usize,
    ) -> io::Result<(Self, Written)> {
        let (queue, queued) = unbounded_channel();
        let max_queued_bytes = u32::try_from(max_queued_bytes).unwrap_or(u32::MAX).clamp(1, u32::MAX >> 4);
        let outbox = Self {
            queue,
            room: Arc::new(Semaphore::new(max_queued_bytes as usize)),
            answers_room: Arc::new(Semaphore::new(max_queued_bytes as usize)),
            max_queued_bytes,
            muted: CancellationToken::new(),
            broken: CancellationToken::new(),
        };
        let broken = outbox.broken.clone();
        let (done, written) = oneshot::channel();
        std::thread::Builder::new().name("lorimer-rpc-out".to_owned()).spawn(move || {
            if write_all(output, queued).is_err() {
                broken.cancel();
            }
            let _ = done.send(());
        })?;
        Ok((outbox, written))
    }

    /// Fires when the client cannot be written to any more.
    pub fn broken(&self) -> &CancellationToken {
        &self.broken
    }

    /// Stops everything but answers.
    pub fn mute(&self) {
        self.muted.cancel();
    }

    /// Tells the client something. Waits while the queue is full.
    pub async fn notify<P: Serialize + ?Sized>(&self, method: &str, params: &P) {
        self.notify_text(method, &text(params)).await;
    }

    /// The same with parameters that are JSON text already.
    pub async fn notify_text(&self, method: &str, params: &str) {
        let frame = format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{params}}}\n", text(method));
        tokio::select! {
            biased;
            () = self.muted.cancelled() => {}
            () = self.send(frame, &self.room) => {}
        }
    }

    /// Tells the client something at once, whatever the queue holds. Only for what is small and rare.
    pub fn notify_now<P: Serialize>(&self, method: &str, params: &P) {
        if !self.muted.is_cancelled() {
            let frame =
                format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{}}}\n", text(method), text(params));
            let _ = self.queue.send(Queued { frame, _room: None });
        }
    }

    /// Asks the client something.
    pub async fn request<P: Serialize>(&self, id: &str, method: &str, params: &P) {
        let (id, method, params) = (text(id), text(method), text(params));
        let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}\n");
        self.send(frame, &self.answers_room).await;
    }

    /// Answers a request.
    pub async fn answer<R: Serialize>(&self, id: &RequestId, answer: Result<R, RpcError>) {
        let id = id.get();
        let frame = match answer {
            Ok(result) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}\n", text(&result)),
            Err(error) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{}}}\n", text(&error)),
        };
        self.send(frame, &self.answers_room).await;
    }

    /// A frame larger than the whole queue waits until the queue is empty.
    async fn send(&self, frame: String, room: &Arc<Semaphore>) {
        let bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX).min(self.max_queued_bytes);
        tokio::select! {
            biased;
            () = self.broken.cancelled() => {}
            room = Arc::clone(room).acquire_many_owned(bytes) => {
                // After a failed write nobody listens, and `broken` has told.
                let _ = self.queue.send(Queued { frame, _room: room.ok() });
            }
        }
    }
}

/// Everything that goes out has string keys and finite numbers.
fn text<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

fn write_all(mut output: impl Write, mut queued: UnboundedReceiver<Queued>) -> io::Result<()> {
    let mut batch = String::new();
    while let Some(first) = queued.blocking_recv() {
        let mut rooms = vec![first._room];
        batch.clear();
        batch.push_str(&first.frame);
        while batch.len() < WRITE_BYTES
            && let Ok(next) = queued.try_recv()
        {
            batch.push_str(&next.frame);
            rooms.push(next._room);
        }
        output.write_all(batch.as_bytes())?;
        output.flush()?;
        if batch.capacity() > 4 * WRITE_BYTES {
            batch = String::new();
        }
    }
    Ok(())
}
