//! Properties and vectors: unknown things survive, packing loses nothing, malformed rows are refused.

use lorimer_protocol::{
    ContentBlock, Event, Message, Source, StoredRow, SurfaceOp, lang_from_path, pack_rows,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn same_json<T: serde::de::DeserializeOwned + serde::Serialize>(value: &Value) {
    let typed: T = serde_json::from_value(value.clone()).expect("typed");
    assert_eq!(serde_json::to_value(typed).expect("JSON"), *value);
}

#[test]
fn unknown_blocks_sources_and_fields_survive() {
    same_json::<ContentBlock>(&json!({"type": "text", "text": "x", "cache": {"a": [1, null]}}));
    same_json::<ContentBlock>(&json!({"type": "video", "frames": [1, 2]}));
    same_json::<ContentBlock>(&json!({"type": "text", "body": "malformed"}));
    same_json::<ContentBlock>(
        &json!({"type": "tool-call", "id": "c", "name": "n", "arguments": "{}", "sig": "s"}),
    );
    same_json::<Source>(&json!({"kind": "goal", "goalId": "g", "round": 2}));
    same_json::<Source>(&json!({"kind": "user", "rpcId": 7}));
    same_json::<Message>(&json!({
        "content": [{"type": "later"}], "source": {"kind": "user"}, "role": "user", "id": "m", "mood": "fine"
    }));
}

#[test]
fn message_keys_are_written_in_dsh_order() {
    let user = Message::user_text("m", "hi", Source::user());
    assert_eq!(
        serde_json::to_string(&user).expect("JSON"),
        r#"{"content":[{"type":"text","text":"hi"}],"source":{"kind":"user"},"role":"user","id":"m"}"#
    );
    let tool = Message { source: Source::tool("c".into()), ..user };
    assert_eq!(
        serde_json::to_string(&tool).expect("JSON"),
        r#"{"source":{"kind":"tool","callId":"c"},"content":[{"type":"text","text":"hi"}],"role":"user","id":"m"}"#
    );
}

#[test]
fn events_are_written_back_byte_for_byte() {
    for line in [
        r#"{"type":"lorimer/x","seq":0,"time":-5,"data":{"big":123456789012345678901234567890,"f":1.0},"ignorable":true}"#,
        r#"{"type":"user/message","seq":90,"time":5,"data":{},"sourceEventSeqs":[4,5],"surfaceOp":{"op":"replace","start":4,"end":57}}"#,
    ] {
        assert_eq!(Event::from_json(line).expect("an event").to_json(), line);
    }
}

#[test]
fn an_envelope_has_exactly_its_keys() {
    for line in [
        r#"{"type":"x","seq":0,"time":0,"data":{},"id":"e"}"#,
        r#"{"type":"x","seq":-1,"time":0,"data":{}}"#,
        r#"{"type":"x","seq":0,"time":0}"#,
        r#"{"type":"x","seq":0,"time":0,"data":{},"surfaceOp":"prepend"}"#,
        r#"{"type":"x","seq":0,"time":0,"data":{},"surfaceOp":{"op":"replace","start":1,"end":2,"why":"x"}}"#,
    ] {
        assert!(Event::from_json(line).is_err(), "{line}");
    }
}

#[test]
fn the_packing_vector_of_the_format() {
    let chunk = |seq: u64, time: i64, chunk: Value| {
        let event = json!({"type": "assistant/chunk", "seq": seq, "time": time, "data": {"turn": 1, "step": 1, "chunk": chunk}});
        Event::from_json(&event.to_string()).expect("an event")
    };
    let events = [
        chunk(0, 100, json!({"type": "text-delta", "index": 0, "text": "a"})),
        chunk(1, 105, json!({"type": "text-delta", "index": 0, "text": "b"})),
        chunk(2, 103, json!({"type": "text-delta", "index": 0, "text": "c"})),
        chunk(
            3,
            100,
            json!({"type": "tool-call-delta", "index": 1, "id": "x", "name": "n", "argumentsDelta": "{"}),
        ),
        chunk(4, 100, json!({"type": "tool-call-delta", "index": 1, "id": "x", "argumentsDelta": "}"})),
    ];
    let rows: Vec<String> = pack_rows(&events).iter().map(StoredRow::to_json).collect();
    assert_eq!(
        rows[0],
        r#"{"type":"text-chunks","seq0":0,"time0":100,"data":{"turn":1,"step":1,"index":0,"dt":[5,-2],"texts":["a","b","c"]}}"#
    );
    assert_eq!(rows.len(), 3);
}

#[test]
fn malformed_packed_rows_say_which_rule_they_break() {
    let row = |change: &dyn Fn(&mut Value)| {
        let mut row = json!({"type": "text-chunks", "seq0": 1, "time0": 2, "data": {"turn": 1, "step": 1, "index": 0, "dt": [1], "texts": ["a", "b"]}});
        change(&mut row);
        StoredRow::from_json(&row.to_string()).expect_err("malformed").to_string()
    };
    let why = |text: &str| format!("malformed text-chunks storage row: {text}");
    assert_eq!(row(&|r| r["x"] = 1.into()), why("envelope must be exactly {type, seq0, time0, data}"));
    assert_eq!(row(&|r| r["seq0"] = (-1).into()), why("seq0 must be a non-negative safe integer"));
    assert_eq!(row(&|r| r["time0"] = json!(0.5)), why("time0 must be a safe integer"));
    assert_eq!(row(&|r| r["data"] = 1.into()), why("data must be an object"));
    assert_eq!(
        row(&|r| r["data"]["id"] = 1.into()),
        why("data must be exactly {turn, step, index, dt, texts}")
    );
    assert_eq!(row(&|r| r["data"]["turn"] = "1".into()), why("turn/step/index must be numbers"));
    assert_eq!(row(&|r| r["data"]["texts"] = json!([])), why("texts must be a non-empty string array"));
    assert_eq!(row(&|r| r["data"]["dt"] = json!([0.5])), why("dt must be an array of safe integers"));
    assert_eq!(row(&|r| r["data"]["dt"] = json!([1, 2])), why("dt length 2 does not match 2 members"));
    assert_eq!(
        row(&|r| r["time0"] = 9_007_199_254_740_991_i64.into()),
        why("member times must stay safe integers")
    );
    assert_eq!(
        row(&|r| r["seq0"] = 9_007_199_254_740_991_i64.into()),
        why("member seqs must stay safe integers")
    );
}

#[test]
fn surface_ops_are_read() {
    let op: SurfaceOp = serde_json::from_str(r#"{"op":"replace","start":1,"end":2}"#).expect("an op");
    assert_eq!(op, SurfaceOp::Replace { start: 1, end: 2 });
}

#[test]
fn language_hints_come_from_the_last_extension() {
    for (path, lang) in [
        ("a/B.TS", Some("ts")),
        (r"a\b.Py", Some("py")),
        ("x.mdx", Some("md")),
        ("x.HPP", Some("cpp")),
        (".gitignore", None),
        ("x.constructor", None),
        ("x.__proto__", None),
        ("a.b/c", None),
        ("/etc/hosts", None),
        ("trailing.", None),
        ("", None),
    ] {
        assert_eq!(lang_from_path(path), lang, "{path}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_chunk() -> impl Strategy<Value = Value> {
    let index = 0_u8..2;
    prop_oneof![
        (index.clone(), ".{0,4}").prop_map(|(i, t)| json!({"type": "text-delta", "index": i, "text": t})),
        (index.clone(), ".{0,4}")
            .prop_map(|(i, t)| json!({"type": "reasoning-delta", "index": i, "text": t})),
        (index.clone(), any::<bool>(), ".{0,4}").prop_map(|(i, named, t)| {
            let mut chunk = json!({"type": "tool-call-delta", "index": i, "id": "c", "argumentsDelta": t});
            if named {
                chunk["name"] = "read".into();
            }
            chunk
        }),
        index.prop_map(|i| json!({"type": "text-delta", "index": i, "text": "x", "extra": 1})),
        any_json(),
    ]
}

proptest! {
    #[test]
    fn unknown_data_is_kept_verbatim(data in any_json(), seq in 0_u64..1_000_000, time in any::<i32>()) {
        let line = format!(r#"{{"type":"lorimer/any","seq":{seq},"time":{time},"data":{data},"ignorable":true}}"#);
        prop_assert_eq!(Event::from_json(&line).expect("an event").to_json(), line);
    }

    #[test]
    fn packing_and_unpacking_give_equal_events(
        chunks in prop::collection::vec((any_chunk(), -1000_i64..1000), 0..40),
        start in 0_u64..100,
    ) {
        let events: Vec<Event> = chunks.iter().enumerate().map(|(at, (chunk, time))| {
            let event = json!({"type": "assistant/chunk", "seq": start + at as u64, "time": time, "data": {"turn": 1, "step": 2, "chunk": chunk}});
            Event::from_json(&event.to_string()).expect("an event")
        }).collect();
        let unpacked: Vec<Value> = pack_rows(&events)
            .iter()
            .flat_map(|row| StoredRow::from_json(&row.to_json()).expect("a row").into_events())
            .map(|event| serde_json::from_str(&event.to_json()).expect("JSON"))
            .collect();
        let before: Vec<Value> = events.iter().map(|event| serde_json::from_str(&event.to_json()).expect("JSON")).collect();
        prop_assert_eq!(unpacked, before);
    }

    #[test]
    fn no_line_makes_a_reader_panic(line in ".*") {
        let _ = StoredRow::from_json(&line);
        let _ = lorimer_protocol::SessionHeader::from_json(&line);
    }
}
