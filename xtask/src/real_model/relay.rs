//! A relay between the program and the server, which keeps what both say.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;

#[derive(Default)]
struct Kept {
    asked: Vec<u8>,
    answered: Vec<u8>,
}

/// Where the program connects to.
pub struct Relay {
    /// Its port, on this machine.
    pub port: u16,
    kept: Arc<Mutex<Kept>>,
}

/// What went over the wire in one run.
pub struct Wire {
    /// Everything the program sent.
    pub asked: String,
    /// The frames of the server's streams.
    pub frames: Vec<Value>,
    /// The status lines of its answers.
    pub statuses: Vec<String>,
}

impl Relay {
    /// What was kept since the last time.
    pub fn take(&self) -> Wire {
        let kept = std::mem::take(&mut *locked(&self.kept));
        let answered = String::from_utf8_lossy(&kept.answered);
        // The server writes each frame as one piece, so no line is torn by the lengths between pieces.
        let data = answered.lines().filter_map(|line| line.strip_prefix("data:"));
        Wire {
            asked: String::from_utf8_lossy(&kept.asked).into_owned(),
            frames: data.filter_map(|data| serde_json::from_str(data).ok()).collect(),
            statuses: answered.lines().filter(|line| line.starts_with("HTTP/1")).map(str::to_owned).collect(),
        }
    }
}

/// Listens on a free port for as long as this process lives.
///
/// # Errors
/// When no port can be had.
pub fn start(server_port: u16) -> io::Result<Relay> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let relay = Relay { port: listener.local_addr()?.port(), kept: Arc::default() };
    let kept = Arc::clone(&relay.kept);
    thread::spawn(move || {
        for program in listener.incoming().flatten() {
            // A server that cannot be reached is a closed connection to the program.
            let _ = join(program, server_port, &kept);
        }
    });
    Ok(relay)
}

fn join(program: TcpStream, server_port: u16, kept: &Arc<Mutex<Kept>>) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port))?;
    let (from_program, from_server) = (program.try_clone()?, server.try_clone()?);
    let (asked, answered) = (Arc::clone(kept), Arc::clone(kept));
    thread::spawn(move || pump(from_program, server, |piece| locked(&asked).asked.extend(piece)));
    thread::spawn(move || pump(from_server, program, |piece| locked(&answered).answered.extend(piece)));
    Ok(())
}

/// Hands on everything that one side says; when it ends, so does the connection.
fn pump(mut from: TcpStream, mut to: TcpStream, keep: impl Fn(&[u8])) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        keep(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
