//! Signals: the run ends soon, the log is closed, what was streamed is kept, and the exit code tells the signal.

use std::time::Duration;

use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::json;

use crate::lab::{Lab, Running, until};
use crate::server::{Server, ask, check, delta, done, say, text};

/// A server that streams `partial` and then hangs; its second answer is good.
fn hanging_server() -> Server {
    let hang = vec![
        delta(json!({"reasoning_content": "thinking"})).into(),
        text("par").into(),
        text("tial").into(),
        json!({"ms": 600_000}),
    ];
    Server::raw(&[hang, vec![text("whole").into(), done().into()]])
}

fn streaming<'a>(lab: &'a Lab, server: &Server) -> Running<'a> {
    let mut running = lab.run(server, &["--json", "go"]).start();
    running.until(&["text-delta", "tial"]);
    running
}

fn ends_by(signal: Signal, code: i32, cause: &str) {
    let (lab, server) = (Lab::new(), hanging_server());
    let running = streaming(&lab, &server);
    running.signal(signal);
    let ended = running.end();
    insta::allow_duplicates! { insta::assert_snapshot!(ended.complaint(code), @"lorimer: cancelled; go on with `lorimer run --session [SHORT-ID]`"); }
    let result = ended.result();
    assert_eq!((&result["stopReason"], &result["text"]), (&json!("aborted"), &json!("partial")));
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.ends(), [&json!({"kind": "aborted", "reason": {"kind": cause}})]);
    let [reply] = log.of("assistant/message")[..] else { panic!("one reply") };
    assert_eq!(reply["interrupted"], true);
    assert_eq!(
        reply["message"]["content"],
        json!([{"type": "reasoning", "text": "thinking"}, {"type": "text", "text": "partial"}])
    );
}

#[test]
fn an_interrupt_keeps_what_was_streamed() {
    ends_by(Signal::INT, 130, "user");
}

#[test]
fn a_termination_keeps_what_was_streamed() {
    ends_by(Signal::TERM, 143, "disposed");
}

#[test]
fn a_hangup_keeps_what_was_streamed() {
    ends_by(Signal::HUP, 129, "disposed");
}

/// The recorded scenario `cancel`, and what the model is sent afterwards.
#[test]
fn a_cancelled_answer_is_gone_on_with() {
    let (lab, server) = (Lab::new(), hanging_server());
    let running = streaming(&lab, &server);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
    assert_eq!(lab.run(&server, &["--continue", "and now"]).end().answer(), "whole\n");
    let sent = server.last_messages();
    let reply = sent.iter().find(|message| message["role"] == "assistant").expect("the cut reply");
    assert_eq!(*reply, json!({"role": "assistant", "content": "partial", "reasoning_content": "thinking"}));
    let kinds: Vec<String> = lab.log().ends().iter().map(|reason| reason["kind"].to_string()).collect();
    assert_eq!(kinds, ["\"aborted\"", "\"completed\""]);
}

#[test]
fn a_wait_for_a_repeat_ends_at_once() {
    let busy = json!({"status": 429, "headers": {"Retry-After": "100"}, "body": "{}"});
    let (lab, server) = (Lab::new(), Server::raw(&[vec![busy]]));
    let mut running = lab.run(&server, &["--json", "go"]).start();
    running.until(&["\"llm/retry\""]);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.ends()[0]["kind"], "aborted");
    assert!(log.of("llm/retry-started").is_empty());
    assert_eq!(server.requests().len(), 1);
}

/// A run inside a command of `bash` that tells its process id in the file `pid`.
fn in_a_command<'a>(lab: &'a Lab, server: &Server, more: &[&str]) -> Running<'a> {
    let mut running = lab
        .run(server, &["--json", "--permission-mode", "danger-full-access"])
        .and(more)
        .and(&["go"])
        .start();
    running.until(&["\"tool/call\""]);
    until(|| lab.workspace().join("pid").exists());
    running
}

fn is_alive(lab: &Lab) -> bool {
    let pid = lab.get("pid").trim().parse().ok().and_then(Pid::from_raw).expect("a process id");
    test_kill_process(pid).is_ok()
}

/// A command that tells its process id once it runs, after its preparation. The file appears whole.
fn command(first: &str, then: &str) -> serde_json::Value {
    let command = format!("{first} echo $$ > pid.new; mv pid.new pid; {then}");
    ask("bash", json!({"command": command, "description": "Wait for a signal"}))
}

#[test]
fn a_running_command_is_ended_with_the_run() {
    let (lab, server) = (Lab::new(), Server::scripted(&[command("", "sleep 600"), say("never")]));
    let running = in_a_command(&lab, &server, &[]);
    running.signal(Signal::TERM);
    assert_eq!(running.end().complaint(143).split("; go on").next(), Some("lorimer: cancelled"));
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.result().code.as_deref(), Some("ABORTED"));
    assert_eq!(server.requests().len(), 1);
    until(|| !is_alive(&lab));
}

#[test]
fn a_second_interrupt_waits_for_nothing() {
    let stubborn = command("trap '' TERM INT HUP;", "while :; do sleep 0.05; done");
    let (lab, server) = (Lab::new(), Server::scripted(&[stubborn, say("never")]));
    let running = in_a_command(&lab, &server, &["-c", "bash.grace_ms=600000"]);
    running.signal(Signal::INT);
    std::thread::sleep(Duration::from_millis(50));
    running.signal(Signal::INT);
    let ended = running.end();
    insta::assert_snapshot!(ended.complaint(130), @"lorimer: stopped before the turn could end; the log is closed and can be gone on with");
    assert_eq!(ended.result()["stopReason"], "aborted");
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.result().code.as_deref(), Some("TOOL_OUTCOME_UNKNOWN"));
    assert_eq!(*log.ends()[0], json!({"kind": "aborted", "reason": {"kind": "user"}}));
    until(|| !is_alive(&lab));
}

#[test]
fn calls_that_had_not_begun_are_told_so() {
    let wait = command("", "sleep 600");
    let mut turn = wait;
    let calls = turn["calls"].as_array_mut().expect("calls");
    calls.push(json!({"name": "write", "arguments": {"file_path": "late.txt", "content": "x"}}));
    let (lab, server) = (Lab::new(), Server::scripted(&[turn, say("never")]));
    let running = in_a_command(&lab, &server, &[]);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
    let log = lab.log();
    log.assert_closed();
    let codes: Vec<_> = log.results().into_iter().map(|result| result.code.unwrap_or_default()).collect();
    assert_eq!(codes, ["ABORTED", "ABORTED_BEFORE_DISPATCH"]);
    assert!(!lab.workspace().join("late.txt").exists());
}

/// The call is in the log before its command begins, so that even a killed run is told truly.
#[test]
fn a_killed_run_is_told_to_the_model() {
    let (lab, server) = (Lab::new(), Server::scripted(&[command("", "sleep 600"), say("understood")]));
    drop(in_a_command(&lab, &server, &[]));
    until(|| !is_alive(&lab));
    assert_eq!(lab.run(&server, &["--continue", "go on"]).end().answer(), "understood\n");
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.result().code.as_deref(), Some("TOOL_OUTCOME_UNKNOWN"));
    check("pairs.py", &server.request_log());
    let sent = server.last_messages();
    let told = sent.iter().find(|message| message["role"] == "tool").expect("a result");
    assert!(told["content"].as_str().is_some_and(|text| text.contains("Its outcome is unknown.")), "{told}");
}
