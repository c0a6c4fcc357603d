#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
//! How fast a log is appended to and opened.
//!
//! ```text
//! cargo bench -p lorimer-session
//! ```
//!
//! Prints appended events a second without sync, flushes a second with sync, the time and memory that opening, forking
//! and importing a log of 100 MB takes in either encoding, and the time that a list of 300 sessions takes. Figures go
//! to `docs/performance.md`.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use lorimer_protocol::{
    AssistantChunk, AssistantMessage, ContentBlock, Draft, Extra, Message, Role, SessionHeader, SessionTitle,
    Source, StepEnd, StepStart, StreamChunk, TitleSource, ToolCall, ToolResult, ToolResultBlock, TurnEnd,
    TurnEndReason, TurnStart,
};
use lorimer_session::{Compression, ForkPoint, Log, Session, SessionSummary, Store, StoreOptions};
use serde_json::json;

const APPENDED_EVENTS: u64 = 500_000;
const SYNCED_FLUSHES: u64 = 2_000;
const LOG_BYTES: u64 = 100 * 1024 * 1024;

const LISTED_SESSIONS: usize = 300;

/// Set for a process that does one thing with a log and tells how much memory that took: what, and the log's home.
const TASK_VARIABLE: &str = "LORIMER_BENCH_TASK";
const HOME_VARIABLE: &str = "LORIMER_BENCH_HOME";

fn main() {
    if let (Some(task), Some(home)) = (std::env::var_os(TASK_VARIABLE), std::env::var_os(HOME_VARIABLE)) {
        return do_and_tell(&task.to_string_lossy(), Path::new(&home));
    }
    let dir = tempfile::tempdir().expect("a directory");
    append_without_sync(dir.path());
    flush_with_sync(dir.path());
    for compression in [Compression::None, Compression::Zstd] {
        println!("{compression:?}:");
        let dir = dir.path().join(format!("{compression:?}"));
        large_log(&dir.join("streamed"), compression, &|session, step| streamed_step(session, step));
        large_log(&dir.join("pruned"), compression, &|session, step| pruned_step(session, step));
        list_many(&dir.join("many"), compression);
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
}

fn store(dir: &Path, sync: bool) -> Store {
    Store::new(dir, StoreOptions { sync, ..StoreOptions::default() })
}

fn delta(step: u64, text: &str) -> Draft {
    let chunk = StreamChunk::TextDelta { index: 0, text: text.to_owned() };
    Draft::new(&AssistantChunk { turn: 1, step, chunk })
}

fn append_without_sync(dir: &Path) {
    let session = store(dir, false).create(dir).expect("created");
    session.append(Draft::new(&TurnStart { turn: 1 })).expect("fits");
    session.append(Draft::new(&StepStart { turn: 1, step: 1 })).expect("fits");
    let started = Instant::now();
    for _ in 0..APPENDED_EVENTS {
        session.append(delta(1, "a few words of an answer")).expect("fits");
    }
    runtime().block_on(session.flush()).expect("saved");
    let took = started.elapsed().as_secs_f64();
    println!(
        "append, no sync: {:.0} events/s ({APPENDED_EVENTS} deltas in {took:.2} s)",
        APPENDED_EVENTS as f64 / took
    );
}

fn flush_with_sync(dir: &Path) {
    let session = store(dir, true).create(dir).expect("created");
    let runtime = runtime();
    session.append(Draft::new(&TurnStart { turn: 1 })).expect("fits");
    session.append(Draft::new(&StepStart { turn: 1, step: 1 })).expect("fits");
    let started = Instant::now();
    for _ in 0..SYNCED_FLUSHES {
        session.append(delta(1, "x")).expect("fits");
        runtime.block_on(session.flush()).expect("saved");
    }
    let took = started.elapsed().as_secs_f64();
    println!("append and fdatasync: {:.3} ms a batch of one", took * 1000.0 / SYNCED_FLUSHES as f64);
}

fn large_log(home: &Path, compression: Compression, step: &dyn Fn(&Session, u64)) {
    write_log(home, compression, step);
    let name = home.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for task in ["open", "fork", "import"] {
        print!("  {task} {name} log: ");
        std::io::stdout().flush().expect("written");
        let program = std::env::current_exe().expect("a program");
        let mut command = std::process::Command::new(program);
        command.env(TASK_VARIABLE, task).env(HOME_VARIABLE, home).status().expect("ran");
    }
}

/// Sessions of some 200 KB each, with a title at the end.
fn list_many(home: &Path, compression: Compression) {
    let store = Store::new(home, StoreOptions { sync: false, compression, ..StoreOptions::default() });
    let session = store.create(Path::new("/w")).expect("created");
    let flush = || runtime().block_on(session.flush()).expect("saved");
    session.append(Draft::new(&TurnStart { turn: 1 })).expect("fits");
    let user = Message::user_text("u1", "what is wanted", Source::user());
    session.append(Draft::new(&user).on_surface()).expect("fits");
    flush();
    let mut word = 1_u64;
    for step in 1..=20 {
        session.append(Draft::new(&StepStart { turn: 1, step })).expect("fits");
        let words: String = std::iter::repeat_with(|| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:x} ", word >> 48)
        })
        .take(2_000)
        .collect();
        call_with_result(&session, step, &words, json!(null));
        session.append(Draft::new(&StepEnd { turn: 1, step })).expect("fits");
        flush();
    }
    session.append(Draft::new(&TurnEnd { turn: 1, reason: TurnEndReason::Completed })).expect("fits");
    let title = SessionTitle { title: "a title".into(), message_seqs: vec![1], source: TitleSource::User };
    session.append(Draft::new(&title)).expect("fits");
    flush();
    for _ in 1..LISTED_SESSIONS {
        store.fork(session.id(), ForkPoint::End).expect("forked");
    }
    let started = Instant::now();
    let listed = store.list();
    let took = started.elapsed().as_secs_f64();
    let whole = |summary: &SessionSummary| summary.first_user_text.is_some() && summary.title.is_some();
    assert!(listed.iter().all(whole));
    println!(
        "  list {} sessions of {} KiB: {:.1} ms",
        listed.len(),
        listed[0].size_bytes / 1024,
        took * 1000.0
    );
}

