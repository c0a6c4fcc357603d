//! The permission modes, and files that are not what they seem.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::Lab;
use crate::server::{Server, asks, fixtures, say};

/// A folder outside of the workspace and of every temporary folder that may be written.
fn outside() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("lab-").tempdir_in("/var/tmp").expect("a folder")
}

/// The results of these calls, made one after another in one turn.
#[track_caller]
fn results(lab: &Lab, calls: &[(&str, Value)], arguments: &[&str]) -> Vec<String> {
    let server = Server::scripted(&[asks(calls), say("done")]);
    assert_eq!(lab.run(&server, arguments).and(&["go"]).end().answer(), "done\n");
    let shown = |result: crate::log::ToolResult| {
        let code = result.code.map(|code| format!("{code}: ")).unwrap_or_default();
        lab.plain(&format!("{code}{}", result.text))
    };
    lab.log().results().into_iter().map(shown).collect()
}

fn read(path: &Path) -> (&'static str, Value) {
    ("read", json!({"file_path": path}))
}

fn write(path: &Path) -> (&'static str, Value) {
    ("write", json!({"file_path": path, "content": "changed\n"}))
}

fn edit(path: &Path) -> (&'static str, Value) {
    ("edit", json!({"file_path": path, "old_string": "kept", "new_string": "changed"}))
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({"command": command, "description": "Change a file"}))
}

/// Whether a command was denied its change, or could not be confined on this machine and did not run.
fn was_kept_from(result: &str, mode: &str) -> bool {
    result.contains(&format!("[sandbox: file access denied under {mode} mode]"))
        || result.starts_with("Error: commands cannot be confined here: ")
}

