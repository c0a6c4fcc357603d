//! Deny rules against the tools themselves.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use lorimer_process::{Runner, Supervisor};
use lorimer_protocol::{Draft, PermissionMode, SandboxModeEvent, SessionHeader};
use lorimer_sandbox::{Backend, Choice, Sandbox};
use lorimer_session::Session;
use lorimer_toolbox::{
    BashOptions, BashTool, Confinement, ConfinementOptions, DenyRules, EditOptions, EditTool, GlobTool,
    GrepTool, ReadOptions, ReadTool, SearchOptions, WriteOptions, WriteTool,
};
use lorimer_tools::{CallRequest, Pipeline, PipelineBuilder, Registry};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

lorimer_process::supervise_in_tests!();
lorimer_sandbox::confine_in_tests!();

const SECRET: &str = "hunter2";

struct Desk {
    _folder: tempfile::TempDir,
    root: PathBuf,
    session: Arc<Session>,
    pipeline: Pipeline,
}

impl Desk {
    fn new(rules: &[&str]) -> Self {
        Self::with(rules, Choice::Auto)
    }

    fn with(rules: &[&str], backend: Choice) -> Self {
        // Bubblewrap gives commands a `/tmp` of their own.
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in ["secrets/deep", "src", "outside"] {
            fs::create_dir_all(root.join("w").join(path)).unwrap();
        }
        let workspace = root.join("w");
        for path in ["secrets/key", "secrets/deep/key", ".env", "src/.env", "src/open", "outside/key"] {
            fs::write(workspace.join(path), format!("{SECRET} in {path}\n")).unwrap();
        }
        symlink("secrets/key", workspace.join("link")).unwrap();
        symlink("secrets", workspace.join("way")).unwrap();
        let session = Arc::new(Session::in_memory(SessionHeader::new("s1".into(), 0, None)));
        let deny = Arc::new(DenyRules::parse(rules, &workspace, None).unwrap());
        let pipeline = PipelineBuilder::new(registry(&deny, backend), workspace.clone()).build();
        Self { _folder: folder, root: workspace, session, pipeline }.in_mode(PermissionMode::WorkspaceWrite)
    }

    fn in_mode(self, mode: PermissionMode) -> Self {
        self.session.append(Draft::new(&SandboxModeEvent { mode, source: None })).unwrap();
        self
    }

