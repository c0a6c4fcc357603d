//! The thread that watches one command: starts its supervisor, reads its output, enforces its time, collects it.
//!
//! One thread does all of this with `poll`, so that output is read at full speed, a slow disk under a spill file
//! holds up nothing else, and the thread ends in bounded time once the command was told to end: no read waits for a
//! pipe that somebody else keeps open.

use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::capture::Capture;
use crate::error::ProcessError;
use crate::runner::Supervisor;
use crate::signal::signal_name;
use crate::spec::{CommandSpec, Finished};
use crate::supervise::{KILL_LIMIT, kill_session};
use crate::wire::{End, Report, Request, STOP};

/// How much is read from a pipe at once: what a pipe holds.
const READ_BYTES: usize = 64 * 1024;

/// How long a supervisor may take to read its request.
const SEND_LIMIT: Duration = Duration::from_secs(10);

/// How long output is still read when the command is gone and somebody else keeps its pipe open.
const DRAIN_LIMIT: Duration = Duration::from_millis(200);

/// What a supervisor may take longer than the time it promises, on a busy machine, before it is given up.
const SUPERVISOR_MARGIN: Duration = Duration::from_secs(10);

/// The longest single wait; not every system takes longer ones.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// What the loader of the supervisor may need from Lorimer's environment. Nothing else is passed on: the environment
/// of a process can be read by its children.
const LOADER_VARIABLES: [&str; 2] = ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];

/// All that the thread needs.
pub(crate) struct Job {
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) command: String,
    pub(crate) spec: CommandSpec,
    /// Its end is the order to stop.
    pub(crate) wake: PipeReader,
    pub(crate) stdout: Arc<Mutex<Capture>>,
    pub(crate) stderr: Arc<Mutex<Capture>>,
}

/// What is known at the end of the watch.
enum Outcome {
    Reported(Report),
    /// The supervisor said nothing about the end; this is why.
    Lost(String),
}

/// Why a command was told to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Timeout,
    Cancel,
}

/// Runs the command of a job to its end.
pub(crate) fn watch(job: Job) -> Result<Finished, ProcessError> {
    let Job { supervisor, command, spec, wake, stdout, stderr } = job;
    let started = Instant::now();
    let (mut child, mut control) = start_supervisor(&supervisor, &command)?;
    let timeout_at = spec.timeout_ms.and_then(|ms| started.checked_add(Duration::from_millis(ms)));
    let grace = Duration::from_millis(spec.grace_ms);
    let CommandSpec { argv, cwd, env, .. } = spec;
    let request = Request { argv, cwd, env, grace };
    // A supervisor that does not listen has either said why or is gone; the loop finds out.
    let _ = request.send(&mut control);
    let mut watcher = Watcher {
        control,
        report: Vec::with_capacity(Report::BYTES),
        wake: Some(wake),
        stdout: child.stdout.take(),
        stderr: child.stderr.take(),
        captures: [stdout, stderr],
        buffer: vec![0; READ_BYTES],
        supervisor: Pid::from_child(&child),
        main: None,
        grace,
        timeout_at,
        stop: None,
        give_up_at: None,
        outcome: None,
    };
    let outcome = watcher.run();
    let status = collect(&mut child);
    let outcome = match outcome {
        Outcome::Lost(reason) => {
            if let Some(main) = watcher.main {
                kill_session(main);
            }
            Outcome::Lost(format!("{reason}; {status}"))
        }
        reported @ Outcome::Reported(_) => reported,
    };
    watcher.conclude(outcome, command, request.cwd, started)
}

/// Ends the supervisor, which has nothing left to do, and takes it out of the process table.
fn collect(child: &mut Child) -> String {
    let _ = child.kill();
    match child.wait() {
        Ok(status) => match status.signal() {
            Some(signal) => format!("it was ended by {}", signal_name(signal)),
            None => format!("it ended with {status}"),
        },
        Err(error) => format!("its end cannot be told: {error}"),
    }
}

