//! The folders above a directory that nobody else could have put there.

use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Ancestors, Path};

/// What makes a folder the root of a work tree.
pub(super) const DOT_GIT: &str = ".git";

/// A directory and its ancestors, up to the first one that somebody else could have put there. Each is looked at once,
/// when it is first asked for, so this is good for one step.
pub(crate) struct OwnFolders<'a> {
    directory: &'a Path,
    /// Those that were not looked at; none once a folder was not ours.
    rest: Ancestors<'a>,
    owner: Option<u32>,
    seen: Vec<Folder<'a>>,
}

struct Folder<'a> {
    path: &'a Path,
    dot_git: Option<Result<bool, ErrorKind>>,
}

impl<'a> OwnFolders<'a> {
    /// The folders from `directory` upwards.
    pub fn above(directory: &'a Path) -> Self {
        Self { directory, rest: directory.ancestors(), owner: None, seen: Vec::new() }
    }

    /// The folder that is `at` levels above the directory.
    pub fn get(&mut self, at: usize) -> Option<&'a Path> {
        while self.seen.len() <= at {
            let path = self.rest.next()?;
            if !fs::metadata(path).is_ok_and(|metadata| self.is_own(path, &metadata)) {
                self.rest = Path::new("").ancestors();
                self.rest.next();
                return None;
            }
            self.seen.push(Folder { path, dot_git: None });
        }
        Some(self.seen[at].path)
    }

    fn is_own(&mut self, path: &Path, metadata: &Metadata) -> bool {
        let owner = *self.owner.get_or_insert(metadata.uid());
        let shared = metadata.mode() & 0o002 != 0;
        (metadata.uid() == owner || metadata.uid() == 0) && (path == self.directory || !shared)
    }

    /// Whether something of this name is in the folder `at` levels above the directory.
    pub fn holds(&mut self, at: usize, name: &str) -> io::Result<bool> {
        let Some(folder) = self.seen.get_mut(at) else {
            return Ok(false);
        };
        let look = || folder.path.join(name).try_exists();
        if name != DOT_GIT {
            return look();
        }
        let seen = match folder.dot_git {
            Some(seen) => seen,
            None => *folder.dot_git.insert(look().map_err(|error| error.kind())),
        };
        seen.map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_all_may_write_ends_them_unless_it_is_the_first() {
        let top = tempfile::tempdir().expect("a directory");
        let (shared, inner) = (top.path().join("shared"), top.path().join("shared/inner"));
        fs::create_dir_all(&inner).expect("created");
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).expect("set");
        let mut folders = OwnFolders::above(&inner);
        assert_eq!((folders.get(1), folders.get(0), folders.get(2)), (None, Some(inner.as_path()), None));
        let mut folders = OwnFolders::above(&shared);
        assert_eq!((folders.get(0), folders.get(1)), (Some(shared.as_path()), Some(top.path())));
    }

    #[test]
    fn a_folder_is_looked_at_once() {
        let top = tempfile::tempdir().expect("a directory");
        let mut folders = OwnFolders::above(top.path());
        assert_eq!(folders.get(0), Some(top.path()));
        assert!(!folders.holds(0, DOT_GIT).expect("seen"));
        fs::create_dir(top.path().join(DOT_GIT)).expect("created");
        fs::create_dir(top.path().join("other")).expect("created");
        assert!(!folders.holds(0, DOT_GIT).expect("seen"));
        assert!(folders.holds(0, "other").expect("seen"));
        assert!(!folders.holds(99, DOT_GIT).expect("nothing is there"));
    }
}
