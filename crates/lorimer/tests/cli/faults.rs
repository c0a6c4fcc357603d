//! Readers that stall or leave, disks that refuse, folders with odd names.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use crate::lab::{Lab, until};
use crate::server::{Server, ask, say, text};

/// The writing end of a pipe that nobody reads.
fn nobody() -> std::io::PipeWriter {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer
}

#[test]
fn an_answer_that_nobody_reads_is_not_a_success() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("the answer")]));
    let ended = lab.run(&server, &["go"]).stdout(nobody()).end();
    insta::assert_snapshot!(ended.complaint(4), @"lorimer: cannot write to standard output: Broken pipe (os error 32); the answer is in the session's log");
    assert_eq!(lab.log().ends(), [&json!({"kind": "completed"})]);
}

#[test]
fn a_transcript_ends_quietly_without_a_reader() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("the answer")]));
    lab.run(&server, &["go"]).end().answer();
    for arguments in [&["sessions", "show", &lab.log().id()][..], &["sessions", "list"]] {
        let ended = lab.lorimer(arguments).stdout(nobody()).end();
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_stalls_holds_up_no_signal() {
    let flood = vec![text(&"words ".repeat(100_000)).into(), json!({"ms": 600_000})];
    let (lab, server) = (Lab::new(), Server::raw(&[flood]));
    let (mut reader, writer) = std::io::pipe().expect("a pipe");
    let running = lab.run(&server, &["--json", "go"]).stdout(writer).start();
    // The first bytes are out; the rest does not fit into the pipe.
    let mut first = [0; 1];
    reader.read_exact(&mut first).expect("a byte");
    until(|| lab.logs().first().is_some_and(|log| !log.of("assistant/chunk").is_empty()));
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, 143, "{ended:?}");
    lab.log().assert_closed();
    assert_eq!(lab.log().ends()[0]["kind"], "aborted");
}

#[test]
fn a_home_that_cannot_be_written_stops_before_the_model_is_asked() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("never")]));
    lab.put("home", "a file, not a folder");
    let home = lab.workspace().join("home/deeper").display().to_string();
    let ended = lab.run(&server, &["go"]).variable("LORIMER_HOME", &home).end();
    assert!([1, 2].contains(&ended.code) && ended.stdout.is_empty(), "{ended:?}");
    assert!(ended.said.contains("[WS]/home"), "{}", ended.said);
    assert!(server.requests().is_empty());
}

#[test]
fn a_log_is_for_its_owner_only() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.run(&server, &["go"]).end().answer();
    let mode = |path: &Path| path.metadata().expect("a file").permissions().mode() & 0o777;
    let log = lab.log().path;
    assert_eq!(mode(&log), 0o600);
    let folders = log.ancestors().skip(1).take_while(|folder| folder.starts_with(lab.home()));
    assert!(folders.into_iter().all(|folder| mode(folder) == 0o700));
}

#[test]
fn odd_folder_names_are_workspaces_like_any_other() {
    let (lab, server) = (Lab::new(), Server::scripted(&[ask("glob", json!({"pattern": "*"})), say("ok")]));
    let name = "a b/--日本 {x}%~'\"";
    lab.put(&format!("{name}/file.txt"), "");
    assert_eq!(lab.run(&server, &["-C", name, "go"]).end().answer(), "ok\n");
    assert_eq!(lab.log().result().text, "file.txt");
    let again = lab.run(&server, &["--continue", "again"]).within(&lab.workspace().join(name)).end();
    assert_eq!(again.answer(), "ok\n");
    let link = lab.workspace().join("link");
    std::os::unix::fs::symlink(lab.workspace().join(name), &link).expect("a link");
    assert_eq!(lab.run(&server, &["-C", "link", "--continue", "through a link"]).end().answer(), "ok\n");
    assert_eq!(lab.log().of("turn/start").len(), 3);
}

#[test]
fn hostile_words_drive_no_terminal() {
    let lab = Lab::new();
    let words = "\u{1b}[31mred\u{1b}]0;title\u{7} \u{202e}odd\nsecond \u{9b}5A line";
    lab.lorimer(&["run", "-m", "offline", words]).end().answer();
    let listed = lab.lorimer(&["sessions", "list"]).end().answer().to_owned();
    assert_eq!(listed.lines().count(), 1);
    assert!(!listed.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{listed:?}");
}

#[test]
fn odd_calls_are_answered_and_the_run_goes_on() {
    let calls = json!([
        {"id": "a", "name": "no_such_tool", "arguments": {}},
        {"id": "b", "name": "read", "arguments": "{\"file_path\": "},
        {"id": "c", "name": "read", "arguments": ""},
        {"id": "d", "name": "read", "arguments": {"file_path": 3, "surplus": true}},
        {"id": "e", "name": "glob", "arguments": {"pattern": "*"}},
    ]);
    let (lab, server) = (Lab::new(), Server::scripted(&[json!({"calls": calls}), say("ok")]));
    assert_eq!(lab.run(&server, &["go"]).end().answer(), "ok\n");
    let log = lab.log();
    log.assert_closed();
    let codes: Vec<_> = log.results().into_iter().map(|result| result.code.unwrap_or_default()).collect();
    assert_eq!(codes, ["UNKNOWN_TOOL", "INVALID_ARGS", "INVALID_ARGS", "INVALID_ARGS", ""]);
    crate::server::check("prefix.py", &server.request_log());
}

#[test]
fn a_home_that_cannot_be_written_is_told_once() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("never")]));
    let ended = lab.run(&server, &["go"]).variable("LORIMER_HOME", "/proc/nowhere").end();
    assert!(ended.complaint(1).contains("cannot save the session"));
    assert!(server.requests().is_empty());
}

#[test]
fn listings_end_quietly_without_a_reader() {
    let lab = Lab::new();
    for arguments in [&["models"][..], &["sessions", "list"]] {
        let ended = lab.lorimer(arguments).stdout(nobody()).end();
        assert_eq!(ended.code, 0, "{arguments:?}: {ended:?}");
    }
}
