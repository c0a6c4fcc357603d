//! How a command ends, what it gets, and what is kept of what it prints.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use lorimer_process::{CommandSpec, ProcessError, Runner, Supervisor, scrubbed_env, set_variable};
use support::{bash, block_on, command, run, runner, wait_until};
use tokio_util::sync::CancellationToken;

lorimer_process::supervise_in_tests!();

#[test]
fn exit_codes_are_reported() {
    for code in [0, 1, 7, 255] {
        let finished = run(bash(&format!("exit {code}"))).expect("it runs");
        assert_eq!((finished.exit_code, finished.signal), (Some(code), None));
        assert!(!finished.timed_out && !finished.cancelled && finished.survivors == 0);
    }
}

#[test]
fn signals_are_reported_by_name() {
    for signal in ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGINT"] {
        let finished = run(bash(&format!("kill -{} $$", &signal[3..]))).expect("it runs");
        assert_eq!((finished.exit_code, finished.signal.as_deref()), (None, Some(signal)));
    }
}

#[test]
fn the_two_streams_stay_apart() {
    let finished = run(bash("echo out; echo err >&2; printf 'ä€😀'")).expect("it runs");
    assert_eq!(finished.stdout.text, "out\nä€😀");
    assert_eq!(finished.stderr.text, "err\n");
    assert!(!finished.stdout.truncated);
}

#[test]
fn standard_input_is_empty_and_there_is_no_terminal() {
    let finished = run(bash("cat; cat /dev/tty")).expect("it runs");
    assert_eq!(finished.stdout.text, "");
    assert_eq!(finished.exit_code, Some(1));
}

#[test]
#[cfg(target_os = "linux")]
fn no_descriptor_of_ours_reaches_the_command() {
    let _kept_open = std::os::unix::net::UnixStream::pair().expect("a pair");
    let finished = run(command(&["ls", "/proc/self/fd"])).expect("it runs");
    assert_eq!(finished.stdout.text, "0\n1\n2\n3\n", "3 is the directory that is listed");
}

#[test]
#[cfg(target_os = "linux")]
fn signals_are_neither_blocked_nor_ignored() {
    let finished = run(command(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"])).expect("it runs");
    let sets = finished.stdout.text.split_ascii_whitespace().skip(1).step_by(2);
    // The C library keeps signals above 31 to itself or leaves them to programs that know why they change them.
    let sets: Vec<u64> =
        sets.map(|set| u64::from_str_radix(set, 16).expect("a mask") & 0x7FFF_FFFF).collect();
    assert_eq!(sets, [0, 0]);
}

#[test]
fn the_directory_is_the_one_asked_for() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().canonicalize().expect("its path");
    let mut spec = bash("pwd -P");
    spec.cwd = dir.clone();
    assert_eq!(run(spec).expect("it runs").stdout.text.trim_end(), dir.to_string_lossy());
}

#[test]
fn long_output_keeps_its_ends_and_is_spilled_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut spec = bash("seq 1 1500000; seq 1 20000 >&2");
    spec.capture.spill_dir = Some(dir.path().join("spill"));
    let finished = run(spec).expect("it runs");
    let whole: String = (1..=1_500_000).map(|n| format!("{n}\n")).collect();
    let out = finished.stdout;
    assert_eq!(out.total_bytes, whole.len() as u64);
    assert_eq!(out.omitted_bytes, whole.len() as u64 - 64_000);
    assert!(out.truncated);
    let line = format!("\n[… {} bytes omitted …]\n", out.omitted_bytes);
    let (head, tail) = out.text.split_once(&line).expect("the omission has a line");
    assert_eq!(head, &whole[..16_000]);
    assert_eq!(tail, &whole[whole.len() - 48_000..]);
    let path = out.spill_path.expect("a spill file");
    assert!(fs::read(&path).expect("its bytes") == whole.as_bytes(), "the spill file is the whole stream");
    assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
    assert!(finished.stderr.spill_path.is_some_and(|other| other != path));
}

#[test]
fn output_without_an_end_is_bounded_and_stopped() {
    let mut spec = command(&["yes"]);
    spec.timeout_ms = Some(300);
    let finished = run(spec).expect("it runs");
    assert!(finished.timed_out);
    assert!(finished.stdout.text.len() < 65_000);
    assert_eq!(finished.stdout.spill_path, None);
}

#[test]
fn a_spill_that_fails_does_not_fail_the_command() {
    let mut spec = bash("seq 1 100000");
    spec.capture.spill_dir = Some("/proc/nowhere".into());
    let finished = run(spec).expect("it runs");
    assert_eq!((finished.exit_code, finished.stdout.spill_path), (Some(0), None));
    assert!(finished.stdout.truncated);
}

