//! What bounds and shapes a turn: costs, the answer's schema, efforts, and instructions.

use std::fs;

use serde_json::{Value, json};

use crate::lab::{KEY, Lab};
use crate::server::{Server, ask, check, say};

/// A reply that costs a dollar by the prices of [`priced`], and calls on.
fn dollar() -> Value {
    json!({
        "calls": [{"name": "glob", "arguments": {"pattern": "*"}}],
        "usage": {"prompt_tokens": 500_000, "completion_tokens": 125_000, "total_tokens": 625_000},
    })
}

/// A lab with a server of its own: one priced model and one without prices.
fn priced(turns: &[Value], protocol: &str) -> (Lab, Server) {
    let (lab, server) = (Lab::new(), Server::scripted(turns));
    let models = "[[providers.mine.models]]\nid = \"dear\"\nprice_input = 1.0\nprice_output = 4.0\n\n\
                  [[providers.mine.models]]\nid = \"unpriced\"\n";
    lab.configure(&format!(
        "[providers.mine]\nprotocol = \"{protocol}\"\nbase_url = \"{}\"\nkey_variable = \"\"\n\n{models}",
        server.url()
    ));
    (lab, server)
}

#[test]
fn a_turn_ends_at_its_cost() {
    let (lab, server) = priced(&[dollar(), dollar(), dollar(), say("done")], "chat");
    let ended = lab.quick(&["--json", "-m", "mine/dear", "--max-cost", "1.5", "go"]).end();
    insta::assert_snapshot!(ended.complaint(3), @"lorimer: the turn has cost $2.0000, and its limit is $1.5000; continue the session, or raise --max-cost");
    let result = ended.result();
    assert_eq!((&result["error"]["code"], &result["steps"]), (&json!("COST_LIMIT"), &json!(2)));
    assert_eq!(server.requests().len(), 2);
    lab.log().assert_closed();
    // The limit is of one turn.
    let again = lab.quick(&["-m", "mine/dear", "--continue", "-c", "max_cost_usd=5", "go on"]).end();
    assert_eq!(again.answer(), "done\n");
    check("pairs.py", &server.request_log());
}

#[test]
fn costs_are_counted_on_messages_too() {
    let (lab, server) = priced(&[dollar(), dollar(), say("done")], "messages");
    let ended = lab.quick(&["-m", "mine/dear", "--max-cost", "1.5", "go"]).end();
    assert!(ended.complaint(3).contains("its limit is $1.5000"), "{ended:?}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_cost_limit_needs_prices() {
    let (lab, server) = priced(&[say("ok")], "chat");
    let refused = lab.quick(&["-m", "mine/unpriced", "--max-cost", "1", "go"]).end();
    insta::assert_snapshot!(refused.complaint(2), @"lorimer: --max-cost needs prices, and mine/unpriced has none; write price_input and price_output of the model in [HOME]/config.toml");
    assert!(server.requests().is_empty() && lab.logs().is_empty());
}

/// A lab with a schema of `{"n": integer}`.
fn with_schema(answer: &str) -> (Lab, Server) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say(answer)]));
    let properties = json!({"n": {"type": "integer"}});
    let schema = json!({"type": "object", "properties": properties, "required": ["n"]});
    lab.put("schema.json", schema.to_string());
    (lab, server)
}

#[test]
fn an_answer_that_fits_its_schema_is_printed() {
    let (lab, server) = with_schema("{\"n\": 3}");
    let both = ["--append-system-prompt", "Mind the gap.", "--output-schema", "schema.json", "go"];
    assert_eq!(lab.run(&server, &both).end().answer(), "{\"n\": 3}\n");
    let system = server.last_messages()[0]["content"].as_str().expect("text").to_owned();
    let (_, end) = system.split_once("Mind the gap.\n\n").expect("both texts");
    assert!(end.contains("JSON Schema") && end.contains("\"required\":[\"n\"]"), "{end}");
}

#[test]
fn an_answer_that_does_not_fit_is_a_failure() {
    for (answer, why) in [("{\"n\": \"3\"}", "\"n\" must be an integer"), ("three", "the answer is not JSON")]
    {
        let (lab, server) = with_schema(answer);
        let ended = lab.run(&server, &["--output-schema", "schema.json", "go"]).end();
        let line = ended.complaint(1);
        assert!(line.contains(why) && line.contains("go on with `lorimer run --session"), "{line}");
        assert_eq!(ended.stdout, format!("{answer}\n"));
    }
}

