//! What the tests share: running a script, and looking for processes that should be gone.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::ffi::OsString;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lorimer_process::{CommandSpec, Finished, ProcessError, Runner, Supervisor, scrubbed_env};
use tokio_util::sync::CancellationToken;

/// How long anything is waited for before a test fails.
const PATIENCE: Duration = Duration::from_secs(60);

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A number of seconds for `sleep` that no other process on the machine has: it marks the processes of a test.
pub fn marked_seconds() -> String {
    format!("1000.{:07}{:04}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub fn runner() -> Runner {
    Runner::new(Supervisor::this_program().expect("this program"))
}

pub fn env() -> Vec<(OsString, OsString)> {
    scrubbed_env(std::env::vars_os(), &[])
}

pub fn bash(script: &str) -> CommandSpec {
    command(&["bash", "-c", script])
}

pub fn command(argv: &[&str]) -> CommandSpec {
    CommandSpec::new(argv.iter().map(OsString::from).collect(), "/".into(), env())
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(future)
}

pub fn run(spec: CommandSpec) -> Result<Finished, ProcessError> {
    block_on(runner().run(spec, CancellationToken::new()))
}

/// Runs a command, and cancels it as soon as `ready` exists.
pub fn run_and_cancel(spec: CommandSpec, ready: &Path) -> Result<Finished, ProcessError> {
    let cancel = CancellationToken::new();
    block_on(async {
        let runner = runner();
        let running = runner.run(spec, cancel.clone());
        let canceller = async {
            let start = Instant::now();
            while !ready.exists() && start.elapsed() < PATIENCE {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
        };
        tokio::join!(running, canceller).0
    })
}

/// The processes that have `mark` in their command line. Those that only wait to be collected have none.
pub fn marked(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        if !entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(mark) {
            found.push(format!("{} {line}", entry.file_name().to_string_lossy()));
        }
    }
    found
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
