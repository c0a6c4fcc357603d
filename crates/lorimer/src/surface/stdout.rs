//! Standard output on a thread of its own, so that a reader that stops reading stops neither signals nor the log.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::exit::{CommandError, Exit};

/// Writes lines to standard output in order.
pub struct StdoutWriter {
    lines: Option<Sender<String>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    broken: Arc<AtomicBool>,
}

impl StdoutWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system cannot start a thread.
    pub fn start() -> io::Result<Self> {
        let (lines, received) = channel();
        let broken = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&broken);
        let thread = std::thread::Builder::new().name("lorimer-stdout".to_owned()).spawn(move || {
            let result = write_all(&received);
            flag.store(result.is_err(), Ordering::Release);
            result
        })?;
        Ok(Self { lines: Some(lines), thread: Some(thread), broken })
    }

    /// Queues one line; the line end is added.
    pub fn line(&self, line: String) {
        if let Some(lines) = &self.lines {
            // After a failed write nobody listens; `finish` tells why.
            let _ = lines.send(line);
        }
    }

    /// Whether standard output cannot be written any more.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Ends a listing. A reader that has seen enough is no failure.
    ///
    /// # Errors
    /// When standard output could not be written for another reason.
    pub fn finish_listing(self) -> Result<Exit, CommandError> {
        match self.finish() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(CommandError::failed(format!("cannot write to standard output: {error}")))
            }
            _ => Ok(Exit::Completed),
        }
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.lines = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the writer of standard output has failed")),
            None => Ok(()),
        }
    }
}

fn write_all(lines: &Receiver<String>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    while let Ok(line) = lines.recv() {
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")?;
        // Whatever has queued up meanwhile goes with the same flush.
        while let Ok(line) = lines.try_recv() {
            out.write_all(line.as_bytes())?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
    }
    out.flush()
}
