//! What the model has seen of a file (core spec 5.6).
//!
//! The state is the log's: it is read from the fold and written as events, so it outlives a resume.

use lorimer_protocol::{Draft, FsObservation, FsObserved};
use lorimer_session::Session;

use super::error::{FsCode, FsError};
use super::target::FsTarget;

/// The last thing the model saw of the file.
pub(crate) fn last_observation(session: &Session, target: &FsTarget) -> Option<FsObservation> {
    session.with_log(|log| log.observation(&target.target_key).cloned())
}

/// Remembers what the model saw. Nothing is appended when it is what it saw before.
///
/// # Errors
/// When the log refuses the event.
pub(crate) fn record(
    session: &Session,
    target: &FsTarget,
    observation: FsObservation,
) -> Result<(), FsError> {
    if last_observation(session, target).as_ref() == Some(&observation) {
        return Ok(());
    }
    let seen = FsObserved { target_key: target.target_key.clone(), observation };
    session.append(Draft::new(&seen)).map_err(|error| FsError::new(FsCode::IoError, error.to_string()))?;
    Ok(())
}
