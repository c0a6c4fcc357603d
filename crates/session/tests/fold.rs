//! The fold and its repair, on recorded logs cut anywhere.

use std::collections::HashMap;
use std::path::PathBuf;

use lorimer_protocol::{
    ContentBlock, Draft, Event, Message, SessionHeader, Source, StoredRow, SurfaceOp, TurnStart,
};
use lorimer_session::{FoldError, Log, Session, check_invariants, closers};
use proptest::prelude::*;
use serde_json::{Value, json};

fn recorded(name: &str) -> Vec<Event> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/conformance/logs");
    let text = std::fs::read_to_string(folder.join(name)).expect("the fixture is there");
    let mut events: Vec<Event> = Vec::new();
    for line in text.lines().skip(1) {
        let mut row: Value = serde_json::from_str(line).expect("JSON");
        let packed = row["type"].as_str().expect("a type").ends_with("-chunks");
        row[if packed { "seq0" } else { "seq" }] = events.len().into();
        row[if packed { "time0" } else { "time" }] = 1000.into();
        events.extend(StoredRow::from_json(&row.to_string()).expect("a row").into_events());
    }
    events
}

const LOGS: [&str; 5] = [
    "code-mode-turn.jsonl",
    "compaction-recovery.jsonl",
    "fs-edit.jsonl",
    "parallel-tool-calls.jsonl",
    "todo-write.jsonl",
];

fn fold(events: &[Event]) -> Log {
    let mut log = Log::new(SessionHeader::new("s".into(), 0, Some("/w".into())));
    for event in events {
        log.apply(event).expect("fits");
    }
    log
}

#[test]
fn recorded_logs_fold_and_keep_every_invariant() {
    for name in LOGS {
        let events = recorded(name);
        assert_eq!(check_invariants(&events), [], "{name}");
        let log = fold(&events);
        assert_eq!(log.turn().open_turn(), None, "{name}");
        assert!(log.inbox().is_empty(), "{name}");
        assert!(log.request_header().is_some(), "{name}");
        assert!(closers(&log).is_empty(), "{name}");
    }
}

#[test]
fn derived_messages_are_the_surface_verbatim() {
    let events = recorded("parallel-tool-calls.jsonl");
    let log = fold(&events);
    let roles: Vec<&str> = log.messages().map(|message| message.source.kind()).collect();
    assert_eq!(roles, ["user", "plugin", "model", "tool", "tool", "model"]);
    let events = recorded("compaction-recovery.jsonl");
    let log = fold(&events);
    // The compacted user message is replaced in place by its checkpoint.
    assert_eq!(log.messages().next().expect("a message").source.kind(), "plugin");
    assert_eq!(log.surface().replace_generation(), 1);
}

/// Every call block of the surface has exactly one result, after it and before the next reply.
fn assert_calls_answered_once(log: &Log) {
    let mut results: HashMap<String, usize> = HashMap::new();
    for message in log.messages() {
        if let Some(block) = message.tool_result() {
            *results.entry(block.tool_call_id.0.clone()).or_default() += 1;
        }
    }
    for message in log.messages() {
        for block in &message.content {
            if let ContentBlock::ToolCall(call) = block {
                assert_eq!(results.remove(call.id.as_str()), Some(1), "{}", call.id);
            }
        }
    }
    assert!(results.is_empty(), "stray results: {results:?}");
}

#[test]
fn a_log_cut_anywhere_is_closed_in_order() {
    for name in LOGS {
        let events = recorded(name);
        for length in 0..=events.len() {
            let mut cut = events[..length].to_vec();
            let log = fold(&cut);
            cut.extend(closers(&log));
            let log = fold(&cut);
            assert_eq!(log.turn().open_turn(), None, "{name} at {length}");
            // A replacement announced before the cut is not there, which is not the closers' doing.
            assert_eq!(check_invariants(&cut), [], "{name} at {length}");
            assert_calls_answered_once(&log);
        }
    }
}

