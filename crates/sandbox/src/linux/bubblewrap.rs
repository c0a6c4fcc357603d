//! Bubblewrap around the helper.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::helper::filter_argv;
use super::sockets::control_sockets;
use crate::policy::Policy;

/// Where bubblewrap is looked for. `PATH` may name folders that commands can write in.
const PLACES: [&str; 4] =
    ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// The program; where it would be when it is not installed.
fn program() -> &'static str {
    PLACES.into_iter().find(|place| Path::new(place).is_file()).unwrap_or(PLACES[0])
}

/// The arguments that run a program held to a policy.
pub(crate) fn argv(policy: &Policy, argv: Vec<OsString>) -> Vec<OsString> {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"));
    let mut args = Args(vec![program().into()]);
    args.words(&["--unshare-pid", "--unshare-ipc", "--die-with-parent"]);
    if policy.is_open() {
        args.words(&["--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]);
    } else {
        args.words(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]);
    }
    if !policy.network {
        args.words(&["--unshare-net"]);
    }
    // What is in the old `/tmp` and still needed comes back into the new one.
    if own.starts_with("/tmp") && !policy.is_open() {
        args.path("--ro-bind", &own);
    }
    // A folder that is a mount cannot be moved.
    let writable = policy.writable.iter().filter(|path| path.as_os_str() != "/");
    writable.chain(&policy.pinned()).for_each(|path| args.path("--bind-try", path));
    policy.read_only.iter().for_each(|path| args.path("--ro-bind-try", path));
    for path in policy.hidden.iter().chain(&control_sockets()).filter(|path| path.exists()) {
        args.hide(path);
    }
    args.words(&["--cap-drop", "ALL", "--"]);
    args.0.extend(filter_argv(own.into_os_string(), policy.network, argv));
    args.0
}

struct Args(Vec<OsString>);

impl Args {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    /// A path that is mounted where it is.
    fn path(&mut self, flag: &str, path: &Path) {
        self.0.extend([flag.into(), path.into(), path.into()]);
    }

    fn hide(&mut self, path: &Path) {
        if path.is_dir() {
            self.0.extend(["--tmpfs".into(), path.into(), "--remount-ro".into(), path.into()]);
        } else {
            self.0.extend(["--ro-bind".into(), "/dev/null".into(), path.into()]);
        }
    }
}