#[test]
fn a_schema_that_cannot_be_checked_is_refused() {
    let (lab, server) = with_schema("{}");
    let refused = |schema: &str| {
        lab.put("bad.json", schema);
        let ended = lab.run(&server, &["--output-schema", "bad.json", "go"]).end();
        ended.complaint(2).to_owned()
    };
    insta::assert_snapshot!(refused("{\"type\": \"object\", \"if\": {}}"), @"lorimer: cannot use bad.json as a schema: schema.if is not a supported keyword");
    insta::assert_snapshot!(refused("{\"type\": "), @"lorimer: cannot use bad.json as a schema: EOF while parsing a value at line 1 column 9");
    fs::remove_file(lab.workspace().join("bad.json")).expect("removed");
    let missing = lab.run(&server, &["--output-schema", "bad.json", "go"]).end();
    insta::assert_snapshot!(missing.complaint(2), @"lorimer: cannot use bad.json as a schema: No such file or directory (os error 2)");
    assert!(server.requests().is_empty() && lab.logs().is_empty());
}

#[test]
fn text_is_added_to_the_system_prompt_of_both_protocols() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    let text = "Answer in rhymes.\nAlways.";
    lab.run(&server, &["--append-system-prompt", text, "go"]).end().answer();
    let system = server.last_messages()[0]["content"].as_str().expect("text").to_owned();
    assert!(system.trim_end().ends_with(text), "{system}");
    lab.run_messages(&server, &["--append-system-prompt", text, "go"]).end().answer();
    let system = server.requests()[1]["system"].to_string();
    assert!(system.contains("Answer in rhymes.\\nAlways."), "{system}");
}

#[test]
fn an_effort_reaches_the_request() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.run(&server, &["-c", "effort=low", "--effort", "max", "go"]).end().answer();
    assert_eq!(server.requests()[0]["reasoning_effort"], "max");
    lab.run_messages(&server, &["--effort", "high", "go"]).end().answer();
    let thinking = &server.requests()[1]["thinking"];
    assert!(thinking["type"] == "enabled" && thinking["budget_tokens"].is_u64(), "{thinking}");
    lab.run_messages(&server, &["--effort", "off", "go"]).end().answer();
    assert_ne!(server.requests()[2]["thinking"]["type"], "enabled");
}

