//! What differs between the files and what was told.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::files::{Instruction, Probe};
use super::told::Told;

/// The files of a step, broadest first.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub present: Vec<Arc<Instruction>>,
    /// Paths about which nothing can be said.
    hidden: HashSet<String>,
    seen: HashSet<String>,
}

impl Found {
    /// Takes one file in, unless its text is already there from the same folder: CLAUDE.md is often a link to
    /// AGENTS.md. `digests` are those of the folder.
    pub fn take(&mut self, path: &Path, probe: Probe, told: &Told, digests: &mut Vec<String>) {
        if matches!(probe, Probe::Absent) {
            return;
        }
        let path = path.to_string_lossy().into_owned();
        // The workspace may be the home.
        if !self.seen.insert(path.clone()) {
            return;
        }
        match probe {
            Probe::Absent => {}
            Probe::Present(one) if !digests.contains(&one.digest) => {
                digests.push(one.digest.clone());
                self.present.push(one);
            }
            Probe::Present(_) => {}
            Probe::Hidden => {
                digests.extend(told.digest(&path).map(str::to_owned));
                self.hidden.insert(path);
            }
        }
    }
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Set,
    Replace,
    Remove,
}

impl Action {
    /// As messages carry it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Replace => "replace",
            Self::Remove => "remove",
        }
    }
}

/// One file's change.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub action: Action,
    pub scope: String,
    pub path: String,
    pub digest: String,
    /// Empty for what is removed.
    pub text: String,
}

/// Everything, as if nothing had been told.
pub(super) fn baseline_changes(found: &Found) -> Vec<Change> {
    found.present.iter().map(|one| change(Action::Set, one)).collect()
}

/// What was told and is so no more, then what is new or changed.
pub(super) fn update_changes(found: &Found, told: &Told) -> Vec<Change> {
    let present: HashSet<&str> = found.present.iter().map(|one| one.path.as_str()).collect();
    let gone = told.paths().filter(|path| !present.contains(path) && !found.hidden.contains(*path));
    let removed = gone.map(|path| Change {
        action: Action::Remove,
        scope: told.scope(path).unwrap_or_default().to_owned(),
        path: path.to_owned(),
        digest: told.digest(path).unwrap_or_default().to_owned(),
        text: String::new(),
    });
    let new = found.present.iter().filter_map(|one| match told.digest(&one.path) {
        None => Some(change(Action::Set, one)),
        Some(digest) if digest == one.digest || one.uncertain => None,
        Some(_) => Some(change(Action::Replace, one)),
    });
    removed.chain(new).collect()
}

fn change(action: Action, one: &Instruction) -> Change {
    Change {
        action,
        scope: one.scope.clone(),
        path: one.path.clone(),
        digest: one.digest.clone(),
        text: one.text.clone(),
    }
}
