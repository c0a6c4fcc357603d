//! The files of the workspace, as far as the listings show them.

use std::collections::{BTreeMap, BTreeSet};

use super::ignored::{IgnoreRules, Skipped};
use super::kinds::{Kind, Language, kind_of};
use super::limits::MAX_MEASURED_FILES;
use super::places::depth;
use super::survey::Survey;

/// Where the root keeps its ignore rules.
pub(super) const IGNORE_FILE: &str = ".gitignore";

/// The files of the workspace, as far as the listings show them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inventory {
    /// Files that are looked at, by path.
    pub(super) files: BTreeMap<String, Kind>,
    /// Files that `read` found not to be text, whatever their names say.
    pub(super) not_text: BTreeSet<String>,
    /// The outermost folders that are passed over.
    pub(super) skipped_folders: BTreeSet<String>,
    /// Single files that are passed over.
    pub(super) skipped_files: usize,
    /// Folders below a cut listing that were not listed themselves, the shallow ones first.
    pub(super) unlisted_folders: Vec<String>,
}

impl Inventory {
    /// Sorts out every path that was listed.
    pub(super) fn of(survey: &Survey) -> Self {
        let rules = survey.extract(IGNORE_FILE).map(|extract| IgnoreRules::parse(&extract.lines));
        let rules = rules.unwrap_or_default();
        let mut inventory = Self { not_text: survey.not_text(), ..Self::default() };
        let mut ignored_files = BTreeSet::new();
        let mut open = BTreeSet::new();
        for (folder, listing) in &survey.listings {
            let Ok(listing) = listing else { continue };
            for path in &listing.paths {
                match rules.skipped(path) {
                    Some(Skipped::Folder(at)) => drop(inventory.skipped_folders.insert(at.to_owned())),
                    Some(Skipped::File) => drop(ignored_files.insert(path.as_str())),
                    None => {
                        inventory.files.entry(path.clone()).or_insert_with(|| kind_of(path));
                        open.extend(listing.cut.then(|| child_folder(folder, path)).flatten());
                    }
                }
            }
        }
        inventory.skipped_files = ignored_files.len();
        open.retain(|folder| !survey.listings.contains_key(*folder));
        inventory.unlisted_folders = open.into_iter().map(str::to_owned).collect();
        inventory.unlisted_folders.sort_by_key(|folder| depth(folder));
        inventory
    }

    /// The text files with their languages.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, Language)> {
        self.named_texts().filter(|(path, _)| !self.not_text.contains(*path))
    }

    /// The files that are text by their names.
    fn named_texts(&self) -> impl Iterator<Item = (&str, Language)> {
        self.files.iter().filter_map(|(path, kind)| match kind {
            Kind::Text(language) => Some((path.as_str(), *language)),
            _ => None,
        })
    }

    /// The text files whose lines are to be counted: programs first, then by path, within the limit.
    pub(super) fn to_measure(&self) -> Vec<&str> {
        let mut texts: Vec<_> = self.named_texts().collect();
        texts.sort_by_key(|&(path, language)| (language.rank, path));
        texts.into_iter().take(MAX_MEASURED_FILES).map(|(path, _)| path).collect()
    }
}

/// The folder right below `folder` in which `path` lies; `None` when it lies directly in `folder`.
fn child_folder<'a>(folder: &str, path: &'a str) -> Option<&'a str> {
    let below = match folder {
        "" => path,
        _ => path.strip_prefix(folder)?.strip_prefix('/')?,
    };
    let (name, _) = below.split_once('/')?;
    path.get(..path.len() - below.len() + name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_folders_are_one_step_below() {
        assert_eq!(child_folder("", "src/a/b.rs"), Some("src"));
        assert_eq!(child_folder("src", "src/a/b.rs"), Some("src/a"));
        assert_eq!(child_folder("src/a", "src/a/b.rs"), None);
        assert_eq!(child_folder("sr", "src/a/b.rs"), None);
        assert_eq!(child_folder("", "top.md"), None);
    }
}
