//! Conversations that outgrow the window: old results are pruned in what is sent, never in the log.

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::server::{Server, ask, check, delta, done, finish, text};

/// A line that marks its place in a long file.
fn long_file(name: &str) -> String {
    (0..900).map(|number| format!("{name} line {number} and some more words\n")).collect()
}

/// The frames of a reply that reads a file.
fn reading(id: &str, path: &str) -> Vec<Value> {
    let arguments = json!({"file_path": path}).to_string();
    let call = json!({"index": 0, "id": id, "type": "function", "function": {"name": "read", "arguments": arguments}});
    vec![delta(json!({"tool_calls": [call]})).into(), finish("tool_calls").into(), "data: [DONE]\n\n".into()]
}

/// The contents of the tool messages of a request.
fn tool_texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().expect("messages").iter();
    let tools = messages.filter(|message| message["role"] == "tool");
    tools.map(|message| message["content"].as_str().expect("text").to_owned()).collect()
}

#[test]
fn a_refused_request_is_pruned_and_sent_again() {
    let overflow =
        json!({"status": 400, "body": "{\"error\":{\"message\":\"maximum context length exceeded\"}}"});
    let (lab, server) = (
        Lab::new(),
        Server::raw(&[
            reading("c1", "one.txt"),
            reading("c2", "two.txt"),
            vec![overflow],
            vec![text("fits").into(), done().into()],
        ]),
    );
    lab.put("one.txt", long_file("one"));
    lab.put("two.txt", long_file("two"));
    assert_eq!(lab.run(&server, &["go"]).end().answer(), "fits\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    let (before, after) = (tool_texts(&requests[2]), tool_texts(&requests[3]));
    assert!(before[0].contains("one line 500 "), "whole at first");
    assert!(after[0].contains("one line 0 ") && after[0].contains("one line 899 "), "the ends stay");
    assert!(!after[0].contains("one line 500 "), "the middle goes");
    assert_eq!(after[1], before[1], "what the model has not answered yet stays whole");
    check("pairs.py", &server.request_log());
    let log = lab.log();
    log_keeps_the_whole(&log.raw());
    assert_eq!(log.of("compaction/prune").len(), 1);
}

fn log_keeps_the_whole(raw: &str) {
    assert!(raw.contains("one line 500 "));
}

#[test]
fn a_full_window_is_pruned_before_it_is_refused() {
    let turns = [
        ask("read", json!({"file_path": "one.txt"})),
        ask("read", json!({"file_path": "two.txt"})),
        ask("read", json!({"file_path": "three.txt"})),
        crate::server::say("done"),
    ];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    for name in ["one", "two", "three"] {
        lab.put(&format!("{name}.txt"), long_file(name));
    }
    let small = ["-m", "deepseek/small", "-c", "request.context_window_tokens=32000", "go"];
    lab.run(&server, &small).end().answer();
    let requests = server.requests();
    let last = tool_texts(&requests[3]);
    assert!(!last[0].contains("one line 500 "), "the oldest is pruned");
    assert!(last[2].contains("three line 500 "), "the newest is whole");
    check("pairs.py", &server.request_log());
    log_keeps_the_whole(&lab.log().raw());
    let again = lab.run(&server, &["--continue", "-m", "deepseek/small", "more"]).end();
    assert_eq!(again.answer(), "done\n");
    assert!(tool_texts(&server.requests()[4]).starts_with(&last[..1]), "a resume sends it pruned as well");
}
