//! Holding commands to their session's mode: what they may write, and what not even then.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lorimer_protocol::PermissionMode;
use lorimer_sandbox::{Backend, Choice, Policy, Sandbox, Unavailable};
use lorimer_tools::ToolError;
use tempfile::TempDir;

use crate::{files, protected};

use crate::deny::DenyRules;

/// How commands are confined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfinementOptions {
    /// Which backend.
    pub backend: Choice,
    /// Whether commands have a network.
    pub network: bool,
    /// Paths that stay read-only wherever they are.
    pub read_only: Vec<PathBuf>,
    /// Paths that commands do not see.
    pub hidden: Vec<PathBuf>,
    /// Whether the model can ask a person for a wider mode.
    pub can_escalate: bool,
    /// What commands must not see in any mode, approved or not.
    pub deny: Arc<DenyRules>,
}

/// Confines commands. What works here is found out once, with the first command.
#[derive(Debug, Default)]
pub struct Confinement {
    options: ConfinementOptions,
    sandbox: OnceLock<Result<Sandbox, Unavailable>>,
    temporary: OnceLock<Option<TempDir>>,
}

/// What a command is to be held to.
pub(super) struct Wanted<'a> {
    pub mode: PermissionMode,
    pub workspace: &'a Path,
    /// Whether a person let this very command run.
    pub is_approved: bool,
    /// What it must not see.
    pub denied: &'a [PathBuf],
}

/// A command that is held to a mode.
pub(super) struct Confined {
    pub argv: Vec<OsString>,
    /// The private temporary folder, for `TMPDIR`.
    pub temporary: Option<PathBuf>,
    pub backend: Backend,
}

impl Confinement {
    /// Confines with these options.
    pub fn new(options: ConfinementOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The backend that works here.
    ///
    /// # Errors
    /// When none does.
    pub fn sandbox(&self) -> Result<&Sandbox, &Unavailable> {
        self.sandbox.get_or_init(|| Sandbox::find(self.options.backend)).as_ref()
    }

    /// Whether the model can ask a person for a wider mode.
    pub fn can_escalate(&self) -> bool {
        self.options.can_escalate
    }

    /// What exists now and the next command must not see.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub(super) async fn denied(&self) -> Result<Vec<PathBuf>, ToolError> {
        if self.options.deny.is_empty_for(super::NAME) {
            return Ok(Vec::new());
        }
        let deny = Arc::clone(&self.options.deny);
        match tokio::task::spawn_blocking(move || deny.hidden_from_commands()).await {
            Ok(found) => found.map_err(|why| cannot_deny(&why)),
            Err(_) => Err(ToolError::aborted()),
        }
    }

    /// The arguments that run a command held to what `wanted` says; `None` when that holds nothing.
    pub(super) fn confine(
        &self,
        wanted: &Wanted<'_>,
        argv: Vec<OsString>,
    ) -> Result<Option<Confined>, ToolError> {
        let is_free = wanted.mode == PermissionMode::DangerFullAccess
            // A person has seen the command and lets it run as it is.
            || (wanted.is_approved && self.sandbox().is_err());
        if is_free && wanted.denied.is_empty() {
            return Ok(None);
        }
        let sandbox = self.sandbox().map_err(|unavailable| match wanted.denied {
            [] => ToolError::plain(format!(
                "{unavailable}; until then bash runs only with --permission-mode {}",
                PermissionMode::DangerFullAccess.as_str()
            )),
            _ => cannot_deny(&unavailable.to_string()),
        })?;
        if !wanted.denied.is_empty() && !sandbox.hides() {
            return Err(cannot_deny("this system gives no namespace for mounts"));
        }
        if wanted.mode == PermissionMode::DangerFullAccess {
            let argv = sandbox.confine(&open_policy(wanted.denied), argv);
            return Ok(Some(Confined { argv, temporary: None, backend: sandbox.backend() }));
        }
        let temporary = self.temporary.get_or_init(|| private_folder().ok());
        let temporary = temporary.as_ref().map(|folder| folder.path().to_owned());
        let policy = self.policy(wanted, temporary.as_deref());
        let backend = sandbox.backend();
        Ok(Some(Confined { argv: sandbox.confine(&policy, argv), temporary, backend }))
    }

    fn policy(&self, wanted: &Wanted<'_>, temporary: Option<&Path>) -> Policy {
        let workspace = wanted.workspace;
        let mut writable: Vec<PathBuf> = temporary.map(Path::to_owned).into_iter().collect();
        let mut read_only = self.options.read_only.clone();
        if wanted.mode == PermissionMode::WorkspaceWrite {
            writable.push(workspace.to_owned());
            read_only.extend(protected::paths_of(workspace));
        }
        let hidden = self.options.hidden.iter().chain(wanted.denied).cloned().collect();
        let must_hide = !wanted.denied.is_empty();
        Policy { writable, read_only, hidden, must_hide, network: self.options.network }
    }
}

/// All rights but for what is denied.
fn open_policy(denied: &[PathBuf]) -> Policy {
    Policy {
        writable: vec![PathBuf::from("/")],
        read_only: Vec::new(),
        hidden: denied.to_vec(),
        must_hide: true,
        network: true,
    }
}

fn cannot_deny(why: &str) -> ToolError {
    ToolError::plain(format!(
        "the command did not run, because the deny rules of the configuration cannot be held for it: {why}"
    ))
}

/// In the person's temporary folder, or in the system's when that is no folder to put things in.
fn private_folder() -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("lorimer-");
    match files::temporary_folder() {
        Some(folder) => builder.tempdir_in(&folder).or_else(|_| builder.tempdir_in("/tmp")),
        None => builder.tempdir_in("/tmp"),
    }
}
