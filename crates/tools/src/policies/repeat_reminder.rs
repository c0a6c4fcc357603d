//! Tells a model that it repeats itself (core spec 3.10).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use lorimer_protocol::{Extra, Message, Source};
use lorimer_session::SurfaceNodeKind;
use serde_json::{Map, Value};

use crate::context::ToolContext;
use crate::outcome::Outcome;
use crate::policy::{Policy, Review};

/// Longest piece of the arguments that a reminder repeats, in characters.
const PREVIEW_CHARS: usize = 500;

/// Adds a notice when a tool was called with equal arguments 3, 5 and 8 times in a row.
pub struct RepeatReminder {
    thresholds: Vec<u32>,
    runs: Mutex<HashMap<String, Run>>,
}

#[derive(Clone, Default)]
struct Run {
    key: String,
    count: u32,
    /// The last message of a person when the run began: a new one starts over.
    person_messages: usize,
}

impl Default for RepeatReminder {
    fn default() -> Self {
        Self { thresholds: vec![3, 5, 8], runs: Mutex::new(HashMap::new()) }
    }
}

impl RepeatReminder {
    fn count(&self, call: &ToolContext, arguments: &str) -> u32 {
        let person_messages = call.session.with_log(|log| {
            let said = log.surface().nodes().iter().filter(|node| node.kind == SurfaceNodeKind::User);
            said.filter(|node| node.message.source.kind() == "user").count()
        });
        let key = format!("{}\n{arguments}", call.name);
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let run = runs.entry(call.agent_id.clone()).or_default();
        if run.key == key && run.person_messages == person_messages {
            run.count += 1;
        } else {
            *run = Run { key, count: 1, person_messages };
        }
        run.count
    }

    fn notice(&self, call: &ToolContext, arguments: &str, count: u32) -> Option<Message> {
        let at = self.thresholds.iter().position(|threshold| *threshold == count)?;
        let text = if at == 0 {
            format!(
                "You have called {} {count} times in a row with the same arguments. If the result does not move the \
                 task forward, try another way.",
                call.name
            )
        } else {
            format!(
                "Repeated tool call detected:\n- tool: {}\n- consecutive_calls: {count}\n- arguments: {}\nThe same \
                 call gives the same result. Change the arguments, use another tool, or tell the user what blocks you.",
                call.name,
                preview(arguments)
            )
        };
        let mut extra = Extra::new();
        extra.insert("form".to_owned(), "notice".into());
        extra.insert("summary".to_owned(), format!("{} × {count}", call.name).into());
        let source = Source::Plugin { plugin: "repeat-tool-reminder".to_owned(), extra };
        Some(Message::user_text(uuid::Uuid::new_v4().to_string(), text, source))
    }
}

impl Policy for RepeatReminder {
    fn after<'a>(&'a self, call: &'a ToolContext, _outcome: &'a Outcome) -> BoxFuture<'a, Review> {
        Box::pin(async move {
            let arguments = canonical(&call.arguments).to_string();
            let count = self.count(call, &arguments);
            let contexts = self.notice(call, &arguments, count).into_iter().collect();
            Review::Accept { contexts, first: true }
        })
    }
}

/// The value with keys in order, so that equal arguments have equal text.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            let sorted: Map<String, Value> =
                keys.into_iter().map(|key| (key.clone(), canonical(&map[key]))).collect();
            Value::Object(sorted)
        }
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

fn preview(arguments: &str) -> String {
    let total = arguments.chars().count();
    if total <= PREVIEW_CHARS {
        return arguments.to_owned();
    }
    let cut: String = arguments.chars().take(PREVIEW_CHARS).collect();
    format!("{cut}… (+{} more chars)", total - PREVIEW_CHARS)
}
