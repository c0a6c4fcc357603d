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
    /// The workspace, an absolute path: what permission modes speak of.
    pub workspace: PathBuf,
    /// Where relative paths and commands start, an absolute path: the workspace, unless the session works elsewhere.
    pub cwd: PathBuf,
    /// Fires when the call is to end early.
    pub cancel: CancellationToken,
    /// Whether anybody looks at the canonical value of the result.
    pub wants_value: bool,
    deferred: Mutex<Vec<Message>>,
    concludes_turn: AtomicBool,
    approved: AtomicBool,
}

impl ToolContext {
    /// The surroundings of a direct call in this workspace.
    pub fn new(
        call_id: CallId,
        name: impl Into<String>,
        arguments: Value,
        session: Arc<Session>,
        workspace: &Path,
        cancel: CancellationToken,
    ) -> Self {
        let changed = session.with_log(|log| log.working_directory().map(PathBuf::from));
        Self {
            root_call_id: call_id.clone(),
            call_id,
            parent: None,
            agent_id: session.id().to_string(),
            name: name.into(),
            arguments,
            session,
            workspace: workspace.to_owned(),
            cwd: changed.unwrap_or_else(|| workspace.to_owned()),
            cancel,
            wants_value: true,
            deferred: Mutex::new(Vec::new()),
            concludes_turn: AtomicBool::new(false),
            approved: AtomicBool::new(false),
        }
    }

    /// Whether a person has allowed this very call.
    pub fn is_approved(&self) -> bool {
        self.approved.load(Ordering::Relaxed)
    }

    pub(crate) fn set_approved(&self) {
        self.approved.store(true, Ordering::Relaxed);
    }

    /// What this call may change: the mode that was logged last, else the default; or the wider one that the call has
    /// asked for, when a person has allowed it.
    pub fn permission_mode(&self) -> PermissionMode {
        let logged = self.session.with_log(|log| log.permission_mode()).unwrap_or_default();
        let wanted = self.arguments.get("sandbox_permissions").and_then(Value::as_str);
        match wanted.and_then(|mode| mode.parse().ok()) {
            Some(wanted) if self.is_approved() => logged.max(wanted),
            _ => logged,
        }
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
