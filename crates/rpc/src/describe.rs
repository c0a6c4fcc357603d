//! The whole protocol as JSON Schema, made from the Rust types.

use lorimer_protocol::Payload;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::wire::{Described, notifications, requests, reverse_requests};

/// Describes every request, notification, request of the server and event.
///
/// The document is a JSON Schema (2020-12) with all types under `$defs`; `requests`, `notifications`, `reverseRequests`
/// and `events` say which of them belongs where.
pub fn describe() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let requests = by_name(requests(&mut generator));
    let notifications = by_name(notifications(&mut generator));
    let reverse_requests = by_name(reverse_requests(&mut generator));
    let events = Payload::schemas(&mut generator);
    let session_event = session_event(&events);
    let mut definitions = generator.take_definitions(true);
    definitions.insert("SessionEvent".to_owned(), session_event);
    definitions.sort_keys();
    let events: Map<String, Value> =
        events.into_iter().map(|(kind, schema)| (kind.to_owned(), schema.to_value())).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lorimer's JSON-RPC protocol",
        "description": "JSON-RPC 2.0, one object a line over standard input and output, UTF-8. Every failure has code -32603 and says what happened.",
        "version": env!("CARGO_PKG_VERSION"),
        "requests": requests,
        "notifications": notifications,
        "reverseRequests": reverse_requests,
        "events": events,
        "$defs": definitions,
    })
}

fn by_name(list: Vec<Described>) -> Map<String, Value> {
    list.into_iter()
        .map(|one| {
            let mut entry = json!({"description": one.about, "params": one.params});
            if let Some(result) = one.result {
                entry["result"] = result.to_value();
            }
            (one.name.to_owned(), entry)
        })
        .collect()
}

/// The envelope of every event, and the payload of those that are known.
fn session_event(events: &[(&'static str, schemars::Schema)]) -> Value {
    let known: Vec<Value> = events
        .iter()
        .map(|(kind, data)| {
            json!({"if": {"properties": {"type": {"const": kind}}}, "then": {"properties": {"data": data}}})
        })
        .collect();
    json!({
        "description": "One event of a session's log. Types that are not listed under `events` are legal.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "description": "The event type."},
            "seq": {"type": "integer", "minimum": 0, "description": "Position in the log, contiguous from 0."},
            "time": {"type": "integer", "description": "Epoch milliseconds."},
            "data": {"description": "The payload."},
            "sourceEventSeqs": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "description": "Earlier events that this one is made of."
            },
            "surfaceOp": {"description": "How it enters the conversation: \"append\", or an object that replaces nodes."},
            "ignorable": {"type": "boolean", "description": "A reader that does not know the type may skip it."}
        },
        "required": ["type", "seq", "time", "data"],
        "allOf": known,
    })
}
