//! Commands, from a model's call to the text it reads, with real processes.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lorimer_process::{Runner, Supervisor};
use lorimer_protocol::{Draft, PermissionMode, SandboxModeEvent, SessionHeader};
#[cfg(target_os = "linux")]
use lorimer_sandbox::{Backend, Choice};
use lorimer_session::{Session, Store, StoreOptions};
use lorimer_toolbox::{BashOptions, BashTool, Confinement, ConfinementOptions};
use lorimer_tools::{CallRequest, Outcome, Pipeline, PipelineBuilder, Registry};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

lorimer_process::supervise_in_tests!();
lorimer_sandbox::confine_in_tests!();

/// Variables that look like secrets, in the environment of this program.
const SECRETS: [&str; 2] = ["LORIMER_TEST_ONE_TOKEN", "LORIMER_TEST_TWO_TOKEN"];

#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
static SECRETS_BEFORE_TESTS: extern "C" fn() = {
    extern "C" fn before_main() {
        for name in SECRETS {
            // SAFETY: no other thread exists before `main`.
            unsafe { std::env::set_var(name, "hunter2") };
        }
    }
    before_main
};

/// How long anything is waited for before a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A workspace with a tool and a session on it.
struct Bench {
    /// Held for its removal.
    _root: tempfile::TempDir,
    workspace: PathBuf,
    session: Arc<Session>,
    pipeline: Pipeline,
}

impl Bench {
    fn new() -> Self {
        Self::with(BashOptions::default(), Some(PermissionMode::DangerFullAccess), false)
    }

    fn with(options: BashOptions, mode: Option<PermissionMode>, stored: bool) -> Self {
        Self::confined(options, mode, stored, ConfinementOptions::default())
    }

    fn confined(
        options: BashOptions,
        mode: Option<PermissionMode>,
        stored: bool,
        confinement: ConfinementOptions,
    ) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let real = root.path().canonicalize().expect("its path");
        let workspace = real.join("workspace");
        fs::create_dir(&workspace).expect("a workspace");
        let session = if stored {
            Store::new(&real.join("home"), StoreOptions::default()).create(&workspace).expect("a session")
        } else {
            let cwd = workspace.to_string_lossy().into_owned();
            Arc::new(Session::in_memory(SessionHeader::new("s1".into(), 0, Some(cwd))))
        };
        if let Some(mode) = mode {
            session.append(Draft::new(&SandboxModeEvent { mode, source: None })).expect("a mode");
        }
        let runner = Runner::new(Supervisor::this_program().expect("this program"));
        let mut registry = Registry::default();
        registry
            .register(BashTool::new(options, runner, Arc::new(Confinement::new(confinement))))
            .expect("a free name");
        let pipeline = PipelineBuilder::new(registry, workspace.clone()).build();
        Self { _root: root, workspace, session, pipeline }
    }

    async fn call(&self, arguments: Value, cancel: CancellationToken) -> Outcome {
        let request =
            CallRequest { call_id: "c1".into(), name: "bash".to_owned(), arguments: arguments.to_string() };
        self.pipeline.call(&request, Arc::clone(&self.session), cancel).await
    }

    fn run(&self, arguments: Value) -> Outcome {
        block_on(self.call(arguments, CancellationToken::new()))
    }

    /// The text of a command that ran.
    fn text(&self, command: &str) -> String {
        text_of(&self.run(command_only(command)))
    }
}

fn command_only(command: &str) -> Value {
    json!({ "command": command, "description": "Test the shell" })
}

fn text_of(outcome: &Outcome) -> String {
    assert!(!outcome.is_error, "{outcome:?}");
    outcome.plain_text().expect("one text")
}

fn error_of(outcome: &Outcome) -> String {
    assert!(outcome.is_error, "{outcome:?}");
    outcome.plain_text().expect("one text")
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(future)
}

/// A number of seconds for `sleep` that no other process on the machine has: it marks the processes of a test.
fn marked_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("1000.{:07}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Whether any process has `mark` in its command line. Always false where there is no `/proc`.
fn is_running(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(mark))
}

