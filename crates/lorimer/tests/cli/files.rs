//! The file tools as a whole program uses them: what was seen may be changed, over resumes too.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::server::{Server, ask, asks, say};

fn read(path: &str) -> Value {
    ask("read", json!({"file_path": path}))
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    ask("edit", json!({"file_path": path, "old_string": old, "new_string": new}))
}

fn write(path: &str, content: &str) -> Value {
    ask("write", json!({"file_path": path, "content": content}))
}

/// Plays these turns, then an answer; `code: text` of every result.
#[track_caller]
fn play(lab: &Lab, turns: &[Value], arguments: &[&str]) -> Vec<String> {
    let server = Server::scripted(&[turns, &[say("done")]].concat());
    let before = lab.logs().first().map_or(0, |log| log.results().len());
    assert_eq!(lab.run(&server, arguments).and(&["go"]).end().answer(), "done\n");
    let log = lab.log();
    log.assert_closed();
    let shown = |result: crate::log::ToolResult| {
        assert_eq!(result.is_error, result.text.starts_with("Error: "), "{result:?}");
        let code = result.code.map(|code| format!("{code}: ")).unwrap_or_default();
        lab.plain(&format!("{code}{}", result.text))
    };
    log.results().into_iter().skip(before).map(shown).collect()
}

