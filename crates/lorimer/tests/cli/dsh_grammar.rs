//! The command line of the DeepSeek Harness on this program.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::{Call, Ended, KEY, Lab};
use crate::server::{Server, ask, delta, say, text};

/// The program on a server, with a key and without waits between repeats.
fn on<'a>(lab: &'a Lab, server: &Server, arguments: &[&str]) -> Call<'a> {
    lab.lorimer(arguments)
        .variable("DEEPSEEK_API_KEY", KEY)
        .variable("DEEPSEEK_BASE_URL", &server.url())
        .variable("LORIMER_RETRY__INITIAL_DELAY_MS", "1")
        .variable("LORIMER_RETRY__MAX_RETRIES", "1")
}

/// Asserts exit code 1, an empty standard output and one line on standard error, and returns that line.
#[track_caller]
fn refused(ended: &Ended) -> &str {
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
    let line = ended.said.strip_suffix('\n').unwrap_or_else(|| panic!("no line: {ended:?}"));
    assert!((line.starts_with("dsh: ") || line.starts_with("error: ")) && !line.contains('\n'), "{line:?}");
    line
}

/// The names of the tools that the only request offers.
fn tools(server: &Server) -> Vec<String> {
    let requests = server.requests();
    let tools = requests[0]["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_task_is_answered_in_every_form() {
    for arguments in [
        &["headless", "say", "it"][..],
        &["--profile", "headless", "say", "it"],
        &["--profile=headless", "say", "it"],
        &["headless", "--", "say it"],
    ] {
        let (lab, server) = (Lab::new(), Server::scripted(&[say("done\n")]));
        // Piped input beside a task is not read.
        assert_eq!(on(&lab, &server, arguments).silent_stdin().end().answer(), "done\n");
        let messages = server.last_messages();
        assert!(messages.iter().any(|message| message["content"] == "say it"), "{messages:?}");
    }
}

#[test]
fn a_task_is_piped_in() {
    for arguments in [&["headless"][..], &["headless", "-"]] {
        let (lab, server) = (Lab::new(), Server::scripted(&[say("done")]));
        assert_eq!(on(&lab, &server, arguments).stdin("say it").end().answer(), "done\n");
        assert!(server.last_messages().iter().any(|message| message["content"] == "say it"));
        let ended = on(&lab, &server, arguments).stdin(" \n").end();
        insta::allow_duplicates! { insta::assert_snapshot!(refused(&ended), @r#"dsh: a task is required, for example: lorimer headless "fix the failing test""#); }
    }
}

#[test]
fn the_answer_is_the_last_text_there_was() {
    let mut first = ask("bash", json!({"command": "true", "description": "Nothing"}));
    first["text"] = "half way".into();
    let (lab, server) = (Lab::new(), Server::scripted(&[first, say(" ")]));
    let ended = on(&lab, &server, &["headless", "go"]).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "half way\n"), "{ended:?}");
}

#[test]
fn events_are_printed_and_a_session_goes_on() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one"), say("two")]));
    let ended = on(&lab, &server, &["headless", "--json", "first"]).end();
    let lines = ended.json_lines();
    assert!(lines.iter().any(|line| line["type"] == "assistant/message"));
    let result = ended.result();
    assert_eq!(result["text"], "one");
    let id = result["sessionId"].as_str().expect("an id").to_owned();
    let unknown = on(&lab, &server, &["headless", "--session-id", &id[..12], "second"]).end();
    assert!(refused(&unknown).starts_with("dsh: there is no session \""), "{unknown:?}");
    // A session goes on in its own folder.
    let home = lab.home();
    let again = on(&lab, &server, &["headless", "second", "--session-id", &id]).within(&home).end();
    assert_eq!(again.answer(), "two\n");
    assert_eq!(lab.log().ends().len(), 2);
    assert!(server.last_messages().iter().any(|message| message["content"] == "one"));
}

