//! Every recorded log is read and written back as equal JSON, and its rows pack the way they were packed.

use std::path::PathBuf;

use lorimer_protocol::{Event, Payload, SessionHeader, StoredRow, pack_rows};
use serde_json::Value;

fn logs() -> Vec<(String, Vec<Value>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/conformance/logs");
    let mut logs: Vec<_> = std::fs::read_dir(folder)
        .expect("the fixtures are there")
        .map(|entry| {
            let path = entry.expect("readable").path();
            let text = std::fs::read_to_string(&path).expect("readable");
            let rows = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            (path.file_name().expect("a name").to_string_lossy().into_owned(), rows)
        })
        .collect();
    logs.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(logs.len(), 5);
    logs
}

/// Recorded rows have no `seq` and `time`; they are given by position.
fn enveloped(rows: &[Value]) -> Vec<Value> {
    let mut seq = 0_u64;
    let mut out = Vec::new();
    for row in rows {
        let mut row = row.as_object().expect("an object").clone();
        let members = row["data"].get("dt").and_then(Value::as_array).map_or(1, |dt| dt.len() as u64 + 1);
        let packed = row["type"].as_str().expect("a type").ends_with("-chunks");
        let (seq_key, time_key) = if packed { ("seq0", "time0") } else { ("seq", "time") };
        row.insert(seq_key.to_owned(), seq.into());
        row.insert(time_key.to_owned(), 0.into());
        seq += members;
        out.push(Value::Object(row));
    }
    out
}

#[test]
fn headers_and_rows_are_written_back_as_equal_json() {
    for (name, rows) in logs() {
        let header = SessionHeader::from_json(&rows[0].to_string()).expect(&name);
        assert_eq!(serde_json::from_str::<Value>(&header.to_json()).expect("JSON"), rows[0], "{name}");
        for row in enveloped(&rows[1..]) {
            let stored = StoredRow::from_json(&row.to_string())
                .unwrap_or_else(|error| panic!("{name}: {error}: {row}"));
            assert_eq!(serde_json::from_str::<Value>(&stored.to_json()).expect("JSON"), row, "{name}");
        }
    }
}

#[test]
fn typed_payloads_lose_nothing_of_what_they_know() {
    for (name, rows) in logs() {
        for row in enveloped(&rows[1..]) {
            for event in StoredRow::from_json(&row.to_string()).expect("a row").into_events() {
                let payload = event.payload().unwrap_or_else(|error| panic!("{name}: {error}"));
                let data: Value = serde_json::from_str(event.data.get()).expect("JSON");
                let written = match payload {
                    Payload::UserMessage(message) => serde_json::to_value(message),
                    Payload::AssistantChunk(chunk) => serde_json::to_value(chunk),
                    Payload::AssistantMessage(message) => serde_json::to_value(message),
                    Payload::ToolCall(call) => serde_json::to_value(call),
                    Payload::ToolResult(result) => serde_json::to_value(result),
                    Payload::RequestHeader(header) => serde_json::to_value(header),
                    Payload::InboxSpliced(splice) => serde_json::to_value(splice),
                    Payload::TodoWrite(todos) => serde_json::to_value(todos),
                    Payload::SessionTitle(title) => serde_json::to_value(title),
                    Payload::TurnEnd(end) => serde_json::to_value(end),
                    _ => continue,
                };
                assert_eq!(written.expect("JSON"), data, "{name}: {}", event.kind);
            }
        }
    }
}

#[test]
fn recorded_rows_pack_as_they_were_packed() {
    for (name, rows) in logs() {
        let stored: Vec<Value> = enveloped(&rows[1..]);
        let events: Vec<Event> = stored
            .iter()
            .flat_map(|row| StoredRow::from_json(&row.to_string()).expect("a row").into_events())
            .collect();
        let packed: Vec<Value> = pack_rows(&events)
            .iter()
            .map(|row| serde_json::from_str(&row.to_json()).expect("JSON"))
            .collect();
        assert_eq!(packed, stored, "{name}");
    }
}
