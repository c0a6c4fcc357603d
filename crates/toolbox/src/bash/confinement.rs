//! Holding commands to their session's mode: what they may write, and what not even then.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use lorimer_protocol::PermissionMode;
use lorimer_sandbox::{Backend, Choice, Policy, Sandbox, Unavailable};
use lorimer_tools::ToolError;
use tempfile::TempDir;

/// Inside a repository's `.git`: what makes git run programs.
const OF_GIT: [&str; 2] = ["hooks", "config"];
/// In a workspace: what a shell runs when it starts, and our own configuration.
const OF_WORKSPACE: [&str; 12] = [
    ".lorimer",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".gitconfig",
];

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
}

/// Confines commands. What works here is found out once, with the first command.
#[derive(Debug, Default)]
pub struct Confinement {
    options: ConfinementOptions,
    sandbox: OnceLock<Result<Sandbox, Unavailable>>,
    temporary: OnceLock<Option<TempDir>>,
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

    /// The arguments that run a command held to `mode`; `None` when the mode holds nothing.
    pub(super) fn confine(
        &self,
        mode: PermissionMode,
        workspace: &Path,
        argv: Vec<OsString>,
    ) -> Result<Option<Confined>, ToolError> {
        if mode == PermissionMode::DangerFullAccess {
            return Ok(None);
        }
        let sandbox = self.sandbox().map_err(|unavailable| {
            ToolError::plain(format!(
                "{unavailable}; until then bash runs only with --permission-mode {}",
                PermissionMode::DangerFullAccess.as_str()
            ))
        })?;
        let temporary = self.temporary.get_or_init(|| private_folder().ok());
        let temporary = temporary.as_ref().map(|folder| folder.path().to_owned());
        let policy = self.policy(mode, workspace, temporary.as_deref());
        let backend = sandbox.backend();
        Ok(Some(Confined { argv: sandbox.confine(&policy, argv), temporary, backend }))
    }

    fn policy(&self, mode: PermissionMode, workspace: &Path, temporary: Option<&Path>) -> Policy {
        let mut writable: Vec<PathBuf> = temporary.map(Path::to_owned).into_iter().collect();
        let mut read_only = self.options.read_only.clone();
        if mode == PermissionMode::WorkspaceWrite {
            writable.push(workspace.to_owned());
            read_only.extend(OF_WORKSPACE.map(|name| workspace.join(name)));
            let git = workspace.join(".git");
            if git.is_dir() {
                // A folder that is not there cannot be protected, and git makes it empty too. Where that is refused, a
                // command cannot make it either.
                let _ = std::fs::create_dir(git.join(OF_GIT[0]));
                read_only.extend(OF_GIT.map(|name| git.join(name)));
            }
        }
        Policy { writable, read_only, hidden: self.options.hidden.clone(), network: self.options.network }
    }
}

fn private_folder() -> std::io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("lorimer-").tempdir()?;
    // Rules hold for real paths.
    std::fs::canonicalize(folder.path()).map(|_| folder)
}
