//! A client that writes bytes and reads frames, and the program at the other end.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// What no test comes near; it only ends a test that hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A home, a workspace and a script for the model.
pub struct Lab {
    root: TempDir,
}

impl Lab {
    /// A model that gives these turns.
    pub fn new(turns: Value) -> Self {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("ws")).expect("a workspace");
        let lab = Self { root };
        lab.script(json!({"turns": turns}));
        lab
    }

    /// Replaces the model's script.
    pub fn script(&self, script: Value) {
        std::fs::write(self.script_path(), script.to_string()).expect("a script");
    }

    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().expect("a real path")
    }

    pub fn workspace(&self) -> PathBuf {
        self.root().join("ws")
    }

    fn script_path(&self) -> PathBuf {
        self.root().join("script.json")
    }

    pub fn put(&self, path: &str, content: &str) {
        std::fs::write(self.workspace().join(path), content).expect("a file");
    }

    /// The program, as DSH's clients start it.
    pub fn start(&self) -> Client {
        self.start_with(&["--profile", "sdk"], &[])
    }

    pub fn start_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Client {
        let mut client = self.start_deaf(arguments, variables);
        let mut stderr = client.child.stderr.take().expect("a pipe");
        let (said, errors) = channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            let _ = said.send(text);
        });
        client.errors = errors;
        client
    }

    /// A client that never reads standard error.
    pub fn start_deaf(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lorimer"));
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy().into_owned();
            if ["DSH_", "LORIMER_", "DEEPSEEK_", "ANTHROPIC_"].iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.env("DSH_HOME", self.root().join("dsh")).envs(variables.iter().copied());
        command.args(arguments).current_dir(self.workspace());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("a pipe");
        let errors = channel().1;
        Client { child, stdin, frames: Frames::Unread(stdout), errors, seen: Vec::new(), next: 0 }
    }

    /// The parameters of `initialize` for the scripted model.
    pub fn route(&self) -> Value {
        json!({"cwd": self.workspace(), "provider": "offline", "model": self.script_path()})
    }

    /// A client that has initialized, with further parameters.
    pub fn ready(&self, more: Value) -> Client {
        let mut client = self.start();
        let mut params = self.route();
        for (key, value) in more.as_object().expect("an object") {
            params[key] = value.clone();
        }
        client.ask("initialize", params);
        client
    }

    /// Whether a session has been written.
    pub fn has_log(&self, session: &str) -> bool {
        let projects = std::fs::read_dir(self.root().join("dsh/lorimer/sessions"));
        let mut projects = projects.into_iter().flatten().flatten();
        projects.any(|project| project.path().join(session).join("session.jsonl").exists())
    }

    /// The log of a session, one event a line, and its header first.
    pub fn log(&self, session: &str) -> Vec<Value> {
        let text = self.log_text(session).expect("a log");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The text of a session's log, once there is one.
    pub fn log_text(&self, session: &str) -> Option<String> {
        let projects = std::fs::read_dir(self.root().join("dsh/lorimer/sessions")).ok()?;
        let mut logs = projects.flatten().map(|project| project.path().join(session).join("session.jsonl"));
        logs.find_map(|log| std::fs::read_to_string(log).ok())
    }

    /// The payloads of a session's events of one type.
    pub fn logged(&self, session: &str, kind: &str) -> Vec<Value> {
        let events = self.log(session).into_iter().filter(|event| event["type"] == kind);
        events.map(|event| event["data"].clone()).collect()
    }
}

enum Frames {
    /// Nobody reads yet.
    Unread(ChildStdout),
    Read(Receiver<String>),
}

/// How a program ended and what it said on standard error.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stderr: String,
}

pub struct Client {
    pub child: Child,
    stdin: Option<ChildStdin>,
    frames: Frames,
    errors: Receiver<String>,
    /// Frames that were read and not yet asked for.
    seen: Vec<Value>,
    next: u64,
}