#[test]
fn read_only_changes_nothing() {
    let lab = Lab::new();
    lab.put("a.txt", "kept\n");
    let (a, new) = (Path::new("a.txt"), Path::new("new.txt"));
    let calls = [read(a), edit(a), write(a), write(new), bash("touch new.txt")];
    let results = results(&lab, &calls, &["--permission-mode", "read-only"]);
    insta::assert_snapshot!(results[1..4].join("\n"), @r"
    FS_SANDBOX_DENIED: Error: [sandbox: file access denied under read-only mode]
    FS_SANDBOX_DENIED: Error: [sandbox: file access denied under read-only mode]
    FS_SANDBOX_DENIED: Error: [sandbox: file access denied under read-only mode]
    ");
    assert!(was_kept_from(&results[4], "read-only"), "{}", results[4]);
    assert!(results[0].contains("1: kept"));
    assert_eq!(lab.get("a.txt"), "kept\n");
    assert!(!lab.workspace().join("new.txt").exists());
}

#[test]
fn workspace_write_ends_at_the_workspace() {
    let (lab, outside) = (Lab::new(), outside());
    lab.put("a.txt", "kept\n");
    let (victim, new) = (outside.path().join("victim"), outside.path().join("new"));
    std::fs::write(&victim, "kept\n").expect("a file");
    let links = lab.workspace();
    symlink(&victim, links.join("to-file")).expect("a link");
    symlink(outside.path(), links.join("to-folder")).expect("a link");
    symlink(&new, links.join("to-nothing")).expect("a link");
    let inside = Path::new("a.txt");
    let denied = [
        edit(&victim),
        write(&new),
        edit(Path::new("to-file")),
        write(Path::new("to-folder/new")),
        write(Path::new("to-nothing")),
        bash("touch to-folder/x"),
    ];
    let calls =
        [&[read(inside), edit(inside), read(&victim), read(Path::new("to-file"))], &denied[..]].concat();
    let results = results(&lab, &calls, &[]);
    assert!(results[1].ends_with("has been updated successfully."), "{}", results[1]);
    assert!(results[2].contains("1: kept") && results[3].contains("1: kept"), "reading is not fenced");
    for (text, call) in results[4..9].iter().zip(&denied) {
        assert_eq!(
            text, "FS_SANDBOX_DENIED: Error: [sandbox: file access denied under workspace-write mode]",
            "{call:?}"
        );
    }
    assert!(was_kept_from(&results[9], "workspace-write"), "{}", results[9]);
    assert_eq!(lab.get("a.txt"), "changed\n");
    assert_eq!(std::fs::read_to_string(&victim).expect("a file"), "kept\n");
    assert_eq!(std::fs::read_dir(outside.path()).expect("a folder").count(), 1);
}

#[test]
fn what_runs_by_itself_and_stored_keys_are_not_for_tools() {
    let lab = Lab::new();
    lab.put(".git/config", "[core]\n");
    lab.put(".bashrc", "kept\n");
    std::fs::create_dir_all(lab.home()).expect("a home");
    let keys = lab.home().join("credentials.toml");
    std::fs::write(&keys, "[keys]\nOTHER_API_KEY = \"stored-key\"\n").expect("a file");
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("private");
    let (config, shell) = (Path::new(".git/config"), Path::new(".bashrc"));
    let calls = [
        write(Path::new(".git/hooks/pre-commit")),
        read(config),
        edit(config),
        read(shell),
        edit(shell),
        read(&keys),
        ("grep", json!({"pattern": "API", "path": keys})),
    ];
    let results = results(&lab, &calls, &[]);
    for denied in [0, 2, 4] {
        assert!(results[denied].starts_with("FS_SANDBOX_DENIED: "), "{}", results[denied]);
    }
    assert!(results.iter().all(|result| !result.contains("stored-key")), "{results:?}");
    assert!(!std::fs::read_to_string(lab.log().path).expect("a log").contains("stored-key"));
    assert_eq!((lab.get(".git/config"), lab.get(".bashrc")), ("[core]\n".to_owned(), "kept\n".to_owned()));
}

#[test]
fn full_access_is_not_fenced() {
    let (lab, outside) = (Lab::new(), outside());
    let new = outside.path().join("new");
    let calls = [write(&new), bash("echo more >> \"$PWD/here.txt\"")];
    let results = results(&lab, &calls, &["--permission-mode", "danger-full-access"]);
    assert!(results[0].contains("Created file"), "{}", results[0]);
    assert_eq!(std::fs::read_to_string(&new).expect("a file"), "changed\n");
    assert_eq!(lab.get("here.txt"), "more\n");
}

#[test]
fn the_running_sessions_files_are_never_changed() {
    let lab = Lab::new();
    let server = Server::scripted(&[say("one")]);
    lab.run(&server, &["first"]).end().answer();
    let log = lab.log().path;
    let again = Server::scripted(&[say("skipped"), asks(&[read(&log), write(&log)]), say("done")]);
    let full = ["--permission-mode", "danger-full-access", "--continue", "second"];
    assert_eq!(lab.run(&again, &full).end().answer(), "done\n");
    assert_eq!(lab.log().results()[1].code.as_deref(), Some("FS_SANDBOX_DENIED"));
}

#[test]
fn a_mode_lasts_as_long_as_its_flag() {
    let lab = Lab::new();
    let server = Server::scripted(&[say("one"), asks(&[write(Path::new("new.txt"))]), say("done")]);
    lab.run(&server, &["--permission-mode", "read-only", "first"]).end().answer();
    assert_eq!(lab.run(&server, &["--continue", "second"]).end().answer(), "done\n");
    assert_eq!(lab.get("new.txt"), "changed\n");
    let log = lab.log();
    let modes: Vec<&Value> = log.of("sandbox/mode").iter().map(|data| &data["mode"]).collect();
    assert_eq!(modes, ["read-only", "workspace-write"]);
}

/// Pipes, devices, odd encodings and huge lines are read or refused, and nothing hangs.
#[test]
fn odd_files_are_read_or_refused() {
    let (lab, outside) = (Lab::new(), outside());
    let folder = outside.path().canonicalize().expect("a folder").join("odd");
    let made = Command::new("sh").arg(fixtures().join("tools/mkfix.sh")).arg(&folder).output().expect("sh");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let names = [
        "F-fifo",
        "F-zero",
        "F-empty",
        "F-nonl",
        "F-u16le",
        "F-gbk",
        "F-nul",
        "F-oneline",
        "F-dangling",
        "loop/d/up",
    ];
    let calls: Vec<_> = names.iter().map(|name| read(Path::new(*name))).collect();
    let directory = folder.display().to_string();
    let results = results(&lab, &calls, &["-C", &directory]);
    let shown: Vec<String> = names
        .iter()
        .zip(&results)
        .map(|(name, text)| {
            let text = text.replace(&directory, "[ODD]");
            let text = text.lines().find(|line| !line.starts_with('<')).unwrap_or_default();
            format!("{name}: {}", text.chars().take(100).collect::<String>())
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    F-fifo: FS_NOT_REGULAR_FILE: Error: cannot read "[ODD]/F-fifo": not a regular file
    F-zero: FS_NOT_REGULAR_FILE: Error: cannot read "[ODD]/F-zero": not a regular file
    F-empty: (End of file - total 0 lines)
    F-nonl: 1: a
    F-u16le: FS_NOT_TEXT: Error: cannot read "[ODD]/F-u16le": binary file (looks like UTF-16LE text; convert it t
    F-gbk: FS_NOT_TEXT: Error: cannot read "[ODD]/F-gbk": invalid UTF-8 text (looks like GBK text; convert it t
    F-nul: FS_NOT_TEXT: Error: cannot read "[ODD]/F-nul": binary file (it has NUL bytes)
    F-oneline: 1: ["row","row","row","row","row","row","row","row","row","row","row","row","row","row","row","row",
    F-dangling: FS_NOT_FOUND: Error: cannot read "[ODD]/F-dangling": not found
    loop/d/up: FS_NOT_REGULAR_FILE: Error: cannot read "[ODD]/loop/d/up": not a regular file
    "#);
}

#[test]
fn the_harness_keeps_its_own_settings_from_the_model() {
    let lab = Lab::new();
    std::fs::create_dir_all(lab.home()).expect("a home");
    let path = lab.home().join("config.toml").display().to_string();
    let calls = [("write", json!({"file_path": path, "content": "permission_mode = 'danger-full-access'"}))];
    let server = Server::scripted(&[asks(&calls), say("done")]);
    lab.run(&server, &["go"]).end().answer();
    assert!(lab.log().results()[0].text.contains("[sandbox: file access denied under workspace-write mode]"));
    assert!(!lab.home().join("config.toml").exists());
}

#[test]
fn a_denied_path_is_denied_to_every_tool_in_every_mode() {
    let lab = Lab::new();
    lab.configure("deny = [\".env\", \"/etc/passwd\"]\n");
    lab.put("sub/.env", "kept: hunter2\n");
    lab.put("AGENTS.md", "Start.\n@sub/.env\n");
    symlink("sub/.env", lab.workspace().join("link")).expect("a link");
    let passwd = Path::new("/etc/passwd");
    let calls = [
        read(Path::new("sub/.env")),
        read(Path::new("link")),
        edit(Path::new("link")),
        write(Path::new("new/.env")),
        read(passwd),
        ("glob", json!({"pattern": "**/*env"})),
        ("grep", json!({"pattern": "hunter2", "path": "link"})),
        bash("cat link sub/.env; head -n1 /etc/passwd"),
    ];
    for mode in ["read-only", "danger-full-access"] {
        let server = Server::scripted(&[asks(&calls), say("done")]);
        assert_eq!(lab.run(&server, &["--permission-mode", mode, "go"]).end().answer(), "done\n");
        for request in server.requests() {
            assert!(!request.to_string().contains("kept: hunter2"), "{request}");
        }
        let log = lab.logs().pop().expect("a log");
        let results: Vec<String> = log.results().into_iter().map(|result| lab.plain(&result.text)).collect();
        for (result, path) in results.iter().zip(["sub/.env", "link", "link", "new/.env"]) {
            let why = format!("{path}\": the deny rule \".env\" of the configuration forbids it");
            assert!(result.ends_with(&why), "{result}");
        }
        assert!(results[4].contains("the deny rule \"/etc/passwd\""), "{}", results[4]);
        assert!(
            results[5].ends_with("(1 path was left out by deny rules of the configuration)"),
            "{}",
            results[5]
        );
        assert!(results[6].contains("the deny rule \".env\""), "{}", results[6]);
        assert!(!results[7].contains("kept: ") && !results[7].contains("root:"), "{}", results[7]);
    }
}

#[test]
fn a_deny_rule_that_cannot_be_used_is_named() {
    let (lab, server) = (Lab::new(), Server::scripted(&[say("ok")]));
    lab.configure("model = \"x/y\"\ndeny = [\"a\", \"b/[\"]\n");
    let ended = lab.run(&server, &["go"]).end();
    insta::assert_snapshot!(ended.complaint(2), @r#"lorimer: setting "deny" in [HOME]/config.toml, line 2: the rule "b/[" cannot be used: unclosed character class; missing ']'"#);
}
