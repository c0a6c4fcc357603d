//! Opening a stored session: for writing with repair, or for looking without a change.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lorimer_protocol::{Draft, EndSeed, Event};
use thiserror::Error;

use super::encoding::{LogFile, RowEncoder};
use super::journal::LogJournal;
use super::lock::{self, SessionLock};
use super::publish::sync_directory;
use super::reader::{Scan, ScanEnd, scan};
use super::{StoreError, StoreOptions};
use crate::fold::{Log, closers};
use crate::live::Session;

/// Why a log can be looked at but not gone on with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// A line before the tail is not a row.
    #[error("corrupt session log: unparsable committed event at line {line}: {why}")]
    Damaged {
        /// Event line, 1-based (the header is not counted).
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// A row whose meaning is not certain here.
    #[error("{why} (event line {line})")]
    NotUnderstood {
        /// Event line, 1-based.
        line: u64,
        /// What is wrong.
        why: String,
    },
}

/// A log that cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The store could not find or use it, or another process holds it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its first line is not a usable header.
    #[error("{why} (raw log: {})", path.display())]
    Header {
        /// The log.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// It can be read but not continued. Nothing was changed.
    #[error("session \"{id}\" can be read but not continued: {problem} (raw log: {}); see it with `lorimer sessions show {id}`", path.display())]
    ReadOnly {
        /// The session.
        id: String,
        /// The log.
        path: PathBuf,
        /// What is wrong.
        problem: Problem,
    },
}

impl OpenError {
    pub(super) fn io(path: &Path, error: &std::io::Error) -> Self {
        let text = format!("cannot read {}: {error}", path.display());
        Self::Store(StoreError::Io(std::io::Error::new(error.kind(), text)))
    }
}

/// A session opened for writing.
pub struct Open {
    /// The session, ready for its next turn.
    pub session: Arc<Session>,
    /// Where a torn last line was copied to, when there was one.
    pub torn_copy: Option<PathBuf>,
    /// Whether a turn was open and has been closed.
    pub closed_turn: bool,
    /// What opening it appended: closers of an open turn and the mark of where the restored part ends.
    pub appended: Vec<Arc<Event>>,
}

/// A session looked at.
pub struct Inspection {
    /// The fold of everything that could be interpreted, with closers for an open turn added in memory.
    pub log: Log,
    /// What kept the rest from being interpreted.
    pub problem: Option<Problem>,
}

pub(super) fn inspect(file: &LogFile) -> Result<Inspection, OpenError> {
    let Scan { mut log, end, .. } = scan(file)?;
    for event in closers(&log) {
        // Closers are made from this very log.
        let _ = log.apply(&event);
    }
    let problem = match end {
        ScanEnd::Damaged(problem) => Some(problem),
        ScanEnd::Complete | ScanEnd::TornTail => None,
    };
    Ok(Inspection { log, problem })
}

pub(super) fn open(log_file: LogFile, options: &StoreOptions) -> Result<Open, OpenError> {
    let path = log_file.path.clone();
    let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
    let id = directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let lock = SessionLock::acquire(&directory).map_err(|error| lock::to_store_error(error, &id))?;
    let file_error = |error: std::io::Error| OpenError::io(&path, &error);
    let mut file = std::fs::OpenOptions::new().read(true).append(true).open(&path).map_err(file_error)?;
    remove_unpublished(&directory);
    let Scan { log, cut, recovered, end, .. } = scan(&log_file)?;
    let torn_copy = match end {
        ScanEnd::Complete => None,
        ScanEnd::TornTail => {
            Some(set_torn_tail_aside(&log_file, &mut file, cut, recovered).map_err(file_error)?)
        }
        ScanEnd::Damaged(problem) => {
            return Err(OpenError::ReadOnly { id: log.header().id.to_string(), path, problem });
        }
    };
    let length = file.metadata().map_err(file_error)?.len();
    let closing = closers(&log);
    let closed_turn = !closing.is_empty();
    let journal = LogJournal::append_to(log_file, file, length, lock, options);
    let (session, appended) = resume(log, &directory, closing, Box::new(journal), options)?;
    Ok(Open { session, torn_copy, closed_turn, appended })
}

/// A process that died while it published a log leaves its private file behind. Under the lock it is nobody's.
fn remove_unpublished(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("session.jsonl.") && name.ends_with(".tmp") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Appends the closers and marks where the restored part ends.
fn resume(
    log: Log,
    directory: &Path,
    closing: Vec<Event>,
    journal: Box<LogJournal>,
    options: &StoreOptions,
) -> Result<(Arc<Session>, Vec<Arc<Event>>), OpenError> {
    let marked = closing.is_empty() && log.ends_with_seed_marker();
    let delay = Duration::from_millis(options.write_delay_ms);
    let session = Session::new(log, Some(directory.to_owned()), journal, delay).map_err(StoreError::Io)?;
    let mut seen = session.subscribe();
    let drafts = closing.into_iter().map(Draft::from);
    let marker = (!marked).then(|| Draft::new(&EndSeed {}));
    for draft in drafts.chain(marker) {
        session.append(draft).map_err(|error| StoreError::Io(std::io::Error::other(error)))?;
    }
    let appended = std::iter::from_fn(|| seen.try_recv().ok()).collect();
    Ok((Arc::new(session), appended))
}

/// Copies everything after `cut` to `<log>.torn-<n>`, syncs the copy, cuts it off, and writes the whole lines in it
/// again.
fn set_torn_tail_aside(
    log: &LogFile,
    file: &mut File,
    cut: u64,
    recovered: Vec<u8>,
) -> std::io::Result<PathBuf> {
    let mut number = 1_u32;
    let (copy, mut out) = loop {
        let copy = log.beside(&format!(".torn-{number}"));
        match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy) {
            Ok(out) => break (copy, out),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    };
    file.seek(SeekFrom::Start(cut))?;
    std::io::copy(file, &mut out)?;
    out.sync_all()?;
    if let Some(directory) = log.path.parent() {
        sync_directory(directory)?;
    }
    file.set_len(cut)?;
    file.write_all(&RowEncoder::new(log.compression, false).frame(recovered)?)?;
    file.sync_all()?;
    Ok(copy)
}
