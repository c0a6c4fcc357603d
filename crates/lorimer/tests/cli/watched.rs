//! What a person at a terminal sees.

use serde_json::json;

use crate::lab::Lab;
use crate::server::{Server, say, text};

#[test]
fn calls_are_shown_while_they_run() {
    let turns = [
        json!({"text": "I look around.", "calls": [
            {"name": "glob", "arguments": {"pattern": "*.txt"}},
            {"name": "read", "arguments": {"file_path": "gone.txt"}},
        ]}),
        say("There is **one** file.\n"),
    ];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    lab.put("one.txt", "");
    let ended = lab.run(&server, &["look"]).terminal().end();
    assert_eq!(ended.code, 0, "{ended:?}");
    insta::assert_snapshot!(lab.plain(&ended.stdout.replace('\r', "")), @r#"
    I look around.
    • Glob *.txt
    • Read gone.txt
      ✗ Error: cannot read "[WS]/gone.txt": not found
    There is **one** file.
    "#);
}

#[test]
fn a_wait_is_counted_down() {
    let busy = json!({"status": 503, "body": "upstream is down"});
    let (lab, server) =
        (Lab::new(), Server::raw(&[vec![busy], vec![text("up").into(), crate::server::done().into()]]));
    let ended = lab.run(&server, &["go"]).terminal().end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("s: DeepSeek: upstream is down"), "{:?}", ended.stdout);
    assert!(ended.stdout.ends_with("up\r\n"), "{:?}", ended.stdout);
}

#[test]
fn what_others_wrote_drives_no_terminal() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2Jevil\u{202e}";
    let turns = [
        json!({"text": format!("I {evil} look."), "calls": [
            {"name": "glob", "arguments": {"pattern": format!("{evil}*")}},
            {"name": "read", "arguments": {"file_path": format!("{evil}.txt")}},
        ]}),
        say("done"),
    ];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    let ended = lab.run(&server, &["look"]).terminal().end();
    assert!(ended.stdout.contains("evil"), "{:?}", ended.stdout);
    assert!(!ended.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{:?}", ended.stdout);
}

#[test]
fn a_terminal_is_not_asked_for_a_task() {
    let ended = Lab::new().lorimer(&["run", "-m", "offline"]).terminal().end();
    assert_eq!(ended.code, 2);
    assert!(ended.stdout.starts_with("lorimer: there is no task;"), "{:?}", ended.stdout);
}
