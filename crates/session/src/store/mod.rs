//! The logs of one home directory: `<home>/sessions/<project>/<id>/session.jsonl`, or `session.jsonl.zstd` (core
//! spec 1.13).

mod encoding;
mod export;
mod fork;
mod frames;
mod import;
mod journal;
mod key;
mod lines;
mod list;
mod lock;
mod open;
mod prefix;
mod publish;
mod reader;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fs_err as fs;
use lorimer_protocol::{SessionHeader, SessionId};
use thiserror::Error;

pub use encoding::Compression;
pub use fork::{ForkError, ForkPoint, RepairError, Repaired};
pub use import::{ImportError, Imported};
pub use key::project_key;
pub use list::SessionSummary;
pub use open::{Inspection, Open, OpenError, Problem};
pub use reader::Events;

use self::encoding::LogFile;
use crate::fold::Log;
use crate::live::Session;

/// The lock's file name, beside the log.
const LOCK_FILE: &str = "session.lock";

/// How sessions are stored.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Longest wait of an event before it is written, in milliseconds.
    pub write_delay_ms: u64,
    /// Whether runs of deltas are stored as packed rows.
    pub pack_chunks: bool,
    /// Whether batches are synced. Only benchmarks turn it off.
    pub sync: bool,
    /// How new logs are encoded.
    pub compression: Compression,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { write_delay_ms: 200, pack_chunks: true, sync: true, compression: Compression::None }
    }
}

/// A failure of the store itself.
#[derive(Debug, Error)]
pub enum StoreError {
    /// No log of this id.
    #[error("session \"{0}\" not found; see `lorimer sessions list`")]
    NotFound(String),
    /// Several sessions begin with this text.
    #[error("\"{prefix}\" names {count} sessions; give more of the id")]
    Ambiguous {
        /// As it was asked for.
        prefix: String,
        /// How many match.
        count: usize,
    },
    /// An id that cannot be a folder's name.
    #[error("\"{0}\" is not a session id")]
    InvalidId(String),
    /// The session is being written by another process.
    #[error("session \"{id}\" is in use by process {holder}; end it first")]
    Held {
        /// The session.
        id: String,
        /// Who holds it.
        holder: String,
    },
    /// A file could not be used.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// The sessions of one home directory.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    options: StoreOptions,
}

impl Store {
    /// The sessions under `home`. Nothing is created until a session is written.
    pub fn new(home: &Path, options: StoreOptions) -> Self {
        Self { root: home.join("sessions"), options }
    }

    /// The folder that holds all projects.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A new session on `cwd` with a fresh id. Its files appear with its first batch of events.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn create(&self, cwd: &Path) -> Result<Arc<Session>, StoreError> {
        self.create_with(self.fresh_header(Some(cwd.to_string_lossy().into_owned())))
    }

    /// A new session with this header.
    ///
    /// # Errors
    /// When the id is not usable or no thread can be started.
    pub fn create_with(&self, header: SessionHeader) -> Result<Arc<Session>, StoreError> {
        let directory = self.directory_of(header.cwd.as_deref(), &header.id)?;
        let journal = journal::LogJournal::create(&directory, header.clone(), &self.options);
        let delay = Duration::from_millis(self.options.write_delay_ms);
        Ok(Arc::new(Session::new(Log::new(header), Some(directory), Box::new(journal), delay)?))
    }

    /// Opens a session for writing: repairs what a dead process left and takes the lock.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(&self, id: &SessionId) -> Result<Open, OpenError> {
        open::open(self.find(id)?, &self.options)
    }

    /// Reads a session without changing it, whoever holds it.
    ///
    /// # Errors
    /// When there is no such session or its header cannot be read.
    pub fn inspect(&self, id: &SessionId) -> Result<Inspection, OpenError> {
        open::inspect(&self.find(id)?)
    }

    /// The events of a session's log one by one, packed rows taken apart.
    ///
    /// # Errors
    /// When there is no such session or its header cannot be read.
    pub fn events(&self, id: &SessionId) -> Result<Events, OpenError> {
        Events::open(&self.find(id)?)
    }

    /// The path of a session's log.
    ///
    /// # Errors
    /// When there is no such session.
    pub fn path(&self, id: &SessionId) -> Result<PathBuf, StoreError> {
        Ok(self.find(id)?.path)
    }

    /// Removes a session with everything in its folder.
    ///
    /// # Errors
    /// When there is no such session, or a process holds it.
    pub fn delete(&self, id: &SessionId) -> Result<(), StoreError> {
        let path = self.find(id)?.path;
        let directory = path.parent().unwrap_or(&self.root);
        let lock = lock::SessionLock::acquire(directory)
            .map_err(|error| lock::to_store_error(error, id.as_str()))?;
        fs::remove_dir_all(directory)?;
        drop(lock);
        if let Some(project) = directory.parent() {
            // Only an empty project folder goes; anything else stays.
            let _ = fs::remove_dir(project);
        }
        Ok(())
    }

    /// All sessions, the newest activity first. Folders without a readable header are left out.
    pub fn list(&self) -> Vec<SessionSummary> {
        list::list(&self.root, None)
    }

    /// The sessions of one workspace, the newest activity first.
    pub fn list_of(&self, cwd: &Path) -> Vec<SessionSummary> {
        list::list(&self.root, Some(cwd))
    }

    /// Logs of one workspace whose header cannot be read, which no list shows, with their last write in epoch
    /// milliseconds.
    pub fn unreadable_of(&self, cwd: &Path) -> Vec<(PathBuf, u64)> {
        list::unreadable(&self.root, cwd)
    }

    /// The full id of the one session whose id begins with `prefix`.
    ///
    /// # Errors
    /// When none or several do.
    pub fn resolve(&self, prefix: &str) -> Result<SessionId, StoreError> {
        let exact = SessionId(prefix.to_owned());
        if self.find(&exact).is_ok() {
            return Ok(exact);
        }
        let mut ids: Vec<String> = list::session_directories(&self.root)
            .filter_map(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
            .filter(|name| !prefix.is_empty() && name.starts_with(prefix))
            .collect();
        match ids.len() {
            0 => Err(StoreError::NotFound(prefix.to_owned())),
            1 => Ok(SessionId(ids.swap_remove(0))),
            count => Err(StoreError::Ambiguous { prefix: prefix.to_owned(), count }),
        }
    }

    fn directory_of(&self, cwd: Option<&str>, id: &SessionId) -> Result<PathBuf, StoreError> {
        let segment =
            key::encode_segment(id.as_str()).ok_or_else(|| StoreError::InvalidId(id.to_string()))?;
        Ok(self.root.join(cwd.map_or_else(|| "_no-cwd".to_owned(), project_key)).join(segment))
    }

    fn find(&self, id: &SessionId) -> Result<LogFile, StoreError> {
        let segment =
            key::encode_segment(id.as_str()).ok_or_else(|| StoreError::InvalidId(id.to_string()))?;
        list::project_directories(&self.root)
            .find_map(|project| LogFile::find(&project.join(&segment)))
            .ok_or_else(|| StoreError::NotFound(id.to_string()))
    }
}
