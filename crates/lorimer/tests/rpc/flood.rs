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
