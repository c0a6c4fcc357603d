//! File work off the async threads.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::error::FsError;

/// How long a cancelled job may take to notice. A job that is stuck in the file system is given up after it.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// Runs file work where it may block. The job watches `cancel` itself; when it does not end soon after, it is left
/// behind and the call ends as aborted.
///
/// # Errors
/// The job's own, or `<verb> aborted`.
pub(crate) async fn run_blocking<T: Send + 'static>(
    verb: &str,
    cancel: &CancellationToken,
    job: impl FnOnce() -> Result<T, FsError> + Send + 'static,
) -> Result<T, FsError> {
    let mut running = tokio::task::spawn_blocking(job);
    let ended = tokio::select! {
        biased;
        ended = &mut running => Some(ended),
        () = cancel.cancelled() => tokio::time::timeout(CANCEL_GRACE, running).await.ok(),
    };
    match ended {
        Some(Ok(result)) => result,
        // The pipeline turns a panic into the call's error.
        Some(Err(join)) if join.is_panic() => std::panic::resume_unwind(join.into_panic()),
        Some(Err(_)) | None => Err(FsError::aborted(verb)),
    }
}
