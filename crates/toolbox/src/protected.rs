//! What stays as it is inside a workspace, for tools and for commands: what git and shells run, and our own
//! configuration.

use std::path::{Component, Path, PathBuf};

/// Inside a repository's `.git`: what makes git run programs.
const OF_GIT: [&str; 3] = ["hooks", "config", "config.worktree"];
/// In a workspace: what a shell runs when it starts, git's configuration of a person, and our own.
const OF_WORKSPACE: [&str; 20] = [
    ".lorimer",
    ".bashrc",
    ".bash_aliases",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".gitconfig",
    ".ssh",
    ".config/fish",
    ".config/git",
];

/// The paths of a workspace that a command must leave as they are.
pub(crate) fn paths_of(workspace: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = OF_WORKSPACE.iter().map(|name| workspace.join(name)).collect();
    let git = workspace.join(".git");
    if git.is_dir() {
        // A folder that is not there cannot be protected, and git makes it empty too. Where that is refused, a command
        // cannot make it either.
        let _ = std::fs::create_dir(git.join(OF_GIT[0]));
        paths.extend(OF_GIT.map(|name| git.join(name)));
    } else {
        // Of a work tree: the file that says where its repository is.
        paths.push(git);
    }
    paths
}

/// Whether a file tool must leave a real path of a real workspace as it is. Inside of `.git` it has nothing to do at all.
pub(crate) fn holds(workspace: &Path, path: &Path) -> bool {
    let Ok(relative) = path.strip_prefix(workspace) else { return false };
    relative.components().any(|part| part == Component::Normal(".git".as_ref()))
        || OF_WORKSPACE.iter().any(|name| relative.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_by_itself_is_protected() {
        let holds = |path: &str| holds(Path::new("/w"), Path::new(path));
        for path in [
            "/w/.git/hooks/pre-commit",
            "/w/.git",
            "/w/sub/.git/config",
            "/w/.lorimer/config.toml",
            "/w/.bashrc",
        ] {
            assert!(holds(path), "{path}");
        }
        for path in ["/w/.github/x", "/w/src/.bashrc", "/w/.gitignore", "/elsewhere/.git/config"] {
            assert!(!holds(path), "{path}");
        }
    }
}
