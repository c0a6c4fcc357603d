//! Nothing of a command stays behind, however it ends and whatever it tries.

#![cfg(target_os = "linux")]

mod support;

use std::fs;
use std::process::{Command, Stdio};

use lorimer_process::{CommandSpec, ProcessError};
use support::{bash, block_on, marked, marked_seconds, run, run_and_cancel, runner, wait_until};

lorimer_process::supervise_in_tests!();

/// Ways to leave a process behind; `$S` is how long it sleeps.
const ESCAPES: [&str; 6] = [
    "sleep $S &",
    "(sleep $S &)",
    "setsid sleep $S &",
    "setsid -f sleep $S",
    "setsid -f bash -c 'trap \"\" TERM HUP INT; (setsid -f sleep '$S'); while :; do sleep '$S'; done'",
    "nohup bash -c 'trap \"\" TERM; sleep '$S' & disown; exec >/dev/null 2>&1 </dev/null; wait' &",
];

fn escape(way: &str, mark: &str, then: &str) -> CommandSpec {
    bash(&format!("S={mark}\n{way}\n{then}"))
}

fn assert_gone(mark: &str, way: &str) {
    assert_eq!(marked(mark), Vec::<String>::new(), "left behind by: {way}");
}

#[test]
fn nothing_is_left_after_a_normal_end() {
    for way in ESCAPES {
        let mark = marked_seconds();
        let finished = run(escape(way, &mark, "echo done; exit 3")).expect("it runs");
        assert_gone(&mark, way);
        assert_eq!((finished.exit_code, finished.stdout.text.as_str()), (Some(3), "done\n"), "{way}");
    }
}

#[test]
fn nothing_is_left_after_a_timeout() {
    for way in ESCAPES {
        let mark = marked_seconds();
        let mut spec = escape(way, &mark, "sleep $S");
        spec.timeout_ms = Some(400);
        spec.grace_ms = 30_000;
        let finished = run(spec).expect("it runs");
        assert_gone(&mark, way);
        assert!(finished.timed_out && !finished.cancelled, "{way}");
        assert_eq!(finished.signal.as_deref(), Some("SIGTERM"), "{way}");
    }
}

#[test]
fn nothing_is_left_after_a_cancel() {
    for way in ESCAPES {
        let dir = tempfile::tempdir().expect("a directory");
        let ready = dir.path().join("ready");
        let mark = marked_seconds();
        let mut spec = escape(way, &mark, &format!("touch {}; sleep $S", ready.display()));
        spec.grace_ms = 200;
        let finished = run_and_cancel(spec, &ready).expect("it runs");
        assert_gone(&mark, way);
        assert!(finished.cancelled && !finished.timed_out, "{way}");
    }
}

#[test]
fn nothing_is_left_when_lorimer_is_killed() {
    for way in ESCAPES {
        let dir = tempfile::tempdir().expect("a directory");
        let ready = dir.path().join("ready");
        let mark = marked_seconds();
        let script = format!("S={mark}\n{way}\ntouch {}; sleep $S", ready.display());
        let mut lorimer = Command::new(env!("CARGO_BIN_EXE_process-test-helper"))
            .arg(script)
            .stdout(Stdio::null())
            .spawn()
            .expect("the helper starts");
        wait_until("the command runs", || ready.exists());
        lorimer.kill().expect("SIGKILL");
        lorimer.wait().expect("its end");
        wait_until("everything is gone", || marked(&mark).is_empty());
    }
}

#[test]
fn nothing_is_left_when_the_future_is_dropped() {
    let mark = marked_seconds();
    block_on(async {
        let runner = runner();
        let mut future = Box::pin(
            runner.run(escape(ESCAPES[3], &mark, "sleep $S"), tokio_util::sync::CancellationToken::new()),
        );
        let start = tokio::time::sleep(std::time::Duration::from_millis(200));
        tokio::select! {
            _ = &mut future => panic!("it must not end"),
            () = start => {}
        }
    });
    wait_until("everything is gone", || marked(&mark).is_empty());
}

