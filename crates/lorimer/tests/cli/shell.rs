//! The `bash` tool in the whole program: real commands, their ends, and what they leave.

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::lab::{Lab, until};
use crate::server::{Server, ask, say};

const FULL: [&str; 2] = ["--permission-mode", "danger-full-access"];

fn command(line: &str) -> Value {
    ask("bash", json!({"command": line, "description": "Try something"}))
}

/// Runs these commands one after another, each in a step of its own, and returns what the model read.
#[track_caller]
fn outputs(lab: &Lab, lines: &[&str], more: &[&str]) -> Vec<String> {
    let mut turns: Vec<Value> = lines.iter().map(|line| command(line)).collect();
    turns.push(say("done"));
    let server = Server::scripted(&turns);
    assert_eq!(lab.run(&server, &FULL).and(more).and(&["go"]).end().answer(), "done\n");
    let log = lab.log();
    log.assert_closed();
    let sent = server.last_messages();
    let read =
        sent.iter().filter(|message| message["role"] == "tool").map(|message| message["content"].clone());
    let read: Vec<Value> = read.collect();
    let texts: Vec<String> = log.results().into_iter().map(|result| result.text).collect();
    assert_eq!(read, texts, "the model reads what the log has");
    texts
}

#[test]
fn ends_of_every_kind() {
    let lab = Lab::new();
    let lines = [
        "echo out; echo err >&2; exit 3",
        "true",
        "kill -9 $$",
        "printf 'no line end'",
        "pwd",
        "cd /; pwd",
        "pwd",
    ];
    let texts = outputs(&lab, &lines, &[]);
    insta::assert_snapshot!(lab.plain(&texts.join("\n---\n")), @r#"
    out
    [stderr]
    err

    [exit code: 3]
    ---
    (no output)
    ---
    (no output)
    [killed by signal: SIGKILL]
    ---
    no line end
    ---
    [WS]

    ---
    /

    ---
    [WS]
    "#);
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let lab = Lab::new();
    let texts = outputs(&lab, &["echo before; sleep 600; echo after"], &["-c", "bash.timeout_ms=1500"]);
    insta::assert_snapshot!(texts[0], @r#"
    before

    [timed out after 1500ms]
    [killed by signal: SIGTERM]
    "#);
}

#[test]
fn nothing_is_left_in_the_background() {
    let lab = Lab::new();
    let line = "(sleep 600 & echo $! > one); setsid sleep 600 & echo $! > two; disown; echo started";
    let texts = outputs(&lab, &[line], &[]);
    assert!(texts[0].starts_with("started"), "{}", texts[0]);
    for name in ["one", "two"] {
        let pid = lab.get(name).trim().parse().ok().and_then(Pid::from_raw).expect("a process id");
        until(|| test_kill_process(pid).is_err());
    }
}

#[test]
fn there_is_no_input_to_wait_for() {
    let texts = outputs(&Lab::new(), &["cat; read x; echo \"got <$x>\"", "tty || true"], &[]);
    assert!(texts[0].starts_with("got <>"), "{}", texts[0]);
    assert!(texts[1].starts_with("not a tty"), "{}", texts[1]);
}

#[test]
fn a_long_output_keeps_its_ends() {
    let lab = Lab::new();
    let more = ["-c", "bash.head_bytes=20", "-c", "bash.tail_bytes=20"];
    let texts = outputs(&lab, &["seq 1 1000"], &more);
    assert!(texts[0].starts_with("1\n2\n3\n") && texts[0].contains("\n1000"), "{}", texts[0]);
    assert!(!texts[0].contains("\n500\n"), "{}", texts[0]);
    let full = texts[0].split_whitespace().map(|word| word.trim_matches(['.', ')', ']', ';']));
    let full =
        full.filter(|word| word.contains("/sessions/")).find(|word| std::path::Path::new(word).is_file());
    let stored = std::fs::read_to_string(full.expect("the file with all of it")).expect("text");
    assert_eq!(stored, (1..=1000).map(|number| format!("{number}\n")).collect::<String>());
}

#[test]
fn bytes_that_are_no_text_do_not_break_a_run() {
    let texts = outputs(&Lab::new(), &["printf 'a\\377b\\000c\\n'; printf '\\033[31mred\\n'"], &[]);
    assert!(texts[0].contains("a\u{fffd}b"), "{:?}", texts[0]);
}

#[test]
fn a_directory_can_be_asked_for() {
    let lab = Lab::new();
    lab.put("sub/file", "");
    let turns = [
        ask("bash", json!({"command": "ls", "description": "List", "workdir": "sub"})),
        ask("bash", json!({"command": "ls", "description": "List", "workdir": "nowhere"})),
        say("done"),
    ];
    let server = Server::scripted(&turns);
    lab.run(&server, &FULL).and(&["go"]).end().answer();
    let results = lab.log().results();
    assert_eq!(results[0].text.lines().next(), Some("file"));
    assert!(results[1].is_error && results[1].text.contains("\"nowhere\""), "{}", results[1].text);
}
