//! The key reaches the server and nothing else.

use std::net::TcpListener;
use std::path::Path;

use serde_json::{Value, json};

use crate::lab::{Ended, KEY, Lab};
use crate::server::{Server, ask, say, text};

/// Asserts that the key is in none of the outputs and in no file of the home.
#[track_caller]
fn assert_kept(lab: &Lab, ended: &Ended) {
    assert!(!ended.stdout.contains(KEY), "stdout: {}", ended.stdout);
    assert!(!ended.stderr.contains(KEY), "stderr: {}", ended.stderr);
    let holders = holders(&lab.home());
    assert!(holders.is_empty(), "{holders:?}");
}

/// The files that have the key in them.
fn holders(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holders(&path));
        } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).contains(KEY) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_good_run_keeps_the_key() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    let ended = lab.run(&server, &["--json", "go"]).end();
    ended.answer();
    let log = std::fs::read_to_string(server.request_log()).expect("a log");
    let request: Value = serde_json::from_str(&log).expect("a request");
    let headers = request["headers"].as_object().expect("headers");
    let sent: Vec<&str> =
        headers.values().filter_map(Value::as_str).filter(|value| value.contains(KEY)).collect();
    assert_eq!(sent, [format!("Bearer {KEY}")]);
    assert!(!request["body"].to_string().contains(KEY));
    assert_kept(&lab, &ended);
}

#[test]
fn commands_do_not_see_secrets() {
    let look = ask(
        "bash",
        json!({"command": "env; cat /proc/$$/environ 2>/dev/null | tr '\\0' '\\n'; true", "description": "Show the environment"}),
    );
    let (lab, server) = (Lab::new(), Server::scripted(&[look, say("ok")]));
    let ended = lab
        .run(&server, &["--json", "--permission-mode", "danger-full-access", "go"])
        .variable("MY_DEPLOY_TOKEN", "hush-1")
        .variable("DB_PASSWORD", "hush-2")
        .variable("EDITION", "plain-3")
        .end();
    ended.answer();
    let seen = lab.log().result().text;
    for secret in ["DEEPSEEK_API_KEY", "hush-1", "hush-2", KEY] {
        assert!(!seen.contains(secret), "{secret}");
    }
    assert!(seen.contains("EDITION=plain-3") && seen.contains("DSH_SHELL=1"), "{seen}");
    assert_kept(&lab, &ended);
}

#[test]
fn an_allowed_variable_is_seen() {
    let look = ask("bash", json!({"command": "echo \"$MY_DEPLOY_TOKEN\"", "description": "Show a variable"}));
    let (lab, server) = (Lab::new(), Server::scripted(&[look, say("ok")]));
    lab.run(
        &server,
        &["--permission-mode", "danger-full-access", "-c", "bash.allowed_variables=MY_DEPLOY_TOKEN", "go"],
    )
    .variable("MY_DEPLOY_TOKEN", "shown")
    .end()
    .answer();
    assert_eq!(lab.log().result().text.trim(), "shown");
}

/// A server that sends the key back in this answer.
#[track_caller]
fn told_back(steps: Vec<Value>) {
    let (lab, server) = (Lab::new(), Server::raw(&[steps]));
    for flags in [&[][..], &["--json"]] {
        let ended = lab.run(&server, flags).and(&["go"]).end();
        assert_eq!(ended.code, 1, "{ended:?}");
        assert_kept(&lab, &ended);
    }
}

#[test]
fn errors_that_repeat_the_key_are_cleaned() {
    told_back(vec![
        json!({"status": 401, "body": format!("{{\"error\":{{\"message\":\"bad key {KEY}\"}}}}")}),
    ]);
    told_back(vec![json!({"status": 500, "body": format!("plain words about {KEY}")})]);
    told_back(vec![json!({"status": 400, "headers": {"x-request-id": format!("id-{KEY}")}, "body": "{}"})]);
    told_back(vec![
        json!({"status": 302, "headers": {"location": format!("http://127.0.0.1:1/?key={KEY}")}, "body": ""}),
    ]);
}

#[test]
fn streams_that_repeat_the_key_are_cleaned() {
    told_back(vec![
        json!({"status": 200, "headers": {"content-type": "text/html"}, "body": format!("<p>{KEY}</p>")}),
    ]);
    told_back(vec![
        text("x").into(),
        format!("data: {{\"error\":{{\"message\":\"bad key {KEY}\"}}}}\n\n").into(),
    ]);
    told_back(vec![text("x").into(), format!("data: oops {KEY}\n\n").into()]);
}

#[test]
fn an_address_is_shown_without_its_password() {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let lab = Lab::new();
    let ended = lab
        .lorimer(&["run", "-c", "retry.max_retries=0", "go"])
        .variable("DEEPSEEK_API_KEY", KEY)
        .variable("DEEPSEEK_BASE_URL", &format!("http://me:{KEY}@127.0.0.1:{port}/v1?key={KEY}"))
        .end();
    assert!(ended.complaint(1).contains(&format!("127.0.0.1:{port}/v1")), "{ended:?}");
    assert_kept(&lab, &ended);
}