/// The recorded scenario `fs-policy-reject`.
#[test]
fn a_file_is_read_before_it_is_edited() {
    let lab = Lab::new();
    lab.put("config.txt", "mode=DEBUG\n");
    let change = edit("config.txt", "DEBUG", "RELEASE");
    let results = play(&lab, &[change.clone(), read("config.txt"), change], &[]);
    insta::assert_snapshot!(results.join("\n---\n"), @r#"
    FS_NOT_OBSERVED: Error: edit requires reading "[WS]/config.txt" first — read the file, then retry
    ---
    <path>[WS]/config.txt</path>
    <type>file</type>
    <content>
    1: mode=DEBUG

    (End of file - total 1 lines)
    </content>
    ---
    The file [WS]/config.txt has been updated successfully.
    "#);
    assert_eq!(lab.get("config.txt"), "mode=RELEASE\n");
}

#[test]
fn a_file_is_read_before_it_is_replaced() {
    let lab = Lab::new();
    lab.put("old.txt", "precious\n");
    let results = play(&lab, &[write("old.txt", "new\n"), write("fresh/er.txt", "new\n")], &[]);
    insta::assert_snapshot!(results.join("\n---\n"), @r#"
    FS_NOT_OBSERVED: Error: cannot overwrite existing "[WS]/old.txt" without reading it first — read the file, then retry
    ---
    <path>[WS]/fresh/er.txt</path>
    <type>file</type>
    <content>
    Created file
    </content>
    "#);
    assert_eq!((lab.get("old.txt"), lab.get("fresh/er.txt")), ("precious\n".into(), "new\n".into()));
}

/// The recorded scenario `fs-delete-recreate`.
#[test]
fn a_file_that_is_seen_to_be_gone_is_made_again() {
    let lab = Lab::new();
    lab.put("note.txt", "one\n");
    let remove = ask("bash", json!({"command": "rm note.txt", "description": "Remove the note"}));
    let turns =
        [read("note.txt"), remove, write("note.txt", "two\n"), read("note.txt"), write("note.txt", "two\n")];
    let results = play(&lab, &turns, &["--permission-mode", "danger-full-access"]);
    insta::assert_snapshot!(results[2..].join("\n---\n"), @r#"
    FS_STALE_VERSION: Error: cannot write "[WS]/note.txt": file no longer exists — re-read the file, then retry
    ---
    FS_NOT_FOUND: Error: cannot read "[WS]/note.txt": not found
    ---
    <path>[WS]/note.txt</path>
    <type>file</type>
    <content>
    Created file
    </content>
    "#);
    assert_eq!(lab.get("note.txt"), "two\n");
}

/// The recorded scenario `fs-read-window`.
#[test]
fn a_window_says_how_to_go_on() {
    let lab = Lab::new();
    lab.put("five.txt", "l1\nl2\nl3\nl4\nl5\n");
    let window = |offset: u64, limit: u64| {
        ask("read", json!({"file_path": "five.txt", "offset": offset, "limit": limit}))
    };
    let results = play(&lab, &[window(2, 2), window(4, 2), window(6, 1), window(0, 1)], &[]);
    insta::assert_snapshot!(results.join("\n---\n"), @r#"
    <path>[WS]/five.txt</path>
    <type>file</type>
    <content>
    2: l2
    3: l3

    (Showing lines 2-3 of 5. Use offset=4 to continue.)
    </content>
    ---
    <path>[WS]/five.txt</path>
    <type>file</type>
    <content>
    4: l4
    5: l5

    (End of file - total 5 lines)
    </content>
    ---
    FS_NOT_FOUND: Error: offset 6 is out of range for "[WS]/five.txt" (5 lines)
    ---
    Error: offset must be a positive integer
    "#);
    let log = lab.log();
    let meta = &log.of("tool/result")[0]["meta"];
    assert_eq!(meta["lines"], json!([{"number": 2, "text": "l2"}, {"number": 3, "text": "l3"}]));
    assert_eq!((&meta["offset"], &meta["totalLines"]), (&json!(2), &json!(5)));
}

/// The recorded scenario `repeat-tool-reminder`.
#[test]
fn a_model_that_repeats_itself_is_told() {
    let lab = Lab::new();
    lab.put("same.txt", "x\n");
    let server = Server::scripted(&[&vec![read("same.txt"); 8][..], &[say("done")]].concat());
    lab.run(&server, &["go"]).end().answer();
    let log = lab.log();
    let notices: Vec<&Value> = log
        .of("user/message")
        .into_iter()
        .filter(|data| data["source"]["plugin"] == "repeat-tool-reminder")
        .collect();
    let summaries: Vec<&Value> = notices.iter().map(|data| &data["source"]["summary"]).collect();
    assert_eq!(summaries, ["read × 3", "read × 5", "read × 8"]);
    assert!(notices.iter().all(|data| data["source"]["form"] == "notice"));
    let text = |index: usize| notices[index]["content"][0]["text"].as_str().expect("text");
    assert!(!text(0).starts_with("Repeated tool call detected:"));
    assert!(
        text(1)
            .starts_with("Repeated tool call detected:\n- tool: read\n- consecutive_calls: 5\n- arguments: ")
    );
    let sent = server.last_messages();
    assert!(sent.iter().any(|message| message["content"] == text(2)), "the model reads it");
    crate::server::check("pairs.py", &server.request_log());
}

/// The recorded scenario `fs-glob-sampling`, with a small page.
#[test]
fn a_long_listing_is_sampled() {
    let lab = Lab::new();
    let paths = ["a/1", "a/2", "a/3", "b/1", "b/2", "b/3", "c"];
    for (age, path) in paths.iter().rev().enumerate() {
        lab.put(path, "");
        let file = std::fs::File::options().write(true).open(lab.workspace().join(path)).expect("a file");
        let age = Duration::from_secs(60 * (age as u64 + 1));
        file.set_modified(SystemTime::now() - age).expect("a time");
    }
    let results =
        play(&lab, &[ask("glob", json!({"pattern": "**/*"}))], &["-c", "search.glob_max_results=4"]);
    let (shown, pointer) = results[0].split_once("Full sorted result stored at: ").expect("a pointer");
    insta::assert_snapshot!(shown, @r"
    a/1
    a/2
    b/1
    c

    (Showing 4 of 7 paths, sampled across 3 of the 3 top-level entries this pattern matched instead of taken in modification-time order. 
    ");
    let stored = pointer.split_whitespace().next().expect("a path").trim_end_matches('.');
    let stored = stored.replace("[HOME]", &lab.home().display().to_string()).replace("[ID]", &lab.log().id());
    assert_eq!(std::fs::read_to_string(stored).expect("the full listing").trim_end(), paths.join("\n"));
}

#[test]
fn edits_follow_one_another_without_another_read() {
    let lab = Lab::new();
    lab.put("dos.txt", "one\r\ntwo\r\nthree\r\n");
    let both = asks(&[
        ("edit", json!({"file_path": "dos.txt", "old_string": "one\ntwo", "new_string": "1\n2"})),
        ("edit", json!({"file_path": "dos.txt", "old_string": "three", "new_string": "3"})),
    ]);
    let results = play(&lab, &[read("dos.txt"), both, edit("dos.txt", "3", "three")], &[]);
    assert!(results[1..].iter().all(|text| text.ends_with("has been updated successfully.")), "{results:?}");
    assert_eq!(lab.get("dos.txt"), "1\r\n2\r\nthree\r\n");
}

#[test]
fn what_was_read_may_be_edited_by_a_later_process() {
    let lab = Lab::new();
    lab.put("config.txt", "mode=DEBUG\n");
    play(&lab, &[read("config.txt")], &[]);
    let server_turns = [say("skipped"), say("skipped"), edit("config.txt", "DEBUG", "RELEASE")];
    let results = play(&lab, &server_turns, &["--continue"]);
    assert_eq!(results, ["The file [WS]/config.txt has been updated successfully."]);
    assert_eq!(lab.get("config.txt"), "mode=RELEASE\n");
}

#[test]
fn what_changed_between_two_processes_is_read_again() {
    let lab = Lab::new();
    lab.put("config.txt", "mode=DEBUG\n");
    play(&lab, &[read("config.txt")], &[]);
    lab.put("config.txt", "mode=DEBUG # mine\n");
    let change = edit("config.txt", "DEBUG", "RELEASE");
    let turns = [say("skipped"), say("skipped"), change.clone(), read("config.txt"), change];
    let results = play(&lab, &turns, &["--continue"]);
    insta::assert_snapshot!(results[0], @r#"FS_STALE_VERSION: Error: cannot edit "[WS]/config.txt": file changed since it was read — re-read the file, then retry"#);
    assert_eq!(results[2], "The file [WS]/config.txt has been updated successfully.");
    assert_eq!(lab.get("config.txt"), "mode=RELEASE # mine\n");
}
