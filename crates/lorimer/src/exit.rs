//! How the program ends: one place for exit codes and for what is said on the way out.

use std::process::ExitCode;

use lorimer_agent::AgentError;
use lorimer_model::ModelError;
use lorimer_session::{OpenError, StoreError};

use crate::settings::SettingsError;

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Completed,
    /// The task failed.
    Failed,
    /// The command line or a setting cannot be used.
    Usage,
    /// A limit ended the turn.
    Limit,
    /// There is an answer, but it could not be saved.
    Unsaved,
    /// Ended by a signal of this number.
    Signal(u8),
}

impl Exit {
    /// The number for the shell.
    pub fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Limit => 3,
            Self::Unsaved => 4,
            Self::Signal(number) => 128 + number,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A command that could not do its work: what to say and how to end.
#[derive(Debug)]
pub struct CommandError {
    /// How to end.
    pub exit: Exit,
    /// The code that logs have for it, when it is a model's error.
    pub code: Option<&'static str>,
    /// What to say, one line.
    pub message: String,
}

impl CommandError {
    /// The command line or a setting cannot be used.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, code: None, message: message.into() }
    }

    /// The work failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, code: None, message: message.into() }
    }

    /// The same with the code of a model's error.
    #[must_use]
    pub fn with_code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }
}

impl From<ModelError> for CommandError {
    fn from(error: ModelError) -> Self {
        Self::usage(error.to_string()).with_code(error.code())
    }
}

impl From<SettingsError> for CommandError {
    fn from(error: SettingsError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Io(_) => Self::failed(error.to_string()),
            _ => Self::usage(error.to_string()),
        }
    }
}

impl From<OpenError> for CommandError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(inner) => inner.into(),
            OpenError::Header { .. } | OpenError::ReadOnly { .. } => Self::usage(error.to_string()),
        }
    }
}

impl From<AgentError> for CommandError {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Model(error) => error.into(),
            AgentError::Append(_) => Self::failed(error.to_string()),
        }
    }
}
