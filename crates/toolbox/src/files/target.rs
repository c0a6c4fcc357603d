//! Which file a path means.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use lorimer_tools::ToolError;

use super::error::{FsCode, FsError, io_text};

/// Longest chain of links whose end does not exist.
const MAX_DANGLING_LINKS: u32 = 40;

/// A file that a call names. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsTarget {
    /// Names the file in the log whatever path led to it: [`FsTarget::real_path`] as text.
    pub target_key: String,
    /// The absolute path for people and models; links are not resolved.
    pub display_path: String,
    /// Where the file really is, or would be: no link is on the way.
    pub real_path: PathBuf,
}

/// Refuses a path that is blank.
pub(crate) fn check_path(file_path: &str) -> Result<(), ToolError> {
    if file_path.trim().is_empty() {
        return Err(ToolError::plain("file_path must be a non-empty string"));
    }
    Ok(())
}

/// The file that `file_path` means in the workspace `cwd`.
///
/// # Errors
/// When a parent is not a folder, or the system does not let us look.
pub(crate) fn resolve(cwd: &Path, file_path: &str) -> Result<FsTarget, FsError> {
    let absolute = lossy_sibling(normalize(&cwd.join(file_path)));
    let display_path = absolute.to_string_lossy().into_owned();
    let real_path = real_path(&absolute, MAX_DANGLING_LINKS).map_err(|error| match error.kind() {
        io::ErrorKind::NotADirectory => FsError::cannot(
            "resolve",
            &display_path,
            FsCode::NotFound,
            "a parent path segment is not a directory",
        ),
        io::ErrorKind::PermissionDenied => {
            FsError::cannot("resolve", &display_path, FsCode::PermissionDenied, "permission denied")
        }
        _ => FsError::cannot("resolve", &display_path, FsCode::IoError, io_text(&error)),
    })?;
    Ok(FsTarget { target_key: real_path.to_string_lossy().into_owned(), display_path, real_path })
}

/// Takes `.`, `..` and doubled separators out of an absolute path without looking at the disk.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// A file whose name is not UTF-8 is shown with replacement characters; given back like that it means the one file
/// of its folder that is shown so.
fn lossy_sibling(path: PathBuf) -> PathBuf {
    let shown = path.file_name().and_then(OsStr::to_str).filter(|name| name.contains('\u{fffd}'));
    let (Some(shown), Some(parent)) = (shown, path.parent()) else {
        return path;
    };
    if path.symlink_metadata().is_ok() {
        return path;
    }
    let mut same = std::fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy() == shown);
    match (same.next(), same.next()) {
        (Some(only), None) => parent.join(only),
        _ => path,
    }
}

/// The path without links. What does not exist is appended to the real path of what does; a link to nothing leads to
/// where its target would be.
fn real_path(path: &Path, links_left: u32) -> io::Result<PathBuf> {
    match std::fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let parent = real_path(parent, links_left)?;
    match std::fs::read_link(parent.join(name)) {
        Ok(_) if links_left == 0 => Err(io::Error::from_raw_os_error(libc::ELOOP)),
        Ok(target) => real_path(&parent.join(target), links_left - 1),
        Err(_) => Ok(parent.join(name)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        (folder, real)
    }

    #[test]
    fn paths_are_taken_from_the_workspace() {
        let (_guard, root) = folder();
        std::fs::create_dir(root.join("d")).unwrap();
        for given in ["d/f", "./d//f", "d/../d/f", &root.join("d/f").to_string_lossy()] {
            let target = resolve(&root, given).unwrap();
            assert_eq!(target.real_path, root.join("d/f"), "{given}");
            assert_eq!(target.display_path, root.join("d/f").to_string_lossy());
        }
    }

    #[test]
    fn links_are_resolved_in_the_key_only() {
        let (_guard, root) = folder();
        std::fs::write(root.join("f"), "").unwrap();
        symlink("f", root.join("link")).unwrap();
        symlink("missing/new", root.join("dangling")).unwrap();
        symlink("round", root.join("round")).unwrap();
        let target = resolve(&root, "link").unwrap();
        assert_eq!(target.real_path, root.join("f"));
        assert_eq!(target.display_path, root.join("link").to_string_lossy());
        assert_eq!(resolve(&root, "dangling").unwrap().real_path, root.join("missing/new"));
        assert_eq!(resolve(&root, "a/b/c").unwrap().real_path, root.join("a/b/c"));
        assert_eq!(resolve(&root, "round").unwrap_err().code, FsCode::IoError);
    }

    #[test]
    fn a_file_is_no_parent() {
        let (_guard, root) = folder();
        std::fs::write(root.join("f"), "").unwrap();
        let error = resolve(&root, "f/x").unwrap_err();
        let path = root.join("f/x");
        assert_eq!(error.code, FsCode::NotFound);
        assert_eq!(
            error.message,
            format!("cannot resolve \"{}\": a parent path segment is not a directory", path.display())
        );
    }

    #[test]
    fn a_name_that_is_not_utf8_can_be_given_back() {
        let (_guard, root) = folder();
        let name = OsStr::from_bytes(b"bad\xffname");
        std::fs::write(root.join(name), "").unwrap();
        assert_eq!(resolve(&root, "bad\u{fffd}name").unwrap().real_path, root.join(name));
        std::fs::write(root.join(OsStr::from_bytes(b"bad\xfename")), "").unwrap();
        assert_eq!(resolve(&root, "bad\u{fffd}name").unwrap().real_path, root.join("bad\u{fffd}name"));
    }
}
