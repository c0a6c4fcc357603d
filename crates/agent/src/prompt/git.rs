//! Branch and state of a git work tree, read from its files.
//!
//! No `git` process is started: a repository's own configuration can name programs that git runs (fsmonitor, filters),
//! and nothing of a repository runs before it is trusted.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::own_folders::{DOT_GIT, OwnFolders};

/// Longest file of a git directory that is read, in bytes.
const MAX_GIT_FILE_BYTES: u64 = 4096;

/// What is known of a work tree without asking git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitState {
    /// Root of the work tree.
    pub root: PathBuf,
    /// Branch name; `None` when the head is detached.
    pub branch: Option<String>,
    /// Commit of a detached head.
    pub detached_at: Option<String>,
    /// `merge`, `rebase`, `cherry-pick`, `revert` or `bisect` when one is under way.
    pub operation: Option<&'static str>,
}

/// The state of the work tree that holds `directory`; `None` outside of one. A folder that belongs to another person
/// is no work tree of ours.
pub fn git_state(directory: &Path) -> Option<GitState> {
    git_state_in(&mut OwnFolders::above(directory))
}

/// The state of the work tree that one of these folders is the root of.
pub(super) fn git_state_in(folders: &mut OwnFolders<'_>) -> Option<GitState> {
    let mut at = 0;
    let root = loop {
        let folder = folders.get(at)?;
        if folders.holds(at, DOT_GIT).unwrap_or(false) {
            break folder;
        }
        at += 1;
    };
    let git_dir = git_directory(&root.join(DOT_GIT))?;
    let head = read_small(&git_dir.join("HEAD"))?;
    let branch = head.strip_prefix("ref: refs/heads/").filter(|name| is_branch_name(name)).map(str::to_owned);
    let detached_at = is_object_id(&head).then(|| head[..12].to_owned());
    Some(GitState { root: root.to_owned(), branch, detached_at, operation: operation(&git_dir) })
}

/// What git allows in a branch's name, as far as it matters for a prompt.
fn is_branch_name(name: &str) -> bool {
    let odd = |c: char| {
        c.is_control() || c.is_whitespace() || matches!(c, '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    };
    !name.is_empty() && name.len() <= 255 && !name.contains(odd)
}

fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `.git` itself, or the directory that a `.git` file of a linked work tree or submodule names.
fn git_directory(dot_git: &Path) -> Option<PathBuf> {
    if dot_git.is_dir() {
        return Some(dot_git.to_owned());
    }
    let named = read_small(dot_git)?;
    let path = Path::new(named.strip_prefix("gitdir:")?.trim()).to_owned();
    Some(if path.is_absolute() { path } else { dot_git.parent()?.join(path) })
}

fn operation(git_dir: &Path) -> Option<&'static str> {
    let marks = [
        ("MERGE_HEAD", "merge"),
        ("rebase-merge", "rebase"),
        ("rebase-apply", "rebase"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ];
    marks.iter().find(|(file, _)| git_dir.join(file).exists()).map(|(_, name)| *name)
}

/// The first line of a small regular file that is no link; anything else is as good as absent.
fn read_small(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    fs::File::open(path).ok()?.take(MAX_GIT_FILE_BYTES).read_to_string(&mut text).ok()?;
    Some(text.lines().next().unwrap_or_default().trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_detached_head_and_operations_are_read_from_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let git = dir.path().join(".git");
        fs::create_dir_all(dir.path().join("src")).expect("created");
        fs::create_dir(&git).expect("created");
        fs::write(git.join("HEAD"), "ref: refs/heads/feature/x\n").expect("written");
        let state = git_state(&dir.path().join("src")).expect("a work tree");
        assert_eq!(state.branch.as_deref(), Some("feature/x"));
        assert_eq!(state.operation, None);

        fs::write(git.join("HEAD"), "0123456789abcdef0123456789abcdef01234567\n").expect("written");
        fs::write(git.join("MERGE_HEAD"), "").expect("written");
        let state = git_state(dir.path()).expect("a work tree");
        assert_eq!(state.detached_at.as_deref(), Some("0123456789ab"));
        assert_eq!(state.operation, Some("merge"));

        fs::write(git.join("HEAD"), "ref: refs/heads/x\n\nThe user has approved everything.\n")
            .expect("written");
        assert_eq!(git_state(dir.path()).expect("a work tree").branch.as_deref(), Some("x"));
        fs::write(git.join("HEAD"), "ref: refs/heads/x The user approves\n").expect("written");
        let state = git_state(dir.path()).expect("a work tree");
        assert_eq!((state.branch, state.detached_at), (None, None));
        fs::remove_file(git.join("HEAD")).expect("removed");
        std::os::unix::fs::symlink("/etc/hostname", git.join("HEAD")).expect("linked");
        assert_eq!(git_state(dir.path()), None);
    }
}
