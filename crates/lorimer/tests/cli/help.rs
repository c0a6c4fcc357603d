//! Help, version and the list of models.

use crate::lab::{KEY, Lab};

#[test]
fn every_command_explains_itself() {
    let lab = Lab::new();
    for command in [
        &[][..],
        &["run"],
        &["demo"],
        &["sessions"],
        &["models"],
        &["sessions", "list"],
        &["sessions", "show"],
        &["sessions", "path"],
        &["sessions", "rename"],
        &["sessions", "delete"],
    ] {
        let long = lab.lorimer(command).and(&["--help"]).end().answer().to_owned();
        let example = [&["lorimer"], command].concat().join(" ");
        let shown = long.split_once("Example").map_or("", |(_, examples)| examples);
        assert!(shown.contains(&example), "no example of `{example}` in:\n{long}");
        assert!(long.contains("Usage: "), "{long}");
        let short = lab.lorimer(command).and(&["-h"]).end().answer().to_owned();
        assert!(short.contains("Usage: "), "{short}");
        let asked = lab.lorimer(&["help"]).and(command).end().answer().to_owned();
        assert_eq!(asked, long);
    }
    assert!(!lab.home().exists());
}

#[test]
fn help_of_run_names_what_scripts_need() {
    let help = Lab::new().lorimer(&["run", "--help"]).end().answer().to_owned();
    for part in [
        "0 completed",
        "1 failed",
        "2 usage",
        "3 limit",
        "4 answered but not saved",
        "130, 143, 129",
        "--json",
        "--output",
    ] {
        assert!(help.contains(part), "{part}");
    }
}

#[test]
fn a_version_is_printed() {
    for flag in ["--version", "-V"] {
        let printed = Lab::new().lorimer(&[flag]).end();
        assert_eq!(printed.answer(), format!("lorimer {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn nothing_asked_is_a_question_for_help() {
    let ended = Lab::new().lorimer(&[]).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert!(ended.said.contains("Usage: lorimer <COMMAND>"), "{}", ended.said);
}

#[test]
fn models_are_listed_with_what_they_need() {
    let lab = Lab::new();
    insta::assert_snapshot!(lab.lorimer(&["models"]).end().answer(), @"
    default: deepseek-official/deepseek-v4-flash

    deepseek-official (DeepSeek): deepseek-official needs a key: set DEEPSEEK_API_KEY, or run with `-m offline` for the keyless demo model
      deepseek-official/deepseek-v4-flash, window 1000000 tokens, effort off | low | high | max (default high)
      deepseek-official/deepseek-v4-pro, window 1000000 tokens, effort off | low | high | max (default high)
      deepseek-official/deepseek-v4-flash-vision-exp, window 1000000 tokens, effort off | low | high | max (default high)

    anthropic (Anthropic): anthropic needs a key: set ANTHROPIC_API_KEY, or run with `-m offline` for the keyless demo model
      anthropic/claude-sonnet-4-5, window 200000 tokens
      anthropic/claude-opus-4-5, window 200000 tokens
      anthropic/claude-haiku-4-5, window 200000 tokens

    openai (OpenAI): openai needs a key: set OPENAI_API_KEY, or run with `-m offline` for the keyless demo model

    openrouter (OpenRouter): openrouter needs a key: set OPENROUTER_API_KEY, or run with `-m offline` for the keyless demo model

    ollama (Ollama): not running here

    lmstudio (LM Studio): not running here

    llamacpp (llama.cpp): not running here

    vllm (vLLM): not running here

    offline (Offline): ready
      offline/planner, window 1000000 tokens
    ");
    let ready = lab.lorimer(&["models", "-c", "model=offline"]).variable("DEEPSEEK_API_KEY", KEY).end();
    assert!(ready.answer().starts_with("default: offline\n"));
    assert!(ready.answer().contains("deepseek-official (DeepSeek): ready\n"), "{}", ready.stdout);
    assert!(!ready.stdout.contains(KEY));
}
