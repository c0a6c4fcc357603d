//! The working directory of a session: where relative paths and commands start. The workspace, permissions and running
//! processes stay as they are.

use std::path::{Path, PathBuf};

use lorimer_protocol::{Draft, InboxTarget, Message, Source, WorkingDirectoryChange};
use lorimer_session::AppendError;
use serde_json::json;
use thiserror::Error;

use crate::agent::Agent;
use crate::inbox;

/// A directory that a session cannot work in. The texts begin as those of DSH.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// No path at all.
    #[error("working-directory: cd must not be empty")]
    Empty,
    /// Not a directory that can be entered.
    #[error("working-directory: directory does not exist: \"{0}\"")]
    Missing(String),
    /// The log refused the change.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl Agent {
    /// Where relative paths and commands start. A directory that is gone is replaced by the workspace, and the change
    /// is logged.
    ///
    /// # Errors
    /// When the log refuses the change.
    pub fn working_directory(&self) -> Result<PathBuf, DirectoryError> {
        let current = self.current_directory();
        if current.is_dir() || current == self.workspace() {
            return Ok(current);
        }
        self.log_change(&current, self.workspace())?;
        Ok(self.workspace().to_owned())
    }

    /// Works in another directory from now on; a relative path starts at the current one. The model is told at its
    /// next step.
    ///
    /// # Errors
    /// When there is no such directory, or the log refuses the change.
    pub fn change_working_directory(&self, path: &str) -> Result<PathBuf, DirectoryError> {
        if path.is_empty() {
            return Err(DirectoryError::Empty);
        }
        let current = self.current_directory();
        let missing = || DirectoryError::Missing(path.to_owned());
        let directory = std::fs::canonicalize(current.join(path)).map_err(|_| missing())?;
        // The log holds text: a directory that text cannot name could not be found again.
        if !directory.is_dir() || directory.to_str().is_none() {
            return Err(missing());
        }
        if directory != current {
            self.log_change(&current, &directory)?;
        }
        Ok(directory)
    }

    fn current_directory(&self) -> PathBuf {
        self.session()
            .with_log(|log| log.working_directory().map(PathBuf::from))
            .unwrap_or_else(|| self.workspace().to_owned())
    }

    fn log_change(&self, from: &Path, to: &Path) -> Result<(), AppendError> {
        let change = WorkingDirectoryChange { cwd: to.to_string_lossy().into_owned() };
        self.session().append(Draft::new(&change))?;
        let text =
            format!("The working directory changed from \"{}\" to \"{}\".", from.display(), to.display());
        let source = Source::Other(json!({"kind": "working-directory"}));
        let message = Message::user_text(uuid::Uuid::new_v4().to_string(), text, source);
        inbox::push(self.session(), InboxTarget::NextStep, message)
    }
}
