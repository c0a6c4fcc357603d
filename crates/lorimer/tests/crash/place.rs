//! The folders of one trial, and the program started in them.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::script::Marks;

/// A variable that everything started by a trial carries.
pub const TRIAL_VARIABLE: &str = "LORIMER_CRASH_TRIAL";

/// How long anything may take that is waited for: only a hang takes as long.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A fresh home and workspace.
#[derive(Debug)]
pub struct Place {
    /// The folder of all.
    pub root: PathBuf,
    /// The workspace.
    pub workspace: PathBuf,
    /// The marks of bodies.
    pub marks: Marks,
    home: PathBuf,
    /// The value of [`TRIAL_VARIABLE`].
    pub name: String,
}

impl Place {
    /// Makes the folders below `root`.
    pub fn make(root: &Path) -> Result<Self> {
        let root = std::fs::canonicalize(root)?;
        let (home, workspace, marks) = (root.join("home"), root.join("workspace"), root.join("marks"));
        for folder in [&home, &workspace, &marks] {
            std::fs::create_dir(folder)?;
        }
        let name = root.to_string_lossy().into_owned();
        Ok(Self { marks: Marks::new(&marks), root, workspace, home, name })
    }

    /// The program with nothing of the ambient environment that could change what it does.
    pub fn program(&self, port: u16) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lorimer"));
        command
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", &self.root)
            .env("LORIMER_HOME", &self.home)
            .env("DEEPSEEK_BASE_URL", format!("http://127.0.0.1:{port}"))
            .env("DEEPSEEK_API_KEY", "none")
            .env(TRIAL_VARIABLE, &self.name)
            .current_dir(&self.workspace)
            .stdin(Stdio::null());
        command
    }

    /// `lorimer run --json` that may do everything.
    pub fn run(&self, port: u16) -> Command {
        let mut command = self.program(port);
        command.args(["run", "--json", "--permission-mode", "danger-full-access"]);
        command
    }

    /// The one log, once it is there.
    pub fn log(&self) -> Option<PathBuf> {
        let folders = |path: &Path| {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let projects = folders(&self.home.join("sessions"));
        let mut logs =
            projects.iter().flat_map(|project| folders(project)).map(|at| at.join("session.jsonl"));
        logs.find(|log| log.is_file())
    }
}

/// Runs a command to its end and takes its output; one that hangs is killed.
pub fn output(mut command: Command) -> Result<Output> {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let pid = rustix::process::Pid::from_child(&child);
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let watchdog = std::thread::spawn(move || {
        let late = ended.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if late {
            // It is not collected before this thread is joined or has given up.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        late
    });
    let output = child.wait_with_output();
    drop(done);
    match watchdog.join() {
        Ok(false) => output,
        _ => Err(Error::other(format!("{command:?} did not end within {PATIENCE:?}"))),
    }
}

/// Looks every `pause` until there is something, the program has ended, or patience is over.
pub fn wait_for<T>(child: &mut Child, pause: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let limit = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() > limit || !matches!(child.try_wait(), Ok(None)) {
            return None;
        }
        std::thread::sleep(pause);
    }
}
