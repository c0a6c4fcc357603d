//! A process that drives a published client, and the stories' way to it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::lab::PATIENCE;
use crate::run::Run;

/// A published client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    Python,
    Node,
}

/// Variables of the person who runs the tests that would change what the program does.
const FOREIGN: [&str; 6] = ["DSH_", "LORIMER_", "DEEPSEEK_", "ANTHROPIC_", "OPENAI_", "OPENROUTER_"];

/// A client in a process of its own. Ended when dropped, and its runtimes with it.
pub struct Driver {
    child: Child,
    asks: ChildStdin,
    answers: Receiver<String>,
}

impl Driver {
    pub fn start(client: Client) -> Self {
        let mut command = command_of(client);
        for (name, _) in std::env::vars_os() {
            let known = name.to_string_lossy().to_uppercase();
            if FOREIGN.iter().any(|start| known.starts_with(start)) || known.ends_with("_PROXY") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the client starts");
        let asks = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (lines, answers) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
        });
        Self { child, asks, answers }
    }

    /// What the client gives for a request.
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
    pub fn ask(&mut self, ask: Value) -> Outcome {
        // A driver that has ended is told of by what it does not answer.
        let _ = self.asks.write_all(format!("{ask}\n").as_bytes());
        let Ok(line) = self.answers.recv_timeout(PATIENCE) else {
            panic!("no answer to {ask}");
        };
        Outcome(serde_json::from_str(&line).expect("an answer"))
    }

    /// Starts a runtime and shakes hands with it.
    #[track_caller]
    pub fn open(&mut self, harness: &str, options: &Value) -> Outcome {
        self.ask(json!({"op": "open", "harness": harness, "options": options}))
    }

    /// Asserts that a runtime is not there to be begun with: it ends with 1 and this complaint.
    #[track_caller]
    pub fn assert_ends_at_once(&mut self, harness: &str, options: &Value, complaint: &str) {
        let outcome = self.open(harness, options);
        let (class, message) = outcome.error();
        assert_eq!(class, "TransportClosedError", "{message}");
        // The Python client tells of it at once, when it may not have read standard error and there may be no code yet.
        let said = self.ask(json!({"op": "said", "harness": harness})).ok();
        assert!(said.as_str().is_some_and(|said| said.contains(complaint)), "{said}");
        assert_eq!(self.ask(json!({"op": "exitCode", "harness": harness})).ok(), 1);
    }

    /// A turn to its end.
    #[track_caller]
    pub fn run(&mut self, harness: &str, session: &str, input: &str) -> Run {
        Run::of(self.ask(run(harness, session, input)).ok())
    }

    /// Begins a turn; [`Self::wait`] has its outcome.
    #[track_caller]
    pub fn begin(&mut self, task: &str, harness: &str, session: &str, input: &str) {
        let mut ask = run(harness, session, input);
        ask["task"] = task.into();
        self.ask(ask).ok();
    }

    #[track_caller]
    pub fn wait(&mut self, task: &str) -> Outcome {
        self.ask(json!({"op": "wait", "task": task}))
    }

    #[track_caller]
    pub fn resume(&mut self, harness: &str, session: &str) -> Outcome {
        self.ask(json!({"op": "resume", "harness": harness, "session": session}))
    }

    #[track_caller]
    pub fn directory(&mut self, harness: &str, session: &str) -> Value {
        self.ask(json!({"op": "getDirectory", "harness": harness, "session": session})).ok()
    }

    #[track_caller]
    pub fn change_directory(&mut self, harness: &str, session: &str, path: &str) -> Outcome {
        self.ask(json!({"op": "setDirectory", "harness": harness, "session": session, "path": path}))
    }

    /// Closes a runtime and asserts that it went in peace: it answered, was not killed, and complained of nothing.
    #[track_caller]
    pub fn close(&mut self, harness: &str) -> Outcome {
        let closed = self.ask(json!({"op": "close", "harness": harness}));
        assert_eq!(closed.clone().ok(), json!({"exitCode": 0, "stderr": []}));
        closed
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(harness: &str, session: &str, input: &str) -> Value {
    json!({"op": "run", "harness": harness, "session": session, "input": input})
}

fn command_of(client: Client) -> Command {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/published_clients");
    let place = |name: &str| {
        std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set; scripts/test sets it"))
    };
    match client {
        Client::Python => {
            let mut command = Command::new(place("LORIMER_TEST_PYTHON"));
            command.arg(scripts.join("drive.py"));
            command
        }
        Client::Node => {
            let mut command = Command::new("node");
            command.arg(scripts.join("drive.mjs")).arg(place("LORIMER_TEST_NODE_MODULES"));
            command
        }
    }
}

/// What a client gave.
#[derive(Clone, Debug)]
pub struct Outcome(Value);

impl Outcome {
    #[track_caller]
    pub fn ok(self) -> Value {
        let Self(mut answer) = self;
        assert!(answer.get("ok").is_some(), "{answer}");
        answer["ok"].take()
    }

    /// The class of the error and what it says.
    #[track_caller]
    pub fn error(&self) -> (&str, &str) {
        let error = &self.0["error"];
        match (error["type"].as_str(), error["message"].as_str()) {
            (Some(class), Some(message)) => (class, message),
            _ => panic!("no error: {}", self.0),
        }
    }

    /// What the runtime's refusal says, without what the client adds of standard error.
    #[track_caller]
    pub fn refusal(&self) -> &str {
        let (class, message) = self.error();
        assert!(matches!(class, "JsonRpcError" | "JsonRpcResponseError"), "{class}: {message}");
        assert_eq!(self.0["error"]["code"], -32603, "{message}");
        message.lines().next().unwrap_or_default()
    }

    /// How long it took.
    pub fn seconds(&self) -> f64 {
        self.0["seconds"].as_f64().expect("a number")
    }
}
