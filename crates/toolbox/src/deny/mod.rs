//! Deny rules: paths that no tool may touch, whatever mode or person allows.
//!
//! A rule is `PATTERN` or `TOOL:PATTERN`. A pattern is a glob as in a `.gitignore`: without a slash it holds at any
//! depth of the workspace, with one from the workspace on; absolute ones and those that begin with `~/` hold for the
//! whole system. What is in a denied folder is denied too.
//!
//! What must hold: a rule that cannot be held for a command keeps the command from running.

mod children;
mod rule;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::files::{FsCode, FsError, FsTarget};
use rule::Rule;

/// The tools that rules are about.
const TOOLS: [&str; 6] = ["read", "write", "edit", "glob", "grep", "bash"];

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the rule \"{rule}\" cannot be used: {reason}")]
pub struct BadDenyRule {
    /// As it was written.
    pub rule: String,
    /// Why, and what to do.
    pub reason: String,
}

/// Paths that no tool may touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DenyRules {
    rules: Vec<Rule>,
}

impl DenyRules {
    /// Reads rules. Relative ones are about `workspace`, those with `~` about `home`.
    ///
    /// # Errors
    /// For the first rule that cannot be used.
    pub fn parse<T: AsRef<str>>(
        texts: &[T],
        workspace: &Path,
        home: Option<&Path>,
    ) -> Result<Self, BadDenyRule> {
        let read = |text: &T| {
            let text = text.as_ref();
            Rule::parse(text, workspace, home).map_err(|reason| BadDenyRule { rule: text.to_owned(), reason })
        };
        Ok(Self { rules: texts.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// Whether no rule is about a tool.
    pub fn is_empty_for(&self, tool: &str) -> bool {
        !self.rules.iter().any(|rule| rule.is_about(tool))
    }

    /// The pattern of the rule that keeps a tool from a path.
    pub fn denying(&self, tool: &str, path: &Path) -> Option<&str> {
        let rule = self.rules.iter().find(|rule| rule.is_about(tool) && rule.matches(path));
        rule.map(|rule| rule.pattern.as_str())
    }

    /// Refuses a file that a tool must not touch, under the name it was given and where it really is.
    pub(crate) fn check(&self, tool: &str, target: &FsTarget) -> Result<(), FsError> {
        let names = [Path::new(&target.display_path), &target.real_path];
        match names.into_iter().find_map(|path| self.denying(tool, path)) {
            Some(pattern) => Err(refusal(tool, &target.display_path, pattern)),
            None => Ok(()),
        }
    }

    /// What exists and commands must not see.
    ///
    /// # Errors
    /// When there is too much to look through, or to hide.
    pub(crate) fn hidden_from_commands(&self) -> Result<Vec<PathBuf>, String> {
        let rules: Vec<&Rule> = self.rules.iter().filter(|rule| rule.is_about("bash")).collect();
        children::existing(&rules)
    }
}

/// What the model reads of a denied path.
pub(crate) fn refusal(tool: &str, path: &str, pattern: &str) -> FsError {
    let why = format!("the deny rule \"{pattern}\" of the configuration forbids it");
    FsError::cannot(tool, path, FsCode::Denied, why)
}
