//! The folders whose instruction files count.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::super::own_folders::OwnFolders;
use super::InstructionOptions;

/// The one file name that counts in the home.
const HOME_NAMES: [&str; 1] = ["AGENTS.md"];

/// The project's root and the folders below the workspace that were worked in.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    root: Option<PathBuf>,
    /// By depth, then name: a parent comes before what is in it.
    nested: BTreeSet<(usize, PathBuf)>,
}

/// A folder with the names that are looked for in it.
pub(super) struct Scope<'a> {
    pub folder: PathBuf,
    /// What is read from here has its real place inside this folder.
    pub boundary: &'a Path,
    pub names: Vec<&'a str>,
}

impl Scopes {
    /// The nearest ancestor with a marker, else the workspace itself. Where that cannot be told, the last root stays. A
    /// folder that somebody else could have put there is no project of ours.
    pub fn find_root(&mut self, options: &InstructionOptions, cwd: &Path, own: &mut OwnFolders<'_>) {
        let mut at = 0;
        while let Some(folder) = own.get(at) {
            for marker in &options.project_root_markers {
                match own.holds(at, marker) {
                    Ok(true) => {
                        self.root = Some(folder.to_owned());
                        return;
                    }
                    Err(_) if self.root.is_some() => return,
                    Ok(false) | Err(_) => {}
                }
            }
            at += 1;
        }
        self.root = Some(cwd.to_owned());
    }

    /// The project's root.
    pub fn root<'a>(&'a self, cwd: &'a Path) -> &'a Path {
        self.root.as_deref().unwrap_or(cwd)
    }

    /// Adds the folders on the way to files that were worked on.
    pub fn add_touched(&mut self, cwd: &Path, starts_at: &Path, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        let Ok(real_cwd) = fs::canonicalize(cwd) else { return };
        for path in paths {
            if let Some(folder) = real_folder(&starts_at.join(path))
                && let Ok(relative) = folder.strip_prefix(&real_cwd)
            {
                self.add_below(cwd, relative);
            }
        }
    }

    /// Adds folders that instructions were told for, when they are below the workspace.
    pub fn add_told<'a>(&mut self, cwd: &Path, scopes: impl Iterator<Item = &'a str>) {
        for scope in scopes {
            if let Ok(relative) = Path::new(scope).strip_prefix(cwd) {
                self.add_below(cwd, relative);
            }
        }
    }

    fn add_below(&mut self, cwd: &Path, relative: &Path) {
        if !relative.components().all(|part| matches!(part, Component::Normal(_))) {
            return;
        }
        let above = relative.ancestors().filter(|part| !part.as_os_str().is_empty());
        self.nested.extend(above.map(|part| (part.components().count(), cwd.join(part))));
    }

    /// Every folder, broadest first.
    pub fn list<'a>(&'a self, options: &'a InstructionOptions, cwd: &'a Path) -> Vec<Scope<'a>> {
        let root = self.root(cwd);
        let names: Vec<&str> = options.candidates.iter().map(String::as_str).collect();
        let home = options.home.iter().map(|home| Scope {
            folder: home.clone(),
            boundary: home,
            names: HOME_NAMES.to_vec(),
        });
        let mut above: Vec<&Path> = cwd.ancestors().take_while(|folder| folder.starts_with(root)).collect();
        above.reverse();
        let below = self.nested.iter().map(|(_, folder)| folder.as_path());
        let project = above.into_iter().chain(below).map(|folder| Scope {
            folder: folder.to_owned(),
            boundary: root,
            names: names.clone(),
        });
        home.chain(project).collect()
    }

    /// Whether a file's folder is one of them.
    pub fn contains(&self, options: &InstructionOptions, path: &Path) -> bool {
        let in_project = self.root.as_ref().is_some_and(|root| path.starts_with(root));
        in_project || options.home.as_ref().is_some_and(|home| path.parent() == Some(home))
    }
}

/// The real folder of a file. The file may be gone again; a link that leads nowhere has none.
fn real_folder(path: &Path) -> Option<PathBuf> {
    match fs::canonicalize(path) {
        Ok(real) => real.parent().map(Path::to_owned),
        Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => {
            fs::canonicalize(path.parent()?).ok()
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(scopes: &Scopes, cwd: &Path) -> Vec<String> {
        let options = InstructionOptions::default();
        let list = scopes.list(&options, cwd).into_iter().map(|scope| scope.folder);
        let relative = list.map(|folder| folder.strip_prefix(cwd).map(Path::to_owned).unwrap_or(folder));
        relative.map(|folder| folder.display().to_string()).collect()
    }

    #[test]
    fn broader_folders_come_first_and_nothing_outside_is_added() {
        let dir = tempfile::tempdir().expect("a directory");
        let cwd = dir.path();
        fs::create_dir_all(cwd.join("b/c/d")).expect("created");
        fs::create_dir(cwd.join("z")).expect("created");
        std::os::unix::fs::symlink("/nowhere/file", cwd.join("b/dangling")).expect("linked");
        let mut scopes = Scopes { root: Some(cwd.to_owned()), ..Scopes::default() };
        let paths = ["b/c/d/new", "z/gone", "../x", "/etc/hostname", "b/dangling", "no/such/folder"];
        scopes.add_touched(cwd, cwd, &paths.map(str::to_owned));
        assert_eq!(folders(&scopes, cwd), ["", "b", "z", "b/c", "b/c/d"]);
        let told = [cwd.join("y"), cwd.join("../out"), PathBuf::from("/etc"), cwd.to_owned()];
        let told: Vec<String> = told.iter().map(|scope| scope.display().to_string()).collect();
        scopes.add_told(cwd, told.iter().map(String::as_str));
        assert_eq!(folders(&scopes, cwd), ["", "b", "y", "z", "b/c", "b/c/d"]);
    }
}
