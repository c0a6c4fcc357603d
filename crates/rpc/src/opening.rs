//! Opening a session and putting an agent on it, off the thread that serves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lorimer_agent::Agent;
use lorimer_protocol::{Event, SessionHeader, SessionId};
use lorimer_session::{Open, OpenError, Session, Store, StoreError};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::error::RpcError;
use crate::host::{Channels, Host, Route};
use crate::stored;

/// A session that is to be opened.
pub(crate) struct Opening {
    pub host: Arc<dyn Host>,
    pub route: Route,
    pub channels: Channels,
    pub how: How,
}

/// Whether the session is stored already.
pub(crate) enum How {
    /// It must not be.
    Create(SessionId),
    /// It must be.
    Resume(SessionId),
}

impl Opening {
    pub fn id(&self) -> &SessionId {
        match &self.how {
            How::Create(id) | How::Resume(id) => id,
        }
    }
}

/// An agent on an open session.
pub(crate) struct Opened {
    pub agent: Agent,
    pub session: Arc<Session>,
    /// What opening itself has appended.
    pub appended: Vec<Arc<Event>>,
    /// What is appended from now on.
    pub events: UnboundedReceiver<Arc<Event>>,
}

/// Opens a session. A stored one is never replaced by a new one, and a new one never takes the place of a stored one.
pub(crate) async fn open(opening: Opening) -> Result<Opened, RpcError> {
    tokio::task::spawn_blocking(move || open_now(&opening)).await.unwrap_or_else(|_| {
        Err(RpcError::new("the session could not be opened; see the runtime's standard error"))
    })
}

fn open_now(opening: &Opening) -> Result<Opened, RpcError> {
    let Opening { host, route, channels, how } = opening;
    let (session, appended) = match how {
        How::Create(id) => (create(host.store(), &route.cwd, id)?, Vec::new()),
        How::Resume(id) => resume(host.store(), id)?,
    };
    let workspace = workspace(&session, &route.cwd)?;
    let events = session.subscribe();
    let agent = host.agent(route, &workspace, Arc::clone(&session), channels.clone())?;
    Ok(Opened { agent, session, appended, events })
}

fn create(store: &Store, cwd: &Path, id: &SessionId) -> Result<Arc<Session>, RpcError> {
    if store.path(id).is_ok() {
        return Err(RpcError::new(format!(
            "session \"{id}\" already exists (restore it with session/resume)"
        )));
    }
    let created_at = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_millis();
    let header = SessionHeader::new(
        id.clone(),
        u64::try_from(created_at).unwrap_or(u64::MAX),
        Some(cwd.to_string_lossy().into_owned()),
    );
    store.create_with(header).map_err(|error| RpcError::new(error.to_string()))
}

fn resume(store: &Store, id: &SessionId) -> Result<(Arc<Session>, Vec<Arc<Event>>), RpcError> {
    let held = |outcome: &Result<Open, OpenError>| matches!(outcome, Err(OpenError::Store(error)) if stored::is_held_here(error));
    let opened = stored::when_released(held, || store.open(id)).map_err(|error| refused(&error, id))?;
    if let Some(copy) = opened.torn_copy {
        crate::note(&format!("the log of {id} ended in a torn line, which was copied to {}", copy.display()));
    }
    Ok((opened.session, opened.appended))
}

fn refused(error: &OpenError, id: &SessionId) -> RpcError {
    match error {
        OpenError::Store(StoreError::NotFound(_)) => stored::not_found(id),
        other => RpcError::new(other.to_string()),
    }
}

/// A session goes on where it was.
fn workspace(session: &Session, cwd: &Path) -> Result<PathBuf, RpcError> {
    let own = session.with_log(|log| log.header().cwd.clone());
    let own = own.map_or_else(|| cwd.to_owned(), PathBuf::from);
    if own.is_dir() {
        return Ok(own);
    }
    Err(RpcError::new(format!("the workspace of session \"{}\" is gone: {}", session.id(), own.display())))
}
