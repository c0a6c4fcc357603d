//! Logs of other writers taken in: recorded fixtures, logs of format 4, older shapes, and files that mean harm.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lorimer_protocol::{ContentBlock, Event, Message, Payload, Role, SessionHeader, StoredRow};
use lorimer_session::{Compression, ImportError, Imported, Log, Store, StoreOptions, check_invariants};
use proptest::prelude::*;
use serde_json::{Value, json};

const LOGS: [&str; 5] = [
    "code-mode-turn.jsonl",
    "compaction-recovery.jsonl",
    "fs-edit.jsonl",
    "parallel-tool-calls.jsonl",
    "todo-write.jsonl",
];
const CWD: &str = "/somewhere/\"else\"";

struct Home {
    dir: tempfile::TempDir,
    store: Store,
}

fn home(compression: Compression) -> Home {
    let dir = tempfile::tempdir().expect("a directory");
    let options = StoreOptions { compression, sync: false, ..StoreOptions::default() };
    Home { store: Store::new(&dir.path().join("home"), options), dir }
}

impl Home {
    fn write(&self, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join("foreign");
        std::fs::write(&path, bytes).expect("written");
        path
    }

    fn import(&self, text: &str) -> Result<Imported, ImportError> {
        self.store.import(&self.write(text), None)
    }

    fn events(&self, imported: &Imported) -> Vec<Event> {
        self.store.events(&imported.id).expect("opens").map(|event| event.expect("whole")).collect()
    }

    fn messages(&self, imported: &Imported) -> Vec<Message> {
        let opened = self.store.open(&imported.id).expect("opens");
        opened.session.with_log(|log| log.messages().map(|message| message.as_ref().clone()).collect())
    }
}

fn fixtures(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(folder)
}

/// A recorded fixture as it is meant: with seqs, times and a working directory.
fn recorded(name: &str) -> Vec<Event> {
    let text =
        std::fs::read_to_string(fixtures("conformance/logs").join(name)).expect("the fixture is there");
    let text = text.replace("{{cwd}}", &CWD.replace('"', "\\\""));
    let mut events: Vec<Event> = Vec::new();
    for line in text.lines().skip(1) {
        let mut row: Value = serde_json::from_str(line).expect("JSON");
        let packed = row["type"].as_str().expect("a type").ends_with("-chunks");
        row[if packed { "seq0" } else { "seq" }] = events.len().into();
        row[if packed { "time0" } else { "time" }] = 0.into();
        events.extend(StoredRow::from_json(&row.to_string()).expect("a row").into_events());
    }
    events
}

