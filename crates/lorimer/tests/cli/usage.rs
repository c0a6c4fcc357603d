//! What cannot be used: exit code 2, one line with the next step, and nothing is left behind.

use crate::lab::{KEY, Lab};
use crate::server::{Server, say};

/// Runs with a key but without a server, and returns the complaint.
#[track_caller]
fn refused(lab: &Lab, arguments: &[&str]) -> String {
    let ended = lab.lorimer(arguments).variable("DEEPSEEK_API_KEY", KEY).end();
    assert_eq!(ended.stdout, "");
    let line = ended.complaint(2).to_owned();
    assert!(!lab.home().join("sessions").exists(), "nothing is left behind");
    line
}

#[test]
fn a_missing_key() {
    let lab = Lab::new();
    let ended = lab.lorimer(&["run", "hi"]).end();
    insta::assert_snapshot!(ended.complaint(2), @"lorimer: deepseek-official needs a key: set DEEPSEEK_API_KEY, or run with `-m offline` for the keyless demo model");
    assert_eq!(ended.stdout, "");
    assert!(!lab.home().exists());
}

#[test]
fn an_unusable_key() {
    let ended = Lab::new().lorimer(&["run", "hi"]).variable("DEEPSEEK_API_KEY", "two words").end();
    insta::assert_snapshot!(ended.complaint(2), @"lorimer: the key in DEEPSEEK_API_KEY is not usable: it must be printable ASCII without spaces; set it again");
}