    /// Code and text of a result; the workspace is `/w` in it.
    fn call(&self, name: &str, arguments: &Value) -> String {
        let request =
            CallRequest { call_id: "c".into(), name: name.to_owned(), arguments: arguments.to_string() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let call = self.pipeline.call(&request, Arc::clone(&self.session), CancellationToken::new());
        let outcome = runtime.block_on(call);
        let code = outcome.error.as_ref().map(|error| format!("{}: ", error.code)).unwrap_or_default();
        let text = outcome.plain_text().unwrap().replace(&*self.root.to_string_lossy(), "/w");
        format!("{code}{text}")
    }

    fn bash(&self, command: &str) -> String {
        self.call("bash", &json!({"command": command, "description": "Look around"}))
    }
}

fn registry(deny: &Arc<DenyRules>, backend: Choice) -> Registry {
    let search = SearchOptions { deny: Arc::clone(deny), ..SearchOptions::default() };
    let confinement = ConfinementOptions { backend, deny: Arc::clone(deny), ..ConfinementOptions::default() };
    let runner = Runner::new(Supervisor::this_program().unwrap());
    let mut registry = Registry::default();
    let deny = || Arc::clone(deny);
    registry.register(ReadTool::new(ReadOptions { deny: deny(), ..ReadOptions::default() })).unwrap();
    registry.register(WriteTool::new(WriteOptions { deny: deny(), ..WriteOptions::default() })).unwrap();
    registry.register(EditTool::new(EditOptions { deny: deny(), ..EditOptions::default() })).unwrap();
    registry.register(GlobTool::new(search.clone())).unwrap();
    registry.register(GrepTool::new(search)).unwrap();
    let confinement = Arc::new(Confinement::new(confinement));
    registry.register(BashTool::new(BashOptions::default(), runner, confinement)).unwrap();
    registry
}

#[test]
fn denied_files_are_neither_read_nor_changed() {
    let desk = Desk::new(&["secrets/**", ".env"]).in_mode(PermissionMode::DangerFullAccess);
    for path in ["secrets/key", "link", "way/deep/key", "src/../secrets/new", "src/.env"] {
        for (tool, arguments) in [
            ("read", json!({"file_path": path})),
            ("write", json!({"file_path": path, "content": "x"})),
            ("edit", json!({"file_path": path, "old_string": "h", "new_string": "x"})),
        ] {
            let text = desk.call(tool, &arguments);
            let start = format!("FS_DENIED: Error: cannot {tool} \"/w/");
            assert!(text.starts_with(&start), "{path} {text}");
        }
    }
    insta::assert_snapshot!(
        desk.call("read", &json!({"file_path": "way/deep/key"})),
        @r#"FS_DENIED: Error: cannot read "/w/way/deep/key": the deny rule "secrets/**" of the configuration forbids it"#
    );
    assert!(desk.call("read", &json!({"file_path": "src/open"})).contains(SECRET));
    assert_eq!(fs::read_dir(desk.root.join("secrets")).unwrap().count(), 2);
}

#[test]
fn a_rule_of_one_tool_leaves_the_others() {
    let desk = Desk::new(&["write:secrets/**"]);
    assert!(desk.call("read", &json!({"file_path": "secrets/key"})).contains(SECRET));
    let text = desk.call("write", &json!({"file_path": "secrets/key", "content": "x"}));
    assert!(text.starts_with("FS_DENIED: "), "{text}");
}

#[test]
fn searches_leave_denied_paths_out_and_say_so() {
    let desk = Desk::new(&["secrets/**", ".env"]);
    insta::assert_snapshot!(desk.call("glob", &json!({"pattern": "**/*key"})), @r"
    outside/key

    (2 paths were left out by deny rules of the configuration)
    ");
    insta::assert_snapshot!(desk.call("glob", &json!({"pattern": "src/.env"})), @r"
    No files found

    (2 paths were left out by deny rules of the configuration)
    ");
    insta::assert_snapshot!(desk.call("grep", &json!({"pattern": SECRET})), @r"
    Found 2 matches

    outside/key
    Line 1: hunter2 in outside/key

    src/open
    Line 1: hunter2 in src/open

    (2 paths were left out by deny rules of the configuration)
    ");
    insta::assert_snapshot!(desk.call("grep", &json!({"pattern": SECRET, "path": "outside"})), @r"
    Found 1 match

    outside/key
    Line 1: hunter2 in outside/key
    ");
    for path in ["secrets/key", "link", "way/deep", "src/.env", "outside/../secrets/deep"] {
        for tool in ["glob", "grep"] {
            let text = desk.call(tool, &json!({"pattern": "h*", "path": path}));
            let pattern = if path.ends_with(".env") { ".env" } else { "secrets/**" };
            let why = format!("the deny rule \"{pattern}\" of the configuration forbids it");
            assert!(text.starts_with("FS_DENIED: ") && text.ends_with(&why), "{tool} {path}: {text}");
        }
    }
    for path in ["secrets", "way", "secrets/../way"] {
        let text = desk.call("grep", &json!({"pattern": SECRET, "path": path}));
        assert_eq!(text, "No matches found\n\n(2 paths were left out by deny rules of the configuration)");
    }
}

/// The ways to confine that can keep commands from files on this machine.
fn hiding() -> Vec<Choice> {
    let all = [Backend::Landlock, Backend::Bubblewrap, Backend::Seatbelt].map(Choice::Only);
    all.into_iter().filter(|choice| Sandbox::find(*choice).is_ok_and(|found| found.hides())).collect()
}

#[test]
fn commands_do_not_see_denied_files_in_any_mode() {
    use PermissionMode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
    for (backend, mode) in hiding()
        .into_iter()
        .flat_map(|backend| [ReadOnly, WorkspaceWrite, DangerFullAccess].map(|mode| (backend, mode)))
    {
        let desk = Desk::with(&["secrets/**", "bash:.env"], backend).in_mode(mode);
        let seen = desk.bash("cat secrets/key link way/deep/key .env src/.env; ls -A secrets; cat src/open");
        assert_eq!(seen.matches(SECRET).count(), 1, "{backend:?} {mode:?} {seen}");
        assert!(seen.contains("hunter2 in src/open"), "{backend:?} {mode:?} {seen}");
        let moved =
            desk.bash("mv secrets elsewhere; mv src source; rm -rf secrets .env; echo x > secrets/new");
        let moved = moved + &desk.bash("cat elsewhere/key source/.env; umount secrets; cat secrets/key");
        assert!(!moved.contains(SECRET), "{backend:?} {mode:?} {moved}");
        assert_eq!(fs::read_dir(desk.root.join("secrets")).unwrap().count(), 2, "{backend:?} {mode:?}");
    }
}

#[test]
fn commands_do_not_run_where_nothing_can_be_hidden() {
    // A backend of another system.
    let elsewhere = if cfg!(target_os = "linux") { Backend::Seatbelt } else { Backend::Landlock };
    let desk = Desk::with(&["secrets/**"], Choice::Only(elsewhere)).in_mode(PermissionMode::DangerFullAccess);
    let text = desk.bash("cat secrets/key");
    let start =
        "Error: the command did not run, because the deny rules of the configuration cannot be held for it: ";
    assert!(text.starts_with(start), "{text}");
    fs::remove_dir_all(desk.root.join("secrets")).unwrap();
    assert_eq!(desk.bash("echo ran"), "ran\n", "there is nothing to hide");
}

#[test]
fn with_full_access_all_else_is_as_it_was() {
    for backend in hiding() {
        let outside = tempfile::tempdir_in("/var/tmp").unwrap();
        let desk = Desk::with(&[".env"], backend).in_mode(PermissionMode::DangerFullAccess);
        let command =
            format!("cd {} && echo x > f && mkdir d && mv f d/g && cat d/g", outside.path().display());
        assert_eq!(desk.bash(&command), "x\n");
        assert_eq!(fs::read_to_string(outside.path().join("d/g")).unwrap(), "x\n");
        assert_eq!(desk.bash("rm outside/key && echo y >> src/open && tail -n1 src/open"), "y\n");
        // What looks like a denial is none that a wider mode would take off.
        let text = desk.bash("echo Permission denied >&2; exit 1");
        assert_eq!(text, "[stderr]\nPermission denied\n\n[exit code: 1]");
    }
}

#[test]
fn no_command_runs_when_there_is_too_much_to_hide() {
    let desk = Desk::new(&["*.key"]).in_mode(PermissionMode::DangerFullAccess);
    for number in 0..1001 {
        fs::write(desk.root.join(format!("{number}.key")), "").unwrap();
    }
    insta::assert_snapshot!(desk.bash("echo ran"), @"Error: the command did not run, because the deny rules of the configuration cannot be held for it: they are about 1001 paths, and 1000 can be hidden from a command; deny whole folders");
}
