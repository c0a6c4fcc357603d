//! Logs of the DeepSeek Harness: taken in, shown, and gone on with.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::lab::{Ended, Lab};
use crate::server::{Server, check, fixtures, say};

/// The logs of a folder of the fixtures.
fn logs_in(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures().join(folder)).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut logs: Vec<PathBuf> = paths.filter(|path| path.to_string_lossy().contains(".jsonl")).collect();
    logs.sort();
    assert!(!logs.is_empty(), "{folder}");
    logs
}

fn import(lab: &Lab, log: &Path) -> Ended {
    let here = lab.workspace().display().to_string();
    lab.lorimer(&["sessions", "import", "-C", &here, &log.display().to_string()]).end()
}

/// Imports a log, shows it, and goes on with it.
fn goes_on(path: &Path) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("I go on.")]));
    let before = fs::read(path).expect("a log");
    let imported = import(&lab, path);
    assert_eq!(imported.code, 0, "{}: {imported:?}", path.display());
    let id = imported.stdout.trim_end().to_owned();
    assert_eq!(fs::read(path).expect("a log"), before, "it is only read");
    assert_eq!(lab.log().header["cwd"], lab.workspace().display().to_string());

    let shown = lab.lorimer(&["sessions", "show", &id]).end();
    assert!(shown.answer().contains("\n> "), "{}: {}", path.display(), shown.stdout);
    let listed = lab.lorimer(&["sessions", "list"]).end();
    assert_eq!(listed.answer().lines().count(), 1, "{}", listed.stdout);

    let ended = lab.run(&server, &["--session", &id, "go on please"]).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "I go on.\n"), "{}: {ended:?}", path.display());
    check("pairs.py", &server.request_log());
    let sent = server.last_messages();
    assert!(sent.len() > 3 && sent.iter().any(|message| message["content"] == "go on please"), "{sent:?}");
    let log = lab.log();
    assert_eq!(log.ends().last(), Some(&&json!({"kind": "completed"})));
    assert_eq!(log.of("turn/start").len(), log.of("turn/end").len());

    let on_messages = lab.run_messages(&server, &["--session", &id, "and with the other"]).end();
    assert_eq!(on_messages.answer(), "I go on.\n", "{}", path.display());
    check("pairs.py", &server.request_log());
}

#[test]
fn logs_of_format_0_go_on() {
    logs_in("conformance/logs").iter().for_each(|path| goes_on(path));
}

#[test]
fn logs_of_format_4_go_on() {
    logs_in("dsh-v4").iter().for_each(|path| goes_on(path));
}

#[test]
fn an_import_says_what_it_took() {
    let lab = Lab::new();
    let path = fixtures().join("dsh-v4/tools.v4.jsonl.zstd");
    let imported = import(&lab, &path);
    let events = lab.log().events.len();
    let first = imported.said.lines().next().expect("a note");
    assert_eq!(first, format!("lorimer: {events} events of a log of format 4"));
    assert_eq!(imported.stdout, format!("{}\n", lab.log().id()));
    let again = import(&lab, &path);
    assert_eq!((again.code, lab.logs().len()), (0, 2));
    assert_ne!(again.stdout, imported.stdout);
}

#[test]
fn what_cannot_be_imported_is_refused() {
    let lab = Lab::new();
    lab.put("words.jsonl", "just words\n");
    lab.put("new.jsonl", "{\"type\":\"session\",\"version\":9,\"id\":\"a\",\"createdAt\":1,\"cwd\":\"/\"}\n");
    lab.put("empty.jsonl", "");
    let said = |path: &str| {
        let ended = lab.lorimer(&["sessions", "import", path]).end();
        assert_eq!(ended.stdout, "");
        ended.complaint(2).to_owned()
    };
    insta::assert_snapshot!(said("words.jsonl"), @"lorimer: words.jsonl is not a session log: expected value at line 1 column 1");
    insta::assert_snapshot!(said("new.jsonl"), @"lorimer: new.jsonl has log format 9; formats 0 and 4 can be imported");
    insta::assert_snapshot!(said("empty.jsonl"), @"lorimer: empty.jsonl is not a session log: it has no whole first line");
    insta::assert_snapshot!(said("nowhere.jsonl"), @"lorimer: cannot read nowhere.jsonl: No such file or directory (os error 2)");
    let path = fixtures().join("conformance/logs/fs-edit.jsonl").display().to_string();
    assert!(said(&path).contains("does not say its working directory"));
    assert!(lab.logs().is_empty());
}
