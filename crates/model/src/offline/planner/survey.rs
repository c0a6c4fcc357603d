//! What is known so far, by question.

use std::collections::{BTreeMap, BTreeSet};

use crate::provider::ModelRequest;

use super::question::{LIST_TOOL, Mark, Question, READ_TOOL, SEARCH_TOOL};
use super::results::{Extract, Listing, Matches};
use super::transcript::{Answer, Transcript};

/// Why a question that was put has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// No result came.
    Missing,
    /// The result does not look like one of this tool.
    Unreadable,
    /// The call failed, with this message.
    Failed(String),
}

/// Ends of messages that say that a file is no text.
const NOT_TEXT: &[&str] = &["binary file", "invalid UTF-8 text"];

/// What came of a question.
pub(super) type Finding<T> = Result<T, Gap>;

/// Which of the tools the planner uses are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tools {
    /// Paths can be listed.
    pub(super) list: bool,
    /// Text can be searched.
    pub(super) search: bool,
    /// Files can be read.
    pub(super) read: bool,
}

/// What is known so far. A question is a key once it was put, whatever came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Survey {
    /// What the person wrote.
    pub(super) task: String,
    /// Replies that were given to it.
    pub(super) replies: usize,
    /// Whether one of them was the report.
    pub(super) reported: bool,
    /// The tools that are there.
    pub(super) tools: Tools,
    /// Listings by folder; the empty folder is the workspace.
    pub(super) listings: BTreeMap<String, Finding<Listing>>,
    /// Reads by path.
    pub(super) extracts: BTreeMap<String, Finding<Extract>>,
    /// Searches by mark.
    pub(super) marks: BTreeMap<Mark, Finding<Matches>>,
}

impl Survey {
    /// Works out what `request` tells.
    pub(super) fn of(request: &ModelRequest) -> Self {
        let has = |name: &str| request.tools.iter().any(|tool| tool.name == name);
        let tools = Tools { list: has(LIST_TOOL), search: has(SEARCH_TOOL), read: has(READ_TOOL) };
        let transcript = Transcript::of(&request.messages);
        let mut survey = Self {
            task: transcript.task,
            replies: transcript.replies,
            reported: transcript.reported,
            tools,
            listings: BTreeMap::new(),
            extracts: BTreeMap::new(),
            marks: BTreeMap::new(),
        };
        for (question, answer) in transcript.exchanges {
            survey.learn(question, &answer);
        }
        survey
    }

    /// Notes what came of one question.
    fn learn(&mut self, question: Question, answer: &Answer) {
        match question {
            Question::List { folder } => {
                let listing = finding(answer, |text| Some(Listing::parse(text)));
                self.listings.insert(folder, listing);
            }
            Question::Read { path, .. } => {
                self.extracts.insert(path, finding(answer, Extract::parse));
            }
            Question::Find(mark) => {
                self.marks.insert(mark, finding(answer, Matches::parse));
            }
        }
    }

    /// The listing of the whole workspace, when there is one.
    pub(super) fn root(&self) -> Option<&Listing> {
        self.listings.get("")?.as_ref().ok()
    }

    /// What was read of a file.
    pub(super) fn extract(&self, path: &str) -> Option<&Extract> {
        self.extracts.get(path)?.as_ref().ok()
    }

    /// The files that `read` found not to be text.
    pub(super) fn not_text(&self) -> BTreeSet<String> {
        let says_so = |gap: &Gap| match gap {
            Gap::Failed(message) => NOT_TEXT.iter().any(|end| message.ends_with(end)),
            Gap::Missing | Gap::Unreadable => false,
        };
        let found = self.extracts.iter().filter(|(_, extract)| extract.as_ref().err().is_some_and(says_so));
        found.map(|(path, _)| path.clone()).collect()
    }

    /// How many lines a file has.
    pub(super) fn lines_of(&self, path: &str) -> Option<u64> {
        self.extract(path)?.total
    }
}

/// Reads an answer with `parse`.
fn finding<T>(answer: &Answer, parse: impl FnOnce(&str) -> Option<T>) -> Finding<T> {
    match answer {
        Answer::Text(text) => parse(text).ok_or(Gap::Unreadable),
        Answer::Failed(message) => Err(Gap::Failed(message.clone())),
        Answer::Missing => Err(Gap::Missing),
    }
}
