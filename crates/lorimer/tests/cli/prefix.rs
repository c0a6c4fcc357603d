//! What is sent to the model only ever grows at its end, over steps, cancellations and resumes.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::server::{Server, ask, check, say};

/// Thirty turns: two calls each, with reasoning, with an empty one, or without; the twelfth waits for ever.
pub fn long_script() -> Vec<Value> {
    let step = |number: usize| {
        let calls = json!([
            {"name": "read", "arguments": {"file_path": "notes.txt", "offset": number % 7 + 1, "limit": number % 3 + 1}},
            {"name": "grep", "arguments": {"pattern": format!("line {number}"), "path": "notes.txt"}},
        ]);
        match number % 3 {
            0 => json!({"reasoning": format!("Step {number}:\n  look — again\n"), "calls": calls}),
            1 => json!({"empty_reasoning": true, "text": format!("Step {number}."), "calls": calls}),
            _ => json!({"text": format!("Step {number}."), "calls": calls}),
        }
    };
    let mut turns: Vec<Value> = (0..30).map(step).collect();
    turns[11] = ask("bash", json!({"command": "sleep 600", "description": "Wait to be cancelled"}));
    turns.push(say("done"));
    turns
}

pub fn notes() -> String {
    (0..40).map(|number| format!("this is line {number} of the notes\n")).collect()
}

#[test]
fn thirty_steps_with_a_cancel_and_a_resume() {
    let (lab, server) = (Lab::new(), Server::scripted(&long_script()));
    lab.put("notes.txt", notes());
    lab.put("AGENTS.md", "Mind the notes.\n");
    let full = ["--json", "--permission-mode", "danger-full-access"];
    let mut running = lab.run(&server, &full).and(&["read it all"]).start();
    running.until(&["\"tool/call\"", "sleep 600"]);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
    assert_eq!(server.requests().len(), 12);

    let ended = lab.run(&server, &full).and(&["--continue", "go on"]).end();
    ended.answer();
    assert_eq!(ended.result()["text"], "done");
    assert_eq!(server.requests().len(), 31);
    check("prefix.py", &server.request_log());
    check("pairs.py", &server.request_log());
    assert_same_head(&server.requests());
    lab.log().assert_closed();
}

/// System prompt and tools are the same to the byte in all requests.
fn assert_same_head(requests: &[Value]) {
    let head = |request: &Value| {
        let mut rest = request.clone();
        let messages = rest.as_object_mut().and_then(|body| body.remove("messages")).expect("messages");
        (messages[0].to_string(), rest.to_string())
    };
    let first = head(&requests[0]);
    assert!(first.1.contains("\"tools\"") && first.0.contains("\"system\""));
    for (number, request) in requests.iter().enumerate() {
        assert_eq!(head(request), first, "request {number}");
    }
}

#[test]
fn reasoning_is_sent_back_exactly() {
    let look = json!([{"id": "c", "name": "glob", "arguments": "{ \"pattern\" :\t\"*\" }"}]);
    let turns = [
        json!({"reasoning": " weigh  it,\n\nthen „look“ \u{1f50e}\t", "text": "I look.", "calls": look}),
        json!({"empty_reasoning": true, "calls": look}),
        json!({"text": "Once more.", "calls": look}),
        say("done"),
    ];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    lab.run(&server, &["go"]).end().answer();
    let sent: Vec<Value> =
        server.last_messages().into_iter().filter(|message| message["role"] == "assistant").collect();
    let call = json!([{"id": "c", "type": "function", "function": {"name": "glob", "arguments": "{ \"pattern\" :\t\"*\" }"}}]);
    let expected = [
        json!({"role": "assistant", "content": "I look.", "reasoning_content": " weigh  it,\n\nthen „look“ \u{1f50e}\t", "tool_calls": call}),
        json!({"role": "assistant", "content": "", "reasoning_content": "", "tool_calls": call}),
        json!({"role": "assistant", "content": "Once more.", "tool_calls": call}),
    ];
    assert_eq!(sent, expected);
}

#[test]
fn a_resume_sends_what_was_sent() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one"), say("two"), say("three")]));
    lab.put("CLAUDE.md", "Be kind.\n");
    lab.run(&server, &["first"]).end().answer();
    lab.run(&server, &["--continue", "second"]).end().answer();
    let id = lab.log().id();
    assert_eq!(lab.run(&server, &["--session", &id[..8], "third"]).end().answer(), "three\n");
    check("prefix.py", &server.request_log());
    assert_same_head(&server.requests());
    let log = lab.log();
    let reasons: Vec<&Value> = log.of("request/header").iter().map(|data| &data["reason"]).collect();
    assert_eq!(reasons, ["initial", "resume", "resume"]);
}

#[test]
fn a_folder_that_changed_is_told_at_the_end() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one"), say("two")]));
    lab.put("AGENTS.md", "Be kind.\n");
    lab.run(&server, &["first"]).end().answer();
    lab.put("AGENTS.md", "Be brief.\n");
    lab.run(&server, &["--continue", "--permission-mode", "read-only", "second"]).end().answer();
    check("prefix.py", &server.request_log());
    let sent = server.last_messages();
    let later: String = sent.iter().rev().take(3).map(ToString::to_string).collect();
    assert!(later.contains("Be brief.") && later.contains("Permission mode: read-only"), "{later}");
}
