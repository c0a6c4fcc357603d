//! Where a search starts, and how what it finds is named.

use std::path::{Component, Path, PathBuf};

use lorimer_tools::ToolError;

use super::failure;
use crate::deny::{DenyRules, refusal};
use crate::files::{is_of_this_process, normalize};

/// The start of a search.
#[derive(Clone, Debug)]
pub(super) struct Place {
    cwd: PathBuf,
    argument: Option<PathBuf>,
    root: PathBuf,
    /// Where the root really is.
    real_root: PathBuf,
    is_directory: bool,
}

impl Place {
    /// The place that a `path` argument names, or the workspace.
    ///
    /// # Errors
    /// When it is not there, cannot be looked at, or is neither a file nor a directory.
    pub(super) fn resolve(tool: &str, cwd: &Path, argument: Option<&str>) -> Result<Self, ToolError> {
        let root = argument.map_or_else(|| cwd.to_owned(), |path| cwd.join(path));
        let shown = argument.unwrap_or(".");
        let metadata =
            std::fs::metadata(&root).map_err(|why| failure::failed(tool, format!("{shown}: {why}")))?;
        if !metadata.is_dir() && !metadata.is_file() {
            return Err(failure::failed(tool, format!("{shown}: not a regular file or directory")));
        }
        let real_root = std::fs::canonicalize(&root).unwrap_or_else(|_| root.clone());
        if is_of_this_process(&real_root) {
            return Err(failure::failed(tool, format!("{shown}: it belongs to the harness itself")));
        }
        Ok(Self {
            cwd: cwd.to_owned(),
            argument: argument.map(PathBuf::from),
            root,
            real_root,
            is_directory: metadata.is_dir(),
        })
    }

    /// The workspace, to which globs are anchored.
    pub(super) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The absolute path of the start.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where something that a walk came upon really is. A walk follows no links, so only the start may be elsewhere.
    pub(super) fn real_path_of(&self, found: &Path) -> PathBuf {
        match found.strip_prefix(&self.root) {
            Ok(rest) if !rest.as_os_str().is_empty() => self.real_root.join(rest),
            _ => self.real_root.clone(),
        }
    }

    /// Refuses a start that deny rules keep a tool from.
    pub(super) fn check(&self, tool: &str, deny: &DenyRules) -> Result<(), ToolError> {
        let names = [normalize(&self.root), self.real_root.clone()];
        match names.iter().find_map(|path| deny.denying(tool, path)) {
            Some(pattern) => Err(refusal(tool, &names[0].to_string_lossy(), pattern).into()),
            None => Ok(()),
        }
    }

    /// Whether the start is a directory.
    pub(super) fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// The start's name in the output.
    pub(super) fn root_name(&self) -> String {
        match &self.argument {
            None => ".".to_owned(),
            Some(_) => self.name_of(&self.root),
        }
    }

    /// The name of something at or under the start: relative to the workspace inside of it, else as the argument
    /// leads to it. Bytes that are not UTF-8 become U+FFFD.
    pub(super) fn name_of(&self, found: &Path) -> String {
        let named = match &self.argument {
            Some(argument) if argument.is_relative() => beneath(argument, &self.root, found),
            _ => inside(&self.cwd, found),
        };
        named.to_string_lossy().into_owned()
    }
}

fn beneath(argument: &Path, root: &Path, found: &Path) -> PathBuf {
    match found.strip_prefix(root) {
        Ok(rest) if rest.as_os_str().is_empty() => argument.to_owned(),
        Ok(rest) => argument.join(rest),
        Err(_) => found.to_owned(),
    }
}

fn inside(cwd: &Path, found: &Path) -> PathBuf {
    match found.strip_prefix(cwd) {
        Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from("."),
        Ok(rest) if rest.components().all(|part| part != Component::ParentDir) => rest.to_owned(),
        _ => found.to_owned(),
    }
}

/// The first segment of a path below the root; both are names as in the output.
pub(super) fn top_level<'a>(root: &str, path: &'a str) -> &'a str {
    let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path));
    let first = below.components().find(|part| *part != Component::CurDir);
    first.and_then(|part| part.as_os_str().to_str()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(argument: Option<&str>) -> Place {
        let cwd = PathBuf::from("/w");
        let root = argument.map_or_else(|| cwd.clone(), |path| cwd.join(path));
        let real_root = root.clone();
        Place { cwd, argument: argument.map(PathBuf::from), root, real_root, is_directory: true }
    }

    #[test]
    fn names_follow_the_argument() {
        let named = |argument: Option<&str>, found: &str| place(argument).name_of(Path::new(found));
        assert_eq!(named(None, "/w/src/a"), "src/a");
        assert_eq!(named(Some("src"), "/w/src/a"), "src/a");
        assert_eq!(named(Some("src/"), "/w/src/a"), "src/a");
        assert_eq!(named(Some("."), "/w/./a"), "./a");
        assert_eq!(named(Some("../x"), "/w/../x/a"), "../x/a");
        assert_eq!(named(Some("/w/src"), "/w/src/a"), "src/a");
        assert_eq!(named(Some("/x"), "/x/a"), "/x/a");
        assert_eq!(named(Some("/w/../x"), "/w/../x/a"), "/w/../x/a");
        assert_eq!(named(Some("src/a"), "/w/src/a"), "src/a");
    }

    #[test]
    fn the_root_has_a_name() {
        assert_eq!(place(None).root_name(), ".");
        assert_eq!(place(Some("/w")).root_name(), ".");
        assert_eq!(place(Some("/w/src")).root_name(), "src");
        assert_eq!(place(Some("src")).root_name(), "src");
        assert_eq!(place(Some("/x")).root_name(), "/x");
    }

    #[test]
    fn the_top_level_is_below_the_root() {
        assert_eq!(top_level(".", "src/a"), "src");
        assert_eq!(top_level(".", "./src/a"), "src");
        assert_eq!(top_level("src", "src/a/b"), "a");
        assert_eq!(top_level("/x", "/x/a/b"), "a");
        assert_eq!(top_level("src", "src"), "src");
        assert_eq!(top_level(".", "a"), "a");
    }
}
