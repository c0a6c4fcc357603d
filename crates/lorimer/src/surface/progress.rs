//! Progress for a person who watches: one line a call, and waits that count down.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Instant;

use lorimer_agent::Agent;
use lorimer_protocol::{
    CallId, CallView, ContentBlock, Event, LlmRetry, Payload, ToolCall, ToolCallBlock, ToolResult,
};
use lorimer_tools::parse_arguments;

use super::safe_text::safe;

/// Longest title of a call, in characters.
const MAX_TITLE_CHARS: usize = 100;
/// More calls of one tool than this in one message share a line.
const MAX_CALL_LINES: usize = 5;

/// What a line of this program begins with, when it is not its name.
static SPEAKER: OnceLock<&'static str> = OnceLock::new();

/// Writes progress lines to standard error, or nothing when it is not watched.
pub struct Progress {
    shown: bool,
    started: HashMap<CallId, Instant>,
    /// Calls that a shared line has announced already.
    announced: HashSet<CallId>,
    waiting: Option<Waiting>,
}

struct Waiting {
    until: Instant,
    what: String,
}

impl Progress {
    /// Shows progress when standard error is a terminal, or always.
    pub fn new(always: bool) -> Self {
        let shown = always || std::io::stderr().is_terminal();
        Self { shown, started: HashMap::new(), announced: HashSet::new(), waiting: None }
    }

    /// Whether anybody watches.
    pub fn is_shown(&self) -> bool {
        self.shown
    }

    /// Shows what an event means for a person.
    pub fn event(&mut self, agent: &Agent, event: &Event) {
        if !self.shown {
            return;
        }
        match event.payload() {
            Ok(Payload::ToolCall(call)) => self.call(agent, &call),
            Ok(Payload::ToolResult(result)) => self.result(&result),
            Ok(Payload::AssistantMessage(message)) => self.said(agent, &message.message),
            Ok(Payload::LlmRetry(retry)) => self.retry(&retry),
            Ok(Payload::LlmRetryStarted(_)) => self.end_waiting(),
            Ok(Payload::TurnEnd(_)) => self.end_waiting(),
            _ => {}
        }
    }

    /// Redraws a countdown; to be called about once a second.
    pub fn tick(&mut self) {
        if let Some(waiting) = &self.waiting {
            let left = waiting.until.saturating_duration_since(Instant::now()).as_secs_f64().ceil();
            write_stderr(&format!("\r\x1b[K  retrying in {left:.0} s: {}", waiting.what));
        }
    }

    /// A line that is shown whether or not anybody watches.
    pub fn note(text: &str) {
        Self::note_of(SPEAKER.get().copied().unwrap_or("lorimer"), text);
    }

    /// The same with another beginning.
    pub fn note_of(speaker: &str, text: &str) {
        write_stderr(&format!("{speaker}: {}\n", safe(text)));
    }

    /// What every [`Self::note`] of this process begins with, from now on. It can be chosen once.
    pub fn speak_as(speaker: &'static str) {
        let _ = SPEAKER.set(speaker);
    }

    fn call(&mut self, agent: &Agent, call: &ToolCall) {
        self.started.insert(call.call_id.clone(), Instant::now());
        if !self.announced.remove(&call.call_id) {
            write_stderr(&format!("• {}\n", title(agent, &call.name, &call.arguments)));
        }
    }

    fn result(&mut self, result: &ToolResult) {
        let Some(block) = result.message.tool_result() else {
            return;
        };
        let took = self.started.remove(&block.tool_call_id).map(|started| started.elapsed());
        if block.is_error == Some(true) {
            let text: String = block.content.iter().filter_map(ContentBlock::as_text).collect();
            write_stderr(&format!("  ✗ {}\n", one_line(&text)));
        } else if let Some(took) = took.filter(|took| took.as_secs() >= 1) {
            write_stderr(&format!("  ✓ {:.1} s\n", took.as_secs_f64()));
        }
    }

    /// What the model says between its calls; the final answer goes to standard output.
    fn said(&mut self, agent: &Agent, message: &lorimer_protocol::Message) {
        let calls: Vec<&ToolCallBlock> = message
            .content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::ToolCall(call) => Some(call),
                _ => None,
            })
            .collect();
        let text = message.text();
        if !calls.is_empty() && !text.trim().is_empty() {
            write_stderr(&format!("{}\n", safe(text.trim())));
        }
        self.announce_groups(agent, &calls);
    }

    /// One line for many calls of one tool.
    fn announce_groups(&mut self, agent: &Agent, calls: &[&ToolCallBlock]) {
        let mut by_tool: BTreeMap<&str, Vec<&ToolCallBlock>> = BTreeMap::new();
        for call in calls {
            by_tool.entry(call.name.as_str()).or_default().push(call);
        }
        for group in by_tool.into_values().filter(|group| group.len() > MAX_CALL_LINES) {
            let first = title(agent, &group[0].name, &group[0].arguments);
            write_stderr(&format!("• {first} and {} more\n", group.len() - 1));
            self.announced.extend(group.iter().map(|call| call.id.clone()));
        }
    }

    fn retry(&mut self, retry: &LlmRetry) {
        let of = retry.max_retries.map(|most| format!("/{most}")).unwrap_or_default();
        let what = one_line(&format!("{} (attempt {}{of})", retry.failure.message, retry.retry));
        self.waiting =
            Some(Waiting { until: Instant::now() + std::time::Duration::from_millis(retry.delay_ms), what });
        self.tick();
    }

    fn end_waiting(&mut self) {
        if self.waiting.take().is_some() {
            write_stderr("\n");
        }
    }
}

/// The title of a call's card, or the tool's name.
fn title(agent: &Agent, name: &str, arguments: &str) -> String {
    let tool = agent.pipeline().registry().find(agent.session().id().as_str(), name);
    let view = tool.and_then(|tool| tool.present_call(&parse_arguments(arguments)));
    let title = view.as_ref().map_or(name, CallView::title);
    let prefix = if matches!(view, Some(CallView::Terminal { .. })) { "$ " } else { "" };
    format!("{prefix}{}", one_line(title))
}

/// Standard error is best effort: a closed one ends nothing.
fn write_stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// The first line of a text, cut, safe to show.
fn one_line(text: &str) -> String {
    let line = safe(text.lines().find(|line| !line.trim().is_empty()).unwrap_or(""));
    let cut: String = line.chars().take(MAX_TITLE_CHARS).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}
