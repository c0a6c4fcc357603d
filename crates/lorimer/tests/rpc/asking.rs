//! Requests of the program to its client: approvals and questions.

use serde_json::{Value, json};

use crate::client::{Client, Lab};

fn command(text: &str) -> Value {
    json!([
        {"calls": [{"name": "bash", "arguments": {
            "command": text,
            "description": "Try it",
            "sandbox_permissions": "danger-full-access",
            "justification": "the task needs it"
        }}]},
        {"text": "done"}
    ])
}

fn result_text(lab: &Lab, nth: usize) -> String {
    lab.logged("s", "tool/result")[nth]["message"]["content"][0]["content"][0]["text"]
        .as_str()
        .expect("a text")
        .to_owned()
}

fn asked(client: &mut Client, method: &str) -> Value {
    client.wait_for(|frame| frame["method"] == method)
}

fn answer(client: &mut Client, request: &Value, result: Value) {
    client.write(format!("{}\n", json!({"jsonrpc": "2.0", "id": request["id"], "result": result})));
}

#[test]
fn a_client_that_answers_nothing_is_asked_nothing() {
    let lab = Lab::new(command("echo ran > ran.txt"));
    let mut client = lab.ready(json!({}));
    client.prompt("s", "go");
    client.wait_idle("s");
    client.hang_up();
    assert!(client.rest().iter().all(|frame| frame.get("id").is_none()));
    assert!(!lab.workspace().join("ran.txt").exists());
    assert_eq!(
        result_text(&lab, 0),
        "Error: sandbox escalation to \"danger-full-access\" requires approval, but no approval channel is available"
    );
    let header = &lab.logged("s", "request/header")[0]["header"];
    assert!(!header["tools"].to_string().contains("ask_user_question"));
}

#[test]
fn an_allowed_command_runs_and_a_refused_one_says_why() {
    for (result, ran, outcome) in [
        (json!({"outcome": "allowed-once"}), true, "allowed-once"),
        (json!({"outcome": "rejected", "message": "use make"}), false, "rejected"),
        (json!({"outcome": "always"}), false, "unavailable"),
    ] {
        let lab = Lab::new(command("echo ran > ran.txt"));
        let mut client = lab.ready(json!({"capabilities": {"approvals": true}}));
        client.prompt("s", "go");
        let request = asked(&mut client, "approval/request");
        let params = &request["params"];
        assert_eq!((&params["sessionId"], &params["toolName"]), (&json!("s"), &json!("bash")));
        assert_eq!(params["arguments"]["command"], "echo ran > ran.txt");
        assert_eq!(params["view"]["card"], "terminal");
        assert_eq!(params["reason"], "escalate sandbox to danger-full-access: the task needs it");
        answer(&mut client, &request, result);
        client.wait_idle("s");
        client.finish();
        assert_eq!(lab.workspace().join("ran.txt").exists(), ran);
        assert_eq!(lab.logged("s", "approval/decided")[0]["outcome"], outcome);
        assert_eq!(lab.logged("s", "approval/asked")[0]["toolName"], "bash");
        if outcome == "rejected" {
            assert_eq!(
                result_text(&lab, 0),
                "Error: the user rejected escalating this command to \"danger-full-access\": use make"
            );
        }
    }
}

#[test]
fn a_question_that_needs_no_answer_any_more_is_withdrawn() {
    let lab = Lab::new(command("true"));
    let mut client = lab.ready(json!({"capabilities": {"approvals": true}}));
    client.prompt("s", "go");
    let request = asked(&mut client, "approval/request");
    client.ask("session/cancel", json!({"sessionId": "s"}));
    let withdrawn = client.wait_for(|frame| frame["method"] == "request.cancelled");
    assert_eq!(withdrawn["params"]["id"], request["id"]);
    client.wait_idle("s");
    // An answer that comes too late changes nothing.
    answer(&mut client, &request, json!({"outcome": "allowed-once"}));
    client.finish();
    assert_eq!(lab.logged("s", "approval/decided")[0]["outcome"], "cancelled");
}

#[test]
fn a_client_that_hangs_up_has_said_no() {
    let lab = Lab::new(command("echo ran > ran.txt"));
    let mut client = lab.ready(json!({"capabilities": {"approvals": true}}));
    client.prompt("s", "go");
    asked(&mut client, "approval/request");
    client.finish();
    assert!(!lab.workspace().join("ran.txt").exists());
    assert_eq!(lab.logged("s", "turn/end")[0]["reason"]["kind"], "aborted");
}

#[test]
fn the_models_questions_are_answered_by_the_client() {
    let question = json!({"id": "q", "question": "Which?", "options": [{"label": "red"}, {"label": "blue"}]});
    let lab = Lab::new(json!([
        {"calls": [{"name": "ask_user_question", "arguments": {"questions": [question]}}]},
        {"text": "done"}
    ]));
    let mut client = lab.ready(json!({"capabilities": {"questions": true}}));
    client.prompt("s", "ask me");
    let first = asked(&mut client, "question/ask");
    assert_eq!(first["params"]["questions"][0]["options"][1]["label"], "blue");
    answer(&mut client, &first, json!({"answers": [{"id": "q", "selected": ["green"]}]}));
    let second = asked(&mut client, "question/ask");
    assert_eq!(second["params"]["problem"], "\"q\" has no option \"green\"");
    answer(&mut client, &second, json!({"answers": [{"id": "q", "selected": ["blue"]}]}));
    client.wait_idle("s");
    client.finish();
    assert_eq!(result_text(&lab, 0), r#"{"answers":[{"id":"q","selected":["blue"]}]}"#);
}

#[test]
fn a_person_need_not_answer() {
    let question = json!({"id": "q", "question": "Why?"});
    let lab = Lab::new(json!([
        {"calls": [{"name": "ask_user_question", "arguments": {"questions": [question]}}]},
        {"text": "done"}
    ]));
    let mut client = lab.ready(json!({"capabilities": {"questions": true}}));
    client.prompt("s", "ask me");
    let request = asked(&mut client, "question/ask");
    let error = json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": 1, "message": "no"}});
    client.write(format!("{error}\n"));
    client.wait_idle("s");
    client.finish();
    assert_eq!(lab.logged("s", "tool/result")[0]["error"]["code"], "ASK_CANCELLED");
}
