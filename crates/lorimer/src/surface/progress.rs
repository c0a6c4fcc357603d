//! Progress for a person who watches: one line a call, and waits that count down.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::time::Instant;

use lorimer_agent::Agent;
use lorimer_protocol::{CallId, ContentBlock, Event, LlmRetry, Payload, ToolCall, ToolResult};
use lorimer_tools::parse_arguments;

/// Longest title of a call, in characters.
const MAX_TITLE_CHARS: usize = 100;

/// Writes progress lines to standard error, or nothing when it is not watched.
pub struct Progress {
    shown: bool,
    started: HashMap<CallId, Instant>,
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
        Self { shown, started: HashMap::new(), waiting: None }
    }

    /// Shows what an event means for a person.
    pub fn event(&mut self, agent: &Agent, event: &Event) {
        if !self.shown {
            return;
        }
        match event.payload() {
            Ok(Payload::ToolCall(call)) => self.call(agent, &call),
            Ok(Payload::ToolResult(result)) => self.result(&result),
            Ok(Payload::AssistantMessage(message)) => self.said(&message.message),
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
        write_stderr(&format!("lorimer: {}\n", safe(text)));
    }

    fn call(&mut self, agent: &Agent, call: &ToolCall) {
        self.started.insert(call.call_id.clone(), Instant::now());
        let registry = agent.pipeline().registry();
        let view = registry
            .find(agent.session().id().as_str(), &call.name)
            .and_then(|tool| tool.present_call(&parse_arguments(&call.arguments)));
        let title = view.map_or_else(|| call.name.clone(), |view| view.title().to_owned());
        let prefix = if call.name == "bash" { "$ " } else { "" };
        write_stderr(&format!("• {prefix}{}\n", one_line(&title)));
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
    fn said(&self, message: &lorimer_protocol::Message) {
        let calls = message.content.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
        let text = message.text();
        if calls && !text.trim().is_empty() {
            write_stderr(&format!("{}\n", safe(text.trim())));
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

/// Text without anything that drives a terminal.
fn safe(text: &str) -> String {
    let drives = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if drives(c) { '\u{fffd}' } else { c }).collect()
}
