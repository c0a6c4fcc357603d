//! Which folders' own configuration counts.
//!
//! Trust is bound to the folder and to the content of its configuration: a changed file is not trusted any more.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::exit::CommandError;
use crate::settings::FILE_NAME;

const STORE_NAME: &str = "trusted.json";

/// The configuration of a workspace, and whether it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceConfig {
    /// There is none.
    Absent,
    /// There is one that counts.
    Trusted(PathBuf),
    /// There is one that does not.
    Untrusted(PathBuf),
}

/// Looks for a workspace's configuration. `for_this_run` trusts it without storing that.
pub fn workspace_config(home: &Path, workspace: &Path, for_this_run: bool) -> WorkspaceConfig {
    let file = workspace.join(".lorimer").join(FILE_NAME);
    // A workspace that is the parent of the home has the home's own file there.
    if !file.is_file()
        || std::fs::canonicalize(&file).ok() == std::fs::canonicalize(home.join(FILE_NAME)).ok()
    {
        return WorkspaceConfig::Absent;
    }
    let trusted = digest(&file).is_some_and(|digest| stored(home).get(&key(workspace)) == Some(&digest));
    if for_this_run || trusted { WorkspaceConfig::Trusted(file) } else { WorkspaceConfig::Untrusted(file) }
}

/// Trusts a folder's configuration as it is now, or takes the trust back.
///
/// # Errors
/// When there is no configuration to trust, or the store cannot be written.
pub fn set_trust(home: &Path, workspace: &Path, trust: bool) -> Result<(), CommandError> {
    let mut all = stored(home);
    if trust {
        let file = workspace.join(".lorimer").join(FILE_NAME);
        let digest = digest(&file)
            .ok_or_else(|| CommandError::usage(format!("there is no {} to trust", file.display())))?;
        all.insert(key(workspace), digest);
    } else {
        all.remove(&key(workspace));
    }
    let path = home.join(STORE_NAME);
    let text = serde_json::to_string_pretty(&all).unwrap_or_default();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| CommandError::failed(format!("cannot write {}: {error}", path.display())))
}

fn key(workspace: &Path) -> String {
    workspace.to_string_lossy().into_owned()
}

fn stored(home: &Path) -> BTreeMap<String, String> {
    // A store that cannot be read trusts nothing.
    std::fs::read_to_string(home.join(STORE_NAME))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

fn digest(file: &Path) -> Option<String> {
    let bytes = std::fs::read(file).ok()?;
    let mut text = String::new();
    for byte in Sha256::digest(&bytes) {
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}
