//! What the supervisor needs from Linux: to be told of ends, to receive orphans, and to find every descendant.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::{Duration, Instant};

use rustix::process::{DumpableBehavior, Pid, Signal};

use super::proc_table::{self, Entry};

/// Ends are announced; there is no need to look regularly.
pub(super) const TICK: Option<Duration> = None;

/// How long the remains of a command without a supervisor are hunted.
const SWEEP_LIMIT: Duration = Duration::from_secs(2);

/// The signal that says that the thread of Lorimer which started the supervisor is gone. The thread may go while
/// Lorimer lives, so this is only a reason to look who the parent is.
const PARENT_SIGNAL: Signal = Signal::TERM;

/// Signals for this process, as something that can be polled.
#[derive(Debug)]
pub(super) struct Events {
    signals: OwnedFd,
    parent: Option<Pid>,
}

impl Events {
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.signals.as_fd())
    }

    /// Forgets what was announced. To be called before looking, so that nothing is missed.
    pub(super) fn clear(&self) {
        let mut info = [0; size_of::<libc::signalfd_siginfo>() * 8];
        while rustix::io::read(&self.signals, &mut info).is_ok_and(|bytes| bytes > 0) {}
    }

    /// Whether this process has been given to another parent, because Lorimer is gone.
    pub(super) fn parent_is_gone(&self) -> bool {
        rustix::process::getppid() != self.parent
    }
}

/// Makes this process a supervisor.
pub(super) fn prepare() -> io::Result<Events> {
    let parent = rustix::process::getppid();
    let signals = block_signals()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::process::set_parent_process_death_signal(Some(PARENT_SIGNAL))?;
    // Keeps the command from looking into this process and its control socket. Not vital.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // SAFETY: the call only marks descriptors of this process, which own nothing that depends on the mark.
    // A kernel that does not know the call leaves descriptors that Lorimer itself had inherited open.
    unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    Ok(Events { signals, parent })
}

/// Blocks every signal, so that none ends or stops this process (apart from SIGKILL and SIGSTOP, which nothing
/// blocks), and makes the interesting ones readable.
fn block_signals() -> io::Result<OwnedFd> {
    // SAFETY: both sets are initialised by the calls before they are read, and the descriptor is new and ours.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut wanted = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut wanted);
        libc::sigaddset(&raw mut wanted, libc::SIGCHLD);
        libc::sigaddset(&raw mut wanted, PARENT_SIGNAL.as_raw());
        let fd = libc::signalfd(-1, &raw const wanted, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// What the command does between fork and exec: it leaves the terminal, leads its own session and group, and dies
/// with the supervisor, even when that is killed.
pub(super) fn become_command(supervisor: Pid) -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == Some(supervisor) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

/// Sends a signal to every descendant of this process.
///
/// Whole groups are signalled, because the system does that in one step that no fork gets between. The command
/// started in a session of its own, so every group found here consists of descendants only.
pub(super) fn signal_tree(_main: Pid, signal: Signal) {
    signal_groups(&own_descendants(), signal);
}

/// Kills the direct children, which every orphan becomes.
pub(super) fn kill_children() {
    for pid in proc_table::own_children().into_iter().filter_map(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

/// Whether nothing is left, given that this process has no children. Orphans would be its children.
pub(super) fn is_gone(_main: Pid) -> bool {
    true
}

/// How many processes are left.
pub(super) fn count_left(_main: Pid) -> u32 {
    let left = own_descendants().iter().filter(|entry| !entry.ended).count();
    u32::try_from(left).unwrap_or(u32::MAX)
}

/// Kills what can be found of a command whose supervisor is gone: the session that `main` led, what descends from
/// it, and nothing else, as orphans no longer come back to us.
pub(crate) fn kill_session(main: Pid) {
    let leader = main.as_raw_nonzero().get();
    let limit = Instant::now() + SWEEP_LIMIT;
    while Instant::now() < limit {
        let all = proc_table::snapshot();
        let is_root = |entry: &Entry| entry.session == leader || entry.group == leader;
        let mut found: Vec<Entry> = all.iter().copied().filter(is_root).collect();
        found.extend(proc_table::descendants(&all, is_root, None));
        found.retain(|entry| !entry.ended);
        if found.is_empty() {
            return;
        }
        signal_groups(&found, Signal::KILL);
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn own_descendants() -> Vec<Entry> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    proc_table::descendants(&proc_table::snapshot(), |_| false, Some(own))
}

fn signal_groups(entries: &[Entry], signal: Signal) {
    let own = rustix::process::getpgrp().as_raw_nonzero().get();
    let groups: BTreeSet<i32> =
        entries.iter().map(|entry| entry.group).filter(|group| *group != own).collect();
    for group in groups.into_iter().filter_map(Pid::from_raw) {
        // A group that is gone, or that belongs to another user, is nothing that could be helped here.
        let _ = rustix::process::kill_process_group(group, signal);
    }
    for pid in entries.iter().filter(|entry| entry.group == own).filter_map(|entry| Pid::from_raw(entry.pid))
    {
        let _ = rustix::process::kill_process(pid, signal);
    }
}
