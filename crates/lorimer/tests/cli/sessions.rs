//! Stored sessions: listing, showing, naming, deleting, going on with them, and damage.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::Lab;
use crate::server::{Server, say, text};

/// A lab with one finished session.
fn with_a_session() -> (Lab, Server) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one"), say("two"), say("three")]));
    lab.run(&server, &["explain the parser module in detail please"]).end().answer();
    (lab, server)
}

#[test]
fn none_is_said_so() {
    let lab = Lab::new();
    let here = lab.lorimer(&["sessions", "list"]).end();
    insta::assert_snapshot!(here.complaint(0), @"lorimer: there are no sessions of this folder; see `lorimer sessions list --all`");
    let all = lab.lorimer(&["sessions", "list", "--all"]).end();
    insta::assert_snapshot!(all.complaint(0), @"lorimer: there are no sessions");
    assert_eq!(lab.lorimer(&["sessions", "list", "--json"]).end().answer(), "");
    assert!(!lab.home().exists());
}

#[test]
fn a_list_is_of_this_folder_or_of_all() {
    let (lab, _server) = with_a_session();
    let id = lab.log().id();
    let here = lab.lorimer(&["sessions", "list"]).end().answer().to_owned();
    insta::assert_snapshot!(here.replace(&id[..8], "[SHORT]"), @"[SHORT]      now  explain the parser module in");
    let elsewhere = lab.lorimer(&["sessions", "list"]).within(&lab.root()).end();
    assert!(elsewhere.complaint(0).contains("--all"));
    let all = lab.lorimer(&["sessions", "list", "--all"]).within(&lab.root()).end();
    insta::assert_snapshot!(lab.plain(all.answer()).replace(&id[..8], "[SHORT]"), @"[SHORT-ID]      now  explain the parser module in  [WS]");
}

#[test]
fn a_list_as_json() {
    let (lab, _server) = with_a_session();
    let log = lab.log();
    let rows = lab.lorimer(&["sessions", "list", "--json"]).end();
    rows.answer();
    let [row] = &rows.json_lines()[..] else { panic!("one row") };
    let keys: Vec<&String> = row.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["id", "title", "cwd", "createdAt", "updatedAt", "bytes", "path"]);
    assert_eq!((&row["id"], &row["createdAt"]), (&log.header["id"], &log.header["createdAt"]));
    assert_eq!(row["path"], log.path.display().to_string());
    assert_eq!(row["bytes"], log.raw().len());
}

