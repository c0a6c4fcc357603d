//! Sessions made of others: forks, repairs, exports, and logs that are stored compressed.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Ended, Lab};
use crate::log::Log;
use crate::server::{Server, ask, check, say};

/// Three turns: a plain one, one with a call, a plain one.
fn with_three_turns(settings: &[&str]) -> (Lab, Server) {
    let turns = [
        say("one"),
        ask("read", json!({"file_path": "a.txt"})),
        say("two"),
        say("three"),
        say("four"),
        say("five"),
    ];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    lab.put("a.txt", "alpha\n");
    for task in ["first", "second", "third"] {
        let go_on = if task == "first" { &[][..] } else { &["--continue"] };
        lab.run(&server, settings).and(go_on).and(&[task]).end().answer();
    }
    (lab, server)
}

/// The log with this id.
fn log_of(lab: &Lab, id: &str) -> Log {
    lab.logs().into_iter().find(|log| log.id() == id).expect("a log")
}

/// The one id that a command printed.
fn new_id(ended: &Ended) -> String {
    assert_eq!(ended.code, 0, "{ended:?}");
    let id = ended.stdout.strip_suffix('\n').expect("a line").to_owned();
    assert_eq!((id.len(), id.lines().count()), (36, 1), "{id}");
    id
}

#[test]
fn a_fork_at_each_turn_goes_on_and_leaves_its_parent_alone() {
    let (lab, server) = with_three_turns(&[]);
    let parent = lab.log();
    let before = fs::read(&parent.path).expect("a log");
    for (turn, told, answer) in [
        ("1", vec!["first"], "two\n"),
        ("2", vec!["first", "second"], "three\n"),
        ("3", vec!["first", "second", "third"], "four\n"),
    ] {
        let forked = lab.lorimer(&["fork", &parent.id()[..8], "--turn", turn]).end();
        forked.answer();
        let fork = new_id(&forked);
        assert_ne!(fork, parent.id());
        // After the first turn the next reply is the call of the second.
        assert_eq!(lab.run(&server, &["--session", &fork, "the other way"]).end().answer(), answer);
        let log = log_of(&lab, &fork);
        log.assert_closed();
        assert_eq!(
            (&log.header["parentSession"], &log.header["cwd"]),
            (&json!(parent.id()), &parent.header["cwd"])
        );
        assert_eq!(log.events[..2], parent.events[..2]);
        let expected: Vec<&str> = told.into_iter().chain(["the other way"]).collect();
        assert_eq!(tasks(&server.last_messages()), expected);
        assert_eq!(fs::read(&parent.path).expect("a log"), before, "turn {turn}");
    }
    check("pairs.py", &server.request_log());
    assert_eq!(lab.run(&server, &["--session", &parent.id(), "fourth"]).end().answer(), "four\n");
}

/// What the user said of what was sent.
fn tasks(messages: &[Value]) -> Vec<&str> {
    let texts = messages.iter().filter(|message| message["role"] == "user");
    texts
        .filter_map(|message| message["content"].as_str())
        .filter(|text| !text.starts_with("Current runtime context") && !text.contains("<system-reminder>"))
        .collect()
}

#[test]
fn a_fork_without_a_turn_is_of_everything() {
    let (lab, server) = with_three_turns(&[]);
    let parent = lab.log();
    let fork = new_id(&lab.lorimer(&["fork", &parent.id()]).end());
    let log = log_of(&lab, &fork);
    assert_eq!(log.events[..parent.events.len()], parent.events);
    assert_eq!(log.header["seedLength"], parent.events.len());
    // What was sent before comes first again.
    let before = server.last_messages();
    assert_eq!(lab.run(&server, &["--session", &fork, "on"]).end().answer(), "four\n");
    assert_eq!(server.last_messages()[..before.len()], before);
    let again = new_id(&lab.lorimer(&["fork", &fork, "--turn", "1"]).end());
    assert_eq!(lab.run(&server, &["--session", &again, "on"]).end().answer(), "two\n");
}

