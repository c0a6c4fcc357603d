//! Recorded sessions of the DeepSeek Harness, played to the program and compared call by call.

use serde_json::json;

use crate::lab::Lab;
use crate::server::{Server, fixtures, tool};

macro_rules! scenarios {
    ($($test:ident => $name:literal;)*) => {
        $(#[test]
        fn $test() {
            conforms($name);
        })*
    };
}

scenarios! {
    text_turn => "text-turn";
    multi_turn => "multi-turn";
    max_tokens_continue => "max-tokens-continue";
    fs_read => "fs-read";
    fs_edit => "fs-edit";
    fs_write => "fs-write";
    fs_write_overwrite => "fs-write-overwrite";
    parallel_tool_calls => "parallel-tool-calls";
    bash_tool_turn => "bash-tool-turn";
    todo_write => "todo-write";
    agent_instructions => "agent-instructions";
    bash_spill => "bash-spill";
}

#[track_caller]
fn conforms(name: &str) {
    let scenario = fixtures().join("conformance").join(format!("{name}.json"));
    let mut driver = tool("conform.py");
    driver.args(["--verbose", "--timeout", "120", env!("CARGO_BIN_EXE_lorimer")]).arg(scenario);
    let output = driver.output().expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.trim_end(), format!("ok   {name}"));
}

#[test]
fn error_finish() {
    let refusal = json!({"1": {"status": 401, "message": "simulated provider error (HTTP 401)"}});
    let server = Server::failing(&[json!({"text": "never"})], &refusal);
    let lab = Lab::new();
    let ended = lab.run(&server, &["This prompt triggers a recorded provider error."]).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    let log = lab.log();
    log.assert_closed();
    assert_eq!(log.ends().len(), 1);
    let reason = log.ends()[0];
    assert_eq!((&reason["kind"], &reason["error"]["code"]), (&json!("error"), &json!("AUTH")));
    assert!(
        reason["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("simulated provider error (HTTP 401)"))
    );
    assert!(log.of("assistant/message").is_empty());
    assert!(log.of("llm/retry").is_empty());
}
