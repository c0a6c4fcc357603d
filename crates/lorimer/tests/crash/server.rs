//! The model's side: the scripted server, and a relay before it that holds back the first byte of each reply.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The folder of the scripted server and its companions.
pub fn tools_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/tools")
}

/// How replies come.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The pause after each piece, in milliseconds.
    pub delay_ms: u64,
    /// The most of a piece, in characters.
    pub piece_chars: u64,
}

/// A scripted model server in a process of its own, which ends with this value.
#[derive(Debug)]
pub struct ModelServer {
    child: Child,
    /// Where it listens on the loopback.
    pub port: u16,
    /// What it was asked, one request a line.
    pub request_log: PathBuf,
}

impl ModelServer {
    /// Starts it.
    pub fn start(script: &Path, request_log: &Path, pace: Pace) -> Result<Self> {
        let mut child = Command::new("python3")
            .arg(tools_folder().join("mock_llm.py"))
            .arg(script)
            .arg("--log")
            .arg(request_log)
            .args(["--delay-ms", &pace.delay_ms.to_string()])
            .args(["--chunk", &pace.piece_chars.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or_else(|| Error::other("the server has no standard output"))?;
        let read = BufReader::new(out).read_line(&mut line);
        let mut server = Self { child, port: 0, request_log: request_log.to_owned() };
        read?;
        let port = line.trim().strip_prefix("PORT ").and_then(|port| port.parse().ok());
        server.port = port.ok_or_else(|| Error::other(format!("the server said {line:?}")))?;
        Ok(server)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One request and its reply, as they passed the relay.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// When the first bytes of the request came.
    pub asked: Instant,
    /// When the first bytes of the reply were passed on.
    pub answered: Option<Instant>,
}

impl Exchange {
    /// Whether the request was out and nothing of its reply had come.
    pub fn is_waiting_at(&self, moment: Instant) -> bool {
        self.asked < moment && self.answered.is_none_or(|answered| answered > moment)
    }
}

#[derive(Debug)]
struct Shared {
    upstream: u16,
    hold: Duration,
    ended: AtomicBool,
    exchanges: Mutex<Vec<Exchange>>,
}

/// Passes bytes between the program and a model server.
#[derive(Debug)]
pub struct Relay {
    shared: Arc<Shared>,
    /// Where it listens on the loopback.
    pub port: u16,
}

impl Relay {
    /// A relay to the server at `upstream` that holds back the first byte of each reply for `hold`.
    pub fn start(upstream: u16, hold: Duration) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let shared =
            Arc::new(Shared { upstream, hold, ended: AtomicBool::new(false), exchanges: Mutex::default() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.ended.load(Ordering::Acquire) {
                    return;
                }
                // A connection that fails is seen by the program under test as such.
                let _ = accepting.connect(client);
            }
        });
        Ok(Self { shared, port })
    }

    /// All requests so far.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.shared.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        // Wakes the accepting thread.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, client: TcpStream) -> Result<()> {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, self.upstream))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (requests, replies) = (Arc::clone(self), Arc::clone(self));
        let (client_in, server_out) = (client.try_clone()?, server.try_clone()?);
        std::thread::spawn(move || pass(client_in, server_out, || requests.note_request()));
        std::thread::spawn(move || pass(server, client, || replies.note_reply()));
        Ok(())
    }

    fn note_request(&self) {
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        if exchanges.last().is_none_or(|last| last.answered.is_some()) {
            exchanges.push(Exchange { asked: Instant::now(), answered: None });
        }
    }

    fn note_reply(&self) {
        let waiting = |exchanges: &[Exchange]| exchanges.last().is_some_and(|last| last.answered.is_none());
        if !waiting(&self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        std::thread::sleep(self.hold);
        let mut exchanges = self.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = exchanges.last_mut() {
            last.answered.get_or_insert_with(Instant::now);
        }
    }
}

/// Copies until either side ends; `before` runs before each piece is passed on.
fn pass(mut from: TcpStream, mut to: TcpStream, before: impl Fn()) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        before();
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    // Either may be closed already.
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
