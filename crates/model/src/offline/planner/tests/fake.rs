//! The three tools over files in memory, with the texts of the real ones, and a loop that drives the planner.

use std::sync::Arc;

use lorimer_protocol::{CallId, ContentBlock, Extra, Message, Role, Source, ToolResultBlock, ToolSpec};
use serde_json::{Value, json};

use crate::offline::planner::{limits, next_turn};
use crate::offline::{PlannedCall, PlannedTurn};
use crate::provider::ModelRequest;

/// Paths that a listing shows.
const LISTING_CAP: usize = 100;
/// Matches that a search shows.
const MATCH_CAP: usize = 250;

/// Files in memory; `None` is a binary file.
#[derive(Clone, Default)]
pub(super) struct Workspace {
    pub(super) files: Vec<(String, Option<String>)>,
    /// Folders that `grep` leaves out.
    pub(super) ignored: Vec<&'static str>,
}

impl Workspace {
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut workspace = Self::default();
        for (path, text) in files {
            workspace = workspace.with(path, text);
        }
        workspace
    }

    pub(super) fn with(mut self, path: &str, text: &str) -> Self {
        self.files.retain(|(there, _)| there != path);
        self.files.push((path.to_owned(), Some(text.to_owned())));
        self
    }

    pub(super) fn with_binary(mut self, path: &str) -> Self {
        self.files.push((path.to_owned(), None));
        self
    }

    /// The text of the result of a call; `Err` for a failure's message.
    pub(super) fn answer(&self, call: &PlannedCall) -> Result<String, String> {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default();
        match call.name.as_str() {
            "glob" => Ok(self.glob(text("path"))),
            "grep" => Ok(self.grep(text("pattern").trim_matches(['\\', 'b']))),
            "read" => self.read(text("file_path"), arguments["limit"].as_u64().unwrap()),
            other => Err(format!("unknown tool {other}")),
        }
    }

    fn glob(&self, root: &str) -> String {
        let prefix = if root.is_empty() { String::new() } else { format!("{root}/") };
        let below = self.files.iter().filter_map(|(path, _)| path.strip_prefix(&prefix));
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        let mut total = 0;
        for path in below {
            total += 1;
            let name = path.split('/').next().unwrap_or(path);
            match groups.iter_mut().find(|(there, _)| *there == name) {
                Some((_, paths)) => paths.push(path),
                None => groups.push((name, vec![path])),
            }
        }
        let page = sample(&groups, total);
        let lines: Vec<String> = page.iter().map(|path| format!("{prefix}{path}")).collect();
        match total {
            0 => "No files found".to_owned(),
            _ if total <= LISTING_CAP => lines.join("\n"),
            _ => format!(
                "{}\n\n(Showing {} of {total} paths, sampled across {} of the {} top-level entries this pattern \
                 matched instead of taken in modification-time order. The complete result could not be saved; \
                 narrow pattern or path to see more.)",
                lines.join("\n"),
                lines.len(),
                groups.len().min(LISTING_CAP),
                groups.len(),
            ),
        }
    }

    fn grep(&self, word: &str) -> String {
        let mut total = 0;
        let mut files = Vec::new();
        for (path, text) in &self.files {
            let hidden = path.split('/').any(|part| part.starts_with('.'));
            let ignored = self.ignored.iter().any(|folder| path.starts_with(folder));
            let Some(text) = text.as_ref().filter(|_| !hidden && !ignored) else { continue };
            let mut rows = Vec::new();
            for (at, line) in text.lines().enumerate().filter(|(_, line)| line.contains(word)) {
                total += 1;
                if total <= MATCH_CAP {
                    rows.push(format!("\nLine {}: {line}", at + 1));
                }
            }
            if !rows.is_empty() {
                files.push(format!("{path}{}", rows.concat()));
            }
        }
        let body = files.join("\n\n");
        match total {
            0 => "No matches found".to_owned(),
            1 => format!("Found 1 match\n\n{body}"),
            _ if total <= MATCH_CAP => format!("Found {total} matches\n\n{body}"),
            _ => format!(
                "Found {MATCH_CAP} of {total} matches\n\n{body}\n\n(The complete result could not be saved; narrow pattern, path, or include to see more.)"
            ),
        }
    }

    fn read(&self, path: &str, limit: u64) -> Result<String, String> {
        let found = self.files.iter().find(|(there, _)| there == path);
        let (_, text) = found.ok_or_else(|| format!("cannot read \"/w/{path}\": not found"))?;
        let text = text.as_ref().ok_or_else(|| format!("cannot read \"/w/{path}\": binary file"))?;
        let lines: Vec<&str> = text.lines().collect();
        let (total, end) = (lines.len(), lines.len().min(limit as usize));
        let mut body: String =
            lines.iter().take(end).enumerate().map(|(at, line)| format!("{}: {line}\n", at + 1)).collect();
        if end > 0 {
            body.push('\n');
        }
        let footer = if end < total {
            format!("(Showing lines 1-{end} of {total}. Use offset={} to continue.)", end + 1)
        } else {
            format!("(End of file - total {total} lines)")
        };
        Ok(format!("<path>/w/{path}</path>\n<type>file</type>\n<content>\n{body}{footer}\n</content>"))
    }
}

