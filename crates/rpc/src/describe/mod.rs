//! The whole protocol as JSON Schema, made from the Rust types.

mod plain;

use lorimer_protocol::Payload;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::wire::{Described, notifications, requests, reverse_requests};

/// Describes every request, notification, request of the server and event.
///
/// The document is a JSON Schema (2020-12) with all types under `$defs`; `requests`, `notifications`, `reverseRequests`
/// and `events` say which of them belongs where. In it,
/// - a member that may be missing is not `required`, and never null instead;
/// - a union of objects is `anyOf` or `oneOf` of references or objects that each have one member with a `const`, their
///   tag. A last alternative without one stands for whatever a later version adds.
pub fn describe() -> Value {
    // What the server reads may leave out more than what it writes.
    let mut read = SchemaSettings::draft2020_12().into_generator();
    let mut written = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let requests = by_name(requests(&mut read, &mut written));
    let reverse_requests = by_name(reverse_requests(&mut written, &mut read));
    let notifications = by_name(notifications(&mut written));
    let events = Payload::schemas(&mut written);
    let mut definitions = read.take_definitions(true);
    definitions.extend(written.take_definitions(true));
    plain::make_plain(&mut definitions);
    definitions.insert("SurfaceReplacement".to_owned(), surface_replacement());
    definitions.insert("SessionEvent".to_owned(), session_event(&events));
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
            "surfaceOp": {
                "anyOf": [{"type": "string", "const": "append"}, {"$ref": "#/$defs/SurfaceReplacement"}],
                "description": "How it enters the conversation: at its end, or in place of earlier events. Absent when it does not."
            },
            "ignorable": {"type": "boolean", "description": "A reader that does not know the type may skip it."}
        },
        "required": ["type", "seq", "time", "data"],
        "allOf": known,
    })
}

fn surface_replacement() -> Value {
    let seq = |about| json!({"type": "integer", "minimum": 0, "description": about});
    json!({
        "description": "An event that takes the place of earlier ones in the conversation.",
        "type": "object",
        "properties": {
            "op": {"type": "string", "const": "replace"},
            "start": seq("First shadowed seq."),
            "end": seq("Last shadowed seq, included."),
        },
        "required": ["op", "start", "end"],
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|inner| references(inner, found));
            }
            Value::Array(list) => list.iter().for_each(|inner| references(inner, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_to_a_type_and_every_type_is_used() {
        let description = describe();
        let mut found = BTreeSet::new();
        references(&description, &mut found);
        let defined: BTreeSet<String> = description["$defs"]
            .as_object()
            .expect("types")
            .keys()
            .map(|name| format!("#/$defs/{name}"))
            .collect();
        let defined: BTreeSet<&str> = defined.iter().map(String::as_str).collect();
        assert_eq!(found, defined);
    }

    #[test]
    fn what_goes_both_ways_is_described_alike() {
        let mut read = SchemaSettings::draft2020_12().into_generator();
        let mut written = SchemaSettings::draft2020_12().for_serialize().into_generator();
        requests(&mut read, &mut written);
        reverse_requests(&mut written, &mut read);
        notifications(&mut written);
        Payload::schemas(&mut written);
        let (mut read, mut written) = (read.take_definitions(true), written.take_definitions(true));
        plain::make_plain(&mut read);
        plain::make_plain(&mut written);
        let shared: Vec<&String> = read.keys().filter(|name| written.contains_key(*name)).collect();
        assert!(shared.iter().any(|name| *name == "ContentBlock"), "{shared:?}");
        for name in shared {
            assert_eq!(read[name], written[name], "{name}");
        }
    }

    #[test]
    fn unions_are_told_apart_by_their_tag() {
        let definitions = &describe()["$defs"];
        assert_eq!(definitions["TextBlock"]["properties"]["type"]["const"], "text");
        assert_eq!(definitions["ContentBlock"]["anyOf"][0]["$ref"], "#/$defs/TextBlock");
        assert_eq!(definitions["TurnEndReason"]["anyOf"][6]["type"], "object");
        let diff = &definitions["FileDiff"];
        assert_eq!(diff["properties"]["oldText"]["type"], json!(["string", "null"]));
        assert_eq!(diff["required"], json!(["path", "oldText", "newText"]));
        assert_eq!(
            diff["properties"]["oldStart"]["description"],
            "First line of `oldText` in the file before, 1-based."
        );
        assert_eq!(definitions["InitializeParams"]["properties"]["cwd"]["type"], "string");
        assert_eq!(definitions["InitializeParams"]["required"], Value::Null);
    }
}
