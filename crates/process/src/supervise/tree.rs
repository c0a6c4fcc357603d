//! The loop of the supervisor: from the start of a command until nothing of it is left.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::platform;
use crate::wire::{End, Report};

/// How long what a command left behind may go on by itself once the command has ended: time for the last process of
/// a pipeline to write what it has.
const LINGER: Duration = Duration::from_millis(100);

/// How long what is left has between SIGTERM and SIGKILL, when the command itself has ended.
const LEFTOVER_GRACE: Duration = Duration::from_millis(300);

/// How long a command has between SIGTERM and SIGKILL at most, when Lorimer is gone.
const ORPHAN_GRACE: Duration = Duration::from_millis(1000);

/// How long killing is repeated. Only a process that cannot be killed lasts longer.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// The pause between two rounds of killing.
const KILL_PAUSE: Duration = Duration::from_millis(2);

/// The longest single wait; not every system takes longer ones.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// How many quick looks at the direct children follow a full round: a chain of processes that keep replacing
/// themselves is too fast for a walk over the process table.
const QUICK_ROUNDS: u32 = 50;

/// A command and everything it started.
pub(super) struct Tree {
    main: Pid,
    grace: Duration,
    events: platform::Events,
    /// `None` once Lorimer is gone.
    control: Option<UnixStream>,
    end: Option<End>,
    gone: bool,
    /// Whether the end was asked for before the command ended by itself.
    stopped: bool,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The command runs.
    Running,
    /// The command has ended by itself; what it left has until then before it is told to end.
    Lingering(Instant),
    /// All of it was told to end and has until then before it is killed.
    Ending(Instant),
}

impl Tree {
    pub(super) fn new(main: Pid, grace: Duration, events: platform::Events, control: UnixStream) -> Self {
        let control = Some(control);
        Self { main, grace, events, control, end: None, gone: false, stopped: false, phase: Phase::Running }
    }

    /// Waits for the end, enforces it where needed, and reports it.
    pub(super) fn watch(mut self) -> io::Result<()> {
        loop {
            self.reap();
            if self.gone {
                break;
            }
            let now = Instant::now();
            match self.phase {
                Phase::Running if self.end.is_some() => self.phase = Phase::Lingering(now + LINGER),
                Phase::Lingering(until) if now >= until => self.ask_to_end(LEFTOVER_GRACE),
                Phase::Ending(until) if now >= until => break,
                Phase::Ending(until) if self.end.is_some() => {
                    self.phase = Phase::Ending(until.min(now + LEFTOVER_GRACE));
                }
                _ => {}
            }
            self.wait(now)?;
        }
        let survivors = if self.gone { 0 } else { self.kill_all() };
        let end = self.end.unwrap_or(End::Unknown);
        match self.control {
            Some(mut control) => {
                control.write_all(&Report::Ended { end, stopped: self.stopped, survivors }.encode())
            }
            None => Ok(()),
        }
    }

    /// Sleeps until a process ends, Lorimer says something, or the phase is over.
    fn wait(&mut self, now: Instant) -> io::Result<()> {
        let until = match self.phase {
            Phase::Running => None,
            Phase::Lingering(until) | Phase::Ending(until) => Some(until.saturating_duration_since(now)),
        };
        if poll_either(self.control.as_ref(), &self.events, until)? {
            self.listen();
        }
        if self.events.parent_is_gone() && self.control.take().is_some() {
            self.stop(ORPHAN_GRACE);
        }
        Ok(())
    }

    /// Reads what Lorimer says, which is either a stop or its own end.
    fn listen(&mut self) {
        let Some(control) = &mut self.control else { return };
        let mut said = [0; 1];
        match control.read(&mut said) {
            Ok(1..) => self.stop(self.grace),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => {
                self.control = None;
                self.stop(ORPHAN_GRACE.min(self.grace));
            }
        }
    }

    /// Ends the command, or hurries when it is ending already.
    fn stop(&mut self, grace: Duration) {
        self.stopped |= self.end.is_none();
        match self.phase {
            Phase::Running => self.ask_to_end(grace),
            Phase::Lingering(_) => self.ask_to_end(grace.min(LEFTOVER_GRACE)),
            Phase::Ending(until) => self.phase = Phase::Ending(until.min(Instant::now() + grace)),
        }
    }

    /// Tells all of it to end. A stopped process has to be continued to hear that.
    fn ask_to_end(&mut self, grace: Duration) {
        platform::signal_tree(self.main, Signal::TERM);
        platform::signal_tree(self.main, Signal::CONT);
        self.phase = Phase::Ending(Instant::now() + grace);
    }

    /// Collects every process that has ended.
    fn reap(&mut self) {
        self.events.clear();
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.end = Some(end_of(status)),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return,
                Err(_no_children) => {
                    self.end.get_or_insert(End::Unknown);
                    self.gone = platform::is_gone(self.main);
                    return;
                }
            }
        }
    }

    /// Kills until nothing is left. Gives the number of processes that cannot be killed.
    fn kill_all(&mut self) -> u32 {
        let limit = Instant::now() + KILL_LIMIT;
        loop {
            platform::signal_tree(self.main, Signal::KILL);
            for _ in 0..QUICK_ROUNDS {
                self.reap();
                if self.gone {
                    return 0;
                }
                platform::kill_children();
            }
            if Instant::now() >= limit {
                return platform::count_left(self.main);
            }
            let _ = poll_either(None, &self.events, Some(KILL_PAUSE));
        }
    }
}

fn end_of(status: WaitStatus) -> End {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => End::Exit(code),
        (None, Some(signal)) => End::Signal(signal),
        (None, None) => End::Unknown,
    }
}

/// Waits for either source, and says whether Lorimer has something to say.
fn poll_either(
    control: Option<&UnixStream>,
    events: &platform::Events,
    timeout: Option<Duration>,
) -> io::Result<bool> {
    let mut fds = Vec::with_capacity(2);
    fds.extend(control.map(|control| PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN)));
    fds.extend(events.fd().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let timeout = match (timeout, platform::TICK) {
        (Some(timeout), Some(tick)) => Some(timeout.min(tick)),
        (timeout, tick) => timeout.or(tick),
    };
    // Rounded up, so that a wait never ends just before its time and spins.
    let timeout = timeout.map(|timeout| timeout.min(MAX_WAIT) + Duration::from_micros(1));
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => Ok(control.is_some() && fds.first().is_some_and(|fd| !fd.revents().is_empty())),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