#[test]
fn a_wrong_effort_is_refused_with_those_on_offer() {
    let (lab, server) = priced(&[say("ok")], "chat");
    let chat = lab.run(&server, &["--effort", "huge", "go"]).end();
    insta::assert_snapshot!(chat.complaint(2), @r#"lorimer: deepseek-v4-flash does not take the effort "huge"; it takes: off, low, high, max"#);
    let messages = lab.run_messages(&server, &["--effort", "huge", "go"]).end();
    insta::assert_snapshot!(messages.complaint(2), @r#"lorimer: claude-sonnet-4-5 does not take the effort "huge"; it takes: off, low, medium, high"#);
    assert!(server.requests().is_empty() && lab.logs().is_empty());
    let own = ["-m", "mine", "-c", "providers.mine.efforts=[\"brisk\"]", "--effort", "brisk", "go"];
    lab.quick(&own).end().answer();
    assert_eq!(server.requests()[0]["reasoning_effort"], "brisk");
}

#[test]
fn instructions_below_are_told_after_a_read_and_when_they_change() {
    let turns = [
        ask("read", json!({"file_path": "sub/deep/notes.txt"})),
        ask(
            "bash",
            json!({"command": "echo 'Second rule of sub.' > sub/AGENTS.md", "description": "Change the rules"}),
        ),
        ask("bash", json!({"command": "rm sub/AGENTS.md", "description": "Remove the rules"})),
        ask("glob", json!({"pattern": "*"})),
        say("done"),
    ];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    lab.put("AGENTS.md", "Rule of the root.\n");
    lab.put("sub/AGENTS.md", "First rule of sub.\n");
    lab.put("sub/deep/CLAUDE.md", "Rule of the deep.\n");
    lab.put("sub/deep/notes.txt", "notes\n");
    lab.put("other/AGENTS.md", "Rule of others.\n");
    lab.run(&server, &["--permission-mode", "danger-full-access", "go"]).end().answer();
    check("prefix.py", &server.request_log());
    let added = added(&server.requests());
    assert!(added[0].contains("Rule of the root.") && !added[0].contains("rule of sub"), "{}", added[0]);
    assert!(
        added[1].contains("First rule of sub.") && added[1].contains("Rule of the deep."),
        "{}",
        added[1]
    );
    assert!(!added[1].contains("Rule of the root."), "{}", added[1]);
    assert!(told(&server.requests(), 2).contains("Second rule of sub."), "{}", added[2]);
    let gone = told(&server.requests(), 3);
    assert!(gone.contains("sub/AGENTS.md") && !gone.contains("rule of sub"), "{gone}");
    assert_eq!(told(&server.requests(), 4), "", "nothing is told twice");
    assert!(!added.concat().contains("Rule of others."));
}

/// The messages that each request has more than the one before.
fn new_messages(requests: &[Value], number: usize) -> &[Value] {
    let count = |request: &Value| request["messages"].as_array().expect("messages").len();
    let before = if number == 0 { 0 } else { count(&requests[number - 1]) };
    &requests[number]["messages"].as_array().expect("messages")[before..]
}

fn added(requests: &[Value]) -> Vec<String> {
    let text = |number| new_messages(requests, number).iter().map(ToString::to_string).collect();
    (0..requests.len()).map(text).collect()
}

/// What a request tells newly beside replies and results.
fn told(requests: &[Value], number: usize) -> String {
    let own = new_messages(requests, number).iter().filter(|message| message["role"] == "user");
    own.map(|message| message["content"].to_string()).collect()
}

#[test]
fn a_key_is_no_part_of_any_request() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.run_messages(&server, &["go"]).end().answer();
    assert!(!server.requests()[0].to_string().contains(KEY) && !lab.log().raw().contains(KEY));
}

#[test]
fn a_cost_limit_is_an_amount() {
    let (lab, server) = priced(&[say("ok")], "chat");
    for amount in ["0", "-1", "nan", "much"] {
        let ended = lab.quick(&["-m", "mine/dear", &format!("--max-cost={amount}"), "go"]).end();
        assert!(ended.complaint(2).contains("max-cost"), "{amount}: {ended:?}");
        let set = format!("max_cost_usd={amount}");
        let ended = lab.quick(&["-m", "mine/dear", "-c", &set, "go"]).end();
        assert!(ended.complaint(2).contains("max_cost_usd"), "{amount}: {ended:?}");
    }
    assert!(server.requests().is_empty() && lab.logs().is_empty());
}

/// A provider of the settings without efforts says so.
#[test]
fn an_effort_where_there_is_none_is_refused() {
    let (lab, server) = priced(&[say("ok")], "chat");
    let ended = lab.quick(&["-m", "mine/dear", "--effort", "high", "go"]).end();
    insta::assert_snapshot!(ended.complaint(2), @r#"lorimer: dear does not take the effort "high"; it takes: none; leave it out"#);
    assert!(server.requests().is_empty());
}

#[test]
fn a_resume_says_only_what_changed_of_the_instructions() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.put("AGENTS.md", "Rule of the root.\n");
    lab.put("CLAUDE.local.md", "My own rule.\n");
    lab.run(&server, &["go"]).end().answer();
    lab.run(&server, &["--continue", "again"]).end().answer();
    fs::remove_file(lab.workspace().join("CLAUDE.local.md")).expect("removed");
    lab.run(&server, &["--continue", "once more"]).end().answer();
    check("prefix.py", &server.request_log());
    let added = added(&server.requests());
    assert!(added[0].contains("Rule of the root.") && added[0].contains("My own rule."), "{}", added[0]);
    assert!(!added[1].contains("Rule of the root."), "{}", added[1]);
    assert!(added[2].contains("CLAUDE.local.md") && !added[2].contains("rule"), "{}", added[2]);
}

#[test]
fn names_of_instruction_files_are_a_setting() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.put("AGENTS.md", "Rule of agents.\n");
    lab.put("RULES.md", "Rule of rules.\n");
    lab.run(&server, &["-c", "instructions.files=RULES.md", "go"]).end().answer();
    let sent = server.requests()[0].to_string();
    assert!(sent.contains("Rule of rules.") && !sent.contains("Rule of agents."));
}

/// What a schema says without naming a type holds for the values it is about.
#[test]
fn a_schema_without_types_is_checked() {
    for (schema, misfit) in [
        (r#"{"required": ["zz"]}"#, "missing required property"),
        (r#"{"properties": {"a": {"enum": ["x"]}}}"#, "must be one of"),
        (r#"{"const": 1}"#, "must be 1"),
        (r#"{"oneOf": [{"required": ["q"]}, {"required": ["w"]}]}"#, "matched 0"),
    ] {
        let (lab, server) = (Lab::new(), Server::scripted(&[say(r#"{"a": "hello"}"#)]));
        lab.put("loose.json", schema);
        let ended = lab.run(&server, &["--output-schema", "loose.json", "go"]).end();
        assert!(ended.complaint(1).contains(misfit), "{schema}: {ended:?}");
    }
}

#[test]
fn a_schema_that_is_none_is_refused() {
    let (lab, server) = with_schema("{}");
    for schema in ["{\"type\": \"objekt\"}", "{\"type\": \"object\", \"required\": \"n\"}", "[1]"] {
        lab.put("bad.json", schema);
        let ended = lab.run(&server, &["--output-schema", "bad.json", "go"]).end();
        assert!(ended.complaint(2).contains("cannot use bad.json as a schema"), "{schema}: {ended:?}");
    }
}
