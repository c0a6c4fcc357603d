//! What the supervisor makes do with where there is no Linux: the process group of the command.
//!
//! A child that calls `setsid` or `setpgid` may escape here.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::process::{Pid, Signal};

/// Nothing announces the end of a child here, so the supervisor looks this often.
pub(super) const TICK: Option<Duration> = Some(Duration::from_millis(10));

/// Where announcements would come from.
#[derive(Debug)]
pub(super) struct Events {
    parent: Option<Pid>,
}

impl Events {
    #[allow(clippy::unused_self, reason = "same shape as on Linux")]
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    pub(super) fn clear(&self) {}

    /// Whether this process has been given to another parent, because Lorimer is gone.
    pub(super) fn parent_is_gone(&self) -> bool {
        rustix::process::getppid() != self.parent
    }
}

/// Makes this process a supervisor that the usual signals do not end.
pub(super) fn prepare() -> io::Result<Events> {
    let parent = rustix::process::getppid();
    // SAFETY: the set is initialised by the first call before the second one reads it.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(Events { parent })
}

/// What the command does between fork and exec: it leaves the terminal and leads its own session and group.
pub(super) fn become_command(_supervisor: Pid) -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// Sends a signal to the group of the command.
pub(super) fn signal_tree(main: Pid, signal: Signal) {
    let _ = rustix::process::kill_process_group(main, signal);
}

/// The group has been killed in one step already.
pub(super) fn kill_children() {}

/// Whether nothing is left of the group, given that this process has no children.
pub(super) fn is_gone(main: Pid) -> bool {
    rustix::process::test_kill_process_group(main).is_err()
}

/// Whether something is left; how many cannot be told.
pub(super) fn count_left(main: Pid) -> u32 {
    u32::from(!is_gone(main))
}

/// Kills the group of a command whose supervisor is gone.
pub(crate) fn kill_session(main: Pid) {
    signal_tree(main, Signal::KILL);
}
