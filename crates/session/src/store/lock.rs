//! The lock that keeps a session to one writer.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{LOCK_FILE, StoreError};

/// An OS lock on a file beside the log. It dies with its process; children do not inherit it.
#[derive(Debug)]
pub(super) struct SessionLock {
    _file: File,
}

/// Why a lock could not be taken.
#[derive(Debug)]
pub(super) enum LockError {
    /// Another process has it: its process id, or `unknown`.
    Held(String),
    Io(std::io::Error),
}

impl SessionLock {
    /// Takes the lock of a session folder, which must exist.
    pub fn acquire(directory: &Path) -> Result<Self, LockError> {
        let path = directory.join(LOCK_FILE);
        let mut file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(LockError::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(&mut file))),
            Err(TryLockError::Error(error)) => return Err(LockError::Io(error)),
        }
        // The holder's id is only for people; failing to write it changes nothing.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.take(64).read_to_string(&mut text);
    match text.trim() {
        "" => "unknown".to_owned(),
        pid => pid.to_owned(),
    }
}

pub(super) fn to_store_error(error: LockError, id: &str) -> StoreError {
    match error {
        LockError::Held(holder) => StoreError::Held { id: id.to_owned(), holder },
        LockError::Io(error) => StoreError::Io(error),
    }
}