impl Client {
    /// Writes bytes as they are.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().expect("open");
        stdin.write_all(bytes.as_ref()).and_then(|()| stdin.flush()).expect("the program reads");
    }

    /// Sends a request without waiting, and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.write(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})));
        id
    }

    /// Sends a request and waits for its result.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.answer_to(id);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request and waits for its error text.
    pub fn refused(&mut self, method: &str, params: Value) -> String {
        let id = self.send(method, params);
        let answer = self.answer_to(id);
        assert_eq!(answer["error"]["code"], -32603, "{method}: {answer}");
        answer["error"]["message"].as_str().expect("a text").to_owned()
    }

    pub fn answer_to(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        self.wait_for(|frame| frame["id"] == id && frame.get("method").is_none())
    }

    pub fn prompt(&mut self, session: &str, text: &str) -> String {
        let params = json!({"sessionId": session, "contentBlocks": [{"type": "text", "text": text}]});
        self.ask("session/prompt", params)["messageId"].as_str().expect("an id").to_owned()
    }

    /// Waits until a session has nothing left to do.
    pub fn wait_idle(&mut self, session: &str) {
        self.wait_for(|frame| {
            frame["method"] == "session.status"
                && frame["params"] == json!({"sessionId": session, "status": "idle"})
        });
    }

    /// Waits for an event of a session and returns its payload.
    pub fn wait_event(&mut self, session: &str, kind: &str) -> Value {
        let frame = self.wait_for(|frame| {
            frame["params"]["sessionId"] == session && frame["params"]["event"]["type"] == kind
        });
        frame["params"]["event"]["data"].clone()
    }

    /// Waits for a frame, which is then gone; others before it stay to be waited for.
    pub fn wait_for(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.seen.iter().position(&fits) {
            return self.seen.remove(at);
        }
        loop {
            let frame = self.read().expect("a frame");
            if fits(&frame) {
                return frame;
            }
            self.seen.push(frame);
        }
    }

    /// The next frame, or none at the end. Everything that is written has to be one.
    pub fn read(&mut self) -> Option<Value> {
        let line = self.read_line()?;
        let frame: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a frame: {line}"));
        assert_eq!(frame["jsonrpc"], "2.0", "{line}");
        Some(frame)
    }

    fn read_line(&mut self) -> Option<String> {
        if let Frames::Unread(_) = self.frames {
            let (sender, receiver) = channel();
            let Frames::Unread(stdout) = std::mem::replace(&mut self.frames, Frames::Read(receiver)) else {
                unreachable!("it was unread")
            };
            std::thread::spawn(move || {
                let lines = BufReader::new(stdout).lines().map_while(Result::ok);
                lines.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
            });
        }
        let Frames::Read(frames) = &self.frames else { unreachable!("it is read now") };
        match frames.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no frame came; before: {:?}", self.seen),
        }
    }

    /// Everything that still comes.
    pub fn rest(&mut self) -> Vec<Value> {
        let mut rest = std::mem::take(&mut self.seen);
        while let Some(frame) = self.read() {
            rest.push(frame);
        }
        rest
    }

    /// Writes on a thread of its own, which gives standard input back.
    pub fn in_background(
        &mut self,
        write: impl FnOnce(&mut ChildStdin) + Send + 'static,
    ) -> std::thread::JoinHandle<ChildStdin> {
        let mut stdin = self.stdin.take().expect("open");
        std::thread::spawn(move || {
            write(&mut stdin);
            stdin
        })
    }

    /// Waits for the program's end, whatever it said.
    pub fn status(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the program does not end");
    }

    /// Closes standard input.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// Waits for the program's end.
    pub fn ended(&mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                let stderr = self.errors.recv_timeout(PATIENCE).expect("standard error ends");
                return Ended { code: status.code(), signal: status.signal(), stderr };
            }
            assert!(Instant::now() < deadline, "the program does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Closes standard input and expects an orderly end.
    pub fn finish(mut self) -> String {
        self.hang_up();
        let ended = self.ended();
        assert_eq!((ended.code, ended.signal), (Some(0), None), "{}", ended.stderr);
        ended.stderr
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
