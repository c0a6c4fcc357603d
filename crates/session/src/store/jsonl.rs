//! The journal of a saved session: plain JSON lines, one write and one `fdatasync` a batch.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lorimer_protocol::{Event, SessionHeader, StoredRow, pack_rows};

use super::lock::{LockError, SessionLock};
use super::{LOG_FILE, StoreOptions};
use crate::journal::{Journal, JournalError};

/// Appends to one log.
pub(super) struct JsonlJournal {
    path: PathBuf,
    header: Option<SessionHeader>,
    open: Option<OpenLog>,
    pack_chunks: bool,
    sync: bool,
}

struct OpenLog {
    file: File,
    /// Bytes that are whole batches.
    length: u64,
    /// Whether part of a batch may stand behind `length`.
    dirty: bool,
    /// Whether the folder's entry of the log is not known to be on disk.
    unsynced_entry: bool,
    _lock: SessionLock,
}

impl JsonlJournal {
    /// A journal whose files appear with its first batch.
    pub fn create(directory: &Path, header: SessionHeader, options: &StoreOptions) -> Self {
        Self {
            path: directory.join(LOG_FILE),
            header: Some(header),
            open: None,
            pack_chunks: options.pack_chunks,
            sync: options.sync,
        }
    }

    /// A journal that goes on with a log of `length` bytes.
    pub fn append_to(
        path: PathBuf,
        file: File,
        length: u64,
        lock: SessionLock,
        options: &StoreOptions,
    ) -> Self {
        let open = Some(OpenLog { file, length, dirty: false, unsynced_entry: false, _lock: lock });
        Self { path, header: None, open, pack_chunks: options.pack_chunks, sync: options.sync }
    }

    fn encode(&self, out: &mut Vec<u8>, events: &[Arc<Event>]) -> std::io::Result<()> {
        if !self.pack_chunks || !events.iter().any(|event| event.kind == "assistant/chunk") {
            return events.iter().try_for_each(|event| encode_event(out, event));
        }
        for row in pack_rows(events.iter().map(Arc::as_ref)) {
            match row {
                StoredRow::Event(event) => encode_event(out, &event)?,
                StoredRow::Chunks(chunks) => {
                    out.extend_from_slice(chunks.to_json().as_bytes());
                    out.push(b'\n');
                }
            }
        }
        Ok(())
    }

    /// Publishes header and first batch together: a private file is filled, synced and linked to its final name.
    fn materialize(&mut self, events: &[Arc<Event>]) -> std::io::Result<()> {
        let Some(header) = &self.header else {
            return Err(std::io::Error::other("the log was closed"));
        };
        let directory = self.path.parent().unwrap_or(Path::new("."));
        create_private_directories(directory, self.sync)?;
        let lock = SessionLock::acquire(directory).map_err(|error| match error {
            LockError::Io(error) => error,
            LockError::Held(holder) => std::io::Error::other(format!("process {holder} writes this session")),
        })?;
        let mut bytes = header.to_json().into_bytes();
        bytes.push(b'\n');
        let header_length = bytes.len() as u64;
        self.encode(&mut bytes, events)?;
        let temporary = self.path.with_extension(format!("jsonl.{}.tmp", uuid::Uuid::new_v4().simple()));
        let result = publish(&temporary, &self.path, &bytes, self.sync);
        // Whether or not it was published, the private name goes.
        let _ = std::fs::remove_file(&temporary);
        let file = result?;
        self.header = None;
        // Until the folder's entry is on disk the batch does not count as written.
        let log = self.open.insert(OpenLog {
            file,
            length: header_length,
            dirty: true,
            unsynced_entry: true,
            _lock: lock,
        });
        if self.sync {
            sync_directory(directory)?;
        }
        (log.length, log.dirty, log.unsynced_entry) = (bytes.len() as u64, false, false);
        Ok(())
    }

    fn append(&mut self, events: &[Arc<Event>]) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes, events)?;
        let (sync, directory) = (self.sync, self.path.parent().unwrap_or(Path::new(".")));
        let Some(log) = &mut self.open else {
            return Err(std::io::Error::other("the log is not open"));
        };
        log.clean()?;
        if log.unsynced_entry && sync {
            sync_directory(directory)?;
            log.unsynced_entry = false;
        }
        log.dirty = true;
        let written =
            log.file.write_all(&bytes).and_then(|()| if sync { log.file.sync_data() } else { Ok(()) });
        if let Err(error) = written {
            // The batch is tried again as a whole, so nothing of it may stay. If that fails too, it is done next time.
            let _ = log.clean();
            return Err(error);
        }
        log.length += bytes.len() as u64;
        log.dirty = false;
        Ok(())
    }
}

impl OpenLog {
    /// Cuts off what a failed batch may have left.
    fn clean(&mut self) -> std::io::Result<()> {
        if self.dirty {
            self.file.set_len(self.length)?;
            self.dirty = false;
        }
        Ok(())
    }
}

impl Journal for JsonlJournal {
    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), JournalError> {
        let written = if self.open.is_none() { self.materialize(events) } else { self.append(events) };
        written.map_err(|error| JournalError { path: self.path.clone(), reason: error.to_string() })
    }
}

fn encode_event(out: &mut Vec<u8>, event: &Event) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, event)?;
    out.push(b'\n');
    Ok(())
}

fn publish(temporary: &Path, path: &Path, bytes: &[u8], sync: bool) -> std::io::Result<File> {
    let mut file = std::fs::OpenOptions::new().append(true).create_new(true).mode(0o600).open(temporary)?;
    file.write_all(bytes)?;
    if sync {
        file.sync_data()?;
    }
    std::fs::hard_link(temporary, path)?;
    Ok(file)
}

/// Creates missing folders with mode 0700 and syncs the parent of each.
fn create_private_directories(directory: &Path, sync: bool) -> std::io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(parent) = directory.parent() {
        create_private_directories(parent, sync)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && directory.is_dir() => {
            return Ok(());
        }
        Err(error) => {
            return Err(std::io::Error::new(
                error.kind(),
                format!("cannot create {}: {error}", directory.display()),
            ));
        }
    }
    match directory.parent() {
        Some(parent) if sync => sync_directory(parent),
        _ => Ok(()),
    }
}

pub(super) fn sync_directory(directory: &Path) -> std::io::Result<()> {
    File::open(directory)?.sync_all()
}
