//! What a client returned of a turn.

use serde_json::Value;

/// A turn as a client saw it.
#[derive(Debug)]
pub struct Run {
    /// The answer.
    pub text: String,
    /// The session's events.
    pub events: Vec<Value>,
    /// Everything that was told meanwhile, as the callback got it.
    pub notifications: Vec<Value>,
    finish_reason: Option<String>,
}

impl Run {
    pub fn of(mut value: Value) -> Self {
        let list = |value: &mut Value| match value.take() {
            Value::Array(list) => list,
            other => panic!("no list: {other}"),
        };
        Self {
            text: value["text"].as_str().expect("a text").to_owned(),
            events: list(&mut value["events"]),
            notifications: list(&mut value["notifications"]),
            finish_reason: value["finishReason"].as_str().map(str::to_owned),
        }
    }

    /// The data of all events of a type.
    pub fn of_type(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).map(|event| &event["data"]).collect()
    }

    /// How the last turn ended, which has to be what the client says of it.
    #[track_caller]
    pub fn reason(&self) -> &Value {
        let reason = &self.of_type("turn/end").last().expect("an end of a turn")["reason"];
        if let Some(said) = &self.finish_reason {
            assert_eq!(reason["kind"], said.as_str());
        }
        reason
    }

    /// The texts of the tool results.
    pub fn results(&self) -> Vec<String> {
        let text = |data: &&Value| {
            let content = data["message"]["content"][0]["content"].as_array().expect("content");
            content.iter().filter_map(|block| block["text"].as_str()).collect()
        };
        self.of_type("tool/result").iter().map(text).collect()
    }

    /// The event types and states in their order, a run of chunks as one.
    pub fn order(&self) -> Vec<String> {
        let mut order: Vec<String> = self.notifications.iter().map(name_of).collect();
        order.dedup_by(|next, last| next == "assistant/chunk" && next == last);
        order
    }
}

fn name_of(notification: &Value) -> String {
    let params = &notification["params"];
    match notification["method"].as_str() {
        Some("session.event") => {
            params["event"]["type"].as_str().unwrap_or("an event without a type").to_owned()
        }
        Some("session.status") => format!("[{}]", params["status"].as_str().unwrap_or("no status")),
        other => format!("[[{}]]", other.unwrap_or("no method")),
    }
}
