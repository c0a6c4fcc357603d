//! Scripted model servers on loopback, one process each.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A model server. Ended when dropped.
pub struct Server {
    child: Child,
    port: u16,
    folder: TempDir,
}

impl Server {
    /// A server that answers request by request with these turns; see [`say`], [`ask`] and [`asks`].
    pub fn scripted(turns: &[Value]) -> Self {
        Self::of_script(&json!({"turns": turns}))
    }

    /// The same with failures: `{"1": {"status": 503}}`.
    pub fn failing(turns: &[Value], failures: &Value) -> Self {
        Self::of_script(&json!({"turns": turns, "fail": failures}))
    }

    fn of_script(script: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (file, log) = (folder.path().join("script.json"), folder.path().join("requests.jsonl"));
        std::fs::write(&file, script.to_string()).expect("a script");
        let mut command = tool("mock_llm.py");
        command.arg(file).arg("--log").arg(log);
        Self::start(command, folder)
    }

    /// A server that sends these steps byte for byte, a list for each request; the last list is repeated.
    pub fn raw(turns: &[Vec<Value>]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (file, log) = (folder.path().join("plan.json"), folder.path().join("requests.jsonl"));
        std::fs::write(&file, json!({"log": log, "turns": turns}).to_string()).expect("a plan");
        let mut command = tool("rawsse.py");
        command.arg(file);
        Self::start(command, folder)
    }

    fn start(mut command: Command, folder: TempDir) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("python3 starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a port");
        let port = line.trim().strip_prefix("PORT ").and_then(|port| port.parse().ok()).expect("a port");
        Self { child, port, folder }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The log of the requests, for the checking tools.
    pub fn request_log(&self) -> PathBuf {
        self.folder.path().join("requests.jsonl")
    }

    /// The bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.request_log()).unwrap_or_default();
        let body = |line| serde_json::from_str::<Value>(line).expect("a request")["body"].take();
        text.lines().map(body).collect()
    }

    /// The paths of the requests so far, of a scripted server.
    pub fn paths(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.request_log()).unwrap_or_default();
        let path = |line| serde_json::from_str::<Value>(line).expect("a request")["path"].take();
        text.lines().map(|line| path(line).as_str().expect("a path").to_owned()).collect()
    }

    /// The headers of the last request of a scripted server, by lower-case name.
    pub fn last_headers(&self) -> HashMap<String, String> {
        let text = std::fs::read_to_string(self.request_log()).unwrap_or_default();
        let line: Value = serde_json::from_str(text.lines().last().expect("a request")).expect("JSON");
        let headers = line["headers"].as_object().expect("headers").iter();
        headers
            .map(|(name, value)| (name.to_lowercase(), value.as_str().unwrap_or_default().to_owned()))
            .collect()
    }

    /// The messages of the last request.
    pub fn last_messages(&self) -> Vec<Value> {
        let request = self.requests().pop().expect("a request");
        request["messages"].as_array().expect("messages").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of the shared fixtures.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

/// One of the Python tools of the fixtures.
pub fn tool(name: &str) -> Command {
    let mut command = Command::new("python3");
    command.arg(fixtures().join("tools").join(name));
    command
}

/// Runs a checking tool on a request log.
#[track_caller]
pub fn check(name: &str, log: &Path) {
    let output = tool(name).arg(log).output().expect("python3 runs");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
}

/// A turn that answers.
pub fn say(text: &str) -> Value {
    json!({"text": text})
}

/// A turn that makes one call.
#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
pub fn ask(name: &str, arguments: Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

/// A turn that makes several calls.
pub fn asks(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> =
        calls.iter().map(|(name, arguments)| json!({"name": name, "arguments": arguments})).collect();
    json!({"calls": calls})
}

/// An SSE frame with a delta.
#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
pub fn delta(delta: Value) -> String {
    frame(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

/// An SSE frame with text.
pub fn text(text: &str) -> String {
    delta(json!({"content": text}))
}

/// The SSE frames that end a good stream.
pub fn done() -> String {
    finish("stop") + "data: [DONE]\n\n"
}

/// An SSE frame with a finish reason and counts.
pub fn finish(reason: &str) -> String {
    frame(&json!({
        "choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }))
}

fn frame(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// A server on this machine that only lists its models. It ends with the tests.
pub struct LocalServer {
    port: u16,
}

impl LocalServer {
    pub fn listing(models: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let list: Vec<Value> = models.iter().map(|id| json!({"id": id, "object": "model"})).collect();
        let body = json!({"object": "list", "data": list}).to_string();
        std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &body)));
        Self { port }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// Answers `GET /v1/models`, and nothing else.
fn answer(mut stream: TcpStream, body: &str) {
    let mut line = String::new();
    let mut reader = BufReader::new(&stream);
    // The rest of the request is read so that closing does not cut the answer off.
    let read = reader.read_line(&mut line).and_then(|_| {
        let mut rest = String::new();
        while reader.read_line(&mut rest)? > 2 {
            rest.clear();
        }
        Ok(())
    });
    let status = if line.starts_with("GET /v1/models ") { "200 OK" } else { "404 Not Found" };
    let length = body.len();
    // A program that has gone needs no answer.
    let _ = read.and_then(|()| {
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    });
}
