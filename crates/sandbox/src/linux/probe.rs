//! Trying a backend on a child that does nothing.

use std::ffi::OsString;
use std::process::{Command, Output, Stdio};

use super::{bubblewrap, helper};
use crate::backend::Backend;
use crate::policy::Policy;
use crate::probe::{Probe, Strength};
use crate::{CONFINE_ARGS, HELPER_SPEAKER};

pub(crate) fn probe(backend: Backend) -> Probe {
    match backend {
        Backend::Landlock => landlock(),
        Backend::Bubblewrap => bubblewrap(),
        Backend::Seatbelt => Probe::Fails("it is not for this system".to_owned()),
    }
}

fn landlock() -> Probe {
    let args = CONFINE_ARGS.into_iter().chain([helper::PROBE]).map(OsString::from);
    let writable = Policy { writable: vec![std::env::temp_dir()], ..Policy::default() };
    match run("/proc/self/exe".into(), args.chain(writable.to_args())) {
        Ok(output) if output.status.success() => {
            let gaps = String::from_utf8_lossy(&output.stdout);
            let gaps: Vec<String> = gaps.lines().map(str::to_owned).collect();
            Probe::Works(if gaps.is_empty() { Strength::Full } else { Strength::Partial(gaps) })
        }
        Ok(output) => Probe::Fails(first_line(&output)),
        Err(error) => Probe::Fails(error.to_string()),
    }
}

fn bubblewrap() -> Probe {
    let argv = bubblewrap::argv(&Policy::default(), vec!["true".into()]);
    let mut argv = argv.into_iter();
    let program = argv.next().unwrap_or_default();
    match run(program, argv) {
        Ok(output) if output.status.success() => Probe::Works(Strength::Full),
        Ok(output) => Probe::Fails(first_line(&output)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Probe::Fails("bwrap is not in /usr/bin or /usr/local/bin; install bubblewrap".to_owned())
        }
        Err(error) => Probe::Fails(error.to_string()),
    }
}

fn run(program: OsString, args: impl Iterator<Item = OsString>) -> std::io::Result<Output> {
    Command::new(program).args(args).current_dir("/").stdin(Stdio::null()).output()
}

fn first_line(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().next().unwrap_or_default();
    match line.strip_prefix(HELPER_SPEAKER).unwrap_or(line) {
        "" => format!("its helper ended with {}", output.status),
        line => line.to_owned(),
    }
}
