//! What is said to whoever reads standard error. Nobody may be reading: then it is lost, and nothing waits for it.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Most notes that wait for their reader.
const MAX_WAITING: usize = 64;
/// How long the end of the server waits for notes to be read.
const LAST_NOTES: Duration = Duration::from_millis(50);

enum Note {
    Line(String),
    /// Everything before it is written.
    Mark(SyncSender<()>),
}

static NOTES: OnceLock<Option<SyncSender<Note>>> = OnceLock::new();

/// Says something, or loses it when too much waits already.
pub(crate) fn note(text: &str) {
    if let Some(notes) = NOTES.get_or_init(start) {
        let _ = notes.try_send(Note::Line(format!("lorimer: {text}\n")));
    }
}

/// Gives what was said a moment to be written.
pub(crate) fn finish() {
    if let Some(Some(notes)) = NOTES.get() {
        let (done, written) = sync_channel(1);
        if notes.try_send(Note::Mark(done)).is_ok() {
            let _ = written.recv_timeout(LAST_NOTES);
        }
    }
}

fn start() -> Option<SyncSender<Note>> {
    let (sender, notes) = sync_channel(MAX_WAITING);
    let thread = std::thread::Builder::new().name("lorimer-rpc-notes".to_owned());
    thread.spawn(move || write_all(&notes)).ok().map(|_| sender)
}

fn write_all(notes: &Receiver<Note>) {
    while let Ok(note) = notes.recv() {
        match note {
            // One write a line: others write there too.
            Note::Line(line) => drop(std::io::stderr().write_all(line.as_bytes())),
            Note::Mark(done) => drop(done.try_send(())),
        }
    }
}
