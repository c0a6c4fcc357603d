//! A session's log as it lies on disk.

use std::path::{Path, PathBuf};

use lorimer_session::{Store, StoreOptions};
use serde_json::Value;

/// One session's log.
pub struct Log {
    pub path: PathBuf,
    pub header: Value,
    /// The events, packed rows taken apart.
    pub events: Vec<Value>,
}

impl Log {
    /// All logs of a home, the oldest first.
    pub fn all_of(home: &Path) -> Vec<Self> {
        let store = Store::new(home, StoreOptions::default());
        let mut sessions = store.list();
        sessions.sort_by_key(|session| session.header.created_at);
        let read = |session: lorimer_session::SessionSummary| {
            let events = store.events(&session.header.id).expect("a log");
            let events = events.map_while(Result::ok).map(|event| value(&event.to_json())).collect();
            // A compressed log has no text; its header is as it was understood.
            let header = match std::fs::read_to_string(&session.path) {
                Ok(text) => value(text.lines().next().unwrap_or("null")),
                Err(_) => serde_json::to_value(&session.header).expect("JSON"),
            };
            Self { path: session.path, header, events }
        };
        sessions.into_iter().map(read).collect()
    }

    pub fn id(&self) -> String {
        self.header["id"].as_str().expect("an id").to_owned()
    }

    /// The file as it is.
    pub fn raw(&self) -> String {
        std::fs::read_to_string(&self.path).expect("a log")
    }

    /// The data of all events of a type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).map(|event| &event["data"]).collect()
    }

    /// How every turn ended.
    pub fn ends(&self) -> Vec<&Value> {
        self.of("turn/end").into_iter().map(|data| &data["reason"]).collect()
    }

    /// The tool results in order: text, whether it is an error, its code.
    pub fn results(&self) -> Vec<ToolResult> {
        self.of("tool/result").into_iter().map(ToolResult::of).collect()
    }

    /// The only tool result.
    #[track_caller]
    pub fn result(&self) -> ToolResult {
        let mut results = self.results();
        assert_eq!(results.len(), 1, "results");
        results.remove(0)
    }

    /// Asserts that every turn and step that began has ended.
    #[track_caller]
    pub fn assert_closed(&self) {
        let count = |kind: &str| self.of(kind).len();
        assert_eq!(count("turn/start"), count("turn/end"), "turns");
        assert_eq!(count("step/start"), count("step/end"), "steps");
        assert_eq!(count("tool/call"), count("tool/result"), "calls");
    }
}

/// One tool result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    pub text: String,
    pub is_error: bool,
    pub code: Option<String>,
}

impl ToolResult {
    fn of(data: &Value) -> Self {
        let block = &data["message"]["content"][0];
        let texts = block["content"].as_array().expect("content").iter();
        Self {
            text: texts.filter_map(|part| part["text"].as_str()).collect(),
            is_error: block["isError"] == true,
            code: data["error"]["code"].as_str().map(str::to_owned),
        }
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}