#[test]
fn failures_are_told_by_code() {
    let (lab, server) = (Lab::new(), Server::failing(&[], &json!({"1": {"status": 401}})));
    let ended = on(&lab, &server, &["headless", "go"]).end();
    let line = refused(&ended).replace(&server.url(), "[SERVER]");
    insta::assert_snapshot!(line, @"dsh: AUTH: DeepSeek: scripted failure ([SERVER]/chat/completions refused the key: check DEEPSEEK_API_KEY)");
    let ended = lab.lorimer(&["headless", "go"]).end();
    insta::assert_snapshot!(refused(&ended), @"dsh: MISSING_CREDENTIAL: deepseek-official needs a key: set DEEPSEEK_API_KEY, or store it with `lorimer login deepseek-official`");
    let (lab, server) = (Lab::new(), Server::scripted(&[]));
    lab.configure("model = 5\n");
    insta::assert_snapshot!(refused(&on(&lab, &server, &["headless", "go"]).end()), @r#"dsh: setting "model" in [HOME]/config.toml, line 1 must be text"#);
    assert!(server.requests().is_empty());
}

/// A run that hangs within an answer, and then gets this signal.
fn ended_by(signal: Signal) -> (Lab, Ended) {
    let lab = Lab::new();
    let hang: Vec<Value> =
        vec![delta(json!({"reasoning_content": "x"})).into(), text("part").into(), json!({"ms": 600_000})];
    let server = Server::raw(&[hang]);
    let mut running = on(&lab, &server, &["headless", "--json", "go"]).start();
    running.until(&["text-delta", "part"]);
    running.signal(signal);
    let ended = running.end();
    (lab, ended)
}

#[test]
fn signals_end_it_in_order() {
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let (lab, ended) = ended_by(signal);
        assert_eq!((ended.code, ended.said.as_str()), (code, "dsh: cancelled\n"), "{ended:?}");
        assert_eq!(ended.result()["stopReason"], "aborted");
        lab.log().assert_closed();
    }
}

