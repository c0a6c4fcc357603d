//! A TCP server that plays one answer to every request, byte for byte.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// One thing the server does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes bytes at once.
    Write(Vec<u8>),
    /// Writes bytes one by one.
    Each(Vec<u8>),
    /// Writes the bytes again and again until the client hangs up.
    Forever(Vec<u8>),
    /// Says nothing until the client hangs up.
    Hold,
}

/// A running server.
pub struct Server {
    /// Its base URL.
    pub url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// A server that answers with exactly these steps.
    pub fn raw(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (steps, log) = (steps.clone(), Arc::clone(&log));
                thread::spawn(move || serve(connection, &steps, &log));
            }
        });
        Self { url, requests }
    }

    /// A server that answers 200 with an event stream of these steps, ended by closing the connection.
    pub fn stream(steps: Vec<Step>) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: r-1\r\nconnection: close\r\n\r\n";
        Self::raw([vec![Step::Write(head.into())], steps].concat())
    }

    /// A server that answers with a status, header lines and a whole body.
    pub fn status(status: u16, headers: &[&str], body: &str) -> Self {
        let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        Self::raw(vec![Step::Write(answer.into_bytes())])
    }

    /// What was asked so far: heads and bodies as they came.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut connection: TcpStream, steps: &[Step], log: &Mutex<Vec<String>>) {
    let Some(request) = read_request(&mut connection) else { return };
    log.lock().unwrap().push(request);
    connection.set_nodelay(true).unwrap();
    for step in steps {
        let played = match step {
            Step::Write(bytes) => connection.write_all(bytes),
            Step::Each(bytes) => bytes.iter().try_for_each(|byte| connection.write_all(&[*byte])),
            Step::Forever(bytes) => loop {
                thread::sleep(std::time::Duration::from_millis(2));
                if let Err(error) = connection.write_all(bytes) {
                    break Err(error);
                }
            },
            Step::Hold => connection.read(&mut [0; 64]).map(|_| ()),
        };
        if played.is_err() {
            return;
        }
    }
}

fn read_request(connection: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = connection.read(&mut piece).ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return Some(text);
        }
    }
}