/// Starts the supervisor in a group of its own, out of reach of the terminal's signals.
fn start_supervisor(supervisor: &Supervisor, command: &str) -> Result<(Child, UnixStream), ProcessError> {
    let failed = |source| ProcessError::Supervisor {
        command: command.to_owned(),
        supervisor: supervisor.program.clone(),
        source,
    };
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    ours.set_write_timeout(Some(SEND_LIMIT)).map_err(failed)?;
    let loader = LOADER_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    let child = Command::new(&supervisor.program)
        .arg0("lorimer")
        .args(&supervisor.args)
        .env_clear()
        .envs(loader)
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    Ok((child, ours))
}

/// The state of the loop.
struct Watcher {
    control: UnixStream,
    /// The report that is arriving.
    report: Vec<u8>,
    wake: Option<PipeReader>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    captures: [Arc<Mutex<Capture>>; 2],
    buffer: Vec<u8>,
    supervisor: Pid,
    /// The main process of the command, once it runs.
    main: Option<Pid>,
    grace: Duration,
    timeout_at: Option<Instant>,
    /// Why the command was told to end, once it was.
    stop: Option<Cause>,
    /// When the loop ends whatever is missing; set once the command was told to end, or has ended.
    give_up_at: Option<Instant>,
    outcome: Option<Outcome>,
}

/// Which sources have something to read.
#[derive(Default)]
struct Ready {
    control: bool,
    wake: bool,
    stdout: bool,
    stderr: bool,
}

impl Watcher {
    /// Watches until the end of the command is known and its output has been read.
    fn run(&mut self) -> Outcome {
        loop {
            let now = Instant::now();
            let is_drained = self.stdout.is_none() && self.stderr.is_none();
            let is_late = self.give_up_at.is_some_and(|at| now >= at);
            match self.outcome.take() {
                Some(lost @ Outcome::Lost(_)) => return lost,
                Some(reported) if is_drained || is_late => return reported,
                None if is_late => return Outcome::Lost("it did not answer in time".to_owned()),
                kept => self.outcome = kept,
            }
            if self.stop.is_none() && self.timeout_at.is_some_and(|at| now >= at) {
                self.tell_to_end(Cause::Timeout, now);
            }
            match self.wait(now) {
                Ok(ready) => self.serve(&ready),
                Err(error) => return Outcome::Lost(format!("waiting for it failed: {error}")),
            }
        }
    }

    /// Sleeps until a source has something to read or a deadline is near.
    fn wait(&self, now: Instant) -> io::Result<Ready> {
        let timeout_at = if self.stop.is_none() { self.timeout_at } else { None };
        let deadline = [timeout_at, self.give_up_at].into_iter().flatten().min();
        // Rounded up, so that a wait never ends just before its time and spins.
        let timeout = deadline.map(|at| at.saturating_duration_since(now) + Duration::from_micros(1));
        let timeout = timeout.map(|timeout| timeout.min(MAX_WAIT));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds = Vec::with_capacity(4);
        let control = self.outcome.is_none().then(|| self.control.as_fd());
        let sources = [
            control,
            self.wake.as_ref().map(AsFd::as_fd),
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
        ];
        fds.extend(sources.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        }
        let mut polled = fds.iter();
        let [control, wake, stdout, stderr] = sources
            .map(|source| source.is_some() && polled.next().is_some_and(|fd| !fd.revents().is_empty()));
        Ok(Ready { control, wake, stdout, stderr })
    }

    fn serve(&mut self, ready: &Ready) {
        if ready.stdout {
            read_some(&mut self.stdout, &mut self.buffer, &self.captures[0]);
        }
        if ready.stderr {
            read_some(&mut self.stderr, &mut self.buffer, &self.captures[1]);
        }
        if ready.wake {
            // Nothing is ever written to it: this is its end.
            self.wake = None;
            if self.stop.is_none() {
                self.tell_to_end(Cause::Cancel, Instant::now());
            }
        }
        if ready.control {
            self.hear();
        }
    }

