//! What older writers of format 0 wrote otherwise (core spec 1.12).

use lorimer_protocol::{Event, SurfaceOp};
use serde_json::{Map, Value, json};

use super::raw;

/// Brings an event of an older writer into today's shape. Events that are in it stay as they are, byte for byte.
pub(super) fn migrate(event: &mut Event, session: &str) {
    if event.kind == "steering/message" {
        event.kind = "user/message".to_owned();
        event.surface_op.get_or_insert(SurfaceOp::Append);
    }
    let message_id = || format!("legacy-message:{session}:{}", event.seq);
    let change: fn(&mut Value, &dyn Fn() -> String) -> bool = match event.kind.as_str() {
        "turn/start" => |data, _| data.as_object_mut().is_some_and(|data| data.remove("trigger").is_some()),
        "turn/end" => |data, _| data.get_mut("reason").is_some_and(turn_end_reason),
        "user/message" => identify,
        "assistant/message" | "tool/result" => {
            |data, id| data.get_mut("message").is_some_and(|message| identify(message, id))
        }
        "agent/inbox/spliced" => inbox,
        _ => return,
    };
    let Ok(mut data) = serde_json::from_str::<Value>(event.data.get()) else {
        return;
    };
    if change(&mut data, &message_id) {
        event.data = raw(&data);
    }
}

fn identify(message: &mut Value, id: &dyn Fn() -> String) -> bool {
    let Some(message) = message.as_object_mut() else {
        return false;
    };
    let identified = message.get("id").and_then(Value::as_str).is_some_and(|id| !id.is_empty());
    if !identified {
        message.insert("id".to_owned(), id().into());
    }
    !identified
}

fn inbox(data: &mut Value, id: &dyn Fn() -> String) -> bool {
    let Some(inserted) = data.get_mut("inserted").and_then(Value::as_array_mut) else {
        return false;
    };
    let mut changed = false;
    for (at, message) in inserted.iter_mut().enumerate() {
        changed |= identify(message, &|| if at == 0 { id() } else { format!("{}:{at}", id()) });
    }
    changed
}

/// Brings the reason of an ended turn into today's shape; `false` when it is.
fn turn_end_reason(reason: &mut Value) -> bool {
    let kind = reason.get("kind").or(Some(&*reason)).and_then(Value::as_str).unwrap_or_default();
    let new = match kind {
        "aborted" if reason.get("reason").is_none_or(|reason| !reason.is_object()) => {
            json!({"kind": "aborted", "reason": {"kind": "legacy"}})
        }
        "disposed" => json!({"kind": "aborted", "reason": {"kind": "disposed"}}),
        "error" if reason.get("error").is_none_or(|error| !error.is_object()) => {
            json!({"kind": "error", "error": failure(reason)})
        }
        "completed" | "blocked" | "max-tokens" | "interrupted" if reason.is_string() => json!({"kind": kind}),
        _ => return false,
    };
    *reason = new;
    true
}

/// The failure that an old `error` reason tells of: under `failure`, or `message` and `code` beside the kind.
fn failure(reason: &Value) -> Value {
    let mut failure: Map<String, Value> =
        reason.get("failure").or(Some(reason)).and_then(Value::as_object).cloned().unwrap_or_default();
    failure.remove("kind");
    failure.remove("step");
    if let Some(text) = failure.remove("error") {
        failure.entry("message").or_insert(text);
    }
    for (key, default) in [("message", "the turn failed"), ("code", "UNKNOWN")] {
        if !failure.get(key).is_some_and(Value::is_string) {
            failure.insert(key.to_owned(), default.into());
        }
    }
    failure.into()
}
