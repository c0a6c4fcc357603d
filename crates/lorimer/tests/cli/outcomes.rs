//! How a run ends: exit codes, stop reasons, and what is printed.

use std::fs::File;

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::server::{Server, ask, say};

#[test]
fn an_answer_is_all_that_is_printed() {
    let (lab, server) =
        (Lab::new(), Server::scripted(&[ask("glob", json!({"pattern": "*"})), say("All **done**.\n\n")]));
    assert_eq!(lab.run(&server, &["do", "it"]).end().answer(), "All **done**.\n");
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.ends(), [&json!({"kind": "completed"})]);
    assert_eq!(log.header["cwd"], lab.workspace().display().to_string());
}

#[test]
fn json_is_the_log_and_a_result() {
    let long = "a longer answer that comes in many pieces ".repeat(20);
    let turns = [
        json!({"reasoning": "look first", "text": "I look.", "calls": [
        {"name": "glob", "arguments": {"pattern": "*"}}, {"name": "read", "arguments": {"file_path": "nope"}}]}),
        say(&long),
    ];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    let ended = lab.run(&server, &["--json", "go"]).end();
    ended.answer();
    let mut lines = ended.json_lines();
    let result = lines.pop().expect("a result");
    assert_same(&lines, &lab.log().events);
    assert!(lab.log().raw().contains("\"text-chunks\""), "the file has packed rows");
    let keys: Vec<&String> = result.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["type", "sessionId", "stopReason", "text", "usage", "steps", "durationMs"]);
    assert_eq!(result["type"], "result");
    assert_eq!(result["sessionId"], lab.log().id());
    assert_eq!((&result["stopReason"], &result["steps"]), (&json!("completed"), &json!(2)));
    assert_eq!(result["text"], long);
    assert!(result["durationMs"].is_u64());
    assert_eq!(
        (&result["usage"]["outputTokens"], &result["usage"]["cacheReadTokens"]),
        (&json!(40), &json!(128))
    );
}

#[test]
fn the_result_of_a_later_run_counts_that_run_only() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one"), say("two")]));
    lab.run(&server, &["--json", "first"]).end().answer();
    let ended = lab.run(&server, &["--json", "--continue", "second"]).end();
    ended.answer();
    let result = ended.result();
    assert_eq!((&result["text"], &result["steps"]), (&json!("two"), &json!(1)));
    assert_eq!(result["usage"]["outputTokens"], 20);
}

/// Compares event by event, so that a difference is short.
#[track_caller]
fn assert_same(printed: &[Value], logged: &[Value]) {
    let names = |events: &[Value]| -> Vec<String> {
        events.iter().map(|event| format!("{} {}", event["seq"], event["type"])).collect()
    };
    assert_eq!(names(printed), names(logged));
    for (ours, theirs) in printed.iter().zip(logged) {
        assert_eq!(ours, theirs);
    }
}

#[test]
fn a_failed_turn_says_why() {
    let refusal = json!({"1": {"status": 400, "message": "the model field is bad"}});
    let (lab, server) = (Lab::new(), Server::failing(&[say("never")], &refusal));
    let ended = lab.run(&server, &["--json", "go"]).end();
    let line = ended.complaint(1).replace(&server.url(), "[URL]");
    insta::assert_snapshot!(line, @"lorimer: DeepSeek: the model field is bad ([URL]/chat/completions does not take the request: check the model id, and that the server speaks chat completions) [INVALID_REQUEST]; go on with `lorimer run --session [SHORT-ID]`");
    let result = ended.result();
    assert_eq!(result["stopReason"], "error");
    assert_eq!(result["error"]["code"], "INVALID_REQUEST");
    assert!(result["error"]["message"].as_str().is_some_and(|text| text.contains("the model field is bad")));
    lab.log().assert_closed();
}

#[test]
fn an_empty_answer_says_why() {
    let (lab, server) = (Lab::new(), Server::scripted(&[json!({"reasoning": "hm", "text": ""})]));
    let ended = lab.run(&server, &["go"]).end();
    insta::assert_snapshot!(ended.complaint(1), @"lorimer: the model ended without an answer; ask again, or look with `lorimer sessions show`");
    assert_eq!(ended.stdout, "");
    assert_eq!(lab.log().ends()[0]["kind"], "completed");
}

/// The recorded scenario `empty-response-retry`.
#[test]
fn an_answer_with_nothing_is_asked_for_again() {
    let nothing = vec![crate::server::done().into()];
    let good = vec![crate::server::text("now").into(), crate::server::done().into()];
    let (lab, server) = (Lab::new(), Server::raw(&[nothing, good]));
    assert_eq!(lab.run(&server, &["go"]).end().answer(), "now\n");
    let log = lab.log();
    let [retry] = log.of("llm/retry")[..] else { panic!("one repeat") };
    assert_eq!((&retry["failure"]["code"], &retry["retry"]), (&json!("EMPTY_RESPONSE"), &json!(1)));
    let [started] = log.of("llm/retry-started")[..] else { panic!("one repeat") };
    assert_eq!(started["retryId"], retry["retryId"]);
    assert_eq!((log.of("step/start").len(), server.requests().len()), (1, 2));
    assert_eq!(server.requests()[0], server.requests()[1]);
}

