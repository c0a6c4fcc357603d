//! `replay/ID`: the recorded replies of a session, against today's files.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::log::Log;
use crate::server::{Server, ask, asks, say};

/// Two turns: one that reads two files, one that only answers.
fn recorded() -> (Lab, String) {
    let reads = asks(&[("read", json!({"file_path": "a.txt"})), ("read", json!({"file_path": "b.txt"}))]);
    let (lab, server) = (Lab::new(), Server::scripted(&[reads, say("I have read them."), say("Gladly.")]));
    lab.put("a.txt", "one\ntwo\nthree\n");
    lab.put("b.txt", "the same\n");
    lab.run(&server, &["read a.txt and b.txt"]).end().answer();
    lab.run(&server, &["--continue", "thanks"]).end().answer();
    let id = lab.log().id();
    (lab, id)
}

/// Everything that was called: id, name and arguments.
fn calls(log: &Log) -> Vec<(Value, Value, Value)> {
    let part = |data: &Value, key: &str| data[key].clone();
    log.of("tool/call")
        .into_iter()
        .map(|data| (part(data, "id"), part(data, "name"), part(data, "arguments")))
        .collect()
}

fn other_log(lab: &Lab, id: &str) -> Log {
    let mut others: Vec<Log> = lab.logs().into_iter().filter(|log| log.id() != id).collect();
    assert_eq!(others.len(), 1, "one new session");
    others.remove(0)
}

#[test]
fn a_replay_of_the_same_files_is_the_same() {
    let (lab, id) = recorded();
    let ended = lab.quick(&["-m", &format!("replay/{}", &id[..8]), "once more"]).end();
    assert_eq!(ended.answer(), "I have read them.\n");
    let (old, new) = (lab.logs().remove(0), other_log(&lab, &id));
    assert_eq!(calls(&new), calls(&old));
    assert_eq!(new.results(), old.results());
    new.assert_closed();
}

#[test]
fn a_replay_of_changed_files_names_what_differs() {
    let (lab, id) = recorded();
    let before = lab.log().raw();
    lab.put("a.txt", "one\n2\nthree\n");
    let ended = lab.quick(&["-m", &format!("replay/{id}"), "once more"]).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "I have read them.\n"));
    insta::assert_snapshot!(ended.complaint(0), @r#"lorimer: the result of call_0_0 differs from the recorded one at line 5: "2: 2" was "2: two""#);
    let (old, new) = (lab.logs().remove(0), other_log(&lab, &id));
    assert_eq!(calls(&new), calls(&old));
    assert!(new.results()[0].text.contains("2: 2") && old.results()[0].text.contains("2: two"));
    assert_eq!(new.results()[1], old.results()[1]);
    assert_eq!(old.raw(), before);
}

#[test]
fn a_replay_goes_on_turn_by_turn_and_ends() {
    let (lab, id) = recorded();
    let model = format!("replay/{id}");
    lab.quick(&["-m", &model, "once more"]).end().answer();
    let new = other_log(&lab, &id).id();
    let go_on = || lab.quick(&["-m", &model, "--session", &new, "next"]).end();
    assert_eq!(go_on().answer(), "Gladly.\n");
    let ended = go_on();
    assert_eq!(ended.stdout, "");
    let line = ended.complaint(1).replace(&new[..8], "[NEW]");
    insta::assert_snapshot!(line, @"lorimer: the recorded session [ID] has no more replies than 3 [REPLAY_END]; go on with `lorimer run --session [SHORT-ID]`");
    other_log(&lab, &id).assert_closed();
}

#[test]
fn a_replay_of_nothing_is_refused() {
    let (lab, _id) = recorded();
    insta::assert_snapshot!(lab.quick(&["-m", "replay/ffff", "hi"]).end().complaint(2), @r#"lorimer: session "ffff" not found; see `lorimer sessions list`"#);
    assert_eq!(lab.logs().len(), 1, "nothing is left behind");
}

#[test]
fn a_replay_without_a_session_is_refused() {
    let lab = Lab::new();
    insta::assert_snapshot!(lab.quick(&["-m", "replay", "hi"]).end().complaint(2), @"lorimer: a replay needs a session: -m replay/ID; see `lorimer sessions list`");
}

#[test]
fn a_cancelled_and_compressed_session_is_replayed_as_far_as_it_went() {
    let turns = [
        json!({"reasoning": "Look.", "text": "I look.", "calls": [{"name": "glob", "arguments": {"pattern": "*"}}]}),
        ask("bash", json!({"command": "sleep 600", "description": "Wait"})),
    ];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    let full = ["--json", "--permission-mode", "danger-full-access", "-c", "session.compression=zstd"];
    let mut running = lab.run_messages(&server, &full).and(&["go"]).start();
    running.until(&["\"tool/call\"", "sleep 600"]);
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
    let id = lab.log().id();
    // Without the right to run commands nothing waits this time.
    let ended = lab.quick(&["-m", &format!("replay/{id}"), "--permission-mode", "read-only", "go"]).end();
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("no more replies than 2 [REPLAY_END]"), "{ended:?}");
    assert!(ended.stderr.contains("the result of call_1_0 differs from the recorded one"), "{ended:?}");
    let new = other_log(&lab, &id);
    assert_eq!(calls(&new), calls(&lab.logs()[0]));
    new.assert_closed();
}