/// All paths, or the first ones of every group in turn, grouped.
fn sample<'a>(groups: &[(&'a str, Vec<&'a str>)], total: usize) -> Vec<&'a str> {
    let mut taken = vec![0; groups.len()];
    let mut left = total.min(LISTING_CAP);
    while left > 0 {
        for (at, (_, paths)) in groups.iter().enumerate() {
            if left > 0 && taken[at] < paths.len() {
                taken[at] += 1;
                left -= 1;
            }
        }
    }
    groups.iter().zip(taken).flat_map(|((_, paths), taken)| paths[..taken].to_vec()).collect()
}

/// What a whole conversation came to.
pub(super) struct Outcome {
    pub(super) report: String,
    pub(super) turns: Vec<PlannedTurn>,
    pub(super) request: ModelRequest,
}

impl Outcome {
    /// All calls in order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &PlannedCall> {
        self.turns.iter().flat_map(|turn| &turn.calls)
    }
}

/// A request with these tools and one prompt.
pub(super) fn request(tools: &[&str], prompt: &str) -> ModelRequest {
    let tool = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: json!({}),
    };
    ModelRequest {
        tools: std::sync::Arc::new(tools.iter().map(tool).collect()),
        messages: vec![Arc::new(Message::user_text("m", prompt, Source::user()))],
        ..ModelRequest::default()
    }
}

/// Adds a message of a person.
pub(super) fn say(request: &mut ModelRequest, prompt: &str) {
    request.messages.push(Arc::new(Message::user_text("m", prompt, Source::user())));
}

/// Drives the planner to its report. `answer` makes the result of a call: its text and whether it failed, or none.
pub(super) fn drive(
    mut request: ModelRequest,
    mut answer: impl FnMut(&PlannedCall) -> Option<(String, Option<bool>)>,
) -> Outcome {
    let mut turns = Vec::new();
    loop {
        let turn = next_turn(&request);
        assert_eq!(turn, next_turn(&request), "a reply depends on the request alone");
        assert!(!turn.text.is_empty(), "a reply says something");
        assert!(turns.len() <= limits::MAX_REPLIES, "the survey ends");
        request.messages.push(Arc::new(reply(&turn, turns.len())));
        for (at, call) in turn.calls.iter().enumerate() {
            if let Some((text, is_error)) = answer(call) {
                request.messages.push(Arc::new(result(&call_id(turns.len(), at), text, is_error)));
            }
        }
        let (done, text) = (turn.calls.is_empty(), turn.text.clone());
        turns.push(turn);
        if done {
            return Outcome { report: text, turns, request };
        }
    }
}

/// [`drive`] with the tools of a workspace.
pub(super) fn survey(workspace: &Workspace, request: ModelRequest) -> Outcome {
    drive(request, |call| {
        Some(match workspace.answer(call) {
            Ok(text) => (text, Some(false)),
            Err(message) => (format!("Error: {message}"), Some(true)),
        })
    })
}

fn call_id(turn: usize, at: usize) -> String {
    format!("call_{turn}_{at}")
}

fn reply(turn: &PlannedTurn, number: usize) -> Message {
    let mut content = vec![ContentBlock::text(turn.text.clone())];
    for (at, call) in turn.calls.iter().enumerate() {
        content.push(ContentBlock::tool_call(call_id(number, at), call.name.clone(), call.arguments.clone()));
    }
    let source = Source::Model {
        provider: "offline".to_owned(),
        model: "planner".to_owned(),
        replay_state: None,
        extra: Extra::new(),
    };
    Message { id: "r".into(), role: Role::Assistant, content, source, extra: Extra::new() }
}

fn result(id: &str, text: String, is_error: Option<bool>) -> Message {
    let block = ToolResultBlock {
        tool_call_id: id.into(),
        content: vec![ContentBlock::text(text)],
        is_error,
        extra: Extra::new(),
    };
    Message {
        id: "t".into(),
        role: Role::User,
        content: vec![ContentBlock::ToolResult(block)],
        source: Source::tool(CallId::from(id)),
        extra: Extra::new(),
    }
}