#[test]
fn nothing_but_empty_answers_is_a_failure() {
    let (lab, server) = (Lab::new(), Server::raw(&[vec![crate::server::done().into()]]));
    let ended = lab.run(&server, &["go"]).end();
    insta::assert_snapshot!(ended.complaint(1), @"lorimer: DeepSeek: the model answered with nothing [EMPTY_RESPONSE]; go on with `lorimer run --session [SHORT-ID]`");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn an_answer_cut_at_the_output_limit_is_a_limit() {
    let cut = json!({"text": "half an ans", "finish": "length"});
    let (lab, server) = (Lab::new(), Server::scripted(&[cut]));
    let ended = lab.run(&server, &["go"]).end();
    insta::assert_snapshot!(ended.complaint(3), @"lorimer: the answer was cut at the output limit; raise max_tokens, or go on with `lorimer run --session [SHORT-ID]`");
    assert_eq!(ended.stdout, "half an ans\n");
    assert_eq!(lab.log().ends(), [&json!({"kind": "max-tokens"})]);
}

#[test]
fn a_turn_ends_at_its_step_limit() {
    let (lab, server) = (Lab::new(), Server::scripted(&[ask("glob", json!({"pattern": "*"}))]));
    let ended = lab.run(&server, &["--json", "--max-steps", "2", "go"]).end();
    insta::assert_snapshot!(ended.complaint(3), @"lorimer: the turn reached its limit of 2 steps before the model was done; continue the session, or raise --max-steps");
    let result = ended.result();
    assert_eq!((&result["stopReason"], &result["steps"]), (&json!("step-limit"), &json!(2)));
    assert_eq!(result["error"]["code"], "STEP_LIMIT");
    let log = lab.log();
    log.assert_closed();
    assert_eq!(
        (&log.ends()[0]["kind"], &log.ends()[0]["error"]["code"]),
        (&json!("error"), &json!("STEP_LIMIT"))
    );
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_turn_that_is_done_in_time_keeps_within_its_limit() {
    let (lab, server) = (Lab::new(), Server::scripted(&[ask("glob", json!({"pattern": "*"})), say("ok")]));
    assert_eq!(lab.run(&server, &["--max-steps", "2", "go"]).end().answer(), "ok\n");
}

#[test]
fn the_answer_goes_into_a_file_as_well() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("the answer")]));
    assert_eq!(lab.run(&server, &["--output", "answer.md", "go"]).end().answer(), "the answer\n");
    assert_eq!(lab.get("answer.md").trim_end(), "the answer");
}

#[test]
fn an_answer_that_cannot_be_saved_is_still_printed() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("the answer")]));
    let ended = lab.run(&server, &["--output", "no/such/folder/answer.md", "go"]).end();
    insta::assert_snapshot!(ended.complaint(4), @"lorimer: cannot write the answer to no/such/folder/answer.md: No such file or directory (os error 2); it is in the session's log");
    assert_eq!(ended.stdout, "the answer\n");
    assert_eq!(lab.log().ends()[0]["kind"], "completed");
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_printed_is_not_a_success() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("the answer")]));
    let full = File::options().write(true).open("/dev/full").expect("a full disk");
    let ended = lab.run(&server, &["go"]).stdout(full).end();
    insta::assert_snapshot!(ended.complaint(4), @"lorimer: cannot write to standard output: No space left on device (os error 28); the answer is in the session's log");
    assert_eq!(lab.log().ends()[0]["kind"], "completed");
}

#[test]
fn a_reader_that_leaves_ends_the_run() {
    let hang = vec![crate::server::text("x").into(), json!({"ms": 600_000})];
    let (lab, server) = (Lab::new(), Server::raw(&[hang]));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ended = lab.run(&server, &["--json", "go"]).stdout(writer).end();
    assert_eq!(ended.code, 1, "{ended:?}");
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.ends(), [&json!({"kind": "aborted", "reason": {"kind": "disposed"}})]);
}

#[test]
fn a_prompt_names_the_workspace_and_a_day_but_no_path_of_the_program() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.run(&server, &["what is this?"]).end().answer();
    let messages = server.last_messages();
    let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "user"]);
    assert_eq!(messages[1]["content"], "what is this?");
    let context = messages[2]["content"].as_str().expect("text");
    assert!(
        context.starts_with("Current runtime context.")
            && context.contains("Permission mode: workspace-write")
    );
    assert!(
        messages[0]["content"]
            .as_str()
            .is_some_and(|text| text.contains(&lab.workspace().display().to_string()))
    );
}

#[test]
fn json_of_a_later_run_is_what_that_run_logged() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one"), say("two")]));
    lab.run(&server, &["--json", "first"]).end().answer();
    let before = lab.log().events.len();
    let ended = lab.run(&server, &["--json", "--continue", "second"]).end();
    let mut lines = ended.json_lines();
    lines.pop();
    assert_same(&lines, &lab.log().events[before..]);
}

#[test]
fn json_has_the_permission_mode_too() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one")]));
    let ended = lab.run(&server, &["--json", "--permission-mode", "read-only", "first"]).end();
    let mut lines = ended.json_lines();
    lines.pop();
    assert_same(&lines, &lab.log().events);
}
