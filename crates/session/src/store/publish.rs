//! A new log, filled under a private name and published whole.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lorimer_protocol::{Event, SessionHeader};

use super::StoreOptions;
use super::encoding::{LogFile, RowEncoder};
use super::lock::{LockError, SessionLock};

/// Lines of one batch, in bytes, when a log is written in one go: small enough for a list to decode the last one.
const BATCH_BYTES: usize = 32 * 1024;
/// Events that wait to be packed into rows together.
const BATCH_EVENTS: usize = 4096;
/// Payloads of the events that wait, in bytes.
const WAITING_BYTES: usize = 512 * 1024;

/// A log that nobody sees before [`NewLog::publish`]; dropped before that, it leaves nothing behind.
pub(super) struct NewLog {
    directory: PathBuf,
    log: LogFile,
    temporary: PathBuf,
    file: Option<File>,
    lock: Option<SessionLock>,
    encoder: RowEncoder,
    events: Vec<Arc<Event>>,
    event_bytes: usize,
    lines: Vec<u8>,
    length: u64,
    sync: bool,
    made_directory: bool,
}

/// A log that has just appeared, still locked.
pub(super) struct Published {
    pub file: File,
    pub length: u64,
    pub lock: SessionLock,
}

impl NewLog {
    /// Begins a log in the folder of its session, which is made when it is missing.
    pub fn begin(directory: &Path, header: &SessionHeader, options: &StoreOptions) -> std::io::Result<Self> {
        let made_directory = !directory.is_dir();
        create_private_directories(directory, options.sync)?;
        let lock = SessionLock::acquire(directory).map_err(|error| match error {
            LockError::Io(error) => error,
            LockError::Held(holder) => std::io::Error::other(format!("process {holder} writes this session")),
        })?;
        let log = LogFile::named(directory, options.compression);
        let temporary = log.beside(&format!(".{}.tmp", uuid::Uuid::new_v4().simple()));
        let mut new = Self {
            directory: directory.to_owned(),
            log,
            temporary,
            file: None,
            lock: Some(lock),
            encoder: RowEncoder::new(options.compression, options.pack_chunks),
            events: Vec::new(),
            event_bytes: 0,
            lines: Vec::new(),
            length: 0,
            sync: options.sync,
            made_directory,
        };
        if let Some(there) = LogFile::find(directory) {
            let text = format!("{} exists", there.path.display());
            return Err(std::io::Error::new(std::io::ErrorKind::AlreadyExists, text));
        }
        let file =
            std::fs::OpenOptions::new().append(true).create_new(true).mode(0o600).open(&new.temporary)?;
        new.file = Some(file);
        let bytes = new.encoder.header(header)?;
        new.write(&bytes)?;
        Ok(new)
    }

    /// Adds one event.
    pub fn push(&mut self, event: Arc<Event>) -> std::io::Result<()> {
        self.event_bytes += event.data.get().len();
        self.events.push(event);
        // Chunk events are short once they are packed, so their number counts as well as their bytes.
        if self.events.len() >= BATCH_EVENTS || self.event_bytes >= WAITING_BYTES {
            self.end_batch_when_full()?;
        }
        Ok(())
    }

    /// Adds a line of another log, without its end, as it is.
    pub fn push_line(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.encode_events();
        self.lines.extend_from_slice(line);
        self.lines.push(b'\n');
        self.end_batch_when_full()
    }

    /// Syncs the file and gives it its name.
    pub fn publish(mut self) -> std::io::Result<Published> {
        self.end_batch()?;
        let Some(file) = self.file.take() else {
            return Err(std::io::Error::other("the log has no file"));
        };
        if self.sync {
            file.sync_data()?;
        }
        std::fs::hard_link(&self.temporary, &self.log.path)?;
        if self.sync
            && let Err(error) = sync_directory(&self.directory)
        {
            // Without the folder's entry on disk the log does not count as there, so that it can be tried again.
            let _ = std::fs::remove_file(&self.log.path);
            return Err(error);
        }
        let Some(lock) = self.lock.take() else {
            return Err(std::io::Error::other("the log has no lock"));
        };
        Ok(Published { file, length: self.length, lock })
    }

    fn encode_events(&mut self) {
        self.encoder.lines(&mut self.lines, &self.events);
        self.events.clear();
        self.event_bytes = 0;
    }

    fn end_batch_when_full(&mut self) -> std::io::Result<()> {
        self.encode_events();
        if self.lines.len() >= BATCH_BYTES { self.end_batch() } else { Ok(()) }
    }

    fn end_batch(&mut self) -> std::io::Result<()> {
        self.encode_events();
        let bytes = self.encoder.frame(std::mem::take(&mut self.lines))?;
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for NewLog {
    fn drop(&mut self) {
        // Whether or not it was published, the private name goes.
        let _ = std::fs::remove_file(&self.temporary);
        let unpublished = self.lock.take();
        if unpublished.is_some() && self.made_directory && LogFile::find(&self.directory).is_none() {
            let _ = std::fs::remove_file(self.directory.join(super::LOCK_FILE));
            let _ = std::fs::remove_dir(&self.directory);
        }
    }
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
