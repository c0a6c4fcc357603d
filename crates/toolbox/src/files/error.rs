//! Failures of the file tools.

use std::io;

use lorimer_tools::ToolError;
use thiserror::Error;

/// What kind of failure it is; the code the log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsCode {
    /// `FS_NOT_FOUND`
    NotFound,
    /// `FS_NOT_TEXT`
    NotText,
    /// `FS_NOT_REGULAR_FILE`
    NotRegularFile,
    /// `FS_TOO_LARGE`
    TooLarge,
    /// `FS_PERMISSION_DENIED`
    PermissionDenied,
    /// `FS_SANDBOX_DENIED`
    SandboxDenied,
    /// `FS_DENIED`
    Denied,
    /// `FS_IO_ERROR`
    IoError,
    /// `FS_STALE_VERSION`
    StaleVersion,
    /// `FS_NOT_OBSERVED`
    NotObserved,
    /// `FS_AMBIGUOUS_EDIT`
    AmbiguousEdit,
    /// `FS_EDIT_NOT_FOUND`
    EditNotFound,
    /// `FS_ABORTED`
    Aborted,
}

impl FsCode {
    /// The code as the log keeps it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "FS_NOT_FOUND",
            Self::NotText => "FS_NOT_TEXT",
            Self::NotRegularFile => "FS_NOT_REGULAR_FILE",
            Self::TooLarge => "FS_TOO_LARGE",
            Self::PermissionDenied => "FS_PERMISSION_DENIED",
            Self::SandboxDenied => "FS_SANDBOX_DENIED",
            Self::Denied => "FS_DENIED",
            Self::IoError => "FS_IO_ERROR",
            Self::StaleVersion => "FS_STALE_VERSION",
            Self::NotObserved => "FS_NOT_OBSERVED",
            Self::AmbiguousEdit => "FS_AMBIGUOUS_EDIT",
            Self::EditNotFound => "FS_EDIT_NOT_FOUND",
            Self::Aborted => "FS_ABORTED",
        }
    }
}

/// A failed file operation. The model reads its message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct FsError {
    /// The kind of failure.
    pub code: FsCode,
    /// What happened, to which file.
    pub message: String,
}

impl FsError {
    /// A failure with its text.
    pub fn new(code: FsCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// `cannot <verb> "<path>": <why>`
    pub(crate) fn cannot(verb: &str, path: &str, code: FsCode, why: impl std::fmt::Display) -> Self {
        Self::new(code, format!("cannot {verb} \"{path}\": {why}"))
    }

    /// `<verb> aborted`
    pub(crate) fn aborted(verb: &str) -> Self {
        Self::new(FsCode::Aborted, format!("{verb} aborted"))
    }

    /// Tells what to do about a guard that refused a change (core spec 5.5).
    #[must_use]
    pub(crate) fn with_remedy(mut self) -> Self {
        match self.code {
            FsCode::StaleVersion => self.message.push_str(" — re-read the file, then retry"),
            FsCode::NotObserved => self.message.push_str(" — read the file, then retry"),
            _ => {}
        }
        self
    }
}

impl From<FsError> for ToolError {
    fn from(error: FsError) -> Self {
        Self::typed("FsError", error.code.as_str(), error.message)
    }
}

/// The system's words for an error, without the number and in lower case.
pub(crate) fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_texts_read_like_ours() {
        assert_eq!(io_text(&io::Error::from_raw_os_error(libc::EACCES)), "permission denied");
        assert_eq!(io_text(&io::Error::from_raw_os_error(libc::ENOSPC)), "no space left on device");
        assert_eq!(io_text(&io::Error::other("Odd")), "odd");
    }

    #[test]
    fn only_guards_have_remedies() {
        let texts = [FsCode::StaleVersion, FsCode::NotObserved, FsCode::NotFound]
            .map(|code| FsError::new(code, "no").with_remedy().message);
        assert_eq!(texts, ["no — re-read the file, then retry", "no — read the file, then retry", "no"]);
    }
}
