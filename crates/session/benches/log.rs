#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]
//! How fast a log is appended to and opened.
//!
//! ```text
//! cargo bench -p lorimer-session
//! ```
//!
//! Prints appended events a second without sync, flushes a second with sync, and the time and memory that opening a
//! log of 100 MB takes. Figures go to `docs/performance.md`.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use lorimer_protocol::{
    AssistantChunk, AssistantMessage, ContentBlock, Draft, Extra, Message, Role, SessionHeader, Source,
    StepEnd, StepStart, StreamChunk, ToolCall, ToolResult, ToolResultBlock, TurnEnd, TurnEndReason,
    TurnStart,
};
use lorimer_session::{Session, Store, StoreOptions};
use serde_json::json;

const APPENDED_EVENTS: u64 = 500_000;
const SYNCED_FLUSHES: u64 = 2_000;
const LOG_BYTES: u64 = 100 * 1024 * 1024;

/// Set for the process that opens a log and tells how much memory that took.
const OPEN_VARIABLE: &str = "LORIMER_BENCH_OPEN";

fn main() {
    if let Some(home) = std::env::var_os(OPEN_VARIABLE) {
        return open_and_tell(Path::new(&home));
    }
    let dir = tempfile::tempdir().expect("a directory");
    append_without_sync(dir.path());
    flush_with_sync(dir.path());
    open_large_log(dir.path(), "streamed", &|session, step| streamed_step(session, step));
    open_large_log(dir.path(), "pruned", &|session, step| pruned_step(session, step));
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

fn open_large_log(dir: &Path, name: &str, step: &dyn Fn(&Session, u64)) {
    let home = dir.join(name);
    write_log(&home, step);
    print!("open {name} log: ");
    std::io::stdout().flush().expect("written");
    let program = std::env::current_exe().expect("a program");
    std::process::Command::new(program).env(OPEN_VARIABLE, &home).status().expect("ran");
}

/// In a process of its own, so that nothing else is counted.
fn open_and_tell(home: &Path) {
    let store = store(home, false);
    let id = "bench".into();
    let size = std::fs::metadata(store.path(&id).expect("there")).expect("there").len();
    let started = Instant::now();
    let opened = store.open(&id).expect("opens");
    let took = started.elapsed().as_secs_f64();
    println!(
        "{} MiB and {} events in {took:.3} s, {:.1} MiB at the peak",
        size / 1024 / 1024,
        opened.session.with_log(|log| log.next_seq()),
        resident_kib("VmHWM") as f64 / 1024.0,
    );
}

fn write_log(home: &Path, step: &dyn Fn(&Session, u64)) {
    let header = SessionHeader::new("bench".into(), 0, Some("/w".into()));
    let session = store(home, false).create_with(header).expect("created");
    let runtime = runtime();
    session.append(Draft::new(&TurnStart { turn: 1 })).expect("fits");
    let path = session.directory().expect("a folder").join("session.jsonl");
    let mut number = 1;
    loop {
        step(&session, number);
        number += 1;
        runtime.block_on(session.flush()).expect("saved");
        if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() >= LOG_BYTES) {
            break;
        }
    }
    session.append(Draft::new(&TurnEnd { turn: 1, reason: TurnEndReason::Completed })).expect("fits");
    runtime.block_on(session.flush()).expect("saved");
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
