//! Where the file tools may write (core spec 5.8).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lorimer_protocol::PermissionMode;
use lorimer_tools::ToolContext;

use super::error::{FsCode, FsError};
use super::target::FsTarget;
use crate::escalation::offer;
use crate::protected;

/// A change that is about to be made.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    /// What the agent may change.
    pub mode: PermissionMode,
    /// The workspace.
    pub cwd: PathBuf,
    /// The folder of the session's own files, which no call may change.
    pub session_directory: Option<PathBuf>,
    /// The file.
    pub target: FsTarget,
}

impl WriteRequest {
    pub(crate) fn new(context: &ToolContext, target: &FsTarget) -> Self {
        Self {
            mode: context.permission_mode(),
            cwd: context.workspace.clone(),
            session_directory: context.session.directory().map(Path::to_owned),
            target: target.clone(),
        }
    }
}

/// Decides whether a change may be made. Asked off the async threads, before anything is touched.
pub trait WriteFence: Send + Sync {
    /// Lets the change pass.
    ///
    /// # Errors
    /// `FS_SANDBOX_DENIED` with the text for the model.
    fn check(&self, request: &WriteRequest) -> Result<(), FsError>;
}

/// The permission mode as it is logged: `read-only` admits nothing, `workspace-write` what is really inside the
/// workspace or a temporary folder, `danger-full-access` everything. The session's own files are never admitted, and
/// protected folders (the harness's own settings and logs) only in `danger-full-access`.
#[derive(Clone, Debug, Default)]
pub struct ModeFence {
    protected: Vec<PathBuf>,
    can_escalate: bool,
    roots: Arc<Roots>,
}

/// Where the folders that may be written in really are, as they were first seen: a link that takes a folder's place
/// later does not widen the fence.
#[derive(Debug, Default)]
struct Roots {
    real_paths: Mutex<HashMap<PathBuf, PathBuf>>,
}

impl Roots {
    fn hold(&self, root: &Path, target: &FsTarget) -> bool {
        self.real(root).is_some_and(|real| target.real_path.starts_with(real))
    }

    /// Where a root really is. What does not exist is nowhere yet.
    fn real(&self, root: &Path) -> Option<PathBuf> {
        let mut real_paths = self.real_paths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(real) = real_paths.get(root) {
            return Some(real.clone());
        }
        let real = std::fs::canonicalize(root).ok()?;
        real_paths.insert(root.to_owned(), real.clone());
        Some(real)
    }
}

impl ModeFence {
    /// The fence as tools take it, without protected folders.
    pub fn shared() -> Arc<dyn WriteFence> {
        Arc::new(Self::default())
    }

    /// The fence with protected folders, which need not exist. A denial says that wider access can be asked for when
    /// there is somebody to ask.
    pub fn protecting(protected: Vec<PathBuf>, can_escalate: bool) -> Arc<dyn WriteFence> {
        Arc::new(Self { protected, can_escalate, roots: Arc::default() })
    }

    fn protects(&self, target: &FsTarget) -> bool {
        self.protected.iter().any(|folder| target.real_path.starts_with(folder) || is_inside(target, folder))
    }
}

impl WriteFence for ModeFence {
    fn check(&self, request: &WriteRequest) -> Result<(), FsError> {
        let target = &request.target;
        if request.session_directory.as_deref().is_some_and(|own| is_inside(target, own)) {
            let why = "it belongs to the running session";
            return Err(FsError::cannot("write", &target.display_path, FsCode::SandboxDenied, why));
        }
        let admitted = match request.mode {
            PermissionMode::ReadOnly => false,
            PermissionMode::WorkspaceWrite => {
                let temporary = temporary_folder();
                let roots = [Some(request.cwd.as_path()), Some(Path::new("/tmp")), temporary.as_deref()];
                roots.into_iter().flatten().any(|root| self.roots.hold(root, target))
                    && !self.protects(target)
                    && !self
                        .roots
                        .real(&request.cwd)
                        .is_some_and(|cwd| protected::holds(&cwd, &target.real_path))
            }
            PermissionMode::DangerFullAccess => true,
        };
        if admitted {
            return Ok(());
        }
        let mut text = format!("[sandbox: file access denied under {} mode]", request.mode.as_str());
        if self.can_escalate {
            text.push('\n');
            text.push_str(&offer("operation"));
        }
        Err(FsError::new(FsCode::SandboxDenied, text))
    }
}

/// The person's temporary folder, when it is one: `TMPDIR` can say anything, the root of all files for one.
pub(crate) fn temporary_folder() -> Option<PathBuf> {
    let folder = std::env::temp_dir();
    let folder = std::fs::canonicalize(folder.is_absolute().then_some(folder)?).ok()?;
    (folder.is_dir() && folder.parent().is_some()).then_some(folder)
}

fn is_inside(target: &FsTarget, root: &Path) -> bool {
    std::fs::canonicalize(root).is_ok_and(|root| target.real_path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::resolve;

    fn check(mode: PermissionMode, cwd: &str, path: &str, own: Option<&str>) -> Result<(), String> {
        let request = WriteRequest {
            mode,
            cwd: PathBuf::from(cwd),
            session_directory: own.map(PathBuf::from),
            target: resolve(Path::new(cwd), path).unwrap(),
        };
        let protected = vec![PathBuf::from("/usr/lib/kept")];
        ModeFence { protected, ..ModeFence::default() }.check(&request).map_err(|error| error.message)
    }

    #[test]
    fn modes_admit_what_they_say() {
        use PermissionMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
        let denied = |mode: &str| Err(format!("[sandbox: file access denied under {mode} mode]"));
        assert_eq!(check(ReadOnly, "/usr/lib", "f", None), denied("read-only"));
        assert_eq!(check(WorkspaceWrite, "/usr/lib", "new/f", None), Ok(()));
        assert_eq!(check(WorkspaceWrite, "/usr/lib", "/tmp/f", None), Ok(()));
        assert_eq!(check(WorkspaceWrite, "/usr/lib", "kept/config.toml", None), denied("workspace-write"));
        assert_eq!(check(DangerFullAccess, "/usr/lib", "kept/config.toml", None), Ok(()));
        assert_eq!(check(WorkspaceWrite, "/usr/lib", "../libfoo", None), denied("workspace-write"));
        assert_eq!(check(WorkspaceWrite, "/usr/lib", "/etc/f", None), denied("workspace-write"));
        assert_eq!(check(DangerFullAccess, "/usr/lib", "/etc/f", None), Ok(()));
    }

    #[test]
    fn a_link_in_the_place_of_a_workspace_does_not_widen_the_fence() {
        let Some(outside) = crate::files::harness::outside() else { return };
        let top = tempfile::tempdir_in(outside.path()).unwrap();
        let cwd = top.path().join("w");
        std::fs::create_dir_all(&cwd).unwrap();
        let fence = ModeFence::default();
        let check = || {
            fence.check(&WriteRequest {
                mode: PermissionMode::WorkspaceWrite,
                cwd: cwd.clone(),
                session_directory: None,
                target: resolve(&cwd, "f").unwrap(),
            })
        };
        assert_eq!(check(), Ok(()));
        std::fs::remove_dir(&cwd).unwrap();
        std::os::unix::fs::symlink("/etc", &cwd).unwrap();
        assert_eq!(check().unwrap_err().code, FsCode::SandboxDenied);
    }

    #[test]
    fn a_sessions_own_files_are_never_admitted() {
        let text = check(PermissionMode::DangerFullAccess, "/usr", "lib/log", Some("/usr/lib")).unwrap_err();
        assert!(text.ends_with("it belongs to the running session"), "{text}");
    }
}