#[test]
fn a_command_that_ignores_sigterm_is_killed() {
    let mark = marked_seconds();
    let mut spec = bash(&format!("trap '' TERM INT HUP; while :; do sleep {mark}; done"));
    spec.timeout_ms = Some(1500);
    spec.grace_ms = 200;
    let finished = run(spec).expect("it runs");
    assert_gone(&mark, "trap");
    assert_eq!((finished.timed_out, finished.signal.as_deref()), (true, Some("SIGKILL")));
}

#[test]
fn a_command_may_clean_up_when_its_time_is_over() {
    let mut spec = bash("trap 'echo bye; exit 4' TERM; while :; do sleep 0.05; done");
    spec.timeout_ms = Some(1500);
    spec.grace_ms = 30_000;
    let finished = run(spec).expect("it runs");
    assert_eq!((finished.timed_out, finished.exit_code), (true, Some(4)));
    assert_eq!(finished.stdout.text, "bye\n");
}

#[test]
fn the_last_of_a_pipeline_may_finish_what_it_writes() {
    let finished = run(bash("echo text > >(cat)")).expect("it runs");
    assert_eq!(finished.stdout.text, "text\n");
}

#[test]
fn a_stopped_command_is_ended() {
    let mut spec = bash("kill -STOP $$");
    spec.timeout_ms = Some(300);
    spec.grace_ms = 30_000;
    let finished = run(spec).expect("it runs");
    assert_eq!((finished.timed_out, finished.signal.as_deref()), (true, Some("SIGTERM")));
}

#[test]
fn a_stopped_supervisor_is_continued() {
    let mark = marked_seconds();
    let mut spec = bash(&format!("kill -STOP $PPID; sleep {mark}"));
    spec.timeout_ms = Some(300);
    let finished = run(spec).expect("it runs");
    assert_gone(&mark, "stopped supervisor");
    assert!(finished.timed_out);
}

#[test]
fn a_supervisor_ignores_the_signals_of_its_command() {
    let finished =
        run(bash("kill -TERM $PPID; kill -HUP $PPID; kill -TSTP $PPID; kill -USR1 $PPID; echo fine"));
    assert_eq!(finished.expect("it runs").stdout.text, "fine\n");
}

#[test]
fn a_killed_supervisor_is_an_error_and_its_command_is_killed() {
    let mark = marked_seconds();
    let script = format!("(trap '' TERM; sleep {mark}; sleep {mark}) & kill -KILL $PPID; sleep {mark}");
    let error = run(bash(&script)).expect_err("the end is not known");
    assert!(matches!(error, ProcessError::SupervisorLost { .. }), "{error}");
    assert!(error.to_string().contains("SIGKILL"), "{error}");
    wait_until("everything is gone", || marked(&mark).is_empty());
}

#[test]
fn a_chain_that_starts_itself_anew_is_broken() {
    let dir = tempfile::tempdir().expect("a directory");
    let link = dir.path().join("link.sh");
    let stop = dir.path().join("stop");
    // Each link leaves the session, starts the next one, and ends. The file is only a way out for a failed test.
    let script = format!("trap '' TERM HUP\n[ -e {} ] || setsid sh {} &\n", stop.display(), link.display());
    fs::write(&link, script).expect("the script");
    let mut spec = bash(&format!("sh {} & sleep 0.2; exit 0", link.display()));
    spec.timeout_ms = Some(30_000);
    let finished = run(spec);
    let left = marked(&link.display().to_string());
    fs::write(&stop, b"").expect("the way out");
    let finished = finished.expect("it runs");
    assert_eq!((finished.exit_code, finished.survivors), (Some(0), 0));
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_bomb_of_processes_is_defused() {
    let dir = tempfile::tempdir().expect("a directory");
    let bomb = dir.path().join("bomb.sh");
    // Every process starts two more, down to a depth that a machine can bear, and stays.
    let script = format!(
        "trap '' TERM HUP\nif [ $1 -gt 0 ]; then for i in 1 2; do setsid sh {0} $(($1 - 1)) & done; fi\nwait; while :; do sleep 1; done\n",
        bomb.display()
    );
    fs::write(&bomb, script).expect("the script");
    let mut spec = bash(&format!("sh {} 6", bomb.display()));
    spec.timeout_ms = Some(250);
    spec.grace_ms = 50;
    let finished = run(spec).expect("it runs");
    assert_eq!(marked(&bomb.display().to_string()), Vec::<String>::new());
    assert!(finished.timed_out && finished.survivors == 0);
}
