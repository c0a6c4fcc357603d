//! The journal of a saved session: one write and one `fdatasync` a batch.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lorimer_protocol::{Event, SessionHeader};

use super::StoreOptions;
use super::encoding::{LogFile, RowEncoder};
use super::lock::SessionLock;
use super::publish::{NewLog, Published};
use crate::journal::{Journal, JournalError};

/// Appends to one log.
pub(super) struct LogJournal {
    path: PathBuf,
    header: Option<SessionHeader>,
    open: Option<OpenLog>,
    encoder: RowEncoder,
    options: StoreOptions,
}

struct OpenLog {
    file: File,
    /// Bytes that are whole batches.
    length: u64,
    /// Whether part of a failed batch may stand behind `length`.
    dirty: bool,
    _lock: SessionLock,
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

impl LogJournal {
    /// A journal whose files appear with its first batch.
    pub fn create(directory: &Path, header: SessionHeader, options: &StoreOptions) -> Self {
        let log = LogFile::named(directory, options.compression);
        Self { header: Some(header), ..Self::new(log, None, options) }
    }

    /// A journal that goes on with a log of `length` bytes.
    pub fn append_to(
        log: LogFile,
        file: File,
        length: u64,
        lock: SessionLock,
        options: &StoreOptions,
    ) -> Self {
        Self::new(log, Some(OpenLog { file, length, dirty: false, _lock: lock }), options)
    }

    fn new(log: LogFile, open: Option<OpenLog>, options: &StoreOptions) -> Self {
        let encoder = RowEncoder::new(log.compression, options.pack_chunks);
        Self { path: log.path, header: None, open, encoder, options: options.clone() }
    }

    /// Publishes header and first batch together.
    fn materialize(&mut self, events: &[Arc<Event>]) -> std::io::Result<()> {
        let Some(header) = &self.header else {
            return Err(std::io::Error::other("the log was closed"));
        };
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let mut new = NewLog::begin(directory, header, &self.options)?;
        for event in events {
            new.push(Arc::clone(event))?;
        }
        let Published { file, length, lock } = new.publish()?;
        self.open = Some(OpenLog { file, length, dirty: false, _lock: lock });
        self.header = None;
        Ok(())
    }

    fn append(&mut self, events: &[Arc<Event>]) -> std::io::Result<()> {
        let bytes = self.encoder.batch(events)?;
        let sync = self.options.sync;
        let Some(log) = &mut self.open else {
            return Err(std::io::Error::other("the log is not open"));
        };
        log.clean()?;
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

impl Journal for LogJournal {
    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), JournalError> {
        let written = if self.open.is_none() { self.materialize(events) } else { self.append(events) };
        written.map_err(|error| JournalError { path: self.path.clone(), reason: error.to_string() })
    }
}
