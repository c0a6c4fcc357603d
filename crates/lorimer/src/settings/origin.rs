//! Where a setting's value came from.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from that is not the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file, with the line.
    File {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: usize,
    },
    /// A patch file of the command line, with the line.
    Patch {
        /// The file.
        path: PathBuf,
        /// 1-based.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// A flag or `-c`.
    CommandLine,
}

/// `in FILE, line N`, `in the patch FILE, line N`, `in the variable NAME`, `on the command line`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "in {}, line {line}", path.display()),
            Self::Patch { path, line } => write!(f, "in the patch {}, line {line}", path.display()),
            Self::Environment(name) => write!(f, "in the variable {name}"),
            Self::CommandLine => f.write_str("on the command line"),
        }
    }
}
