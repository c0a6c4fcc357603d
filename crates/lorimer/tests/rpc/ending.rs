//! How it ends: shutdown, end of input, signals, a killed process.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::client::{Client, Lab};

fn sleeping() -> Value {
    json!([
        {"calls": [{"name": "bash", "arguments": {"command": "echo $$ > pid; sleep 300", "description": "Wait"}}]},
        {"text": "done"}
    ])
}

/// A client whose session runs a command that takes long.
fn busy(lab: &Lab) -> Client {
    let mut client = lab.ready(json!({"permissionMode": "danger-full-access"}));
    client.prompt("s", "go");
    client.wait_event("s", "tool/call");
    let pid = lab.workspace().join("pid");
    while std::fs::read_to_string(&pid).map_or(true, |text| !text.ends_with('\n')) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    client
}

fn assert_closed(lab: &Lab) {
    let end = lab.logged("s", "turn/end");
    assert_eq!(end[0]["reason"], json!({"kind": "aborted", "reason": {"kind": "disposed"}}));
    assert_eq!(lab.logged("s", "tool/result").len(), 1);
    let pid = std::fs::read_to_string(lab.workspace().join("pid")).expect("it ran");
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().expect("a number")).expect("a process id");
    assert!(rustix::process::test_kill_process(pid).is_err(), "the command is gone");
}

#[test]
fn a_shutdown_ends_running_turns_answers_and_exits() {
    let lab = Lab::new(sleeping());
    let mut client = busy(&lab);
    let first = client.send("shutdown", json!({}));
    let second = client.send("shutdown", json!({}));
    assert_eq!(client.answer_to(first)["result"], json!({}));
    // A second one that raced the first may still have been read. Nothing is told after the first.
    let answers: Vec<Value> = client.rest().into_iter().filter(|frame| frame.get("id").is_some()).collect();
    assert!(answers.iter().all(|frame| frame["id"] == second && frame["result"] == json!({})), "{answers:?}");
    assert_eq!(client.ended().code, Some(0));
    assert_closed(&lab);
}

#[test]
fn the_end_of_input_ends_everything_in_order() {
    let lab = Lab::new(sleeping());
    let client = busy(&lab);
    client.finish();
    assert_closed(&lab);
}

#[test]
fn signals_end_everything_in_order_with_their_codes() {
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let lab = Lab::new(sleeping());
        let mut client = busy(&lab);
        client.signal(signal);
        let ended = client.ended();
        assert_eq!((ended.code, ended.signal), (Some(code), None), "{}", ended.stderr);
        assert_closed(&lab);
    }
}

#[test]
fn a_killed_process_leaves_a_session_that_can_be_resumed() {
    let lab = Lab::new(sleeping());
    let mut client = busy(&lab);
    client.signal(Signal::KILL);
    assert_eq!(client.ended().signal, Some(9));
    let mut again = lab.ready(json!({}));
    again.ask("session/resume", json!({"sessionId": "s"}));
    // The answer says that it is on disk.
    assert_eq!(lab.logged("s", "turn/end"), [json!({"turn": 1, "reason": {"kind": "interrupted"}})]);
    let end = again.wait_event("s", "turn/end");
    assert_eq!(end["reason"]["kind"], "interrupted");
    again.prompt("s", "go on");
    again.wait_idle("s");
    again.finish();
    assert_eq!(lab.logged("s", "tool/result").len(), 1);
    assert_eq!(lab.logged("s", "assistant/message")[1]["message"]["content"][0]["text"], "done");
}

#[test]
fn a_client_that_is_gone_ends_the_process() {
    let lab = Lab::new(json!([{"text": "one"}]));
    let mut client = lab.start();
    client.ask("initialize", lab.route());
    drop(client.child.stdout.take());
    client.finish();
}

#[test]
fn a_client_that_cannot_be_served_can_still_ask() {
    let lab = Lab::new(json!([]));
    let mut client = lab.start_with(&["--profile", "sdk"], &[("DSH_TOOLS_MODE", "ptc")]);
    // Long after the program has found that it cannot serve, but well before it gives the client up.
    std::thread::sleep(std::time::Duration::from_millis(200));
    client.send("initialize", lab.route());
    assert_eq!(client.rest(), Vec::<Value>::new());
    let ended = client.ended();
    assert_eq!(ended.code, Some(1));
    insta::assert_snapshot!(ended.stderr, @r#"dsh: tools mode "ptc" in the variable DSH_TOOLS_MODE needs code mode, which this version does not have; set native"#);
}