#[test]
fn secrets_do_not_reach_the_command() {
    let ambient =
        [("PATH", "/usr/bin:/bin"), ("X_API_KEY", "hunter2"), ("GH_TOKEN", "hunter2"), ("TERM", "xterm")];
    let mut env = scrubbed_env(ambient.map(|(n, v)| (n.into(), v.into())).into_iter(), &[]);
    set_variable(&mut env, "EXTRA", "1");
    let spec = CommandSpec::new(vec!["env".into()], "/".into(), env);
    let text = run(spec).expect("it runs").stdout.text;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["EXTRA=1", "GIT_PAGER=cat", "NO_COLOR=1", "PAGER=cat", "PATH=/usr/bin:/bin", "TERM=dumb"]
    );
}

#[test]
#[cfg(target_os = "linux")]
fn the_supervisor_has_no_secrets_either() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_process-test-helper"))
        .arg("env; tr '\\0' '\\n' < /proc/$PPID/environ; tr '\\0' ' ' < /proc/$PPID/cmdline")
        .env("SOME_TOKEN", "hunter2")
        .output()
        .expect("the helper runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("lorimer --internal supervise"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_missing_directory_is_named() {
    let mut spec = bash("true");
    spec.cwd = "/no/such/directory".into();
    let error = run(spec).expect_err("it cannot run");
    assert!(matches!(&error, ProcessError::WorkingDirectory { source, .. }
        if source.kind() == std::io::ErrorKind::NotFound));
    assert!(error.to_string().contains("/no/such/directory"), "{error}");
}

#[test]
fn a_missing_program_is_named() {
    let error = run(command(&["no-such-program-here", "x"])).expect_err("it cannot run");
    assert!(matches!(&error, ProcessError::Spawn { source, .. }
        if source.kind() == std::io::ErrorKind::NotFound));
    assert!(error.to_string().contains("`no-such-program-here`"), "{error}");
    let error = run(command(&["/etc/passwd"])).expect_err("it cannot run");
    assert!(matches!(&error, ProcessError::Spawn { source, .. }
        if source.kind() == std::io::ErrorKind::PermissionDenied));
}

#[test]
fn nonsense_is_refused() {
    let mut no_name = bash("true");
    no_name.env.push(("".into(), "x".into()));
    for spec in [command(&[]), command(&[""]), command(&["echo", "a\0b"]), no_name] {
        assert!(matches!(run(spec), Err(ProcessError::InvalidSpec { .. })));
    }
}

#[test]
fn too_long_arguments_are_an_error_and_long_ones_are_not() {
    let long = "x".repeat(100_000);
    let finished = run(command(&["printf", "%s", &long, &long, &long])).expect("it runs");
    assert_eq!(finished.stdout.total_bytes, 300_000);
    let error = run(command(&["printf", &"x".repeat(5_000_000)])).expect_err("it cannot run");
    assert!(matches!(error, ProcessError::Spawn { .. }), "{error}");
}

#[test]
fn a_program_that_is_no_supervisor_is_found_out() {
    for (program, args) in [("true", vec![]), ("echo", vec!["hello, this is not a supervisor".into()])] {
        let supervisor = Supervisor { program: program.into(), args };
        let result = block_on(Runner::new(supervisor).run(bash("true"), CancellationToken::new()));
        assert!(matches!(result, Err(ProcessError::SupervisorLost { .. })));
    }
    let supervisor = Supervisor { program: "/no/such/supervisor".into(), args: Vec::new() };
    let result = block_on(Runner::new(supervisor).run(bash("true"), CancellationToken::new()));
    assert!(matches!(result, Err(ProcessError::Supervisor { .. })));
}

#[test]
fn output_can_be_read_while_the_command_runs() {
    let dir = tempfile::tempdir().expect("a directory");
    let go_on = dir.path().join("go-on");
    let script = format!("echo first; until [ -e {} ]; do sleep 0.01; done; echo second", go_on.display());
    let mut running = runner().start(bash(&script)).expect("it starts");
    wait_until("the first line is there", || running.output().0.text == "first\n");
    fs::write(&go_on, b"").expect("the file");
    let finished = block_on(running.wait()).expect("it runs");
    assert_eq!(finished.stdout.text, "first\nsecond\n");
}

#[test]
fn a_command_cancelled_beforehand_is_not_started() {
    let dir = tempfile::tempdir().expect("a directory");
    let trace = dir.path().join("trace");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let spec = bash(&format!("touch {}", trace.display()));
    let finished = block_on(runner().run(spec, cancel)).expect("no error");
    assert!(finished.cancelled && !trace.exists());
}
