//! The server process.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Problem;
use super::environment::Environment;

/// The window it is started with, which is all that the model was trained for, in tokens.
pub const WINDOW_TOKENS: u32 = 8192;

/// The name it gives the model.
const MODEL_NAME: &str = "smollm2-135m";

/// Longest time until it answers.
const LONGEST_START: Duration = Duration::from_secs(120);

/// A running server; it ends with this value.
pub struct Server {
    child: Child,
    /// Where it listens, on this machine.
    pub port: u16,
    /// The id of its model, as it says itself.
    pub model: String,
}

impl Server {
    /// Whether it still runs; a server that has crashed is no fault of the program.
    ///
    /// # Errors
    /// When it has ended.
    pub fn still_runs(&mut self) -> Result<String, Problem> {
        match self.child.try_wait() {
            Ok(None) => Ok(format!("process {}", self.child.id())),
            Ok(Some(status)) => Err(format!("it has ended: {status}; see server.log")),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the server on a free port and waits until it answers.
///
/// # Errors
/// When it ends, or does not answer in time.
pub fn start(environment: &Environment, cache: &Path) -> Result<Server, Problem> {
    let port = free_port().map_err(|error| format!("there is no free port: {error}"))?;
    let log_path = cache.join("server.log");
    let log = File::create(&log_path).map_err(|error| format!("{}: {error}", log_path.display()))?;
    let both = log.try_clone().map_err(|error| error.to_string())?;
    let child = Command::new(&environment.python)
        .args(["-m", "llama_cpp.server", "--host", "127.0.0.1", "--model_alias", MODEL_NAME])
        .arg("--model")
        .arg(&environment.model)
        .args(["--port", &port.to_string(), "--n_ctx", &WINDOW_TOKENS.to_string()])
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(both)
        .spawn()
        .map_err(|error| format!("cannot start the server: {error}"))?;
    let mut server = Server { child, port, model: String::new() };
    let started = Instant::now();
    while started.elapsed() < LONGEST_START {
        if let Some(model) = first_model(port) {
            server.model = model;
            return Ok(server);
        }
        if matches!(server.child.try_wait(), Ok(Some(_)) | Err(_)) {
            return Err(format!("the server has ended; it says why in {}", log_path.display()));
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Err(format!("the server does not answer; see {}", log_path.display()))
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The id of the first model of `/v1/models`.
fn first_model(port: u16) -> Option<String> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    connection.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    connection.write_all(b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    let models: Value = serde_json::from_str(body).ok()?;
    Some(models["data"][0]["id"].as_str()?.to_owned())
}