/// In a process of its own, so that nothing else is counted.
fn do_and_tell(task: &str, home: &Path) {
    let store = store(home, false);
    let id = "bench".into();
    let path = store.path(&id).expect("there");
    let started = Instant::now();
    let events = match task {
        "open" => store.open(&id).expect("opens").session.with_log(Log::next_seq),
        "fork" => store.fork(&id, ForkPoint::End).map(|_| 0).expect("forked"),
        _ => store.import(&path, None).expect("imported").events,
    };
    let took = started.elapsed().as_secs_f64();
    let size = std::fs::metadata(path).expect("there").len();
    println!(
        "{} MiB ({events} events) in {took:.3} s, {:.1} MiB at the peak",
        size / 1024 / 1024,
        resident_kib("VmHWM") as f64 / 1024.0,
    );
}

/// Steps until a plain log is of [`LOG_BYTES`]; as many when it is compressed.
fn write_log(home: &Path, compression: Compression, step: &dyn Fn(&Session, u64)) {
    let header = SessionHeader::new("bench".into(), 0, Some("/w".into()));
    let options = StoreOptions { sync: false, compression, ..StoreOptions::default() };
    let store = Store::new(home, options);
    let session = store.create_with(header).expect("created");
    let runtime = runtime();
    session.append(Draft::new(&TurnStart { turn: 1 })).expect("fits");
    let (mut number, mut written) = (1, 0);
    while written < LOG_BYTES {
        step(&session, number);
        number += 1;
        runtime.block_on(session.flush()).expect("saved");
        if number % 50 == 0 {
            let mut counted = Counter(0);
            store.export(session.id(), &mut counted).expect("exported");
            written = counted.0;
        }
    }
    session.append(Draft::new(&TurnEnd { turn: 1, reason: TurnEndReason::Completed })).expect("fits");
    runtime.block_on(session.flush()).expect("saved");
}

/// Counts what is written to it.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A reply of many deltas and one read of 200 lines: what an ordinary session is made of.
fn streamed_step(session: &Session, step: u64) {
    session.append(Draft::new(&StepStart { turn: 1, step })).expect("fits");
    for _ in 0..500 {
        session.append(delta(step, "and some more words ")).expect("fits");
    }
    let lines: Vec<_> =
        (0..200).map(|n| json!({"number": n + 1, "text": "a line of a file that was read"})).collect();
    call_with_result(session, step, &"a line of a file that was read\n".repeat(200), json!({"lines": lines}));
    session.append(Draft::new(&StepEnd { turn: 1, step })).expect("fits");
}

/// A large result that is replaced by a short one right away: little of it stays visible.
fn pruned_step(session: &Session, step: u64) {
    session.append(Draft::new(&StepStart { turn: 1, step })).expect("fits");
    let (seq, result) = call_with_result(session, step, &"x".repeat(100_000), json!(null));
    let mut short = result;
    if let [ContentBlock::ToolResult(block)] = short.message.content.as_mut_slice() {
        block.content = vec![ContentBlock::text("short")];
    }
    session.append(Draft::new(&short).citing(vec![seq]).replacing(seq, seq)).expect("fits");
    session.append(Draft::new(&StepEnd { turn: 1, step })).expect("fits");
}

fn call_with_result(session: &Session, step: u64, text: &str, meta: serde_json::Value) -> (u64, ToolResult) {
    let call_id = format!("c{step}");
    let source =
        Source::Model { provider: "p".into(), model: "m".into(), replay_state: None, extra: Extra::new() };
    let content = vec![ContentBlock::tool_call(call_id.as_str(), "read", "{}")];
    let message = Message {
        id: format!("a{step}").into(),
        role: Role::Assistant,
        content,
        source,
        extra: Extra::new(),
    };
    let reply = AssistantMessage { turn: 1, step, message, usage: None, interrupted: None };
    session.append(Draft::new(&reply).citing(vec![]).on_surface()).expect("fits");
    let call = ToolCall {
        turn: 1,
        step,
        call_id: call_id.as_str().into(),
        name: "read".into(),
        arguments: "{}".into(),
    };
    let call_seq = session.append(Draft::new(&call)).expect("fits");
    let block = ToolResultBlock {
        tool_call_id: call_id.as_str().into(),
        content: vec![ContentBlock::text(text)],
        is_error: Some(false),
        extra: Extra::new(),
    };
    let message = Message {
        id: format!("r{step}").into(),
        role: Role::User,
        content: vec![ContentBlock::ToolResult(block)],
        source: Source::tool(call_id.as_str().into()),
        extra: Extra::new(),
    };
    let result = ToolResult { turn: 1, step, message, error: None, meta: Some(meta) };
    let seq = session.append(Draft::new(&result).citing(vec![call_seq]).on_surface()).expect("fits");
    (seq, result)
}

/// A figure of `/proc/self/status`, in KiB; 0 where there is none.
fn resident_kib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|number| number.parse().ok()).unwrap_or(0)
}