#[test]
fn what_is_printed_is_the_result() {
    let bench = Bench::new();
    assert_eq!(bench.text("echo TERMINAL_OK"), "TERMINAL_OK\n");
    assert_eq!(bench.text("printf 'a b'"), "a b");
    assert_eq!(bench.text("true"), "(no output)");
    assert_eq!(bench.text("echo bad >&2"), "[stderr]\nbad\n");
    assert_eq!(bench.text("echo good; echo bad >&2"), "good\n[stderr]\nbad\n");
}

#[test]
fn a_result_tells_how_the_command_ended() {
    let bench = Bench::new();
    assert_eq!(bench.text("false"), "(no output)\n[exit code: 1]");
    assert_eq!(bench.text("echo x; exit 3"), "x\n\n[exit code: 3]");
    assert_eq!(bench.text("printf x; exit 3"), "x\n[exit code: 3]");
    assert_eq!(bench.text("kill -KILL $$"), "(no output)\n[killed by signal: SIGKILL]");
}

#[test]
fn the_value_has_the_parts() {
    let outcome = Bench::new().run(json!({
        "command": "echo out; echo err >&2; exit 7",
        "description": "Fail",
        "timeoutMs": "5000",
        "sandbox_permissions": "danger-full-access",
        "run_in_background": true,
    }));
    insta::assert_json_snapshot!(outcome.value, @r#"
    {
      "kind": "foreground",
      "exitCode": 7,
      "signal": null,
      "timedOut": false,
      "aborted": false,
      "timeoutMs": 5000,
      "stdout": {
        "text": "out\n",
        "truncated": false
      },
      "stderr": {
        "text": "err\n",
        "truncated": false
      }
    }
    "#);
}

#[test]
fn a_command_is_one_line_for_bash_and_no_option() {
    let bench = Bench::new();
    assert_eq!(bench.text("a=(1 2 3); echo ${#a[@]} \"$((2 + 2))\" 'it''s' <<<x"), "3 4 its\n");
    assert!(bench.text("-x").ends_with("\n[exit code: 127]"), "a command of that name is looked for");
    assert_eq!(bench.text("cat; tty >/dev/null || echo none"), "none\n", "there is nothing to read");
}

#[test]
fn time_that_is_up_is_told() {
    let bench = Bench::new();
    let mark = marked_seconds();
    let arguments =
        json!({ "command": format!("exec sleep {mark}"), "description": "Sleep", "timeoutMs": 200 });
    insta::assert_snapshot!(text_of(&bench.run(arguments)), @"
    (no output)
    [timed out after 200ms]
    [killed by signal: SIGTERM]
    ");
    assert!(!is_running(&mark));
}

#[test]
fn no_command_runs_longer_than_the_highest_limit() {
    let options = BashOptions { max_timeout_ms: 150, ..BashOptions::default() };
    let bench = Bench::with(options, Some(PermissionMode::DangerFullAccess), false);
    for wish in [json!(500_000), Value::Null] {
        let arguments = json!({ "command": "exec sleep 1000", "description": "Sleep", "timeoutMs": wish });
        assert!(text_of(&bench.run(arguments)).contains("[timed out after 150ms]"));
    }
}

#[test]
fn a_cancelled_call_has_failed_and_nothing_is_left_of_it() {
    let bench = Bench::new();
    let mark = marked_seconds();
    let ready = bench.workspace.join("ready");
    let command = format!("(setsid sleep {mark} & sleep {mark} & touch ready); sleep {mark}");
    let cancel = CancellationToken::new();
    let canceller = async {
        let start = Instant::now();
        while !ready.exists() && start.elapsed() < PATIENCE {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (outcome, ()) =
        block_on(async { tokio::join!(bench.call(command_only(&command), cancel.clone()), canceller) });
    assert!(ready.exists(), "the command ran");
    assert_eq!(error_of(&outcome), "Error: tool call aborted");
    assert_eq!(outcome.error.expect("a code").code, "ABORTED");
    assert!(!is_running(&mark));
}

#[test]
fn a_child_that_keeps_the_output_open_does_not_keep_the_call() {
    let bench = Bench::new();
    let mark = marked_seconds();
    assert_eq!(bench.text(&format!("sleep {mark} & echo started")), "started\n");
    assert!(!is_running(&mark));
}

fn short() -> BashOptions {
    BashOptions { head_bytes: 6, tail_bytes: 9, ..BashOptions::default() }
}

#[test]
fn long_output_is_cut_and_saved_with_the_session() {
    let bench = Bench::with(short(), Some(PermissionMode::DangerFullAccess), true);
    let outcome = bench.run(command_only("seq 1 1000; seq 1 500 >&2; exit 4"));
    let value = outcome.value.clone().expect("a value");
    let files = bench.session.directory().expect("a directory").join("files");
    let mut shown = text_of(&outcome);
    for (stream, last) in [("stdout", 1000), ("stderr", 500)] {
        let path = value[stream]["spillPath"].as_str().expect("a path");
        assert_eq!(Path::new(path).parent(), Some(files.as_path()));
        let whole: String = (1..=last).map(|n| format!("{n}\n")).collect();
        assert_eq!(fs::read_to_string(path).expect("the saved output"), whole);
        shown = shown.replace(path, &format!("<{stream}>"));
    }
    insta::assert_snapshot!(shown, @"
    1
    2
    3
    [… 3878 bytes omitted …]
    999
    1000
    [output truncated; full output: <stdout>]
    [stderr]
    1
    2
    3
    [… 1877 bytes omitted …]

    499
    500
    [output truncated; full output: <stderr>]
    [exit code: 4]
    ");
}

#[test]
fn output_of_a_session_without_files_is_not_saved() {
    let bench = Bench::with(short(), Some(PermissionMode::DangerFullAccess), false);
    insta::assert_snapshot!(bench.text("seq 1 1000"), @"
    1
    2
    3
    [… 3878 bytes omitted …]
    999
    1000
    [output truncated; full output: (unavailable)]
    ");
}

#[test]
fn secrets_stay_out_unless_they_are_allowed() {
    for name in SECRETS {
        assert_eq!(std::env::var_os(name).as_deref(), Some(OsStr::new("hunter2")), "the test has a secret");
    }
    let command = format!("echo \"${{{}-none}} ${{{}-none}}\"", SECRETS[0], SECRETS[1]);
    assert_eq!(Bench::new().text(&command), "none none\n");
    let options = BashOptions { allowed_variables: vec![SECRETS[1].to_owned()], ..BashOptions::default() };
    let bench = Bench::with(options, Some(PermissionMode::DangerFullAccess), false);
    assert_eq!(bench.text(&command), "none hunter2\n");
}

#[test]
fn a_command_knows_its_session() {
    let command = "echo \"$DSH_SHELL $DSH_SESSION_ID ${DSH_SESSION_JSONL-none} $TERM\"";
    assert_eq!(Bench::new().text(command), "1 s1 none dumb\n");
    let bench = Bench::with(BashOptions::default(), Some(PermissionMode::DangerFullAccess), true);
    let log = bench.session.directory().expect("a directory").join("session.jsonl");
    assert_eq!(bench.text(command), format!("1 {} {} dumb\n", bench.session.id().as_str(), log.display()));
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_runs_that_cannot_be_confined() {
    let backend = Choice::Only(Backend::Seatbelt);
    for mode in [Some(PermissionMode::ReadOnly), Some(PermissionMode::WorkspaceWrite), None] {
        let confinement = ConfinementOptions { backend, ..ConfinementOptions::default() };
        let bench = Bench::confined(BashOptions::default(), mode, false, confinement);
        let outcome = bench.run(command_only("touch touched"));
        insta::allow_duplicates! { insta::assert_snapshot!(error_of(&outcome), @"Error: commands cannot be confined here: seatbelt: it is not for this system; until then bash runs only with --permission-mode danger-full-access"); }
        assert_eq!(outcome.error, None);
        assert!(!bench.workspace.join("touched").exists());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_command_changes_what_its_mode_lets_it() {
    if let Err(unavailable) = Confinement::default().sandbox() {
        // The test before this one shows that nothing runs then.
        assert!(!unavailable.0.is_empty());
        return;
    }
    let bench = Bench::with(BashOptions::default(), Some(PermissionMode::WorkspaceWrite), false);
    fs::create_dir(bench.workspace.join(".git")).expect("a folder");
    assert_eq!(bench.text("echo in > f && cat f && touch $TMPDIR/t && echo temporary"), "in\ntemporary\n");
    let outside = bench.workspace.parent().expect("a parent").join("outside");
    for target in
        [outside.display().to_string(), ".git/hooks/pre-commit".to_owned(), ".git/../../outside".to_owned()]
    {
        let text = bench.text(&format!("echo x > {target}"));
        assert!(text.contains("[sandbox: file access denied under workspace-write mode]"), "{text}");
        assert!(text.ends_with("[exit code: 1]"), "{text}");
    }
    assert!(!outside.exists());
    let bench = Bench::with(BashOptions::default(), Some(PermissionMode::ReadOnly), false);
    let text = bench.text("echo x > f");
    assert!(text.contains("[sandbox: file access denied under read-only mode]"), "{text}");
    assert!(!bench.workspace.join("f").exists());
    assert_eq!(bench.text("exit 3"), "(no output)\n[exit code: 3]");
}

#[test]
fn a_command_starts_where_it_is_told_to() {
    let bench = Bench::new();
    let inner = bench.workspace.join("in ner");
    fs::create_dir(&inner).expect("a directory");
    let start = |workdir: Value| {
        text_of(
            &bench.run(json!({ "command": "pwd", "description": "Show the directory", "workdir": workdir })),
        )
    };
    assert_eq!(bench.text("pwd -P"), format!("{}\n", bench.workspace.display()));
    assert_eq!(start(json!("in ner")), format!("{}\n", inner.display()));
    assert_eq!(start(json!(inner.to_string_lossy())), format!("{}\n", inner.display()));
    assert_eq!(start(json!("in ner/..")), format!("{}\n", bench.workspace.display()));
    assert_eq!(start(json!("/")), "/\n");
}

#[test]
fn a_workdir_that_is_not_there_is_named() {
    let bench = Bench::new();
    fs::write(bench.workspace.join("file"), "").expect("a file");
    let refused = ["missing", "file"].map(|workdir| {
        let outcome = bench.run(json!({ "command": "pwd", "description": "Show", "workdir": workdir }));
        error_of(&outcome).replace(&*bench.workspace.to_string_lossy(), "<workspace>")
    });
    insta::assert_snapshot!(refused.join("\n"), @r#"
    Error: cannot use "missing" as workdir: No such file or directory (os error 2); name an existing directory, absolute or relative to <workspace>
    Error: cannot use "file" as workdir: Not a directory (os error 20); name an existing directory, absolute or relative to <workspace>
    "#);
}

#[test]
fn what_cannot_be_run_is_an_error() {
    let bench = Bench::new();
    insta::assert_snapshot!(error_of(&bench.run(json!({ "command": "ls" }))), @r#"Error: invalid arguments: missing required property "description""#);
    let never = json!({ "command": "ls", "description": "List", "timeoutMs": 0 });
    insta::assert_snapshot!(error_of(&bench.run(never)), @r#"Error: invalid arguments: "timeoutMs" must be more than 0 milliseconds (got 0)"#);
    let options = BashOptions { shell: "no-such-shell".to_owned(), ..BashOptions::default() };
    let bench = Bench::with(options, Some(PermissionMode::DangerFullAccess), false);
    insta::assert_snapshot!(error_of(&bench.run(command_only("ls"))), @"Error: cannot start `no-such-shell`: No such file or directory (os error 2); check that it exists, is executable, and can be found through PATH");
}
