//! Runs a search on a blocking thread and waits for it no longer than it may take.

use std::time::Duration;

use lorimer_tools::ToolError;
use tokio_util::sync::CancellationToken;

use super::failure;
use super::scan::Stop;

/// Sets the flag when the caller no longer waits, for whatever reason.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Runs `work`. On a cancel or after `timeout_ms` the call ends at once; the thread follows at its next look at the
/// flag, and nothing it does afterwards is seen.
pub(super) async fn run<T: Send + 'static>(
    tool: &'static str,
    cancel: &CancellationToken,
    timeout_ms: u64,
    work: impl FnOnce(&Stop) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    if cancel.is_cancelled() {
        return Err(failure::aborted(tool));
    }
    let stop = Stop::default();
    let _guard = StopOnDrop(stop.clone());
    let working = tokio::task::spawn_blocking(move || work(&stop));
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(failure::aborted(tool)),
        ended = working => match ended {
            Ok(result) => result,
            Err(why) if why.is_panic() => std::panic::resume_unwind(why.into_panic()),
            // The runtime shuts down.
            Err(_) => Err(failure::aborted(tool)),
        },
        () = tokio::time::sleep(Duration::from_millis(timeout_ms)) => Err(failure::aborted(tool)),
    }
}
