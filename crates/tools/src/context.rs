//! What a call knows of its surroundings.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lorimer_protocol::{CallId, Message, PermissionMode};
use lorimer_session::Session;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The surroundings of one call, for its body and for the policies around it.
pub struct ToolContext {
    /// The call.
    pub call_id: CallId,
    /// The direct call it belongs to; its own id when it is one.
    pub root_call_id: CallId,
    /// The enclosing call, for a nested one.
    pub parent: Option<CallId>,
    /// The agent that calls.
    pub agent_id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The converted arguments.
    pub arguments: Value,
    /// The session; what a tool wants remembered it appends as events.
    pub session: Arc<Session>,
    /// The workspace, an absolute path.
    pub cwd: PathBuf,
    /// Fires when the call is to end early.
    pub cancel: CancellationToken,
    /// Whether anybody looks at the canonical value of the result.
    pub wants_value: bool,
    deferred: Mutex<Vec<Message>>,
    concludes_turn: AtomicBool,
}

impl ToolContext {
    /// The surroundings of a direct call.
    pub fn new(
        call_id: CallId,
        name: impl Into<String>,
        arguments: Value,
        session: Arc<Session>,
        cwd: &Path,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            root_call_id: call_id.clone(),
            call_id,
            parent: None,
            agent_id: session.id().to_string(),
            name: name.into(),
            arguments,
            session,
            cwd: cwd.to_owned(),
            cancel,
            wants_value: true,
            deferred: Mutex::new(Vec::new()),
            concludes_turn: AtomicBool::new(false),
        }
    }

    /// What the agent may change: the mode that was logged last, else the default.
    pub fn permission_mode(&self) -> PermissionMode {
        self.session.with_log(|log| log.permission_mode()).unwrap_or_default()
    }

    /// Gives the model a message at its next step. Dropped when a policy blocks the result.
    pub fn defer_context(&self, message: Message) {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }

    /// Ends the turn after this step, if the call succeeds.
    pub fn conclude_turn(&self) {
        self.concludes_turn.store(true, Ordering::Relaxed);
    }

    pub(crate) fn take_deferred(&self) -> Vec<Message> {
        std::mem::take(&mut *self.deferred.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn concludes_turn(&self) -> bool {
        self.concludes_turn.load(Ordering::Relaxed)
    }
}
