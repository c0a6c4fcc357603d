//! One change of a file at a time.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as FairMutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

use super::error::FsError;
use super::target::FsTarget;

/// Above this many entries the ones that nobody holds are dropped.
const SWEEP_ENTRIES: usize = 256;

type Locks = HashMap<String, Weak<FairMutex<()>>>;

static LOCKS: LazyLock<Mutex<Locks>> = LazyLock::new(Mutex::default);

/// Waits in line for the right to change a file. All agents of the process share the line.
///
/// # Errors
/// `<verb> aborted` when the caller cancels first.
pub(crate) async fn lock_target(
    verb: &str,
    target: &FsTarget,
    cancel: &CancellationToken,
) -> Result<OwnedMutexGuard<()>, FsError> {
    let lock = lock_of(&target.target_key);
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(FsError::aborted(verb)),
        guard = lock.lock_owned() => Ok(guard),
    }
}

fn lock_of(key: &str) -> Arc<FairMutex<()>> {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lock) = locks.get(key).and_then(Weak::upgrade) {
        return lock;
    }
    if locks.len() >= SWEEP_ENTRIES {
        locks.retain(|_, lock| lock.strong_count() > 0);
    }
    let lock = Arc::new(FairMutex::new(()));
    locks.insert(key.to_owned(), Arc::downgrade(&lock));
    lock
}
