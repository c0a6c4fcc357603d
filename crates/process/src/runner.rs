//! Running commands from asynchronous code.
//!
//! Each command has one thread that watches it (see [`crate::watch`]); what is here only starts that thread, tells
//! it to stop, and waits for its result. What must hold: however a caller lets go of a command, by cancelling, by
//! dropping the future, or by ending, the command and everything it started is gone soon after.

use std::ffi::OsString;
use std::io::PipeWriter;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::capture::Capture;
use crate::error::ProcessError;
use crate::spec::{Captured, CommandSpec, Finished};
use crate::supervise::SUPERVISE_ARGS;
use crate::watch::{Job, watch};

/// The stack of a watching thread: its buffers are on the heap.
const WATCHER_STACK_BYTES: usize = 256 * 1024;

/// How a supervisor is started: a program that calls [`crate::supervise_if_asked`], or otherwise ends up in
/// [`crate::supervise_main`], when it is given these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    /// The program to start.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl Supervisor {
    /// This very program, whose `main` has to call [`crate::supervise_if_asked`] first.
    ///
    /// On Linux this also works after the file of the program was replaced or removed.
    ///
    /// # Errors
    ///
    /// When the system cannot tell which program this is; never on Linux.
    pub fn this_program() -> Result<Self, ProcessError> {
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe().map_err(|source| ProcessError::Supervisor {
                command: "any command".to_owned(),
                supervisor: PathBuf::from("(this program)"),
                source,
            })?
        };
        Ok(Self { program, args: SUPERVISE_ARGS.map(OsString::from).to_vec() })
    }
}

/// Runs commands, each below a supervisor of its own.
#[derive(Debug, Clone)]
pub struct Runner {
    supervisor: Arc<Supervisor>,
}

impl Runner {
    /// A runner that puts commands below this supervisor.
    #[must_use]
    pub fn new(supervisor: Supervisor) -> Self {
        Self { supervisor: Arc::new(supervisor) }
    }

    /// Runs a command to its end, or until `cancel` is cancelled.
    ///
    /// A cancelled command is not an error: it has ended when this returns, with [`Finished::cancelled`] set. When
    /// the future is dropped, the command is ended in the background.
    ///
    /// # Errors
    ///
    /// When the command could not be started, or nothing is known about its end.
    pub async fn run(&self, spec: CommandSpec, cancel: CancellationToken) -> Result<Finished, ProcessError> {
        if cancel.is_cancelled() {
            return Ok(never_started());
        }
        let mut running = self.start(spec)?;
        tokio::select! {
            biased;
            finished = running.wait() => return finished,
            () = cancel.cancelled() => running.stop(),
        }
        running.wait().await
    }

    /// Starts a command and lets it run. Most failures to start show only in [`Running::wait`].
    ///
    /// # Errors
    ///
    /// When the specification is invalid, or there are no resources to watch another command.
    pub fn start(&self, spec: CommandSpec) -> Result<Running, ProcessError> {
        check(&spec)?;
        let command = display_name(&spec);
        let no_resources = |source| ProcessError::Resources { command: command.clone(), source };
        let (wake, stop) = std::io::pipe().map_err(no_resources)?;
        let stdout = Arc::new(Mutex::new(Capture::new("stdout", &spec.capture)));
        let stderr = Arc::new(Mutex::new(Capture::new("stderr", &spec.capture)));
        let (tell, result) = oneshot::channel();
        let job = Job {
            supervisor: Arc::clone(&self.supervisor),
            command: command.clone(),
            spec,
            wake,
            stdout: Arc::clone(&stdout),
            stderr: Arc::clone(&stderr),
        };
        std::thread::Builder::new()
            .name("command".to_owned())
            .stack_size(WATCHER_STACK_BYTES)
            .spawn(move || {
                // Nobody listens when the caller dropped the command; then its result is of no interest.
                let _ = tell.send(watch(job));
            })
            .map_err(no_resources)?;
        Ok(Running { command, stop: Some(stop), result, stdout, stderr })
    }
}

/// A command that was started. Dropping it ends the command in the background.
#[derive(Debug)]
pub struct Running {
    command: String,
    /// Its closing is the order to stop.
    stop: Option<PipeWriter>,
    result: oneshot::Receiver<Result<Finished, ProcessError>>,
    stdout: Arc<Mutex<Capture>>,
    stderr: Arc<Mutex<Capture>>,
}

impl Running {
    /// Waits until the command and everything it started is gone. To be called until it returns once, not again.
    ///
    /// # Errors
    ///
    /// When the command could not be started, or nothing is known about its end.
    pub async fn wait(&mut self) -> Result<Finished, ProcessError> {
        (&mut self.result).await.unwrap_or_else(|_closed| {
            Err(ProcessError::SupervisorLost {
                command: self.command.clone(),
                reason: "the thread that watched it has ended without a result".to_owned(),
            })
        })
    }

    /// Tells the command to end: SIGTERM, and SIGKILL when the grace is over. Does not wait for it.
    pub fn stop(&mut self) {
        self.stop = None;
    }

    /// What the command has written to standard output and standard error so far.
    #[must_use]
    pub fn output(&self) -> (Captured, Captured) {
        let now =
            |capture: &Mutex<Capture>| capture.lock().unwrap_or_else(PoisonError::into_inner).captured();
        (now(&self.stdout), now(&self.stderr))
    }
}

/// The result of a command that was cancelled before it was started.
fn never_started() -> Finished {
    Finished {
        exit_code: None,
        signal: None,
        timed_out: false,
        cancelled: true,
        duration_ms: 0,
        stdout: Captured::default(),
        stderr: Captured::default(),
        survivors: 0,
    }
}

/// The program as it is named in messages.
fn display_name(spec: &CommandSpec) -> String {
    spec.argv.first().map_or_else(String::new, |program| program.to_string_lossy().into_owned())
}

/// Finds what no system call would take.
fn check(spec: &CommandSpec) -> Result<(), ProcessError> {
    let invalid = |problem: String| Err(ProcessError::InvalidSpec { problem });
    let has_nul = |text: &std::ffi::OsStr| text.as_bytes().contains(&0);
    match spec.argv.first() {
        None => return invalid("there is no program to run".to_owned()),
        Some(program) if program.is_empty() => return invalid("the name of the program is empty".to_owned()),
        Some(_) => {}
    }
    if let Some(at) = spec.argv.iter().position(|arg| has_nul(arg)) {
        return invalid(format!("argument {at} contains a NUL character"));
    }
    if has_nul(spec.cwd.as_os_str()) {
        return invalid("the working directory contains a NUL character".to_owned());
    }
    for (name, value) in &spec.env {
        let shown = name.to_string_lossy();
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return invalid(format!("`{shown}` is not a name for an environment variable"));
        }
        if has_nul(name) || has_nul(value) {
            return invalid(format!("the environment variable `{shown}` contains a NUL character"));
        }
    }
    Ok(())
}
