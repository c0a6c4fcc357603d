//! Requests about stored sessions, whether they are open or not.

use std::path::Path;
use std::time::{Duration, Instant};

use lorimer_protocol::SessionId;
use lorimer_session::{ForkError, ForkPoint, OpenError, Store, StoreError};

use crate::error::RpcError;
use crate::wire::{Empty, ForkParams, ForkResult, ListParams, ListResult, ListedSession};

/// How long a session that this process has just closed may still be held by a tool that is about to end.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);

/// Repeats `attempt` while this very process still holds the session.
pub(crate) fn when_released<T>(held: impl Fn(&T) -> bool, mut attempt: impl FnMut() -> T) -> T {
    let limit = Instant::now() + RELEASE_LIMIT;
    loop {
        let outcome = attempt();
        if !held(&outcome) || Instant::now() >= limit {
            return outcome;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the holder of a session is this process, or one that has not said its name yet.
pub(crate) fn is_held_here(error: &StoreError) -> bool {
    matches!(error, StoreError::Held { holder, .. }
        if holder.parse::<u32>().map_or(true, |process| process == std::process::id()))
}

pub(crate) fn delete(store: &Store, session: &SessionId) -> Result<Empty, RpcError> {
    let deleted = when_released(
        |outcome: &Result<(), StoreError>| outcome.as_ref().is_err_and(is_held_here),
        || store.delete(session),
    );
    deleted.map(|()| Empty {}).map_err(|error| match error {
        StoreError::NotFound(_) => not_found(session),
        other => RpcError::new(other.to_string()),
    })
}

/// A fork of a session whose turn is running ends with the turn before.
pub(crate) fn fork(store: &Store, params: &ForkParams) -> Result<ForkResult, RpcError> {
    let id = &params.session_id;
    let forked = match params.turn {
        Some(turn) => store.fork(id, ForkPoint::Turn(turn)),
        None => match store.fork(id, ForkPoint::End) {
            Err(ForkError::OpenTurn { turn, .. }) if turn > 1 => store.fork(id, ForkPoint::Turn(turn - 1)),
            Err(ForkError::OpenTurn { .. }) => {
                return Err(RpcError::new(format!(
                    "no turn of session \"{id}\" has ended yet; fork it then"
                )));
            }
            other => other,
        },
    };
    forked.map(|session_id| ForkResult { session_id }).map_err(|error| match error {
        ForkError::Open(OpenError::Store(StoreError::NotFound(_))) => not_found(id),
        other => RpcError::new(other.to_string()),
    })
}

pub(crate) fn list(store: &Store, params: &ListParams, open: &[SessionId]) -> ListResult {
    let found = match &params.cwd {
        Some(cwd) => store.list_of(Path::new(cwd)),
        None => store.list(),
    };
    let sessions = found
        .into_iter()
        .map(|summary| ListedSession {
            open: open.contains(&summary.header.id),
            session_id: summary.header.id,
            cwd: summary.header.cwd,
            title: summary.title,
            parent_session_id: summary.parent_session,
            created_at_ms: summary.header.created_at,
            updated_at_ms: summary.updated_at,
            size_bytes: summary.size_bytes,
        })
        .collect();
    ListResult { sessions }
}

pub(crate) fn not_found(session: &SessionId) -> RpcError {
    RpcError::new(format!("session \"{session}\" not found"))
}
