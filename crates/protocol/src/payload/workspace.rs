//! What the agent may touch, where it works, and what it has seen of files.

use serde::{Deserialize, Serialize};

/// `sandbox/mode`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SandboxModeEvent {
    /// The mode from here on.
    pub mode: PermissionMode,
    /// `delegation` when inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// What the agent may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Nothing.
    ReadOnly,
    /// Files of the workspace and of temporary folders.
    #[default]
    WorkspaceWrite,
    /// Anything the person may.
    DangerFullAccess,
}

impl PermissionMode {
    /// The mode's name on the command line and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }
}

impl std::str::FromStr for PermissionMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::ReadOnly, Self::WorkspaceWrite, Self::DangerFullAccess]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| format!("\"{text}\" is not one of read-only, workspace-write, danger-full-access"))
    }
}

/// `working-directory/change`: where relative paths and commands start from here on. A type of a later DSH, so it is
/// written as ignorable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkingDirectoryChange {
    /// An absolute path.
    pub cwd: String,
}

/// `lorimer/fs-observed`: the model has seen (or not found) a file. DSH keeps this in memory only; as an event it
/// survives a resume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FsObserved {
    /// The file's real path (of the nearest existing ancestor plus the rest, when it is missing).
    pub target_key: String,
    /// What was seen.
    pub observation: FsObservation,
}

/// What was seen of a file. Tagged by `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum FsObservation {
    /// It was there in this version.
    Present {
        /// `dev:ino:size:mtimeNs:ctimeNs`.
        version: String,
    },
    /// It was not there.
    Absent,
}
