//! A fresh home, a workspace and the real program between them.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::log::Log;
use crate::server::Server;

/// The key that every run gets unless a test takes it away.
pub const KEY: &str = "sk-lab-7f3a91c0de";
/// What no run of these tests comes near; it only ends a test that hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Variables of the person who runs the tests that would change what the program does.
const FOREIGN: [&str; 6] = ["DSH_", "LORIMER_", "DEEPSEEK_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_"];

/// One test's files.
pub struct Lab {
    root: TempDir,
}

impl Lab {
    /// A home that does not exist yet and an empty workspace.
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("lab-").tempdir().expect("a temporary folder");
        std::fs::create_dir(root.path().join("ws")).expect("a workspace");
        Self { root }
    }

    /// The folder around everything.
    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().expect("a real path")
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn workspace(&self) -> PathBuf {
        self.root().join("ws")
    }

    /// Writes a file of the workspace.
    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.workspace().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, content).expect("a file");
    }

    /// Reads a file of the workspace.
    pub fn get(&self, path: &str) -> String {
        std::fs::read_to_string(self.workspace().join(path)).expect("a text file")
    }

    /// The program with these arguments, in the workspace, without standard input.
    pub fn lorimer(&self, arguments: &[&str]) -> Call<'_> {
        Call {
            lab: self,
            arguments: arguments.iter().map(OsString::from).collect(),
            variables: Vec::new(),
            stdin: Stdin::Nothing,
            stdout: None,
            directory: self.workspace(),
        }
    }

    /// `lorimer run` on a server, with a key and without waits between repeats.
    pub fn run(&self, server: &Server, arguments: &[&str]) -> Call<'_> {
        self.quick(arguments).variable("DEEPSEEK_API_KEY", KEY).variable("DEEPSEEK_BASE_URL", &server.url())
    }

    /// The same with the Messages protocol.
    pub fn run_messages(&self, server: &Server, arguments: &[&str]) -> Call<'_> {
        self.quick(&["-m", "anthropic"])
            .and(arguments)
            .variable("ANTHROPIC_API_KEY", KEY)
            .variable("ANTHROPIC_BASE_URL", &server.url())
    }

    /// `lorimer run` without waits between repeats, and with no key of its own.
    pub fn quick(&self, arguments: &[&str]) -> Call<'_> {
        let quick = ["run", "-c", "retry.initial_delay_ms=1", "-c", "retry.max_retries=2"];
        // A busy machine may take long to pipe something in.
        self.lorimer(&quick).and(&["-c", "run.stdin_wait_ms=60000"]).and(arguments)
    }

    /// Writes the settings of the home.
    pub fn configure(&self, text: &str) {
        std::fs::create_dir_all(self.home()).expect("a home");
        std::fs::write(self.home().join("config.toml"), text).expect("a file");
    }

    /// The logs of all sessions.
    pub fn logs(&self) -> Vec<Log> {
        Log::all_of(&self.home())
    }

    /// The log of the only session.
    pub fn log(&self) -> Log {
        let mut logs = self.logs();
        assert_eq!(logs.len(), 1, "sessions");
        logs.remove(0)
    }

    /// A text with what differs between tests named instead: folders, session ids, process ids.
    pub fn plain(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let names = [(self.workspace(), "[WS]"), (self.home(), "[HOME]"), (self.root(), "[ROOT]")];
        for (path, name) in names {
            text = text.replace(&path.display().to_string(), name);
        }
        for log in self.logs() {
            let id = log.id();
            text = text.replace(&id, "[ID]");
            if let Some(short) = id.get(..8) {
                text = text.replace(short, "[SHORT-ID]");
            }
        }
        text
    }
}

/// Waits until something is so.
pub fn until(what: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if what() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came");
}

/// What standard input is.
enum Stdin {
    Nothing,
    Bytes(Vec<u8>),
    Silent,
    Closed,
    Terminal,
    From(Stdio),
}

/// A call of the program that is being put together.
pub struct Call<'a> {
    lab: &'a Lab,
    arguments: Vec<OsString>,
    variables: Vec<(String, Option<OsString>)>,
    stdin: Stdin,
    stdout: Option<Stdio>,
    directory: PathBuf,
}