    /// Tells the supervisor to end the command. The command may have stopped the supervisor, so it is continued.
    fn tell_to_end(&mut self, cause: Cause, now: Instant) {
        self.stop = Some(cause);
        if self.outcome.is_none() {
            self.give_up_at = now.checked_add(self.grace + KILL_LIMIT + SUPERVISOR_MARGIN);
            let _ = self.control.write_all(&[STOP]);
            let _ = rustix::process::kill_process(self.supervisor, Signal::CONT);
        }
    }

    /// Reads what the supervisor says.
    fn hear(&mut self) {
        let mut bytes = [0; Report::BYTES];
        let missing = Report::BYTES - self.report.len();
        match self.control.read(&mut bytes[..missing]) {
            Ok(length @ 1..) => self.report.extend_from_slice(&bytes[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Ok(0) => return self.outcome = Some(Outcome::Lost("it went away".to_owned())),
            Err(error) => return self.outcome = Some(Outcome::Lost(format!("it cannot be heard: {error}"))),
        }
        let Some(report) = self.report.first_chunk::<{ Report::BYTES }>() else { return };
        match Report::decode(report) {
            Some(Report::Started { pid }) => self.main = Pid::from_raw(pid),
            Some(last) => {
                self.outcome = Some(Outcome::Reported(last));
                self.give_up_at = Some(Instant::now() + DRAIN_LIMIT);
            }
            None => self.outcome = Some(Outcome::Lost("it does not speak as a supervisor does".to_owned())),
        }
        self.report.clear();
    }

    /// Turns what is known into what the caller gets.
    fn conclude(
        self,
        outcome: Outcome,
        command: String,
        cwd: std::path::PathBuf,
        started: Instant,
    ) -> Result<Finished, ProcessError> {
        let os_error = io::Error::from_raw_os_error;
        let (end, stopped, survivors) = match outcome {
            Outcome::Reported(Report::Ended { end, stopped, survivors }) => (end, stopped, survivors),
            Outcome::Reported(Report::NoDirectory { errno }) => {
                return Err(ProcessError::WorkingDirectory {
                    program: command,
                    cwd,
                    source: os_error(errno),
                });
            }
            Outcome::Reported(Report::NoProgram { errno }) => {
                return Err(ProcessError::Spawn { program: command, source: os_error(errno) });
            }
            Outcome::Reported(Report::NoSupervision { errno }) => {
                let reason = format!("it could not set itself up: {}", os_error(errno));
                return Err(ProcessError::SupervisorLost { command, reason });
            }
            Outcome::Reported(Report::Started { .. }) => {
                let reason = "it said nothing about the end".to_owned();
                return Err(ProcessError::SupervisorLost { command, reason });
            }
            Outcome::Lost(reason) => return Err(ProcessError::SupervisorLost { command, reason }),
        };
        let [stdout, stderr] =
            self.captures.map(|capture| capture.lock().unwrap_or_else(PoisonError::into_inner).captured());
        Ok(Finished {
            exit_code: if let End::Exit(code) = end { Some(code) } else { None },
            signal: if let End::Signal(signal) = end { Some(signal_name(signal)) } else { None },
            timed_out: stopped && self.stop == Some(Cause::Timeout),
            cancelled: stopped && self.stop == Some(Cause::Cancel),
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            stdout,
            stderr,
            survivors,
        })
    }
}

/// Reads once from a stream that is ready; forgets it at its end.
fn read_some(stream: &mut Option<impl Read>, buffer: &mut [u8], capture: &Mutex<Capture>) {
    let Some(reader) = stream else { return };
    match reader.read(buffer) {
        Ok(length @ 1..) => {
            capture.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..length]);
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
        Ok(0) | Err(_) => *stream = None,
    }
}
