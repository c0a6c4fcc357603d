//! macOS: a profile for `sandbox-exec`. Compiled there only; not tested on the machines that build Lorimer.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::backend::Backend;
use crate::policy::Policy;
use crate::probe::{Probe, Strength};

const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// The arguments that run a program under the profile of a policy.
pub(crate) fn argv(policy: &Policy, argv: Vec<OsString>) -> Vec<OsString> {
    let mut confined = vec![PROGRAM.into(), "-p".into(), profile(policy).into()];
    confined.extend(argv);
    confined
}

/// Later rules win over earlier ones.
fn profile(policy: &Policy) -> String {
    let mut rules = String::from("(version 1)\n(allow default)\n(deny file-write*)\n");
    rules.push_str("(allow file-write* (literal \"/dev/null\") (literal \"/dev/tty\"))\n");
    let mut rule = |verdict: &str, path: &Path| {
        // A failed write into a string cannot happen.
        let _ = writeln!(rules, "({verdict} (subpath {}))", quoted(path));
    };
    policy.writable.iter().for_each(|path| rule("allow file-write*", path));
    policy.read_only.iter().for_each(|path| rule("deny file-write*", path));
    policy.hidden.iter().for_each(|path| rule("deny file-read* file-write*", path));
    if !policy.network {
        rules.push_str("(deny network*)\n");
    }
    rules
}

/// A string of the profile's language.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

/// Runs nothing under a profile.
pub(crate) fn probe(backend: Backend) -> Probe {
    if backend != Backend::Seatbelt || !cfg!(target_os = "macos") {
        return Probe::Fails("it is not for this system".to_owned());
    }
    let mut command = Command::new(PROGRAM);
    command.args(["-p", "(version 1)\n(allow default)", "/usr/bin/true"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Probe::Works(Strength::Full),
        Ok(status) => Probe::Fails(format!("{PROGRAM} ended with {status}")),
        Err(error) => Probe::Fails(format!("{PROGRAM} cannot be started: {error}")),
    }
}
