//! Many commands at once leave nothing in this process. Alone in its program, as it counts what the process has.

#![cfg(target_os = "linux")]

mod support;

use std::fs;

use lorimer_process::{CommandSpec, Finished, ProcessError};
use support::{bash, block_on, command, runner, wait_until};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

lorimer_process::supervise_in_tests!();

fn count(dir: &str) -> usize {
    fs::read_dir(dir).expect("a directory of /proc").count()
}

fn has_children() -> bool {
    let tasks = fs::read_dir("/proc/self/task").expect("the threads").flatten();
    tasks.into_iter().any(|task| {
        fs::read_to_string(task.path().join("children")).is_ok_and(|children| !children.trim().is_empty())
    })
}

fn spec(n: usize) -> CommandSpec {
    let mut spec = match n % 4 {
        0 => bash(&format!("echo {n}")),
        1 => bash("sleep 1000"),
        2 => command(&["no-such-program-here"]),
        _ => bash(&format!("echo {n}; (sleep 1000 &)")),
    };
    spec.timeout_ms = (n % 4 == 1).then_some(100);
    spec
}

fn check(n: usize, result: Result<Finished, ProcessError>) {
    match (n % 4, result) {
        (1, Ok(finished)) => assert!(finished.timed_out),
        (2, result) => assert!(matches!(result, Err(ProcessError::Spawn { .. }))),
        (_, result) => assert_eq!(result.expect("it runs").stdout.text, format!("{n}\n")),
    }
}

#[test]
fn many_commands_at_once_leak_nothing() {
    let (descriptors, threads) = (count("/proc/self/fd"), count("/proc/self/task"));
    block_on(async {
        for _ in 0..3 {
            let mut all = JoinSet::new();
            for n in 0..40 {
                let runner = runner();
                all.spawn(async move { (n, runner.run(spec(n), CancellationToken::new()).await) });
            }
            // The last ones are dropped on the way.
            for _ in 0..35 {
                let (n, result) = all.join_next().await.expect("a command").expect("no panic");
                check(n, result);
            }
        }
    });
    wait_until("no process is left", || !has_children());
    wait_until("no thread is left", || count("/proc/self/task") <= threads);
    wait_until("no descriptor is left", || count("/proc/self/fd") <= descriptors);
}
