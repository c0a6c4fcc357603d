//! Tool cards: what a call and its result look like (core spec 4).
//!
//! A view is a pure function of call arguments and the durable result; it is never persisted.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ContentBlock;

/// What kind of work a call does, for an icon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ToolCallKind {
    /// Reads something.
    Read,
    /// Changes something.
    Edit,
    /// Removes something.
    Delete,
    /// Moves something.
    Move,
    /// Looks for something.
    Search,
    /// Runs something.
    Execute,
    /// Fetches something.
    Fetch,
    /// Anything else.
    #[default]
    Other,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileLocation {
    /// The path as the call gave it.
    pub path: String,
    /// Line, 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// One hunk of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    /// The path as the call gave it.
    pub path: String,
    /// Context and removed lines; null when there were none.
    pub old_text: Option<String>,
    /// Context and added lines.
    pub new_text: String,
    /// First line of `old_text` in the file before, 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_start: Option<u64>,
    /// First line of `new_text` in the file after, 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_start: Option<u64>,
}

/// A pending call. Tagged by `card`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "card", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum CallView {
    /// Title and kind, with whatever is known.
    Generic {
        /// One line.
        title: String,
        /// Kind of work.
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<ToolCallKind>,
        /// The interesting input.
        #[serde(skip_serializing_if = "Option::is_none")]
        raw_input: Option<Value>,
        /// Content to show while pending.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Vec<ContentBlock>>,
        /// Where it works.
        #[serde(skip_serializing_if = "Option::is_none")]
        locations: Option<Vec<FileLocation>>,
    },
    /// A command.
    Terminal {
        /// The command.
        title: String,
        /// What it is for.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Where it runs.
        #[serde(skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// A change.
    Diff {
        /// One line.
        title: String,
        /// What is asked to change.
        diffs: Vec<FileDiff>,
        /// Where it works.
        #[serde(skip_serializing_if = "Option::is_none")]
        locations: Option<Vec<FileLocation>>,
    },
}

impl CallView {
    /// The one-line title.
    pub fn title(&self) -> &str {
        match self {
            Self::Generic { title, .. } | Self::Terminal { title, .. } | Self::Diff { title, .. } => title,
        }
    }
}

/// One line of a file, with the file's own number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReadFileLine {
    /// 1-based.
    pub number: u64,
    /// Without its line end.
    pub text: String,
}

/// One file with matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchFile {
    /// The file.
    pub path: String,
    /// Its matches in order.
    pub matches: Vec<SearchMatch>,
}

/// One matching line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SearchMatch {
    /// 1-based.
    pub line_number: u64,
    /// The line, possibly cut.
    pub line: String,
}

/// One source of a web search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WebSource {
    /// Where.
    pub url: String,
    /// Page title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A piece of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    /// When it was published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_at: Option<String>,
}

/// A completed call. Tagged by `card`, a search by `shape` and a web result by `kind` as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "card", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum ResultView {
    /// Content as it is.
    Generic {
        /// Replaces the pending title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What to show.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Vec<ContentBlock>>,
    },
    /// What a command printed and how it ended. `exit_code` and `signal` exclude each other.
    Terminal {
        /// Replaces the pending title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Printed text.
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<String>,
        /// Exit code.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        /// The signal that ended it.
        #[serde(skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
    },
    /// What changed.
    Diff {
        /// Replaces the pending title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The hunks.
        diffs: Vec<FileDiff>,
    },
    /// What a search found.
    Search {
        /// Replaces the pending title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// `matches` or `paths`.
        shape: String,
        /// For `matches`.
        #[serde(skip_serializing_if = "Option::is_none")]
        files: Option<Vec<SearchFile>>,
        /// For `paths`.
        #[serde(skip_serializing_if = "Option::is_none")]
        paths: Option<Vec<String>>,
        /// Whether there is more than is listed.
        truncated: bool,
        /// How many there are.
        total: u64,
    },
    /// A window of a file.
    Read {
        /// Replaces the pending title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// The file.
        path: String,
        /// First requested line, 1-based.
        offset: u64,
        /// The lines of the window.
        lines: Vec<ReadFileLine>,
        /// Lines in the whole file.
        total_lines: u64,
        /// Highlighting hint.
        #[serde(skip_serializing_if = "Option::is_none")]
        lang: Option<String>,
        /// The text without its envelope, for a surface that has no code view.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Vec<ContentBlock>>,
    },
    /// A web search or fetch.
    Web {
        /// Replaces the pending title.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// `search` or `fetch`.
        kind: String,
        /// For `search`.
        #[serde(skip_serializing_if = "Option::is_none")]
        sources: Option<Vec<WebSource>>,
        /// For `search`.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// For `fetch`.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// For `fetch`.
        #[serde(skip_serializing_if = "Option::is_none")]
        status_code: Option<u16>,
        /// Whether the text was cut.
        truncated: bool,
    },
}