#[test]
fn closers_tell_started_calls_from_those_that_were_not() {
    let events = recorded("parallel-tool-calls.jsonl");
    let first_call = events.iter().position(|event| event.kind == "tool/call").expect("a call");
    let log = fold(&events[..=first_call]);
    let closing: Vec<Value> =
        closers(&log).iter().map(|event| serde_json::from_str(&event.to_json()).expect("JSON")).collect();
    let kinds: Vec<&str> = closing.iter().map(|event| event["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["tool/result", "tool/result", "step/end", "turn/end"]);
    assert_eq!(
        closing[0]["data"]["error"],
        json!({"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"})
    );
    assert_eq!(closing[0]["sourceEventSeqs"], json!([first_call]));
    assert_eq!(
        closing[1]["data"]["error"],
        json!({"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"})
    );
    assert_eq!(closing[1].get("sourceEventSeqs"), None);
    let id = format!("interrupted-tool-result-call_read_b-{}", first_call + 2);
    assert_eq!(closing[1]["data"]["message"]["id"], json!(id));
    assert_eq!(closing[3]["data"]["reason"], json!({"kind": "interrupted"}));
}

#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn message_event(seq: u64, extra: Value) -> Event {
    let mut event = json!({"type": "user/message", "seq": seq, "time": 0,
        "data": {"content": [], "source": {"kind": "user"}, "role": "user", "id": format!("m{seq}")}, "surfaceOp": "append"});
    for (key, value) in extra.as_object().expect("an object") {
        if value.is_null() {
            event.as_object_mut().expect("an object").remove(key);
        } else {
            event[key] = value.clone();
        }
    }
    Event::from_json(&event.to_string()).expect("an event")
}

#[test]
fn surface_rules_are_enforced_in_dsh_words() {
    let error = |event: Event| {
        let mut log = fold(&[message_event(0, json!({})), message_event(1, json!({}))]);
        let before = log.messages().count();
        let error = log.apply(&event).expect_err("refused").to_string();
        assert_eq!((log.messages().count(), log.next_seq()), (before, 2), "a refused event changes nothing");
        error
    };
    assert_eq!(error(message_event(3, json!({}))), "session event seq 3 is not contiguous; expected 2");
    assert_eq!(
        error(message_event(2, json!({"surfaceOp": null}))),
        "session event \"user/message\" is surface-eligible and requires a surfaceOp marker"
    );
    assert_eq!(
        error(message_event(2, json!({"type": "turn/start", "data": {"turn": 1}}))),
        "session event \"turn/start\" is not surface-eligible and cannot carry surfaceOp"
    );
    let replace = |start: u64, end: u64, sources: Value| {
        message_event(
            2,
            json!({"surfaceOp": {"op": "replace", "start": start, "end": end}, "sourceEventSeqs": sources}),
        )
    };
    assert_eq!(error(replace(7, 7, json!([0]))), "surface replace: start seq 7 not found in surface");
    assert_eq!(
        error(replace(1, 0, json!([0, 1]))),
        "surface replace: start seq 1 (index 1) is after end seq 0 (index 0)"
    );
    assert_eq!(
        error(replace(0, 1, json!([1]))),
        "surface replace: sourceEventSeqs must include every shadowed surface node; missing 0"
    );
    assert_eq!(
        error(message_event(2, json!({"sourceEventSeqs": [2]}))),
        "sourceEventSeqs must reference earlier events: 2 >= current seq 2"
    );
    assert_eq!(
        error(message_event(2, json!({"sourceEventSeqs": [1, 0, 1]}))),
        "sourceEventSeqs must not contain duplicates"
    );
    assert!(
        error(message_event(
            2,
            json!({"data": {"content": [], "source": {"kind": "user"}, "role": "assistant", "id": "x"}})
        ))
        .ends_with("message must have role \"user\"")
    );
}

#[test]
fn an_unknown_event_type_is_refused_unless_it_may_be_skipped() {
    let unknown = |ignorable: &str| {
        Event::from_json(&format!(r#"{{"type":"later/thing","seq":0,"time":0,"data":{{}}{ignorable}}}"#))
            .expect("an event")
    };
    let mut log = fold(&[]);
    assert!(matches!(log.apply(&unknown("")), Err(FoldError::UnknownType { .. })));
    log.apply(&unknown(r#","ignorable":true"#)).expect("skipped");
    assert_eq!(log.next_seq(), 1);
}

#[test]
fn a_fork_does_not_inherit_what_waits() {
    let splice = json!({"type": "agent/inbox/spliced", "seq": 0, "time": 0, "data": {"target": "next-turn", "start": 0,
        "inserted": [{"content": [], "source": {"kind": "user"}, "role": "user", "id": "m"}]}});
    let splice = Event::from_json(&splice.to_string()).expect("an event");
    let mut header = SessionHeader::new("s".into(), 0, None);
    header.seed_length = Some(1);
    let mut log = Log::new(header);
    log.apply(&splice).expect("fits");
    assert!(log.inbox().is_empty());
    assert!(!fold(&[splice]).inbox().is_empty());
}

#[tokio::test]
async fn subscribers_see_events_in_order_and_a_refused_draft_reaches_nobody() {
    let session = Session::in_memory(SessionHeader::new("s".into(), 0, None));
    let mut seen = session.subscribe();
    session.append(Draft::new(&TurnStart { turn: 1 })).expect("fits");
    session.append(Draft::new(&TurnStart { turn: 1 }).on_surface()).expect_err("not on the surface");
    session.append(Draft::new(&Message::user_text("m", "hi", Source::user())).on_surface()).expect("fits");
    session.flush().await.expect("kept");
    assert_eq!(seen.recv().await.expect("an event").seq, 0);
    let second = seen.recv().await.expect("an event");
    assert_eq!((second.seq, second.surface_op), (1, Some(SurfaceOp::Append)));
    assert!(seen.try_recv().is_err());
}

proptest! {
    /// Replacements anywhere leave a surface that is what a list model says.
    #[test]
    fn the_surface_follows_a_list_model(ops in prop::collection::vec((any::<bool>(), 0_usize..50, 0_usize..50), 1..60)) {
        let mut log = fold(&[]);
        let mut model: Vec<u64> = Vec::new();
        for (seq, (append, a, b)) in ops.into_iter().enumerate() {
            let seq = seq as u64;
            if append || model.is_empty() {
                log.apply(&message_event(seq, json!({}))).expect("fits");
                model.push(seq);
            } else {
                let (a, b) = (a % model.len(), b % model.len());
                let (first, last) = (a.min(b), a.max(b));
                let sources: Vec<u64> = model[first..=last].to_vec();
                let op = json!({"op": "replace", "start": model[first], "end": model[last]});
                log.apply(&message_event(seq, json!({"surfaceOp": op, "sourceEventSeqs": sources}))).expect("fits");
                model.splice(first..=last, [seq]);
            }
            let nodes: Vec<u64> = log.surface().nodes().iter().map(|node| node.seq).collect();
            prop_assert_eq!(&nodes, &model);
        }
    }
}