/// Every call has one result after it, and every result a call before it.
fn assert_paired(messages: &[Message]) {
    let mut open = HashSet::new();
    for block in messages.iter().flat_map(|message| &message.content) {
        match block {
            ContentBlock::ToolCall(call) => assert!(open.insert(call.id.clone()), "{} twice", call.id),
            ContentBlock::ToolResult(result) => {
                assert!(open.remove(&result.tool_call_id), "{} unasked", result.tool_call_id);
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "without a result: {open:?}");
}

#[test]
fn recorded_fixtures_open_fold_and_say_the_same() {
    for (name, compression) in
        LOGS.iter().flat_map(|name| [(name, Compression::None), (name, Compression::Zstd)])
    {
        let home = home(compression);
        let path = fixtures("conformance/logs").join(name);
        assert!(matches!(home.store.import(&path, None), Err(ImportError::NoDirectory { .. })), "{name}");
        let imported = home.store.import(&path, Some(Path::new(CWD))).expect("imported");
        assert_eq!((imported.format, imported.notes.as_slice()), (0, &[][..]), "{name}");
        let (events, original) = (home.events(&imported), recorded(name));
        assert_eq!(check_invariants(&events), [], "{name}");
        assert_eq!(events.len(), original.len(), "{name}");
        let mut log = Log::new(SessionHeader::new("s".into(), 0, None));
        original.iter().for_each(|event| log.apply(event).expect("fits"));
        let messages = home.messages(&imported);
        assert_paired(&messages);
        let expected: Vec<&Message> = log.messages().map(AsRef::as_ref).collect();
        assert_eq!(messages.len(), expected.len(), "{name}");
        for (mut message, original) in messages.into_iter().zip(expected) {
            assert!(!message.id.as_str().contains("{{"), "{name}");
            if original.id.as_str() == "{{sessionId}}" {
                message.id = original.id.clone();
            }
            assert_eq!(&message, original, "{name}");
        }
        let listed = home.store.list_of(Path::new(CWD));
        assert_eq!(listed.len(), 1);
        assert!(listed[0].title.is_some() && listed[0].first_user_text.is_some(), "{name}");
    }
}

fn imported_format4(home: &Home, name: &str) -> (Imported, Vec<Event>) {
    let path = fixtures("dsh-v4").join(name);
    let imported = home.store.import(&path, None).expect("imported");
    assert_eq!((imported.format, imported.notes.as_slice()), (4, &[][..]), "{name}");
    let events = home.events(&imported);
    assert_eq!(imported.events, events.len() as u64);
    assert_eq!(check_invariants(&events), [], "{name}");
    (imported, events)
}

#[test]
fn a_log_of_format_4_becomes_one_of_format_0() {
    for compression in [Compression::None, Compression::Zstd] {
        let home = home(compression);
        let (imported, events) = imported_format4(&home, "tools.v4.jsonl.zstd");
        assert!(imported.id.as_str().starts_with("session-"), "its own id is free");
        let opened = home.store.open(&imported.id).expect("opens");
        assert!(!opened.closed_turn);
        opened.session.with_log(|log| {
            assert_eq!(log.header().cwd.as_deref(), Some("/tmp/demo"));
            let header = log.request_header().expect("a header");
            assert!(header.system.as_deref().expect("a prompt").starts_with("You are an AI agent"));
            assert!(log.tool_specs().len() > 10);
            assert_eq!(log.title().map(|title| title.title.as_str()), Some("Helper text"));
            let title_seq = log.title().expect("a title").message_seqs[0];
            assert_eq!(events[title_seq as usize].kind, "user/message", "seqs in payloads follow");
            assert_eq!(log.todos().len(), 1);
        });
        drop(opened);
        let messages = home.messages(&imported);
        assert_paired(&messages);
        assert!(messages.iter().all(|message| message.role != Role::System));
        assert_eq!(messages.last().expect("a reply").text(), "All done.");
        let again =
            home.store.import(&fixtures("dsh-v4").join("tools.v4.jsonl.zstd"), None).expect("imported");
        assert_ne!(again.id, imported.id, "the id is taken now");
    }
}

#[test]
fn streams_of_format_4_become_chunks_that_their_message_cites() {
    let home = home(Compression::None);
    let (_, events) = imported_format4(&home, "tools.v4.jsonl.zstd");
    let replies: Vec<&Event> = events.iter().filter(|event| event.kind == "assistant/message").collect();
    assert_eq!(replies.len(), 4);
    for reply in replies {
        assert!(!reply.data.get().contains("\"stream\""));
        let cited = reply.source_event_seqs.as_ref().expect("chunks");
        assert!(cited.len() >= 4 && cited.iter().all(|seq| events[*seq as usize].kind == "assistant/chunk"));
    }
    let (_, events) = imported_format4(&home, "failed.v4.jsonl.zstd");
    let chunk = events.iter().find(|event| event.kind == "assistant/chunk").expect("the refusal");
    assert!(chunk.data.get().contains("bad thing"));
}

#[test]
fn what_has_no_place_is_kept_and_nested_calls_get_our_names() {
    let home = home(Compression::None);
    let (_, events) = imported_format4(&home, "code.v4.jsonl.zstd");
    let kept: Vec<Value> = events
        .iter()
        .filter(|event| event.kind == "lorimer/imported")
        .inspect(|event| assert_eq!(event.ignorable, Some(true)))
        .map(|event| serde_json::from_str(event.data.get()).expect("JSON"))
        .collect();
    for kind in ["system/message", "job/registered", "job/settled", "session-log-deepseek/delivery-accepted"]
    {
        let one = kept.iter().find(|kept| kept["type"] == kind).unwrap_or_else(|| panic!("{kind} is lost"));
        assert!(one["format"] == 4 && one["seq"].is_u64() && one["data"].is_object(), "{one}");
    }
    let nested: Vec<Value> = events
        .iter()
        .filter(|event| event.kind == "tool/code-dispatch")
        .map(|event| serde_json::from_str(event.data.get()).expect("JSON"))
        .collect();
    assert_eq!(nested.len(), 2);
    assert_eq!(
        (&nested[0]["subCallId"], &nested[1]["subCallId"]),
        (&json!("c4:code:1"), &json!("c4:code:2"))
    );
    assert_eq!(nested[1]["error"]["code"], "FS_NOT_FOUND");
    assert_eq!(nested[0]["meta"]["cwd"], "/tmp/demo");
    assert!(!events.iter().any(|event| event.kind.contains("ptc")));
}

#[test]
fn a_log_of_format_4_that_ends_anywhere_opens_with_its_calls_answered() {
    let packed = std::fs::read(fixtures("dsh-v4").join("tools.v4.jsonl.zstd")).expect("there");
    let text = String::from_utf8(zstd::decode_all(packed.as_slice()).expect("frames")).expect("text");
    let home = home(Compression::None);
    for (end, _) in text.match_indices('\n') {
        let imported = home.import(&text[..=end]).expect("imported");
        assert_paired(&home.messages(&imported));
        assert_eq!(check_invariants(&home.events(&imported)), [], "cut at {end}");
    }
}

#[test]
fn an_exported_session_comes_back_as_it_was() {
    let home = home(Compression::Zstd);
    let (imported, before) = imported_format4(&home, "code.v4.jsonl.zstd");
    let mut exported = Vec::new();
    home.store.export(&imported.id, &mut exported).expect("exported");
    let elsewhere = self::home(Compression::None);
    let again = elsewhere.store.import(&home.write(&exported), None).expect("imported");
    assert_eq!((&again.id, again.format, again.notes.len()), (&imported.id, 0, 0));
    let rows = |events: &[Event]| events.iter().map(Event::to_json).collect::<Vec<_>>();
    assert_eq!(rows(&elsewhere.events(&again)), rows(&before));
}

const HEADER: &str =
    r#"{"type":"session","version":0,"id":"old","createdAt":7,"cwd":"/w","delegationDepth":0}"#;
const HEADER_4: &str = r#"{"type":"session","version":4,"id":"four","createdAt":7,"cwd":"/w","isSeeded":true,"delegationDepth":0}"#;

fn log(header: &str, rows: &[Value]) -> String {
    let mut text = format!("{header}\n");
    for (seq, row) in rows.iter().enumerate() {
        let mut row = row.clone();
        let object = row.as_object_mut().expect("an object");
        object.insert("seq".to_owned(), seq.into());
        object.insert("time".to_owned(), 5.into());
        text.push_str(&format!("{row}\n"));
    }
    text
}

fn turn(turn: u64, reason: &Value) -> [Value; 2] {
    [
        json!({"type": "turn/start", "data": {"turn": turn, "trigger": "user"}}),
        json!({"type": "turn/end", "data": {"turn": turn, "reason": reason}}),
    ]
}

#[test]
fn older_shapes_are_brought_into_todays() {
    let home = home(Compression::None);
    let user =
        json!({"content": [{"type": "text", "text": "hi"}], "source": {"kind": "user"}, "role": "user"});
    let mut rows = vec![
        json!({"type": "user/message", "data": user, "surfaceOp": "append"}),
        json!({"type": "steering/message", "data": user, "surfaceOp": "append"}),
        json!({"type": "agent/inbox/spliced", "data": {"target": "next-turn", "start": 0, "inserted": [user, user]}}),
        json!({"type": "mode/set", "data": {"mode": "x"}}),
        json!({"type": "request/header", "data": {"header": {"config": {"provider": "p", "model": "m"}}, "reason": "fallback"}}),
    ];
    let old_error = json!({"kind": "error", "step": 1, "message": "bad", "code": "AUTH"});
    let failure = json!({"kind": "error", "failure": {"message": "bad", "code": "AUTH"}});
    for (at, reason) in
        [json!({"kind": "aborted"}), json!({"kind": "disposed"}), old_error, failure].into_iter().enumerate()
    {
        rows.extend(turn(at as u64 + 1, &reason));
    }
    let imported = home.import(&log(HEADER, &rows)).expect("imported");
    assert_eq!((imported.id.as_str(), imported.events), ("old", rows.len() as u64));
    assert_eq!(imported.notes.len(), 1, "the retired header: {:?}", imported.notes);
    let events = home.events(&imported);
    assert_eq!(check_invariants(&events), []);
    let reasons: Vec<Value> = events
        .iter()
        .filter(|event| event.kind == "turn/end")
        .map(|event| serde_json::from_str::<Value>(event.data.get()).expect("JSON")["reason"].clone())
        .collect();
    let error = json!({"kind": "error", "error": {"message": "bad", "code": "AUTH"}});
    assert_eq!(
        reasons,
        [
            json!({"kind": "aborted", "reason": {"kind": "legacy"}}),
            json!({"kind": "aborted", "reason": {"kind": "disposed"}}),
            error.clone(),
            error
        ]
    );
    assert!(events.iter().all(|event| !event.data.get().contains("trigger")));
    let ids: Vec<String> = home.messages(&imported).into_iter().map(|message| message.id.0).collect();
    assert_eq!(ids, ["legacy-message:old:0", "legacy-message:old:1"]);
    assert!(events[2].data.get().contains("legacy-message:old:2:1"));
}

#[test]
fn replacements_and_seeds_of_format_4_are_renumbered() {
    let home = home(Compression::None);
    let user = |id: &str| json!({"content": [], "source": {"kind": "user"}, "role": "user", "id": id});
    let system = |text: &str| {
        json!({"turn": 1, "step": 1, "message": {"role": "system", "content": [{"type": "text", "text": text}],
        "source": {"kind": "system-prompt"}, "id": text}})
    };
    let stream =
        json!([{"type": "text-chunks", "time0": 3, "index": 0, "dt": [1, 1], "texts": ["a", "b", "c"]}]);
    let reply = |id: &str| {
        json!({"turn": 1, "step": 1, "stream": stream, "message": {"role": "assistant", "content": [{"type": "text", "text": "abc"}],
        "source": {"kind": "model", "provider": "p", "model": "m"}, "id": id}})
    };
    let rows = [
        json!({"type": "turn/start", "data": {"turn": 1}}),
        json!({"type": "step/start", "data": {"turn": 1, "step": 1}}),
        json!({"type": "system/message", "data": system("one"), "surfaceOp": "append"}),
        json!({"type": "user/message", "data": user("u1"), "surfaceOp": "append"}),
        json!({"type": "request/header", "data": {"header": {"config": {"provider": "p", "model": "m"}, "tools": []}, "reason": "initial"}}),
        json!({"type": "assistant/message", "data": reply("a1"), "surfaceOp": "append"}),
        json!({"type": "session/end-seed", "data": {}}),
        json!({"type": "user/message", "data": user("u2"), "sourceEventSeqs": [2, 3, 5], "surfaceOp": {"op": "replace", "start": 2, "end": 5}}),
        json!({"type": "system/message", "data": system("two"), "surfaceOp": "append"}),
        json!({"type": "assistant/message", "data": reply("a2"), "surfaceOp": "append"}),
        json!({"type": "step/end", "data": {"turn": 1, "step": 1}}),
    ];
    let imported = home.import(&log(HEADER_4, &rows)).expect("imported");
    assert_eq!(imported.notes, ["turn 1 was not finished; it is closed when the session is opened"]);
    let events = home.events(&imported);
    let opened = home.store.open(&imported.id).expect("opens");
    opened.session.with_log(|log| {
        let ids: Vec<&str> = log.messages().map(|message| message.id.as_str()).collect();
        assert_eq!(ids, ["u2", "a2"]);
        assert_eq!(log.header().seed_length, Some(9), "three chunks before the reply");
        assert_eq!(log.request_header().and_then(|header| header.system.as_deref()), Some("two"));
    });
    assert_eq!(events[9].kind, "session/end-seed");
    let times: Vec<i64> =
        events.iter().filter(|event| event.kind == "assistant/chunk").map(|event| event.time).collect();
    assert_eq!(times[..3], [3, 4, 5]);
    assert!(matches!(events[8].payload(), Ok(Payload::AssistantMessage(_))));
}

#[test]
fn an_error_names_the_file_and_the_line() {
    let home = home(Compression::None);
    let start = r#"{"type":"turn/start","seq":0,"time":0,"data":{"turn":1}}"#;
    for (text, wanted) in [
        (format!("{HEADER}\nnot json\n{start}\n"), "event line 1: "),
        (format!("{HEADER}\n{start}\n{start}\n"), "event line 2: corrupt session log: seq gap"),
        (format!("{HEADER_4}\n{start}\n{start}\n"), "event line 2: seq gap"),
        (format!("{HEADER_4}\n[1]\n{start}\n"), "event line 1: is not an event"),
        ("hello\n".to_owned(), "is not a session log"),
        (String::new(), "is not a session log: it has no whole first line"),
        (HEADER.replace("\"version\":0", "\"version\":3") + "\n", "has log format 3; formats 0 and 4"),
    ] {
        let error = home.import(&text).expect_err("refused").to_string();
        assert!(error.contains(wanted) && error.contains("foreign"), "{error}");
        assert_eq!(home.store.list(), [], "nothing is left");
    }
    assert!(matches!(home.store.import(home.dir.path(), None), Err(ImportError::NotALog { .. })));
    assert!(matches!(home.store.import(Path::new("/nowhere"), None), Err(ImportError::Read { .. })));
    let torn = home.import(&format!("{HEADER}\n{start}\n{{\"type\":\"turn/")).expect("imported");
    assert_eq!((torn.events, torn.notes.len()), (1, 2), "{:?}", torn.notes);
}

#[test]
fn a_bomb_is_refused_without_being_held() {
    let home = home(Compression::None);
    let mut bomb = zstd::encode_all(format!("{HEADER}\n").as_bytes(), 1).expect("a frame");
    bomb.extend(zstd::encode_all(std::io::Read::take(std::io::repeat(b' '), 1 << 28), 1).expect("a frame"));
    assert!(bomb.len() < 100_000);
    let error = home.store.import(&home.write(&bomb), None).expect_err("refused").to_string();
    assert!(error.contains("event line 1: a line is longer than 16777216 bytes"), "{error}");
    let deep = format!(
        "{HEADER}\n{{\"type\":\"x/y\",\"seq\":0,\"time\":0,\"data\":{}1{}}}\n",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let imported = home.import(&deep).expect("kept as text");
    home.store.open(&imported.id).expect("opens");
}

#[test]
fn numbers_at_their_ends_do_not_overflow() {
    let home = home(Compression::None);
    let reply = |turn: u64, step: u64| {
        let usage = json!({"inputTokens": u64::MAX, "outputTokens": u64::MAX, "cacheReadTokens": u64::MAX});
        let stream = json!([{"type": "text-chunks", "time0": i64::MIN, "index": 0, "dt": [i64::MAX, i64::MAX, i64::MIN], "texts": ["a", "b", "c", "d", "e"]}]);
        json!({"type": "assistant/message", "surfaceOp": "append", "data": {"turn": turn, "step": step, "stream": stream, "usage": usage,
            "message": {"role": "assistant", "content": [], "source": {"kind": "model", "provider": "p", "model": "m"}, "id": "a"}}})
    };
    let splice = |start: u64, removed: u64| json!({"type": "agent/inbox/spliced", "data": {"target": "next-turn", "start": start, "removedCount": removed, "inserted": []}});
    let rows = [
        json!({"type": "turn/start", "data": {"turn": u64::MAX}}),
        json!({"type": "step/start", "data": {"turn": u64::MAX, "step": u64::MAX}}),
        reply(u64::MAX, u64::MAX),
        reply(u64::MAX, u64::MAX),
        splice(u64::MAX, u64::MAX),
        splice(0, u64::MAX),
        splice(1, u64::MAX),
        json!({"type": "step/start", "data": {"turn": u64::MAX, "step": 1}}),
        json!({"type": "turn/start", "data": {"turn": 1}}),
    ];
    for header in [HEADER, HEADER_4] {
        let imported = home.import(&log(header, &rows)).expect("imported");
        home.store.open(&imported.id).expect("opens");
        home.store.fork(&imported.id, lorimer_session::ForkPoint::End).expect("the opening closed its turn");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever happens to a file, importing it ends in an error or in a log that opens.
    #[test]
    fn a_mangled_file_never_panics(
        which in 0_usize..3,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        compressed in any::<bool>(),
    ) {
        let home = home(Compression::None);
        let mut bytes = if which == 0 {
            let recorded = recorded(LOGS[3]);
            let rows: Vec<String> = recorded.iter().map(Event::to_json).collect();
            format!("{HEADER}\n{}\n", rows.join("\n")).into_bytes()
        } else {
            let name = ["code.v4.jsonl.zstd", "failed.v4.jsonl.zstd"][which - 1];
            zstd::decode_all(std::fs::read(fixtures("dsh-v4").join(name)).expect("there").as_slice()).expect("frames")
        };
        if compressed {
            bytes = zstd::encode_all(bytes.as_slice(), 1).expect("a frame");
        }
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut.index(bytes.len()) % 100);
        if let Ok(imported) = home.store.import(&home.write(&bytes), Some(Path::new("/w"))) {
            let opened = home.store.open(&imported.id);
            prop_assert!(opened.is_ok(), "{}", opened.err().map(|error| error.to_string()).unwrap_or_default());
        }
    }
}
