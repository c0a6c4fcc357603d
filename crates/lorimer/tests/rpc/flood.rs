//! A client that stops reading: its sessions stand still, nothing else does, and nothing is lost.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::client::{Client, Lab};

/// More than every pipe and queue on the way takes.
const REPLY_CHARS: usize = 4_000_000;

/// A client whose turn has begun with a long reply, and that does not read any of it.
fn flooded(lab: &Lab) -> Client {
    let queue = [("LORIMER_RPC__MAX_QUEUED_BYTES", "65536")];
    let mut client = lab.start_with(&["sdk"], &queue);
    client.write(format!("{}\n", json!({"id": "i", "method": "initialize", "params": lab.route()})));
    let prompt = json!({"sessionId": "s", "contentBlocks": [{"type": "text", "text": "go"}]});
    client.write(format!("{}\n", json!({"id": "p", "method": "session/prompt", "params": prompt})));
    while !lab.log_text("s").is_some_and(|log| log.contains("\"turn/start\"")) {
        std::thread::sleep(Duration::from_millis(10));
    }
    client
}

fn long_reply() -> Value {
    json!([{"text": "abcdefgh".repeat(REPLY_CHARS / 8)}, {"text": "short"}])
}

#[test]
fn a_client_that_reads_again_gets_everything() {
    let lab = Lab::new(long_reply());
    let mut client = flooded(&lab);
    std::thread::sleep(Duration::from_millis(300));
    client.answer_to("i");
    client.answer_to("p");
    let reply = client.wait_event("s", "assistant/message");
    assert_eq!(reply["message"]["content"][0]["text"].as_str().expect("a text").len(), REPLY_CHARS);
    client.wait_idle("s");
    client.prompt("s", "more");
    client.wait_idle("s");
    client.finish();
}

#[test]
fn a_client_that_never_reads_can_still_end_it() {
    for way in ["shutdown", "end of input", "signal"] {
        let lab = Lab::new(long_reply());
        let mut client = flooded(&lab);
        // A turn is on disk before its request is made.
        for _ in 0..6_000 {
            if lab.has_log("s") {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
        match way {
            "shutdown" => client.write("{\"id\":\"x\",\"method\":\"shutdown\"}\n"),
            "end of input" => client.hang_up(),
            _ => client.signal(Signal::TERM),
        }
        let ended = client.ended();
        assert_eq!((ended.code, ended.signal), (Some(0), None), "{way}: {}", ended.stderr);
        assert_eq!(lab.logged("s", "turn/end")[0]["reason"]["kind"], "aborted", "{way}");
    }
}

#[test]
fn standard_error_that_nobody_reads_stops_nothing() {
    let lab = Lab::new(json!([{"text": "fine"}]));
    let mut client = lab.start_deaf(&["sdk"], &[]);
    client.ask("initialize", lab.route());
    // Each line is told on standard error, which takes no more than a pipe does.
    for _ in 0..50 {
        client.write("this is no frame at all\n".repeat(200));
    }
    client.prompt("s", "go");
    client.wait_idle("s");
    client.signal(Signal::TERM);
    assert_eq!(client.status(), Some(0));
}

#[test]
fn requests_that_come_faster_than_answers_are_read_wait_and_are_all_answered() {
    const REQUESTS: u64 = 40_000;
    let lab = Lab::new(json!([{"text": "fine"}]));
    let queue = [("LORIMER_RPC__MAX_QUEUED_BYTES", "65536"), ("LORIMER_RPC__MAX_FRAME_BYTES", "65536")];
    let mut client = lab.start_with(&["sdk"], &queue);
    let writer = client.in_background(|stdin| {
        for id in 0..REQUESTS {
            let line = format!("{{\"id\":{id},\"method\":\"session/list\"}}\n");
            std::io::Write::write_all(stdin, line.as_bytes()).expect("it is read in the end");
        }
    });
    std::thread::sleep(Duration::from_millis(500));
    let mut answered: Vec<u64> =
        (0..REQUESTS).map(|_| client.read().expect("an answer")["id"].as_u64().expect("an id")).collect();
    drop(writer.join().expect("all is written"));
    answered.sort_unstable();
    assert!(answered.into_iter().eq(0..REQUESTS));
    assert_eq!(client.status(), Some(0));
}
