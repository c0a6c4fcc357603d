//! The task: from the command line, from standard input, from both.

use crate::lab::{Call, Lab};
use crate::server::{Server, say};

/// What the model was asked, and what standard error had.
#[track_caller]
fn asked(prepare: impl for<'a> Fn(Call<'a>) -> Call<'a>, arguments: &[&str]) -> (String, String) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    let ended = prepare(lab.run(&server, arguments)).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "ok\n"), "{ended:?}");
    let task = server.last_messages()[1]["content"].as_str().expect("text").to_owned();
    (task, ended.said)
}

fn quiet(task: &str) -> (String, String) {
    (task.to_owned(), String::new())
}

#[test]
fn words_are_joined() {
    assert_eq!(asked(|call| call, &["fix", "the", "test"]), quiet("fix the test"));
    assert_eq!(asked(|call| call, &["--", "--not a flag"]), quiet("--not a flag"));
}

#[test]
fn piped_text_goes_with_the_task() {
    let piped = asked(|call| call.stdin("line 1\nline 2\n"), &["review this"]);
    assert_eq!(piped, quiet("review this\n\n<stdin>\nline 1\nline 2\n</stdin>"));
}

#[test]
fn an_empty_pipe_adds_nothing() {
    assert_eq!(asked(|call| call.stdin(""), &["review this"]), quiet("review this"));
    assert_eq!(asked(|call| call.stdin("\n \n"), &["review this"]), quiet("review this"));
}

#[test]
fn a_file_goes_with_the_task() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.put("notes.txt", "from a file\n");
    let file = std::fs::File::open(lab.workspace().join("notes.txt")).expect("a file");
    assert_eq!(lab.run(&server, &["sum up"]).stdin_from(file).end().answer(), "ok\n");
    assert_eq!(server.last_messages()[1]["content"], "sum up\n\n<stdin>\nfrom a file\n</stdin>");
}

#[test]
fn standard_input_alone_is_the_task() {
    assert_eq!(asked(|call| call.stdin("do it\nwell\n"), &["-"]), quiet("do it\nwell\n"));
    assert_eq!(asked(|call| call.stdin("do it\nwell\n"), &[]), quiet("do it\nwell\n"));
}

#[test]
fn without_standard_input_the_task_is_enough() {
    assert_eq!(asked(|call| call, &["go"]), quiet("go"));
    assert_eq!(asked(|call| call.closed_stdin(), &["go"]), quiet("go"));
}

#[test]
fn a_silent_pipe_is_left_out() {
    let (task, said) = asked(|call| call.silent_stdin(), &["-c", "run.stdin_wait_ms=100", "go"]);
    assert_eq!(task, "go");
    insta::assert_snapshot!(said, @"lorimer: nothing came on standard input within 100 ms; going on without it (redirect it from /dev/null to say so at once)");
}

#[test]
fn bytes_that_are_no_text_are_shown_as_such() {
    let (task, said) = asked(|call| call.stdin(b"caf\xe9 \xff\n"), &["what is it"]);
    assert_eq!(task, "what is it\n\n<stdin>\ncaf\u{fffd} \u{fffd}\n</stdin>");
    insta::assert_snapshot!(said, @"lorimer: standard input is not UTF-8; bytes that are not text are shown to the model as �");
}

#[test]
fn too_much_is_refused() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("never")]));
    let ended = lab.run(&server, &["-c", "run.stdin_max_bytes=10", "go"]).stdin("12345678901").end();
    insta::assert_snapshot!(ended.complaint(2), @"lorimer: standard input is longer than 10 bytes; save it to a file in the workspace and name the file, or raise run.stdin_max_bytes");
    assert!(server.requests().is_empty());
}