#[test]
fn an_unknown_provider() {
    insta::assert_snapshot!(refused(&Lab::new(), &["run", "-m", "deepsek/deepseek-v4-pro", "hi"]), @r#"lorimer: there is no provider "deepsek" (did you mean "deepseek"?); see `lorimer models`"#);
    insta::assert_snapshot!(refused(&Lab::new(), &["run", "-m", "zzzzzz", "hi"]), @r#"lorimer: there is no provider "zzzzzz"; see `lorimer models`"#);
}

#[test]
fn an_unknown_effort() {
    insta::assert_snapshot!(refused(&Lab::new(), &["run", "-c", "effort=huge", "hi"]), @r#"lorimer: deepseek-v4-flash does not take the effort "huge"; it takes: off, low, high, max"#);
}

#[test]
fn an_unusable_base_url() {
    insta::assert_snapshot!(refused(&Lab::new(), &["run", "-c", "deepseek.base_url=nowhere", "hi"]), @r#"lorimer: deepseek-official cannot be used: the base URL "nowhere" is not a URL (relative URL without a base); it should look like https://host/path"#);
}

#[test]
fn settings_on_the_command_line() {
    let lab = Lab::new();
    insta::assert_snapshot!(refused(&lab, &["run", "-c", "retry.max_retrys=3", "hi"]), @r#"lorimer: unknown setting "retry.max_retrys" on the command line; did you mean "retry.max_retries"?"#);
    insta::assert_snapshot!(refused(&lab, &["run", "-c", "max_steps=many", "hi"]), @r#"lorimer: setting "max_steps" on the command line must be a whole number, zero or more"#);
    insta::assert_snapshot!(refused(&lab, &["demo", "-c", "max_steps"]), @"lorimer: -c max_steps has no value; write it as -c KEY=VALUE");
    insta::assert_snapshot!(refused(&lab, &["models", "-c", "permission_mode=all"]), @r#"lorimer: setting "permission_mode" on the command line must be read-only, workspace-write or danger-full-access"#);
}

#[test]
fn settings_in_the_file() {
    let lab = Lab::new();
    let complaint = |text: &str| {
        std::fs::create_dir_all(lab.home()).expect("a home");
        std::fs::write(lab.home().join("config.toml"), text).expect("a file");
        refused(&lab, &["run", "hi"])
    };
    insta::assert_snapshot!(complaint("# mine\n\n[bash]\ntimeout = 3\n"), @r#"lorimer: unknown setting "bash.timeout" in [HOME]/config.toml, line 4; did you mean "bash.timeout_ms"?"#);
    insta::assert_snapshot!(complaint("model = 3\n"), @r#"lorimer: setting "model" in [HOME]/config.toml, line 1 must be text"#);
    insta::assert_snapshot!(complaint("[Bsh]\n"), @r#"lorimer: unknown setting "Bsh" in [HOME]/config.toml, line 1; did you mean "bash"?"#);
    insta::assert_snapshot!(complaint("bash = 3\n"), @r#"lorimer: setting "bash" in [HOME]/config.toml, line 1 must be a table of settings"#);
    insta::assert_snapshot!(complaint("[providers.mine]\nbase_ulr = 'x'\n"), @r#"lorimer: provider "mine" in [HOME]/config.toml, line 2: unknown field `base_ulr`; did you mean `base_url`?"#);
    insta::assert_snapshot!(complaint("[providers]\nmine = 3\n"), @r#"lorimer: provider "mine" in [HOME]/config.toml, line 2: must be a table"#);
    let syntax = complaint("model = 'a'\n\nx = = 3\n");
    assert!(syntax.starts_with("lorimer: [HOME]/config.toml is not valid TOML: "), "{syntax}");
    assert!(syntax.contains("line 3"), "{syntax}");
}

#[test]
fn an_unusable_workspace() {
    let lab = Lab::new();
    lab.put("file.txt", "");
    insta::assert_snapshot!(refused(&lab, &["run", "-C", "no/such/folder", "hi"]), @"lorimer: cannot work in no/such/folder: No such file or directory (os error 2); choose a folder with -C");
    insta::assert_snapshot!(refused(&lab, &["run", "-C", "file.txt", "hi"]), @"lorimer: cannot work in file.txt: Not a directory (os error 20); choose a folder with -C");
}

#[test]
fn no_task() {
    let lab = Lab::new();
    for arguments in [&["run"][..], &["run", "-"], &["run", "  "]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused(&lab, arguments), @"lorimer: there is no task; write one after `lorimer run`, or pipe it in and write `-`");
        }
    }
}

#[test]
fn sessions_that_are_not_there() {
    let lab = Lab::new();
    insta::assert_snapshot!(refused(&lab, &["run", "--session", "3f2a", "hi"]), @r#"lorimer: session "3f2a" not found; see `lorimer sessions list`"#);
    insta::assert_snapshot!(refused(&lab, &["run", "--continue", "hi"]), @"lorimer: there is no session of [WS] to continue; leave out --continue to start one");
    for command in [&["show", "3f2a"][..], &["path", "3f2a"], &["rename", "3f2a", "x"], &["delete", "3f2a"]] {
        let arguments = [&["sessions"], command].concat();
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused(&lab, &arguments), @r#"lorimer: session "3f2a" not found; see `lorimer sessions list`"#);
        }
    }
}

#[test]
fn a_session_of_another_folder_is_not_continued() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("one")]));
    lab.run(&server, &["first"]).end().answer();
    let ended = lab.run(&server, &["-C", "..", "--continue", "second"]).end();
    insta::assert_snapshot!(ended.complaint(2), @"lorimer: there is no session of [ROOT] to continue; leave out --continue to start one");
}

#[test]
fn tools_modes_that_are_not_there() {
    let lab = Lab::new();
    insta::assert_snapshot!(refused(&lab, &["run", "--tools-mode", "ptc", "hi"]), @r#"lorimer: tools mode "ptc" needs code mode, which this version does not have; use --tools-mode native"#);
    insta::assert_snapshot!(refused(&lab, &["run", "-c", "tools_mode=loud", "hi"]), @r#"lorimer: there is no tools mode "loud"; this version has: native"#);
}

#[test]
fn arguments_that_cannot_be_read() {
    let lab = Lab::new();
    for (arguments, part) in [
        (&["run", "--bogus", "hi"][..], "--bogus"),
        (&["run", "--max-steps", "0", "hi"], "--max-steps"),
        (&["run", "--permission-mode", "all", "hi"], "read-only"),
        (&["run", "--session", "a", "--continue", "hi"], "--continue"),
        (&["frobnicate"], "frobnicate"),
        (&["sessions", "show"], "<ID>"),
    ] {
        let ended = lab.lorimer(arguments).end();
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.said.contains(part) && ended.said.contains("--help"), "{}", ended.said);
    }
}

#[test]
fn a_home_is_needed() {
    let ended = Lab::new().lorimer(&["sessions", "list"]).without("LORIMER_HOME").without("HOME").end();
    insta::assert_snapshot!(ended.complaint(2), @"lorimer: there is no home directory; set LORIMER_HOME");
}

#[test]
fn a_home_follows_the_variables() {
    let lab = Lab::new();
    let under = |path: &str| lab.root().join(path).join("sessions").is_dir();
    lab.lorimer(&["run", "-m", "offline", "hi"]).without("LORIMER_HOME").end().answer();
    assert!(under(".lorimer") && !under("dsh/lorimer"));
    let dsh = lab.root().join("dsh").display().to_string();
    lab.lorimer(&["run", "-m", "offline", "hi"])
        .without("LORIMER_HOME")
        .variable("DSH_HOME", &dsh)
        .end()
        .answer();
    assert!(under("dsh/lorimer"));
}

#[test]
fn files_are_overruled_by_flags() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    std::fs::create_dir_all(lab.home()).expect("a home");
    let settings = "model = 'deepseek/deepseek-v4-pro'\neffort = 'low'\nmax_tokens = 77\ntemperature = 0.5\n";
    std::fs::write(lab.home().join("config.toml"), settings).expect("a file");
    lab.run(&server, &["-c", "effort=max", "hi"]).end().answer();
    let sent = &server.requests()[0];
    assert_eq!((&sent["model"], &sent["reasoning_effort"]), (&"deepseek-v4-pro".into(), &"max".into()));
    assert_eq!((&sent["max_tokens"], &sent["temperature"]), (&77.into(), &0.5.into()));
    lab.run(&server, &["-m", "deepseek/other/one", "-c", "effort=off", "hi"]).end().answer();
    let sent = &server.requests()[1];
    assert_eq!((&sent["model"], &sent["thinking"]["type"]), (&"other/one".into(), &"disabled".into()));
    assert!(sent.get("reasoning_effort").is_none());
}
