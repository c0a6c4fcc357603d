//! How the program ends: one place for exit codes and for what is said on the way out.

use std::process::ExitCode;

use lorimer_agent::AgentError;
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
    /// What to say, one line.
    pub message: String,
}

impl CommandError {
    /// The command line or a setting cannot be used.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// The work failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into() }
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
            AgentError::Model(_) => Self::usage(error.to_string()),
            AgentError::Append(_) => Self::failed(error.to_string()),
        }
    }
}
