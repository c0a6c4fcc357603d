//! The questions the planner puts, and how they look as tool calls.

use serde_json::{Value, json};

use crate::offline::PlannedCall;

/// The tool that lists paths.
pub(super) const LIST_TOOL: &str = "glob";
/// The tool that finds text.
pub(super) const SEARCH_TOOL: &str = "grep";
/// The tool that reads files.
pub(super) const READ_TOOL: &str = "read";

/// Matches every path of a listing.
const EVERY_PATH: &str = "**/*";

/// A mark that people leave in their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// Something to do.
    Todo,
    /// Something to repair.
    Fixme,
}

impl Mark {
    /// All marks, in the order they are reported.
    pub(super) const ALL: [Self; 2] = [Self::Todo, Self::Fixme];

    /// The word that is searched.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Todo => "TODO",
            Self::Fixme => "FIXME",
        }
    }

    /// The regular expression that is searched.
    fn pattern(self) -> String {
        format!(r"\b{}\b", self.word())
    }
}

/// One thing the planner wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// The paths below a folder; the empty folder is the workspace itself.
    List {
        /// Relative to the workspace, without a trailing slash.
        folder: String,
    },
    /// The first lines of a file, and how many it has.
    Read {
        /// Relative to the workspace.
        path: String,
        /// Lines to show.
        lines: u64,
    },
    /// Where a mark stands.
    Find(Mark),
}

impl Question {
    /// The question as a tool call.
    pub(super) fn to_call(&self) -> PlannedCall {
        let (name, arguments) = match self {
            Self::List { folder } if folder.is_empty() => (LIST_TOOL, json!({ "pattern": EVERY_PATH })),
            Self::List { folder } => (LIST_TOOL, json!({ "pattern": EVERY_PATH, "path": folder })),
            Self::Read { path, lines } => (READ_TOOL, json!({ "file_path": path, "limit": lines })),
            Self::Find(mark) => (SEARCH_TOOL, json!({ "pattern": mark.pattern() })),
        };
        PlannedCall { id: None, name: name.to_owned(), arguments: arguments.to_string() }
    }

    /// The question behind a tool call; `None` for a call the planner would not make.
    pub(super) fn from_call(name: &str, arguments: &str) -> Option<Self> {
        let arguments: Value = serde_json::from_str(arguments).ok()?;
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        match name {
            LIST_TOOL if text("pattern") == Some(EVERY_PATH) => {
                Some(Self::List { folder: text("path").unwrap_or_default().to_owned() })
            }
            READ_TOOL => Some(Self::Read {
                path: text("file_path")?.to_owned(),
                lines: arguments.get("limit").and_then(Value::as_u64)?,
            }),
            SEARCH_TOOL => {
                let pattern = text("pattern")?;
                Mark::ALL.into_iter().find(|mark| mark.pattern() == pattern).map(Self::Find)
            }
            _ => None,
        }
    }
}
