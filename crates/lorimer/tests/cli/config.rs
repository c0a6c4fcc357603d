//! Settings and where they come from, trust, keys, and what the program says of its surroundings.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::lab::{Call, Ended, KEY, Lab, until};
use crate::server::{LocalServer, Server, ask, say};

fn config<'a>(lab: &'a Lab, arguments: &[&str]) -> Call<'a> {
    lab.lorimer(&["config"]).and(arguments)
}

/// The line of a key in the list.
fn listed(ended: &Ended, lab: &Lab, key: &str) -> String {
    let start = format!("{key} = ");
    let line = ended.answer().lines().find(|line| line.starts_with(&start));
    lab.plain(line.unwrap_or_else(|| panic!("no {key} in {}", ended.stdout)))
}

/// Every key there is.
fn keys(lab: &Lab) -> BTreeSet<String> {
    let list = config(lab, &[]).end();
    list.answer().lines().filter_map(|line| Some(line.split_once(" = ")?.0.to_owned())).collect()
}

#[test]
fn a_list_says_where_values_come_from() {
    let lab = Lab::new();
    let own = "# mine\nmodel = \"ollama/x\"\n\n[bash]\ntimeout_ms = 5\n";
    lab.configure(&format!("{own}\n[providers.ollama]\nbase_url = \"http://127.0.0.1:1/v1\"\n"));
    let list = config(&lab, &["-c", "max_steps=7"]).variable("LORIMER_RETRY__MAX_RETRIES", "9").end();
    insta::assert_snapshot!(listed(&list, &lab, "model"), @r#"model = "ollama/x"  # in [HOME]/config.toml, line 2"#);
    insta::assert_snapshot!(listed(&list, &lab, "bash.timeout_ms"), @"bash.timeout_ms = 5  # in [HOME]/config.toml, line 5");
    insta::assert_snapshot!(listed(&list, &lab, "retry.max_retries"), @"retry.max_retries = 9  # in the variable LORIMER_RETRY__MAX_RETRIES");
    insta::assert_snapshot!(listed(&list, &lab, "max_steps"), @"max_steps = 7  # on the command line");
    insta::assert_snapshot!(listed(&list, &lab, "effort"), @"effort = unset  # default");
    let last = list.stdout.lines().last().expect("a line");
    insta::assert_snapshot!(lab.plain(last), @"providers.ollama: base_url http://127.0.0.1:1/v1, 0 models  # in [HOME]/config.toml, line 7");
}

#[test]
fn one_value_is_got() {
    let lab = Lab::new();
    let get = |key: &str| config(&lab, &["get", key]).end();
    assert_eq!(get("model").answer(), "deepseek-official/deepseek-v4-flash\n");
    assert_eq!(get("effort").answer(), "unset\n");
    assert_eq!(get("bash.timeout_ms").answer(), "60000\n");
    insta::assert_snapshot!(get("bash.timeout").complaint(2), @r#"lorimer: there is no setting "bash.timeout"; did you mean "bash.timeout_ms"?"#);
    insta::assert_snapshot!(get("zzzzzzzzzzzzzzzzzzzzzz").complaint(2), @r#"lorimer: there is no setting "zzzzzzzzzzzzzzzzzzzzzz""#);
    assert!(!lab.home().exists());
}

#[test]
fn one_value_is_set_and_the_rest_stays() {
    let lab = Lab::new();
    lab.configure("# mine\nmodel = \"a/b\" # for now\n\n[bash] # commands\n# short\ntimeout_ms = 5 # ms\n");
    let set = |key: &str, value: &str| config(&lab, &["set", key, value]).end();
    for (key, value) in
        [("model", "ollama/c"), ("bash.timeout_ms", "99"), ("bash.grace_ms", "7"), ("search.timeout_ms", "8")]
    {
        assert_eq!(set(key, value).answer(), "");
        assert_eq!(config(&lab, &["get", key]).end().answer(), format!("{value}\n"));
    }
    let file = fs::read_to_string(lab.home().join("config.toml")).expect("a file");
    insta::assert_snapshot!(file, @r#"
    # mine
    model = "ollama/c" # for now

    [bash] # commands
    # short
    timeout_ms = 99 # ms
    grace_ms = 7

    [search]
    timeout_ms = 8
    "#);
    insta::assert_snapshot!(set("bash.timeout", "1").complaint(2), @r#"lorimer: there is no setting "bash.timeout"; did you mean "bash.timeout_ms"?"#);
    insta::assert_snapshot!(set("max_steps", "many").complaint(2), @r#"lorimer: "max_steps" must be a whole number, zero or more"#);
    assert_eq!(fs::read_to_string(lab.home().join("config.toml")).expect("a file"), file);
}

#[test]
fn a_first_value_makes_the_file() {
    let lab = Lab::new();
    assert_eq!(config(&lab, &["set", "instructions.files", "A.md, B.md"]).end().answer(), "");
    assert_eq!(config(&lab, &["get", "instructions.files"]).end().answer(), "[\"A.md\", \"B.md\"]\n");
    let path = config(&lab, &["path"]).end();
    assert_eq!(lab.plain(path.answer()), "[HOME]/config.toml\n");
    assert!(fs::read_dir(lab.home()).expect("a home").count() == 1, "nothing else is left");
}

/// The keys of a schema, dots between.
fn schema_keys(properties: &Value, prefix: &str, keys: &mut BTreeSet<String>) {
    for (name, property) in properties.as_object().expect("an object") {
        let key = format!("{prefix}{name}");
        match property.get("properties") {
            Some(inner) => schema_keys(inner, &format!("{key}."), keys),
            None => {
                keys.insert(key);
            }
        }
    }
}

#[test]
fn a_schema_has_every_key() {
    let lab = Lab::new();
    let schema: Value = serde_json::from_str(config(&lab, &["schema"]).end().answer()).expect("JSON");
    let mut found = BTreeSet::new();
    schema_keys(&schema["properties"], "", &mut found);
    assert!(found.remove("providers"));
    assert_eq!(found, keys(&lab));
    assert_eq!(schema["additionalProperties"], false);
    let timeout = &schema["properties"]["bash"]["properties"]["timeout_ms"];
    assert_eq!((&timeout["type"], &timeout["default"]), (&"integer".into(), &60_000.into()));
    assert!(timeout["description"].as_str().is_some_and(|text| text.contains("LORIMER_BASH__TIMEOUT_MS")));
}

#[test]
fn variables_are_settings() {
    let lab = Lab::new();
    let with =
        |name: &str, value: &str| config(&lab, &["get", "bash.timeout_ms"]).variable(name, value).end();
    assert_eq!(with("LORIMER_BASH__TIMEOUT_MS", "12").answer(), "12\n");
    assert_eq!(with("LORIMER_SOMETHING_ELSE_ALTOGETHER", "12").answer(), "60000\n");
    insta::assert_snapshot!(with("LORIMER_BASH__TIMEOUTMS", "12").complaint(2), @"lorimer: unknown setting in the variable LORIMER_BASH__TIMEOUTMS; did you mean LORIMER_BASH__TIMEOUT_MS?");
    insta::assert_snapshot!(with("LORIMER_BASH__TIMEOUT_MS", "soon").complaint(2), @r#"lorimer: setting "bash.timeout_ms" in the variable LORIMER_BASH__TIMEOUT_MS must be a whole number, zero or more"#);
}

/// Writes the workspace's own settings.
fn configure_workspace(lab: &Lab, text: &str) {
    lab.put(".lorimer/config.toml", text);
}

#[test]
fn later_places_go_first() {
    let lab = Lab::new();
    let got =
        |arguments: &[&str]| config(&lab, &["get", "max_steps"]).and(arguments).end().answer().to_owned();
    let in_variable = |arguments: &[&str]| {
        config(&lab, &["get", "max_steps"])
            .and(arguments)
            .variable("LORIMER_MAX_STEPS", "3")
            .end()
            .answer()
            .to_owned()
    };
    assert_eq!(got(&[]), "unset\n");
    lab.configure("max_steps = 1\n");
    assert_eq!(got(&[]), "1\n");
    configure_workspace(&lab, "max_steps = 2\n");
    assert_eq!(got(&[]), "1\n", "not trusted");
    lab.lorimer(&["trust"]).end().answer();
    assert_eq!(got(&[]), "2\n");
    assert_eq!(in_variable(&[]), "3\n");
    assert_eq!(in_variable(&["-c", "max_steps=4"]), "4\n");
}

#[test]
fn a_workspace_needs_trust() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    configure_workspace(&lab, "max_tokens = 77\n");
    let sent = || server.requests().pop().expect("a request")["max_tokens"].clone();
    let run = |arguments: &[&str]| lab.run(&server, arguments).and(&["hi"]).end();
    let left_out = run(&[]);
    insta::assert_snapshot!(left_out.complaint(0), @"lorimer: [WS]/.lorimer/config.toml is left out, because it is not trusted; read it, then run `lorimer trust`");
    assert_ne!(sent(), 77);
    run(&["--trust-workspace"]).answer();
    assert_eq!(sent(), 77);
    assert!(run(&[]).complaint(0).contains("not trusted"), "that was for one run");

    lab.lorimer(&["trust"]).end().answer();
    run(&[]).answer();
    assert_eq!(sent(), 77);
    configure_workspace(&lab, "max_tokens = 78\n");
    assert!(run(&[]).complaint(0).contains("not trusted"), "it was changed");
    assert_ne!(sent(), 78);
    lab.lorimer(&["trust", &lab.workspace().display().to_string()]).within(&lab.root()).end().answer();
    run(&[]).answer();
    assert_eq!(sent(), 78);
    lab.lorimer(&["trust", "--forget"]).end().answer();
    assert!(run(&[]).complaint(0).contains("not trusted"));
}

#[test]
fn nothing_to_trust_is_told() {
    let lab = Lab::new();
    insta::assert_snapshot!(lab.lorimer(&["trust"]).end().complaint(2), @"lorimer: there is no [WS]/.lorimer/config.toml to trust");
}

#[test]
fn a_stored_key_is_used_and_the_environment_goes_first() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    let stored = lab.lorimer(&["login", "deepseek"]).stdin("sk-stored-key-1\n").end();
    insta::assert_snapshot!(stored.complaint(0), @"lorimer: stored in [HOME]/credentials.toml; the variable DEEPSEEK_API_KEY, when it is set, goes first");
    assert_eq!(stored.stdout, "");
    let file = lab.home().join("credentials.toml");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    assert!(!stored.stderr.contains("sk-stored-key-1"));
    lab.run(&server, &["hi"]).without("DEEPSEEK_API_KEY").end().answer();
    assert_eq!(server.last_headers()["authorization"], "Bearer sk-stored-key-1");
    lab.run(&server, &["hi"]).end().answer();
    assert_eq!(server.last_headers()["authorization"], format!("Bearer {KEY}"));
    // Another provider's key lies beside it.
    assert_eq!(lab.lorimer(&["login", "anthropic"]).stdin("sk-stored-key-2\n").end().code, 0);
    lab.run_messages(&server, &["hi"]).without("ANTHROPIC_API_KEY").end().answer();
    assert_eq!(server.last_headers()["x-api-key"], "sk-stored-key-2");
    lab.run(&server, &["hi"]).without("DEEPSEEK_API_KEY").end().answer();
    assert!(lab.logs().iter().all(|log| !log.raw().contains("sk-stored-key")));
}

#[test]
fn keys_that_others_can_read_are_refused() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    assert_eq!(lab.lorimer(&["login"]).stdin("sk-stored-key-1\n").end().code, 0);
    let file = lab.home().join("credentials.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("a mode");
    let ended = lab.run(&server, &["hi"]).without("DEEPSEEK_API_KEY").end();
    insta::assert_snapshot!(ended.complaint(2), @"lorimer: cannot use [HOME]/credentials.toml: others can read it; make it yours alone with chmod 600");
    assert!(server.requests().is_empty());
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    fs::write(&file, "[keys\nsk-stored-key-1").expect("a file");
    let ended = lab.run(&server, &["hi"]).end();
    insta::assert_snapshot!(ended.complaint(2), @"lorimer: cannot use [HOME]/credentials.toml: it is not valid TOML; log in again after moving it away");
}

#[test]
fn what_is_no_key_is_not_stored() {
    let lab = Lab::new();
    let login = |provider: &str, key: &str| lab.lorimer(&["login", provider]).stdin(key).end();
    insta::assert_snapshot!(login("deepseek", "\n").complaint(2), @"lorimer: that is no key: it must be printable ASCII without spaces");
    assert!(login("deepseek", "two words\n").complaint(2).contains("that is no key"));
    insta::assert_snapshot!(login("offline", "sk-1\n").complaint(2), @"lorimer: offline needs no key");
    insta::assert_snapshot!(login("antropic", "sk-1\n").complaint(2), @r#"lorimer: there is no provider "antropic" (did you mean "anthropic"?); see `lorimer models`"#);
    assert!(!lab.home().join("credentials.toml").exists());
}

/// Settings with a local server, and no other one.
fn only_local(server: &LocalServer) -> String {
    let closed = ["lmstudio", "llamacpp", "vllm"]
        .map(|id| format!("[providers.{id}]\nbase_url = \"http://127.0.0.1:1/v1\"\n"));
    format!("[providers.ollama]\nbase_url = \"{}/v1\"\n{}", server.url(), closed.concat())
}

#[test]
fn local_servers_are_offered_when_there_is_no_key() {
    let (lab, server) = (Lab::new(), LocalServer::listing(&["small:1b", "big:70b"]));
    lab.configure(&only_local(&server));
    // The program does not wait long for servers, and a busy machine may be slow.
    until(|| {
        let ended = lab.lorimer(&["run", "hi"]).end();
        ended.complaint(2).ends_with("; running here: -m ollama/small:1b")
    });
    until(|| {
        lab.lorimer(&["models"])
            .end()
            .answer()
            .contains("ollama (Ollama): ready\n  ollama/small:1b\n  ollama/big:70b\n")
    });
    until(|| {
        lab.lorimer(&["doctor"]).end().answer().contains("ollama runs here: lorimer run -m ollama/small:1b")
    });
    // Named without a model, it is asked for its first; this one lists models and answers nothing else.
    until(|| {
        let ended = lab.quick(&["-m", "ollama", "hi"]).end();
        ended.code == 1 && !ended.stderr.contains("it lists no model")
    });
    let models = lab.lorimer(&["models"]).end();
    assert!(models.answer().contains("vllm (vLLM): not running here"), "{models:?}");
}

#[test]
fn a_doctor_looks_at_everything() {
    let lab = Lab::new();
    let said = |call: Call<'_>| lab.plain(call.end().answer());
    let sick = said(lab.lorimer(&["doctor"]));
    for part in [
        "ok  lorimer ",
        "ok  sessions are kept in [HOME]/sessions",
        "ok  settings are in [HOME]/config.toml",
        "no  deepseek-official needs a key: set DEEPSEEK_API_KEY",
        "ok  bash is ",
    ] {
        assert!(sick.contains(part), "{part} in {sick}");
    }
    assert!(!lab.home().exists());
    configure_workspace(&lab, "max_steps = 2\n");
    let well = said(lab.lorimer(&["doctor"]).variable("DEEPSEEK_API_KEY", KEY));
    assert!(
        well.contains("ok  the model is deepseek-official/deepseek-v4-flash\n") && !well.contains(KEY),
        "{well}"
    );
    assert!(well.contains("no  [WS]/.lorimer/config.toml does not count"), "{well}");
    lab.configure("max_stepz = 2\n");
    let broken = said(lab.lorimer(&["doctor"]));
    assert!(broken.contains("no  unknown setting \"max_stepz\" in [HOME]/config.toml, line 1"), "{broken}");
}

#[test]
fn completions_are_scripts() {
    let lab = Lab::new();
    for (shell, part) in
        [("bash", "complete -F _lorimer"), ("zsh", "#compdef lorimer"), ("fish", "complete -c lorimer")]
    {
        let script = lab.lorimer(&["completions", shell]).end().answer().to_owned();
        for known in [part, "sessions", "trust-workspace", "fork"] {
            assert!(script.contains(known), "{known} for {shell}");
        }
    }
    let script = lab.lorimer(&["completions", "bash"]).end().answer().to_owned();
    lab.put("lorimer.bash", &script);
    let checked =
        std::process::Command::new("bash").arg("-n").arg(lab.workspace().join("lorimer.bash")).status();
    assert!(checked.expect("bash runs").success());
    assert_eq!(lab.lorimer(&["completions", "tcsh"]).end().code, 2);
}

#[test]
fn a_value_is_set_in_an_inline_table() {
    let lab = Lab::new();
    lab.configure("bash = { timeout_ms = 5 } # short\n");
    assert_eq!(config(&lab, &["set", "bash.timeout_ms", "99"]).end().answer(), "");
    assert_eq!(config(&lab, &["get", "bash.timeout_ms"]).end().answer(), "99\n");
}

#[test]
fn a_value_out_of_range_is_not_set() {
    let lab = Lab::new();
    for (key, value) in [("max_steps", "0"), ("session.compression", "lz4")] {
        let ended = config(&lab, &["set", key, value]).end();
        assert!(ended.complaint(2).contains(key), "{ended:?}");
        config(&lab, &[]).end().answer();
    }
}

#[test]
fn a_broken_file_is_not_changed_and_told_in_one_line() {
    let lab = Lab::new();
    lab.configure("model = 'a'\nx = = 3\ny\n");
    let set = config(&lab, &["set", "model", "a/b"]).end();
    assert!(set.complaint(2).contains("line 2"), "{set:?}");
    let file = fs::read_to_string(lab.home().join("config.toml")).expect("a file");
    assert_eq!(file, "model = 'a'\nx = = 3\ny\n");
}

#[test]
fn a_section_that_is_none_is_told() {
    let lab = Lab::new();
    lab.configure("bash = 3\n");
    let set = config(&lab, &["set", "bash.timeout_ms", "7"]).end();
    assert!(set.complaint(2).contains("bash"), "{set:?}");
}

#[test]
fn a_file_behind_a_link_is_set_where_it_is() {
    let lab = Lab::new();
    lab.put("dotfiles/lorimer.toml", "model = 'a/b'\n");
    fs::create_dir_all(lab.home()).expect("a home");
    let link = lab.home().join("config.toml");
    std::os::unix::fs::symlink(lab.workspace().join("dotfiles/lorimer.toml"), &link).expect("a link");
    assert_eq!(config(&lab, &["set", "max_steps", "3"]).end().answer(), "");
    assert!(lab.get("dotfiles/lorimer.toml").contains("max_steps = 3"));
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
}

#[test]
fn models_know_the_settings_of_a_trusted_workspace() {
    let lab = Lab::new();
    configure_workspace(&lab, "model = 'offline'\n");
    lab.lorimer(&["trust"]).end().answer();
    assert!(lab.lorimer(&["models"]).end().answer().starts_with("default: offline\n"));
}

#[test]
fn a_session_that_goes_on_from_elsewhere_has_its_own_workspace_settings() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    configure_workspace(&lab, "max_tokens = 77\n");
    lab.lorimer(&["trust"]).end().answer();
    lab.run(&server, &["hi"]).end().answer();
    let id = lab.log().id();
    lab.run(&server, &["--session", &id, "more"]).within(&lab.root()).end().answer();
    assert_eq!(server.requests()[1]["max_tokens"], 77);
}

#[test]
fn a_built_in_provider_takes_what_a_table_changes() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.configure(&format!("[providers.anthropic]\nbase_url = \"{}\"\n", server.url()));
    let run = lab.quick(&["-m", "anthropic", "hi"]).variable("ANTHROPIC_API_KEY", KEY).end();
    assert_eq!(run.answer(), "ok\n");
    assert_eq!(server.paths(), ["/v1/messages"]);
}

#[test]
fn half_a_price_is_refused() {
    let lab = Lab::new();
    lab.configure("[providers.mine]\nbase_url = \"http://127.0.0.1:9\"\n[[providers.mine.models]]\nid = \"m\"\nprice_input = 1.0\n");
    let complaint = config(&lab, &[]).end().complaint(2).to_owned();
    assert!(complaint.ends_with("model \"m\" needs both price_input and price_output"), "{complaint}");
}

#[test]
fn an_untrusted_workspace_sends_nothing_elsewhere() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    let elsewhere = Server::scripted(&[say("stolen")]);
    let url = elsewhere.url();
    configure_workspace(
        &lab,
        &format!("deepseek.base_url = \"{url}\"\npermission_mode = \"danger-full-access\"\n"),
    );
    let ended = lab.run(&server, &["hi"]).end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "ok\n"));
    assert!(elsewhere.requests().is_empty());
    // A file that is left out need not even be one.
    configure_workspace(&lab, "= = =\n");
    assert_eq!(lab.run(&server, &["hi"]).end().code, 0);
    let broken = lab.run(&server, &["--trust-workspace", "hi"]).end();
    assert!(broken.complaint(2).contains("[WS]/.lorimer/config.toml is not valid TOML"), "{broken:?}");
}

#[test]
fn a_model_that_writes_settings_takes_their_trust() {
    let path = ".lorimer/config.toml";
    let turns = [
        ask("read", json!({"file_path": path})),
        ask("write", json!({"file_path": path, "content": "max_tokens = 99\n"})),
        say("ok"),
    ];
    let (lab, server) = (Lab::new(), Server::scripted(&turns));
    configure_workspace(&lab, "max_tokens = 77\n");
    lab.lorimer(&["trust"]).end().answer();
    lab.run(&server, &["--permission-mode", "danger-full-access", "hi"]).end().answer();
    assert_eq!(lab.get(path), "max_tokens = 99\n");
    let next = lab.run(&server, &["--continue", "hi"]).end();
    assert!(next.complaint(0).contains("not trusted"), "{next:?}");
    assert_ne!(server.requests().last().expect("a request")["max_tokens"], 99);
}

#[test]
fn provider_tables_that_cannot_be_used_say_where() {
    let lab = Lab::new();
    let said = |text: &str| {
        lab.configure(text);
        lab.quick(&["-m", "mine/x", "hi"]).end().complaint(2).to_owned()
    };
    insta::assert_snapshot!(said("[providers.mine]\nbase_url = 'http://h'\nprotocol = 'soap'\n"), @r#"lorimer: provider "mine" in [HOME]/config.toml, line 3: unknown variant `soap`, expected `chat` or `messages`"#);
    insta::assert_snapshot!(said("[providers.mine]\nprotocol = 'chat'\n"), @r#"lorimer: provider "mine" has no base_url; write it under [providers.mine]"#);
    insta::assert_snapshot!(said("[providers.mine]\nbase_url = 'http://h'\n[[providers.mine.models]]\nname = 'a'\n"), @r#"lorimer: provider "mine" in [HOME]/config.toml, line 3: missing field `id`"#);
    insta::assert_snapshot!(said("[providers.mine]\nbase_url = 'nowhere'\nkey_variable = ''\n"), @r#"lorimer: mine cannot be used: the base URL "nowhere" is not a URL (relative URL without a base); it should look like https://host/path"#);
    assert!(said("[providers.mine]\nbase_uri = 'http://h'\n").contains("line 2: unknown field `base_uri`"));
    assert!(said("providers = 3\n").contains("\"providers\""));
    assert!(lab.logs().is_empty());
}

#[test]
fn a_server_of_ones_own_is_listed() {
    let lab = Lab::new();
    lab.configure("[providers.mine]\nname = 'My server'\nbase_url = 'http://h'\nkey_variable = ''\n[[providers.mine.models]]\nid = 'big'\ncontext_window_tokens = 9000\n");
    let models = lab.lorimer(&["models"]).end();
    assert!(
        models.answer().contains("mine (My server): ready\n  mine/big, window 9000 tokens\n"),
        "{models:?}"
    );
}

#[test]
fn tools_that_are_switched_off_are_not_given_to_the_model() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.configure("[tools]\ndisabled = [\"bash\", \"todo_write\", \"bash\"]\n");
    assert_eq!(lab.run(&server, &["go"]).end().answer(), "ok\n");
    let requests = server.requests();
    let tools = requests[0]["tools"].as_array().expect("tools");
    let names: Vec<&str> =
        tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["edit", "glob", "grep", "read", "write"]);
    lab.configure("[tools]\ndisabled = [\"todowrite\"]\n");
    let ended = lab.run(&server, &["go"]).end();
    insta::assert_snapshot!(ended.complaint(2), @r#"lorimer: setting "tools.disabled" in [HOME]/config.toml, line 2 names "todowrite", and the tools are read, write, edit, glob, grep, bash, todo_write; did you mean "todo_write"?"#);
}

#[test]
fn variables_that_are_no_text_are_not_in_the_way() {
    let lab = Lab::new();
    let steps = |name: &str| config(&lab, &["get", "max_steps"]).variable_of_bytes(name, b"\xff").end();
    assert_eq!(steps("OTHER").answer(), "unset\n");
    insta::assert_snapshot!(steps("LORIMER_MAX_STEPS").complaint(2), @r#"lorimer: setting "max_steps" in the variable LORIMER_MAX_STEPS must be a whole number, zero or more"#);
}
