//! What a runtime is begun with: the route, the permission, the variables, and patches.

use serde_json::{Value, json};

use crate::driver::{Client, Driver, Outcome};
use crate::lab::Lab;
use crate::run::Run;
use crate::server::{Server, ask, say};

with_both_clients!(
    a_wrong_route_is_refused_with_the_nearest,
    a_refused_beginning_can_be_made_again,
    what_may_be_changed_is_a_variable,
    variables_that_cannot_be_are_refused,
    patches_are_applied,
    patches_that_cannot_be_are_refused,
);

/// What beginning with these options gives.
fn begun_with(client: Client, change: impl FnOnce(&mut Value)) -> Outcome {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("hello")]));
    let mut options = lab.options(&server);
    change(&mut options);
    let outcome = Driver::start(client).open("a", &options);
    lab.assert_nothing_runs();
    assert_eq!(lab.stored(), 0);
    outcome
}

fn a_wrong_route_is_refused_with_the_nearest(client: Client) {
    let refusals: Vec<String> = [("provider", "deepseek-oficial"), ("model", "deepseek-v4-flsh")]
        .map(|(option, wrong)| begun_with(client, |options| options[option] = wrong.into()))
        .iter()
        .map(|outcome| outcome.refusal().to_owned())
        .collect();
    insta::allow_duplicates! { insta::assert_snapshot!(refusals.join("\n"), @r#"
    no adapter registered for provider "deepseek-oficial" (did you mean "deepseek-official"? there are: deepseek-official, anthropic, openai, openrouter, ollama, lmstudio, llamacpp, vllm, offline)
    provider "deepseek-official" has no model "deepseek-v4-flsh" (did you mean "deepseek-v4-flash"? there are: deepseek-v4-flash, deepseek-v4-pro, deepseek-v4-flash-vision-exp); list it under [[providers.deepseek-official.models]] in config.toml to use it
    "#); }
    // The TypeScript client names no effort.
    if client == Client::Python {
        let outcome = begun_with(client, |options| options["reasoning_effort"] = "hihg".into());
        insta::assert_snapshot!(outcome.refusal(), @r#"provider "deepseek-official" model "deepseek-v4-flash" does not support reasoning effort "hihg" (did you mean "high"? there are: off, low, high, max)"#);
    }
}

fn a_refused_beginning_can_be_made_again(client: Client) {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("hello")]));
    let mut driver = Driver::start(client);
    let mut options = lab.options(&server);
    options["cwd"] = lab.root().join("ws/missing").display().to_string().into();
    options["runtime_cwd"] = lab.workspace().display().to_string().into();
    let refused = driver.open("a", &options);
    let said = refused.refusal().replace(&lab.root().display().to_string(), "[ROOT]");
    insta::allow_duplicates! { insta::assert_snapshot!(said, @"initialize cannot work in [ROOT]/ws/missing: No such file or directory (os error 2)"); }
    lab.put("missing/file.txt", "");
    driver.open("a", &options).ok();
    assert_eq!(driver.run("a", "s", "hello").text, "hello");
    driver.close("a");
}

/// A turn that writes a file, with the permission that a variable gives.
fn written_with(client: Client, mode: &str) -> (Run, bool) {
    let server =
        Server::scripted(&[ask("write", json!({"file_path": "new.txt", "content": "x"})), say("done")]);
    let lab = Lab::new();
    let mut options = lab.options(&server);
    options["env"]["DSH_PERMISSION_MODE"] = mode.into();
    let mut driver = Driver::start(client);
    driver.open("a", &options).ok();
    let run = driver.run("a", "s", "write");
    driver.close("a");
    (run, lab.workspace().join("new.txt").exists())
}

fn what_may_be_changed_is_a_variable(client: Client) {
    let (run, written) = written_with(client, "read-only");
    assert!(!written, "{:?}", run.results());
    assert_eq!(run.of_type("tool/result")[0]["message"]["content"][0]["isError"], true);
    assert_eq!(run.text, "done");
    let (run, written) = written_with(client, "workspace-write");
    assert!(written, "{:?}", run.results());
}

fn variables_that_cannot_be_are_refused(client: Client) {
    for (name, value, complaint) in [
        ("DSH_TOOLS_MODE", "ptc", "dsh: tools mode \"ptc\" in the variable DSH_TOOLS_MODE needs code mode"),
        (
            "DSH_PERMISSION_MODE",
            "full",
            "dsh: setting \"permission_mode\" in the variable DSH_PERMISSION_MODE must be",
        ),
    ] {
        let (lab, server) = (Lab::new(), Server::scripted(&[]));
        let mut options = lab.options(&server);
        options["env"][name] = value.into();
        Driver::start(client).assert_ends_at_once("a", &options, complaint);
    }
}

fn patches_are_applied(client: Client) {
    let server = Server::scripted(&[say("hello")]);
    let lab = Lab::new();
    let mut driver = Driver::start(client);
    let mut options = lab.options(&server);
    options["patches"] =
        patches(&lab, &["- id: tool-bash\n  disabled: true\n", "- id: tool-todo\n  disabled: true\n"]);
    driver.open("a", &options).ok();
    driver.run("a", "s", "hello");
    driver.close("a");
    let request = &server.requests()[0];
    let tools: Vec<&str> = request["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert!(
        tools.contains(&"read") && !tools.contains(&"bash") && !tools.contains(&"todo_write"),
        "{tools:?}"
    );
}

fn patches_that_cannot_be_are_refused(client: Client) {
    for (patch, complaint) in [("- id: tool-bsh\n  disabled: true\n", "tool-bash"), ("- [", "patch-0.yml")] {
        let (lab, server) = (Lab::new(), Server::scripted(&[]));
        let mut options = lab.options(&server);
        options["patches"] = patches(&lab, &[patch]);
        Driver::start(client).assert_ends_at_once("a", &options, complaint);
    }
}

/// Patch files with these texts.
fn patches(lab: &Lab, texts: &[&str]) -> Value {
    let files = texts.iter().enumerate().map(|(number, text)| {
        let file = lab.root().join(format!("patch-{number}.yml"));
        std::fs::write(&file, text).expect("a file");
        file.display().to_string()
    });
    files.collect()
}

/// The short form of the profile, which only a caller of the TypeScript client can name.
#[test]
#[ignore = "needs pip and npm packages; run scripts/test"]
fn the_short_form_serves_too() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("hello")]));
    let mut driver = Driver::start(Client::Node);
    let mut options = lab.options(&server);
    options["args"] = json!(["sdk"]);
    driver.open("a", &options).ok();
    assert_eq!(driver.run("a", "s", "hello").text, "hello");
    driver.close("a");
}