impl<'a> Call<'a> {
    /// More arguments.
    pub fn and(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(OsString::from));
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), Some(value.into())));
        self
    }

    /// A variable that need not be text.
    pub fn variable_of_bytes(mut self, name: &str, value: &[u8]) -> Self {
        self.variables.push((name.to_owned(), Some(OsStr::from_bytes(value).to_owned())));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.variables.push((name.to_owned(), None));
        self
    }

    pub fn within(mut self, directory: &Path) -> Self {
        directory.clone_into(&mut self.directory);
        self
    }

    /// Pipes these bytes in, then ends.
    pub fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = Stdin::Bytes(bytes.as_ref().to_vec());
        self
    }

    pub fn stdin_from(mut self, file: impl Into<Stdio>) -> Self {
        self.stdin = Stdin::From(file.into());
        self
    }

    /// A pipe that stays open and says nothing.
    pub fn silent_stdin(mut self) -> Self {
        self.stdin = Stdin::Silent;
        self
    }

    /// A terminal for all three streams; what it would show is `stdout`.
    pub fn terminal(mut self) -> Self {
        self.stdin = Stdin::Terminal;
        self
    }

    pub fn closed_stdin(mut self) -> Self {
        self.stdin = Stdin::Closed;
        self
    }

    /// Standard output goes there and is not seen.
    pub fn stdout(mut self, to: impl Into<Stdio>) -> Self {
        self.stdout = Some(to.into());
        self
    }

    /// Runs it to its end.
    pub fn end(self) -> Ended {
        self.start().end()
    }

    /// Starts it.
    pub fn start(mut self) -> Running<'a> {
        let mut command = self.command();
        command.stdout(self.stdout.take().unwrap_or_else(Stdio::piped)).stderr(Stdio::piped());
        let (stdin, bytes) = match self.stdin {
            Stdin::Nothing | Stdin::Closed | Stdin::Terminal => (Stdio::null(), None),
            Stdin::Silent => (Stdio::piped(), None),
            Stdin::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
            Stdin::From(file) => (file, None),
        };
        command.stdin(stdin);
        let mut child = command.spawn().expect("the program starts");
        // The child has its copy of what was handed over; ours would keep a pipe open.
        drop(command);
        let (lines, stdout) = channel();
        if let Some(pipe) = child.stdout.take() {
            std::thread::spawn(move || send_lines(pipe, &lines));
        }
        let mut pipe = child.stderr.take().expect("a pipe");
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            pipe.read_to_end(&mut text)
                .map(|_| String::from_utf8_lossy(&text).into_owned())
                .unwrap_or_default()
        });
        if let Some(bytes) = bytes {
            let mut pipe = child.stdin.take().expect("a pipe");
            // The program may refuse its arguments before it reads.
            std::thread::spawn(move || pipe.write_all(&bytes));
        }
        Running { lab: self.lab, child, stdout, seen: String::new(), stderr: Some(stderr) }
    }

    fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_lorimer");
        let mut command = match self.stdin {
            Stdin::Closed => wrapped("sh", &["-c", "exec \"$0\" \"$@\" <&-", program]),
            Stdin::Terminal => wrapped("python3", &["-c", IN_A_TERMINAL, program]),
            _ => Command::new(program),
        };
        command.args(&self.arguments).current_dir(&self.directory);
        for (name, _) in std::env::vars_os() {
            let known = name.to_string_lossy().to_uppercase();
            if FOREIGN.iter().any(|start| known.starts_with(start)) || known.ends_with("_PROXY") {
                command.env_remove(name);
            }
        }
        command.env("LORIMER_HOME", self.lab.home()).env("HOME", self.lab.root());
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

/// Runs a program on a terminal of its own and ends as it ended.
const IN_A_TERMINAL: &str =
    "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

fn wrapped(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

fn send_lines(pipe: ChildStdout, lines: &Sender<String>) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
        if lines.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
            return;
        }
        line.clear();
    }
}

/// The program while it runs. Killed when dropped.
pub struct Running<'a> {
    lab: &'a Lab,
    child: Child,
    stdout: Receiver<String>,
    seen: String,
    stderr: Option<std::thread::JoinHandle<String>>,
}

impl Running<'_> {
    /// Waits for a line of standard output that contains all of these.
    pub fn until(&mut self, parts: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.stdout.recv_timeout(left) else {
                panic!("no line with {parts:?} in:\n{}", self.seen);
            };
            self.seen.push_str(&line);
            if parts.iter().all(|part| line.contains(part)) {
                return line;
            }
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("a signal");
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                break status;
            }
            assert!(Instant::now() < deadline, "no end; so far:\n{}", self.seen);
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(status.signal(), None, "it has to end by itself");
        let mut stdout = std::mem::take(&mut self.seen);
        stdout.extend(self.stdout.iter());
        let stderr =
            self.stderr.take().map(|thread| thread.join().expect("standard error")).unwrap_or_default();
        Ended { code: status.code().expect("an exit code"), said: self.lab.plain(&stderr), stdout, stderr }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a call ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// Standard error, made comparable.
    pub said: String,
}

impl Ended {
    /// Asserts that it ended well and quietly, and returns what it printed.
    #[track_caller]
    pub fn answer(&self) -> &str {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "stdout: {}", self.stdout);
        &self.stdout
    }

    /// Asserts this exit code and exactly one line on standard error, and returns that line.
    #[track_caller]
    pub fn complaint(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{self:?}");
        let line = self.said.strip_suffix('\n').unwrap_or_else(|| panic!("no line: {self:?}"));
        assert!(line.starts_with("lorimer: ") && !line.contains('\n'), "one line: {line:?}");
        line
    }

    /// Standard output as JSON lines.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
    }

    /// The result line of `--json`.
    #[track_caller]
    pub fn result(&self) -> Value {
        let last = self.json_lines().pop().expect("a line");
        assert_eq!(last["type"], "result");
        last
    }
}
