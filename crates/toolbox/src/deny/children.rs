//! Which denied paths exist: what is hidden from a command.

use std::path::{Path, PathBuf};

use super::rule::Rule;

/// Most entries of folders that are looked at for one command.
const MAX_WALKED_ENTRIES: usize = 500_000;

/// Most paths that are hidden from one command; each is a mount.
const MAX_HIDDEN_PATHS: usize = 1000;

/// The real paths that exist and match.
pub(super) fn existing(rules: &[&Rule]) -> Result<Vec<PathBuf>, String> {
    let mut walk = Walk { rules, walked: 0, found: Vec::new() };
    for rule in rules.iter().filter(|rule| rule.is_whole()) {
        rule.below.iter().for_each(|path| walk.take(path));
    }
    for start in starts(rules) {
        walk.folder(start)?;
    }
    let mut found = walk.found;
    found.sort();
    found.dedup();
    // What is in a hidden folder is hidden with it.
    let mut outermost: Vec<PathBuf> = Vec::new();
    for path in found {
        if outermost.last().is_none_or(|above| !path.starts_with(above)) {
            outermost.push(path);
        }
    }
    if outermost.len() > MAX_HIDDEN_PATHS {
        return Err(format!(
            "they are about {} paths, and {MAX_HIDDEN_PATHS} can be hidden from a command; deny whole folders",
            outermost.len()
        ));
    }
    Ok(outermost)
}

/// The folders to look through, none inside another.
fn starts<'a>(rules: &[&'a Rule]) -> Vec<&'a Path> {
    let searched = rules.iter().filter(|rule| !rule.is_whole());
    let mut starts: Vec<&Path> = searched.flat_map(|rule| rule.below.iter().map(PathBuf::as_path)).collect();
    starts.sort();
    let mut outermost: Vec<&Path> = Vec::new();
    for start in starts {
        if outermost.last().is_none_or(|above| !start.starts_with(above)) {
            outermost.push(start);
        }
    }
    outermost
}

struct Walk<'a> {
    rules: &'a [&'a Rule],
    walked: usize,
    found: Vec<PathBuf>,
}

impl Walk<'_> {
    fn folder(&mut self, start: &Path) -> Result<(), String> {
        let mut waiting = vec![start.to_owned()];
        while let Some(folder) = waiting.pop() {
            // What this person cannot list, a command cannot list either.
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                self.walked += 1;
                if self.walked > MAX_WALKED_ENTRIES {
                    return Err(format!(
                        "finding what they are about takes a look at more than {MAX_WALKED_ENTRIES} files below {}; \
                         let their patterns begin with the names of folders",
                        start.display()
                    ));
                }
                let path = entry.path();
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if self.rules.iter().any(|rule| rule.matches_first(&path))
                    || (is_folder && self.rules.iter().any(|rule| rule.takes_content_of(&path)))
                {
                    self.take(&path);
                } else if is_folder {
                    waiting.push(path);
                }
            }
        }
        Ok(())
    }

    /// A link is hidden by hiding what it leads to.
    fn take(&mut self, path: &Path) {
        self.found.extend(std::fs::canonicalize(path));
    }
}
