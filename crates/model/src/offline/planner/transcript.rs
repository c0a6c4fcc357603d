//! What was said since the last prompt: questions, and what came back.

use std::collections::HashMap;
use std::sync::Arc;

use lorimer_protocol::{ContentBlock, Message, Role, Source, ToolResultBlock};

use super::question::Question;
use super::report::TITLE_START;

/// How results of failed calls begin.
const ERROR_START: &str = "Error: ";

/// What came back for one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The text of the result.
    Text(String),
    /// The call failed, with this message.
    Failed(String),
    /// There is no result.
    Missing,
}

/// The conversation since the last message of a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Transcript {
    /// What the person wrote.
    pub(super) task: String,
    /// Replies that were given to it.
    pub(super) replies: usize,
    /// Whether one of them was the report.
    pub(super) reported: bool,
    /// Questions in the order they were put.
    pub(super) exchanges: Vec<(Question, Answer)>,
}

impl Transcript {
    /// Walks `messages` from the last one of a person on; from the first when there is none.
    pub(super) fn of(messages: &[Arc<Message>]) -> Self {
        let prompt = messages.iter().rposition(|message| is_prompt(message));
        let mut transcript = Self::default();
        if let Some(message) = prompt.and_then(|at| messages.get(at)) {
            transcript.task = message.text();
        }
        let mut open: HashMap<&str, usize> = HashMap::new();
        for message in messages.iter().skip(prompt.map_or(0, |at| at + 1)) {
            match message.role {
                Role::Assistant => transcript.add_reply(message, &mut open),
                Role::System | Role::User => transcript.add_results(message, &mut open),
            }
        }
        transcript
    }

    /// Notes the calls of one reply; `open` maps call ids to unanswered exchanges.
    fn add_reply<'a>(&mut self, reply: &'a Message, open: &mut HashMap<&'a str, usize>) {
        self.replies += 1;
        self.reported |= is_report(reply);
        for block in &reply.content {
            let ContentBlock::ToolCall(call) = block else { continue };
            if let Some(question) = Question::from_call(&call.name, &call.arguments) {
                open.insert(call.id.as_str(), self.exchanges.len());
                self.exchanges.push((question, Answer::Missing));
            }
        }
    }

    /// Pairs the results of one message with their calls.
    fn add_results(&mut self, message: &Message, open: &mut HashMap<&str, usize>) {
        for block in &message.content {
            let ContentBlock::ToolResult(result) = block else { continue };
            let at = open.remove(result.tool_call_id.as_str());
            if let Some((_, answer)) = at.and_then(|at| self.exchanges.get_mut(at)) {
                *answer = answer_of(result);
            }
        }
    }
}

/// Whether a person wrote this message.
fn is_prompt(message: &Message) -> bool {
    message.role == Role::User && matches!(message.source, Source::User { .. })
}

/// Whether this reply is a report: it asks for nothing and begins like one.
fn is_report(reply: &Message) -> bool {
    let calls = reply.content.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
    !calls && reply.text().starts_with(TITLE_START)
}

/// The text of a result, told apart by whether the call failed.
fn answer_of(result: &ToolResultBlock) -> Answer {
    let text: String = result.content.iter().filter_map(ContentBlock::as_text).collect();
    let message = text.strip_prefix(ERROR_START);
    match (result.is_error.unwrap_or(message.is_some()), message) {
        (false, _) => Answer::Text(text),
        (true, Some(message)) => Answer::Failed(message.to_owned()),
        (true, None) => Answer::Failed(text),
    }
}
