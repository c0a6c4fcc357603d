//! Fixtures: logs whose rows have neither seq nor time, with tokens for what differs from run to run (core spec 8.2).

use lorimer_protocol::SessionHeader;
use serde_json::{Map, Value};

use super::source::Source;

const CWD_TOKEN: &str = "{{cwd}}";
const SESSION_TOKEN: &str = "{{sessionId}}";

/// What the tokens of a fixture stand for.
pub(super) struct Tokens {
    cwd: String,
    session: String,
}

impl Tokens {
    /// `None` when the log is not a fixture.
    pub fn new(source: &Source, header: &SessionHeader) -> Option<Self> {
        let has = |key: &str| source.header_text(key).is_some_and(|text| text.contains("{{"));
        (has("cwd") || has("id"))
            .then(|| Self { cwd: header.cwd.clone().unwrap_or_default(), session: header.id.to_string() })
    }

    /// The row with its place in the log and without tokens. A packed row begins at `seq`.
    pub fn fill(&self, text: &str, seq: u64) -> Result<String, serde_json::Error> {
        let mut row: Map<String, Value> = serde_json::from_str(text)?;
        let packed = row.get("type").and_then(Value::as_str).is_some_and(|tag| tag.ends_with("-chunks"));
        let (seq_key, time_key) = if packed { ("seq0", "time0") } else { ("seq", "time") };
        row.entry(seq_key).or_insert_with(|| seq.into());
        row.entry(time_key).or_insert_with(|| 0.into());
        row.values_mut().for_each(|value| self.replace(value));
        serde_json::to_string(&row)
    }

    fn replace(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains("{{") => {
                *text = text.replace(CWD_TOKEN, &self.cwd).replace(SESSION_TOKEN, &self.session);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace(item)),
            Value::Object(members) => self.replace_members(members),
            _ => {}
        }
    }

    /// An id that is nothing but the token was a fresh one of a message or a call, not the session's.
    fn replace_members(&self, members: &mut Map<String, Value>) {
        for (key, value) in members {
            if key == "id" && value == SESSION_TOKEN {
                *value = uuid::Uuid::new_v4().to_string().into();
            } else {
                self.replace(value);
            }
        }
    }
}
