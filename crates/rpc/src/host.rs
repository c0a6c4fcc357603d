//! What the surface needs of the program around it: stored sessions, and agents on them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lorimer_agent::Agent;
use lorimer_protocol::PermissionMode;
use lorimer_session::{Session, Store};
use lorimer_toolbox::Questioner;
use lorimer_tools::Approver;

use crate::error::RpcError;
use crate::wire::InitializeParams;

/// What sessions of a process work with, settled by `initialize`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The workspace of new sessions, a real absolute path.
    pub cwd: PathBuf,
    /// Provider route id.
    pub provider: String,
    /// Model id.
    pub model: String,
    /// Effort id; `None` for the model's default.
    pub reasoning_effort: Option<String>,
    /// Output limit in tokens; `None` for the model's default.
    pub max_tokens: Option<u64>,
    /// What agents may change.
    pub permission_mode: PermissionMode,
}

/// Who answers an agent's questions. Without one, a question is a no.
#[derive(Clone, Default)]
pub struct Channels {
    /// Whether calls may run.
    pub approver: Option<Arc<dyn Approver>>,
    /// The model's own questions.
    pub questioner: Option<Arc<dyn Questioner>>,
}

/// The program around the surface: the composition root.
pub trait Host: Send + Sync + 'static {
    /// Name and version of the program.
    fn program(&self) -> (&str, &str);

    /// Settles what sessions work with.
    ///
    /// # Errors
    /// When the workspace, the provider, the model or the effort cannot be used; the text names the nearest valid ones.
    fn route(&self, params: &InitializeParams, max_tokens: Option<u64>) -> Result<Route, RpcError>;

    /// The stored sessions.
    fn store(&self) -> &Store;

    /// An agent on a session in its workspace.
    ///
    /// # Errors
    /// When there cannot be one.
    fn agent(
        &self,
        route: &Route,
        workspace: &Path,
        session: Arc<Session>,
        channels: Channels,
    ) -> Result<Agent, RpcError>;
}
