//! Keeps a complete result in a file that the model can read later.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use lorimer_tools::ToolContext;

/// What a stored result's pointer says.
const RETRIEVAL_HINT: &str = "Use read with offset/limit, or grep this path to search within it.";
/// Hexadecimal digits that make a file's name its own.
const UNIQUE_DIGITS: usize = 12;

/// The folder for a call's results: that of a saved session, for calls that the model made itself.
pub(super) fn folder(context: &ToolContext) -> Option<PathBuf> {
    match context.parent {
        None => context.session.directory().map(|directory| directory.join("files")),
        Some(_) => None,
    }
}

/// Writes a private file and returns its path; `None` when that fails, which costs the model nothing but the pointer.
pub(super) fn save(folder: Option<&Path>, name: &str, text: &str) -> Option<String> {
    let folder = folder?;
    // A path that cannot be written down would not lead anywhere.
    folder.to_str()?;
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let path = folder.join(format!("{}-{name}", &unique[..UNIQUE_DIGITS]));
    match write(folder, &path, text) {
        Ok(()) => path.to_str().map(str::to_owned),
        Err(_) => {
            // Half a result must not be taken for a whole one; it may also never have been there.
            let _ = std::fs::remove_file(&path);
            None
        }
    }
}

fn write(folder: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// The sentence that points to a stored result.
pub(super) fn pointer(what: &str, locator: &str) -> String {
    format!("{what} stored at: {locator}. {RETRIEVAL_HINT}")
}