#[test]
fn a_session_is_shown() {
    let turns = [
        json!({"text": "I look at it.", "calls": [{"name": "read", "arguments": {"file_path": "a.txt"}}]}),
        say("It has **letters**.\n"),
        json!({"text": "half", "finish": "length"}),
    ];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    lab.put("a.txt", ('a'..='z').map(|letter| format!("{letter}\n")).collect::<String>());
    lab.run(&server, &["what is in a.txt?\nBe brief."]).end().answer();
    assert_eq!(lab.run(&server, &["--continue", "more"]).end().code, 3);
    let shown = lab.lorimer(&["sessions", "show", &lab.log().id()]).end();
    insta::assert_snapshot!(lab.plain(shown.answer()), @r#"
    session [ID] in [WS]

    > what is in a.txt?
    > Be brief.

    I look at it.

    • read {"file_path": "a.txt"}
        <path>[WS]/a.txt</path>
        <type>file</type>
        <content>
        1: a
        2: b
        3: c
        4: d
        5: e
        6: f
        7: g
        8: h
        9: i
        … 20 more lines

    It has **letters**.

    > more

    half

    [max-tokens]
    "#);
}

#[test]
fn a_path_is_printed() {
    let (lab, _server) = with_a_session();
    let log = lab.log();
    let printed = lab.lorimer(&["sessions", "path", &log.id()[..6]]).end();
    assert_eq!(printed.answer(), format!("{}\n", log.path.display()));
}

#[test]
fn a_title_can_be_changed() {
    let (lab, server) = with_a_session();
    let id = lab.log().id();
    assert_eq!(lab.lorimer(&["sessions", "rename", &id, "  the parser\n bug "]).end().answer(), "");
    let listed = lab.lorimer(&["sessions", "list"]).end();
    assert!(listed.answer().ends_with("now  the parser bug\n"), "{listed:?}");
    lab.run(&server, &["--continue", "go on with something else"]).end().answer();
    let listed = lab.lorimer(&["sessions", "list"]).end();
    assert!(listed.answer().ends_with("now  the parser bug\n"), "{listed:?}");
    let refused = lab.lorimer(&["sessions", "rename", &id, " "]).end();
    insta::assert_snapshot!(refused.complaint(2), @"lorimer: a title needs at least one word");
}

#[test]
fn a_deleted_session_leaves_nothing() {
    let (lab, server) = with_a_session();
    let first = lab.log().path;
    lab.run(&server, &["another one"]).end().answer();
    let other = lab.logs().into_iter().find(|log| log.path != first).expect("two sessions");
    let folder = first.parent().expect("a folder").to_owned();
    let id = folder.file_name().expect("an id").to_string_lossy().into_owned();
    assert_eq!(lab.lorimer(&["sessions", "delete", &id]).end().answer(), "");
    assert!(!folder.exists() && other.path.exists());
    assert_eq!(lab.lorimer(&["sessions", "delete", &other.id()]).end().answer(), "");
    assert_eq!(fs::read_dir(lab.home().join("sessions")).expect("a folder").count(), 0);
}

#[test]
fn a_beginning_must_name_one_session() {
    let (lab, _server) = with_a_session();
    let log = lab.log();
    for id in ["twin-a", "twin-b"] {
        let folder = log.path.parent().and_then(|folder| folder.parent()).expect("a project").join(id);
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("session.jsonl"), log.raw().replace(&log.id(), id)).expect("a log");
    }
    let refused = lab.lorimer(&["sessions", "path", "twin"]).end();
    insta::assert_snapshot!(refused.complaint(2), @r#"lorimer: "twin" names 2 sessions; give more of the id"#);
    assert!(lab.lorimer(&["sessions", "path", "twin-b"]).end().answer().ends_with("twin-b/session.jsonl\n"));
}

#[test]
fn the_newest_session_is_continued() {
    let (lab, server) = with_a_session();
    let first = lab.log().id();
    lab.run(&server, &["another one"]).end().answer();
    lab.run(&server, &["--session", &first, "back to the first"]).end().answer();
    lab.run(&server, &["--continue", "still the first"]).end().answer();
    let turns: Vec<usize> = lab.logs().iter().map(|log| log.of("turn/start").len()).collect();
    assert_eq!(turns.iter().sum::<usize>(), 4);
    let log = lab.logs().into_iter().find(|log| log.id() == first).expect("the first");
    assert_eq!(log.of("turn/start").len(), 3);
}

#[test]
fn a_session_has_one_writer() {
    let hang = vec![text("busy").into(), json!({"ms": 600_000})];
    let (lab, server) = (Lab::new(), Server::raw(&[hang]));
    let mut first = lab.run(&server, &["--json", "go"]).start();
    first.until(&["text-delta", "busy"]);
    let (id, pid) = (lab.log().id(), first.pid().to_string());
    for arguments in [&["rename", &id, "x"][..], &["delete", &id]] {
        let refused = lab.lorimer(&["sessions"]).and(arguments).end();
        let line = refused.complaint(2).replace(&pid, "[PID]");
        insta::allow_duplicates! { insta::assert_snapshot!(line, @r#"lorimer: session "[ID]" is in use by process [PID]; end it first"#); }
    }
    for arguments in [&["--session", &id, "me too"][..], &["--continue", "me too"]] {
        let refused = lab.run(&server, arguments).end();
        assert_eq!(refused.stdout, "");
        let line = refused.complaint(2).replace(&pid, "[PID]");
        insta::allow_duplicates! { insta::assert_snapshot!(line, @r#"lorimer: session "[ID]" is in use by process [PID]; end it first"#); }
    }
    assert!(lab.lorimer(&["sessions", "list"]).end().answer().contains("go"));
    assert!(lab.lorimer(&["sessions", "show", &id]).end().answer().contains("> go"));
    first.signal(Signal::TERM);
    assert_eq!(first.end().code, 143);
    lab.log().assert_closed();
    assert_eq!(lab.lorimer(&["sessions", "rename", &id, "free again"]).end().answer(), "");
}

#[test]
fn a_killed_run_is_closed_by_the_next() {
    let hang = vec![text("busy").into(), json!({"ms": 600_000})];
    let good = vec![text("back").into(), crate::server::done().into()];
    let (lab, server) = (Lab::new(), Server::raw(&[hang, good]));
    let mut first = lab.run(&server, &["--json", "go"]).start();
    first.until(&["text-delta", "busy"]);
    drop(first);
    assert!(lab.log().of("turn/end").is_empty());
    assert_eq!(lab.run(&server, &["--continue", "again"]).end().answer(), "back\n");
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.ends(), [&json!({"kind": "interrupted"}), &json!({"kind": "completed"})]);
}

/// Changes the log of the only session.
fn damage(lab: &Lab, change: impl Fn(&str) -> String) -> (PathBuf, String) {
    let log = lab.log();
    let changed = change(&log.raw());
    fs::write(&log.path, &changed).expect("a log");
    (log.path, changed)
}

#[test]
fn a_torn_end_is_set_aside() {
    let (lab, server) = with_a_session();
    let torn = "{\"type\":\"turn/start\",\"seq\":17,\"ti";
    let (path, _) = damage(&lab, |log| format!("{log}{torn}"));
    let ended = lab.run(&server, &["--continue", "go on"]).end();
    let copy = path.with_file_name("session.jsonl.torn-1");
    let note = ended.complaint(0).replace(&copy.display().to_string(), "[COPY]");
    let folder = lab.plain(&copy.display().to_string());
    insta::assert_snapshot!(note.replace(&folder, "[COPY]"), @"lorimer: the log ended in a torn line, which was copied to [COPY]");
    assert_eq!(ended.stdout, "two\n");
    assert_eq!(fs::read_to_string(copy).expect("a copy"), torn);
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.of("turn/start").len(), 2);
    let seqs: Vec<&Value> = log.events.iter().map(|event| &event["seq"]).collect();
    assert!(seqs.iter().enumerate().all(|(index, seq)| **seq == json!(index)), "{seqs:?}");
}

#[test]
fn a_damaged_log_is_shown_but_not_continued() {
    let (lab, server) = with_a_session();
    let id = lab.log().id();
    let (path, damaged) =
        damage(&lab, |log| log.replacen("{\"type\":\"request/context\"", "{\"type\":oops", 1));
    let ended = lab.run(&server, &["--session", &id, "go on"]).end();
    let line = ended.complaint(2).replace(&lab.plain(&path.display().to_string()), "[LOG]");
    insta::assert_snapshot!(line.replace(&id, "[ID]"), @r#"lorimer: session "[ID]" can be read but not continued: corrupt session log: unparsable committed event at line 9: expected value at line 1 column 9 (raw log: [LOG]); see it with `lorimer sessions show [ID]`"#);
    assert_eq!((fs::read_to_string(&path).expect("a log"), server.requests().len()), (damaged, 1));
    let shown = lab.lorimer(&["sessions", "show", &id]).end();
    assert_eq!(shown.code, 0);
    assert!(
        shown.stdout.contains("> explain the parser") && !shown.stdout.contains("one"),
        "{}",
        shown.stdout
    );
    insta::assert_snapshot!(shown.complaint(0), @r#"lorimer: the rest of the log cannot be shown: corrupt session log: unparsable committed event at line 9: not a session event: expected value at line 1 column 9"#);
}

#[test]
fn a_log_without_a_header_is_left_alone() {
    let (lab, server) = with_a_session();
    let id = lab.log().id();
    let (path, emptied) = damage(&lab, |_| "no header\n".to_owned());
    let ended = lab.run(&server, &["--session", &id, "go on"]).end();
    let line =
        ended.complaint(2).replace(&path.parent().expect("a folder").display().to_string(), "[FOLDER]");
    assert!(line.contains("session.jsonl"), "{line}");
    assert_eq!(fs::read_to_string(&path).expect("a log"), emptied);
}

#[test]
fn a_refused_run_leaves_its_session_as_it_is() {
    let (lab, server) = with_a_session();
    let log = lab.log();
    let ended = lab.run(&server, &["--continue", "go on"]).without("DEEPSEEK_API_KEY").end();
    assert!(ended.complaint(2).contains("DEEPSEEK_API_KEY"));
    assert_eq!(lab.log().raw(), log.raw());
}
#[test]
fn looking_changes_nothing() {
    let (lab, _server) = with_a_session();
    let (path, torn) = damage(&lab, |log| format!("{log}{{\"type\":\"turn/start\",\"seq\":17"));
    let shown = lab.lorimer(&["sessions", "show", &lab.log().id()]).end();
    assert!(shown.answer().ends_with("one\n"), "{shown:?}");
    lab.lorimer(&["sessions", "list"]).end().answer();
    lab.lorimer(&["sessions", "list", "--json"]).end().answer();
    assert_eq!(fs::read_to_string(&path).expect("a log"), torn);
    assert_eq!(fs::read_dir(path.parent().expect("a folder")).expect("a folder").count(), 2);
}