#[test]
fn the_protocol_is_described_without_a_home() {
    let lab = Lab::new();
    lab.configure("model = 5\n");
    for arguments in [&["sdk", "--describe"][..], &["--profile", "sdk", "--describe"]] {
        let described: Value =
            serde_json::from_str(lab.lorimer(arguments).end().answer()).expect("a JSON document");
        assert_eq!(described["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(described["requests"]["session/prompt"].is_object());
    }
}

#[test]
fn command_lines_that_cannot_be_used_are_one_line() {
    let lab = Lab::new();
    let mut said = Vec::new();
    for arguments in [
        &["--profile", "nope", "go"][..],
        &["--profile", "../x"],
        &["--profile", ""],
        &["--dump-config"],
        &["headless"],
        &["headless", "--bogus", "go"],
        &["headless", "--dump-config", "go"],
        &["headless", "--dump-config", "--dump-default-config"],
        &["sdk", "go"],
        &["web"],
        &["--profile", "web", "--port", "0"],
    ] {
        said.push(format!("{}: {}", arguments.join(" "), refused(&lab.lorimer(arguments).end())));
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    --profile nope go: error: profile "nope" does not exist (there are: headless, sdk, web)
    --profile ../x: error: "../x" cannot be a profile's name (there are: headless, sdk, web)
    --profile : error: --profile needs a name
    --dump-config: error: --profile <name> is required (there are: headless, sdk, web)
    headless: dsh: a task is required, for example: lorimer headless "fix the failing test"
    headless --bogus go: error: unexpected argument '--bogus' found; to pass '--bogus' as a value, use '-- --bogus'
    headless --dump-config go: error: nothing runs when rows are printed, so "go" has no place there
    headless --dump-config --dump-default-config: error: --dump-config and --dump-default-config exclude each other
    sdk go: error: unexpected argument 'go' found
    web: dsh: this version has no web page yet; use headless or sdk
    --profile web --port 0: dsh: this version has no web page yet; use headless or sdk
    "#);
    assert!(!lab.home().exists());
}

#[test]
fn help_is_ours_in_every_form() {
    let lab = Lab::new();
    for word in ["headless", "sdk"] {
        let help = lab.lorimer(&[word, "--help"]).end().answer().to_owned();
        assert!(help.contains(&format!("Usage: lorimer {word}")) && help.contains("Example"), "{help}");
        assert_eq!(lab.lorimer(&["--profile", word, "--help"]).end().answer(), help);
        assert_eq!(lab.lorimer(&["help", word]).end().answer(), help);
        assert!(lab.lorimer(&["--help"]).end().answer().contains(&format!("\n  {word} ")));
    }
    insta::assert_snapshot!(lab.lorimer(&["headless", "-h"]).end().answer(), @r#"
    Answer one task and end, with the command line of the DeepSeek Harness

    Usage: lorimer headless [OPTIONS] [TASK]...

    Arguments:
      [TASK]...  The task; `-` or nothing reads it from standard input

    Options:
          --json             Print the session's events as JSON lines, then one result line
          --session-id <ID>  Go on with the stored session of this very id
      -h, --help             Print help

    Before these come, in any order:
      --patch <FILE>         Lay a file of row patches over the settings; may be repeated, later ones win
      --dump-config          Print the rows that a run would have, and run nothing
      --dump-default-config  Print the rows before anybody changed one

    `lorimer --profile headless` is the same. DSH_PERMISSION_MODE and DSH_TOOLS_MODE count as well.

    Examples:
      lorimer headless "run the tests"
      echo "run the tests" | lorimer headless
      lorimer headless --patch ci.yml --json "run the tests"

    Exit codes: 0 completed, 1 anything else, 0 after SIGTERM, 130 after SIGINT.
    "#);
    let version = format!("lorimer {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(lab.lorimer(&["--patch", "x", "--version"]).end().answer(), version);
}

#[test]
fn variables_rank_between_settings_and_patches() {
    let (lab, server) = (Lab::new(), Server::scripted(&[]));
    lab.configure("permission_mode = \"danger-full-access\"\n");
    lab.put("p.yml", "- {id: sandbox-policy, config: {mode: read-only}}\n");
    let mode = |call: Call<'_>| {
        let ended = call.end();
        let lines = ended.answer().lines().map(str::to_owned).collect::<Vec<_>>();
        let at = lines.iter().position(|line| line == "- id: sandbox-policy").expect("the row");
        (lab.plain(&lines[at - 1]), lines[at + 3].trim().to_owned())
    };
    let dump = |more: &[&str]| on(&lab, &server, &["headless"]).and(more).and(&["--dump-config"]);
    let shown = |call: Call<'_>| format!("{:?}", mode(call));
    insta::assert_snapshot!(shown(dump(&[])), @r##"("# == lorimer, patched by [HOME]/config.toml", "mode: danger-full-access")"##);
    insta::assert_snapshot!(shown(dump(&[]).variable("DSH_PERMISSION_MODE", "")), @r##"("# == lorimer, patched by [HOME]/config.toml", "mode: danger-full-access")"##);
    let variable = |call: Call<'_>| {
        shown(
            call.variable("DSH_PERMISSION_MODE", "workspace-write")
                .variable("LORIMER_PERMISSION_MODE", "read-only"),
        )
    };
    insta::assert_snapshot!(variable(dump(&[])), @r##"("# == lorimer, patched by DSH_PERMISSION_MODE", "mode: workspace-write")"##);
    insta::assert_snapshot!(variable(dump(&["--patch", "p.yml"])), @r##"("# == lorimer, patched by p.yml", "mode: read-only")"##);
    let wrong = dump(&[]).variable("DSH_PERMISSION_MODE", "full").end();
    insta::assert_snapshot!(refused(&wrong), @r#"dsh: setting "permission_mode" in the variable DSH_PERMISSION_MODE must be read-only, workspace-write or danger-full-access"#);
    for word in ["headless", "sdk"] {
        let wrong = on(&lab, &server, &[word]).variable("DSH_TOOLS_MODE", "both").end();
        insta::allow_duplicates! { insta::assert_snapshot!(refused(&wrong), @r#"dsh: tools mode "both" in the variable DSH_TOOLS_MODE needs code mode, which this version does not have; set native"#); }
        let wrong = on(&lab, &server, &[word]).variable("DSH_TOOLS_MODE", "x").end();
        insta::allow_duplicates! { insta::assert_snapshot!(refused(&wrong), @r#"dsh: setting "tools_mode" in the variable DSH_TOOLS_MODE must be native, ptc, code or both"#); }
    }
    // Other command lines do not know them.
    let run = lab.quick(&["-m", "offline", "--json", "go"]).variable("DSH_PERMISSION_MODE", "full").end();
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn patches_decide_what_the_model_gets() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.put("a.yml", "- {id: tool-bash, disabled: true}\n- {id: tool-fs, disabled: true}\n- {id: tool-web, disabled: true}\n");
    lab.put("b.yml", "- {id: tool-fs, disabled: false}\n- id: agent-default-model\n  config: {provider: deepseek-official, model: other}\n");
    let ended =
        on(&lab, &server, &["--patch", "a.yml", "--patch=b.yml", "--profile", "headless", "go"]).end();
    assert_eq!(ended.answer(), "ok\n");
    assert_eq!(tools(&server), ["edit", "glob", "grep", "read", "todo_write", "write"]);
    assert_eq!(server.requests()[0]["model"], "other");
}

#[test]
fn rows_are_printed_before_and_after_patches() {
    let lab = Lab::new();
    lab.configure("[context]\nprune_head_chars = 100\n[tools]\ndisabled = [\"write\"]\n");
    lab.put(
        "a.yml",
        "- {id: tool-bash, disabled: true}\n- {id: agent-default-model, config: {model: \"it's\"}}\n",
    );
    lab.put("b.yml", "- {id: tool-bash, disabled: true}\n- {id: tool-bash, name: x, disabled: false}\n");
    let plain = lab.lorimer(&["headless", "--dump-default-config"]).end();
    insta::assert_snapshot!(plain.answer(), @"
    # == lorimer
    - id: agent-default-model
      name: '@deepseek-ai/dsh-agent-default-model'
      config:
        provider: deepseek-official
        model: deepseek-v4-flash
    - id: sandbox-policy
      name: '@deepseek-ai/dsh-sandbox-policy'
      config:
        mode: workspace-write
    - id: approval
      name: '@deepseek-ai/dsh-user-approval'
      config:
        policy: ask
    - id: permission
      name: '@deepseek-ai/dsh-permission-presets'
      config:
        defaultPreset: workspace-write
    - id: tool-bash
      name: '@deepseek-ai/dsh-tool-bash'
    - id: tool-fs
      name: '@deepseek-ai/dsh-tool-fs'
    - id: tool-fs-search
      name: '@deepseek-ai/dsh-tool-fs-search'
      config:
        sampleOverCapGlobResults: true
    - id: agent-instructions
      name: '@deepseek-ai/dsh-agent-instructions'
      config:
        maxBytes: 65536
    - id: compaction-basic
      name: '@deepseek-ai/dsh-compaction-basic'
      config:
        thresholdRatio: 0.8
    - id: spill-policy
      name: '@deepseek-ai/dsh-spill-policy'
      config:
        maxInlineBytes: 50000
    - id: tool-result-pruner
      name: '@deepseek-ai/dsh-compaction-tool-result-pruner'
      config:
        thresholdChars: 8192
        headChars: 4096
        tailChars: 1024
    - id: tool-todo
      name: '@deepseek-ai/dsh-tool-todo'
      config:
        allowParallelInProgress: true
    - id: tools
      name: '@deepseek-ai/dsh-tools'
      config:
        mode: native
    - id: llm-deepseek
      name: '@deepseek-ai/dsh-llm-deepseek-api-key'
    ");
    let ended = lab.lorimer(&["sdk", "--patch", "a.yml", "--patch", "b.yml", "--dump-config"]).end();
    assert_eq!(ended.code, 0);
    insta::assert_snapshot!(ended.said, @r#"dsh: [b.yml] entry 2 "tool-bash": skipped, because its name is not "@deepseek-ai/dsh-tool-bash""#);
    insta::assert_snapshot!(lab.plain(&ended.stdout), @"
    # == lorimer, patched by a.yml
    - id: agent-default-model
      name: '@deepseek-ai/dsh-agent-default-model'
      config:
        provider: deepseek-official
        model: 'it''s'
    # == lorimer
    - id: sandbox-policy
      name: '@deepseek-ai/dsh-sandbox-policy'
      config:
        mode: workspace-write
    - id: approval
      name: '@deepseek-ai/dsh-user-approval'
      config:
        policy: ask
    - id: permission
      name: '@deepseek-ai/dsh-permission-presets'
      config:
        defaultPreset: workspace-write
    # == lorimer, patched by a.yml, b.yml
    - id: tool-bash
      name: '@deepseek-ai/dsh-tool-bash'
      disabled: true
    # == lorimer, patched by [HOME]/config.toml
    - id: tool-fs
      name: '@deepseek-ai/dsh-tool-fs'
      # without write
    # == lorimer
    - id: tool-fs-search
      name: '@deepseek-ai/dsh-tool-fs-search'
      config:
        sampleOverCapGlobResults: true
    - id: agent-instructions
      name: '@deepseek-ai/dsh-agent-instructions'
      config:
        maxBytes: 65536
    - id: compaction-basic
      name: '@deepseek-ai/dsh-compaction-basic'
      config:
        thresholdRatio: 0.8
    - id: spill-policy
      name: '@deepseek-ai/dsh-spill-policy'
      config:
        maxInlineBytes: 50000
    # == lorimer, patched by [HOME]/config.toml
    - id: tool-result-pruner
      name: '@deepseek-ai/dsh-compaction-tool-result-pruner'
      config:
        thresholdChars: 8192
        headChars: 100
        tailChars: 1024
    # == lorimer
    - id: tool-todo
      name: '@deepseek-ai/dsh-tool-todo'
      config:
        allowParallelInProgress: true
    - id: tools
      name: '@deepseek-ai/dsh-tools'
      config:
        mode: native
    - id: llm-deepseek
      name: '@deepseek-ai/dsh-llm-deepseek-api-key'
    ");
    assert_eq!(lab.logs().len(), 0);
}

#[test]
fn patch_files_that_cannot_be_used_are_one_line() {
    let (lab, server) = (Lab::new(), Server::scripted(&[]));
    lab.put("map.yml", "a: b\n");
    lab.put("empty.yml", "");
    lab.put("scalar.yml", "- {id: tool-bash}\n- foo\n");
    lab.put("bad.yml", "- id: [\n");
    lab.put("bytes.yml", b"- \xff\n");
    lab.put("long.yml", "#".repeat(1024 * 1024 + 1));
    lab.put("js.yml", "- id: sandbox-policy\n  config:\n    mode: !!js process.env.MODE\n");
    lab.put("unknown.yml", "- {id: tool-bash}\n- {id: session-title, disabled: true}\n");
    let mut said = Vec::new();
    for file in ["missing", "map", "empty", "scalar", "bad", "bytes", "long", "js", "unknown", "../ws"] {
        let path = if file == "../ws" { file.to_owned() } else { format!("{file}.yml") };
        let ended = on(&lab, &server, &["headless", "--patch", &path, "go"]).end();
        said.push(refused(&ended).to_owned());
        let dumped = on(&lab, &server, &["headless", "--patch", &path, "--dump-config"]).end();
        assert_eq!(refused(&dumped), said.last().expect("a line"));
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    dsh: failed to read overlay missing.yml: No such file or directory (os error 2)
    dsh: overlay map.yml must be a top-level YAML array of loader patch entries
    dsh: overlay empty.yml must be a top-level YAML array of loader patch entries
    dsh: overlay entry 2 in scalar.yml must be a mapping (a loader patch entry)
    dsh: failed to parse overlay bad.yml: line 2: while parsing a node, did not find expected node content
    dsh: failed to read overlay bytes.yml: it is not UTF-8
    dsh: failed to read overlay long.yml: it is longer than 1048576 bytes
    dsh: overlay js.yml, line 3: !!js expressions are not evaluated; write the value itself
    dsh: [unknown.yml] entry 2 "session-title" is of no row that is understood; understood are agent-default-model, sandbox-policy, approval, permission, tool-bash, tool-fs, tool-fs-search, agent-instructions, compaction-basic, spill-policy, tool-result-pruner, tool-todo, tools, llm-deepseek, and disabled: true of other tools
    dsh: failed to read overlay ../ws: Is a directory (os error 21)
    "#);
    assert!(server.requests().is_empty());
    assert!(!lab.home().exists());
}

#[test]
fn nothing_is_written_elsewhere_under_the_home_of_the_harness() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    let home = lab.root().join("dsh");
    let call = on(&lab, &server, &["headless", "go"]).without("LORIMER_HOME");
    assert_eq!(call.variable("DSH_HOME", &home.display().to_string()).end().answer(), "ok\n");
    let names: Vec<_> =
        std::fs::read_dir(&home).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["lorimer"]);
}