#[test]
fn a_fork_of_what_is_not_there_is_refused() {
    let (lab, _server) = with_three_turns(&[]);
    let id = lab.log().id();
    for turn in ["0", "4"] {
        let ended = lab.lorimer(&["fork", &id, "--turn", turn]).end();
        assert_eq!(ended.stdout, "");
        let line = ended.complaint(2);
        assert!(
            line.contains(&format!("turn {turn} has not ended")) && line.contains("last ended turn: 3"),
            "{line}"
        );
    }
    insta::assert_snapshot!(lab.lorimer(&["fork", "ffff"]).end().complaint(2), @r#"lorimer: session "ffff" not found; see `lorimer sessions list`"#);
    assert_eq!(lab.logs().len(), 1);
}

/// Damages the only log behind its first turn.
fn damage(lab: &Lab) -> (PathBuf, Vec<u8>) {
    let log = lab.log();
    let text = log.raw();
    let end = text.find("{\"type\":\"turn/end\"").expect("a turn's end");
    let at = end + text[end..].find('\n').expect("a line's end") + 1;
    let damaged = format!("{}{{\"type\":oops{}", &text[..at], &text[at..]);
    fs::write(&log.path, &damaged).expect("a log");
    (log.path, damaged.into_bytes())
}

#[test]
fn a_repair_keeps_what_came_before_the_damage() {
    let (lab, server) = with_three_turns(&[]);
    let old = lab.log().id();
    let (path, damaged) = damage(&lab);
    let ended = lab.lorimer(&["sessions", "repair", &old]).end();
    let note = ended.complaint(0);
    assert!(note.contains("events are kept") && note.contains("everything from event line"), "{note}");
    let repaired = new_id(&ended);
    assert_eq!(fs::read(&path).expect("the old log"), damaged);
    assert_eq!(lab.run(&server, &["--session", &repaired, "again"]).end().stderr, "");
    let log = log_of(&lab, &repaired);
    log.assert_closed();
    assert_eq!(tasks(&server.last_messages()), ["first", "again"]);
    assert_eq!(fs::read(&path).expect("the old log"), damaged);
    check("pairs.py", &server.request_log());
    let whole = lab.lorimer(&["sessions", "repair", &repaired]).end();
    insta::assert_snapshot!(whole.complaint(2).replace(&repaired, "[ID]"), @r#"lorimer: session "[ID]" is whole: there is nothing to repair"#);
}

#[test]
fn a_session_without_its_header_is_told_and_repaired() {
    let (lab, server) = with_three_turns(&[]);
    let log = lab.log();
    let damaged = log.raw().replacen("{\"type\"", "XXXXXXX", 1);
    fs::write(&log.path, &damaged).expect("a log");
    let listed = lab.lorimer(&["sessions", "list"]).end();
    let note = listed.stderr.replace(&log.id(), "[ID]");
    assert!(
        note.contains(
            "session [ID] is left out, because its header is damaged; see `lorimer sessions repair [ID]`"
        ),
        "{note}"
    );
    let repaired = new_id(&lab.lorimer(&["sessions", "repair", &log.id()]).end());
    assert_eq!(lab.run(&server, &["--session", &repaired, "again"]).end().stderr, "");
    assert_eq!(tasks(&server.last_messages()), ["first", "second", "third", "again"]);
    assert_eq!(fs::read_to_string(&log.path).expect("the old log"), damaged);
}

#[test]
fn a_compressed_log_is_as_good_as_a_plain_one() {
    let zstd = ["-c", "session.compression=zstd"];
    let (lab, server) = with_three_turns(&zstd);
    let log = lab.log();
    assert!(fs::read(&log.path).expect("a log").starts_with(&[0x28, 0xb5, 0x2f, 0xfd]), "a Zstandard frame");
    check("prefix.py", &server.request_log());
    let sessions = |arguments: &[&str]| lab.lorimer(&["sessions"]).and(arguments).end();
    assert_eq!(sessions(&["path", &log.id()]).answer(), format!("{}\n", log.path.display()));
    assert!(sessions(&["list"]).answer().ends_with("first\n"));
    let shown = sessions(&["show", &log.id()]).answer().to_owned();
    for part in ["> first", "one", "• read", "1: alpha", "> third", "three"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    // A log stays as it was begun, whatever new ones are.
    assert_eq!(lab.run(&server, &["--continue", "fourth"]).end().answer(), "four\n");
    let fork = new_id(&lab.lorimer(&["fork", &log.id(), "--turn", "2"]).end());
    assert_eq!(lab.run(&server, &zstd).and(&["--session", &fork, "x"]).end().answer(), "three\n");
    log_of(&lab, &log.id()).assert_closed();
    assert_eq!(log_of(&lab, &log.id()).of("turn/end").len(), 4);
}

#[test]
fn an_export_is_the_log() {
    let (lab, _server) = with_three_turns(&[]);
    let log = lab.log();
    let exported = lab.lorimer(&["sessions", "export", &log.id()]).end();
    assert_eq!(exported.answer(), log.raw());
    insta::assert_snapshot!(lab.lorimer(&["sessions", "export", "ffff"]).end().complaint(2), @r#"lorimer: session "ffff" not found; see `lorimer sessions list`"#);
}

#[test]
fn an_export_of_a_compressed_log_is_plain() {
    let (lab, _server) = with_three_turns(&["-c", "session.compression=zstd"]);
    let log = lab.log();
    let exported = lab.lorimer(&["sessions", "export", &log.id()]).end().answer().to_owned();
    let lines: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["id"], log.id());
    assert!(lines.len() > 20 && lines.last().is_some_and(|line| line["type"] == "turn/end"), "{exported}");
}

#[test]
fn a_compressed_log_that_was_cut_goes_on() {
    let (lab, server) = with_three_turns(&["-c", "session.compression=zstd"]);
    let log = lab.log();
    let bytes = fs::read(&log.path).expect("a log");
    fs::write(&log.path, &bytes[..bytes.len() - 5]).expect("a log");
    let ended = lab.run(&server, &["--session", &log.id(), "again"]).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.complaint(0).contains("torn"), "{ended:?}");
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.of("turn/start").len(), 4);
    check("pairs.py", &server.request_log());
}

#[test]
fn a_compressed_log_that_is_damaged_is_repaired() {
    let (lab, server) = with_three_turns(&["-c", "session.compression=zstd"]);
    let log = lab.log();
    let mut bytes = fs::read(&log.path).expect("a log");
    let middle = bytes.len() * 2 / 3;
    bytes[middle..middle + 64].fill(0x55);
    fs::write(&log.path, &bytes).expect("a log");
    let refused = lab.run(&server, &["--session", &log.id(), "again"]).end();
    assert!(refused.complaint(2).contains("can be read but not continued"), "{refused:?}");
    assert_eq!(lab.lorimer(&["sessions", "show", &log.id()]).end().code, 0);
    let repaired = new_id(&lab.lorimer(&["sessions", "repair", &log.id()]).end());
    assert_eq!(lab.run(&server, &["--session", &repaired, "again"]).end().stderr, "");
    log_of(&lab, &repaired).assert_closed();
    assert_eq!(fs::read(&log.path).expect("the old log"), bytes);
    check("pairs.py", &server.request_log());
}

#[test]
fn a_running_session_is_forked_at_its_last_whole_turn() {
    let turns = [say("one"), ask("bash", json!({"command": "sleep 600", "description": "Wait"})), say("two")];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    lab.run(&server, &["first"]).end().answer();
    let id = lab.log().id();
    let full = ["--json", "--permission-mode", "danger-full-access", "--continue", "second"];
    let mut running = lab.run(&server, &full).start();
    running.until(&["\"tool/call\"", "sleep 600"]);
    let fork = new_id(&lab.lorimer(&["fork", &id, "--turn", "1"]).end());
    let open = lab.lorimer(&["fork", &id]).end();
    assert!(open.stderr.contains("turn 2 has not ended; the fork goes on from turn 1"), "{open:?}");
    for fork in [fork, new_id(&open)] {
        assert_eq!(log_of(&lab, &fork).ends(), [&json!({"kind": "completed"})]);
    }
    running.signal(Signal::INT);
    assert_eq!(running.end().code, 130);
    log_of(&lab, &id).assert_closed();
}

#[test]
fn an_export_that_nobody_reads_to_the_end_is_fine() {
    let (lab, _server) = with_three_turns(&[]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ended = lab.lorimer(&["sessions", "export", &lab.log().id()]).stdout(writer).end();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
}

#[cfg(target_os = "linux")]
#[test]
fn an_export_that_cannot_be_written_is_told() {
    let (lab, _server) = with_three_turns(&[]);
    let full = fs::File::options().write(true).open("/dev/full").expect("a full disk");
    let ended = lab.lorimer(&["sessions", "export", &lab.log().id()]).stdout(full).end();
    assert!(ended.complaint(1).contains("No space left"), "{ended:?}");
}

#[test]
fn an_export_can_be_imported() {
    let (lab, server) = with_three_turns(&["-c", "session.compression=zstd"]);
    let exported = lab.lorimer(&["sessions", "export", &lab.log().id()]).end();
    lab.put("exported.jsonl", exported.answer());
    let imported = new_id(&lab.lorimer(&["sessions", "import", "exported.jsonl"]).end());
    let (old, new) = (
        lab.logs().into_iter().find(|log| log.id() != imported).expect("the old log"),
        log_of(&lab, &imported),
    );
    assert_eq!(new.events, old.events);
    assert_eq!(lab.run(&server, &["--session", &imported, "fourth"]).end().answer(), "four\n");
}
