//! Servers on this machine that answer.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::settings::ProviderTable;

/// Longest time for all probes together, in milliseconds.
const PROBE_TIMEOUT_MS: u64 = 150;
/// Longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 256 * 1024;

/// A server that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Route id.
    pub id: String,
    /// The models it named, in its order.
    pub models: Vec<String>,
}

/// Asks all servers at once for their models and returns those that answered in time, in the order given.
pub fn probe(servers: &[(String, ProviderTable)]) -> Vec<Found> {
    let deadline = Instant::now() + Duration::from_millis(PROBE_TIMEOUT_MS);
    let (tell, heard) = channel();
    for (at, (id, table)) in servers.iter().enumerate() {
        let (tell, id, url) = (tell.clone(), id.clone(), table.base_url.clone().unwrap_or_default());
        // A thread that is still waiting at the deadline ends by its own time limit.
        let _ = std::thread::Builder::new().name("lorimer-probe".to_owned()).spawn(move || {
            if let Some(models) = models_of(&url, deadline) {
                let _ = tell.send((at, Found { id, models }));
            }
        });
    }
    drop(tell);
    let mut found: Vec<(usize, Found)> = Vec::new();
    while let Ok(one) = heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        found.push(one);
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, found)| found).collect()
}

/// `GET {base}/models` of a plain HTTP server.
fn models_of(base_url: &str, deadline: Instant) -> Option<Vec<String>> {
    let rest = base_url.strip_prefix("http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let left = || deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    let address = authority.to_socket_addrs().ok()?.find(|address| address.ip().is_loopback())?;
    let mut stream = TcpStream::connect_timeout(&address, left()?).ok()?;
    stream.set_read_timeout(left()).ok()?;
    let path = path.trim_end_matches('/');
    let separator = if path.is_empty() { "" } else { "/" };
    write!(
        stream,
        "GET {separator}{path}/models HTTP/1.1\r\nhost: {authority}\r\naccept: application/json\r\nconnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = Vec::new();
    let mut piece = [0; 16 * 1024];
    while left().is_some() && (answer.len() as u64) < MAX_ANSWER_BYTES {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(length) => answer.extend_from_slice(&piece[..length]),
        }
    }
    models_in(&String::from_utf8_lossy(&answer))
}

/// The model ids of an answer; a server that answers something else is not one of those that are looked for.
fn models_in(answer: &str) -> Option<Vec<String>> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if !head.lines().next()?.contains(" 200 ") {
        return None;
    }
    // The body may come in chunks; the list is one object in any case.
    let json = body.get(body.find('{')?..=body.rfind('}')?)?;
    let value: Value = serde_json::from_str(json).ok()?;
    let ids = value
        .get("data")?
        .as_array()?
        .iter()
        .filter_map(|model| model.get("id")?.as_str().map(str::to_owned));
    Some(ids.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn server(answer: &'static str) -> ProviderTable {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a probe");
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        });
        ProviderTable { base_url: Some(format!("http://127.0.0.1:{port}/v1")), ..ProviderTable::default() }
    }

    #[test]
    fn servers_that_answer_are_named_with_their_models() {
        let list = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"object\":\"list\",\"data\":[{\"id\":\"m:1b\"},{\"id\":\"n\"}]}";
        let closed =
            ProviderTable { base_url: Some("http://127.0.0.1:1/v1".to_owned()), ..ProviderTable::default() };
        let servers = [
            ("off".to_owned(), closed),
            ("one".to_owned(), server(list)),
            ("page".to_owned(), server("HTTP/1.1 200 OK\r\n\r\n<html></html>")),
            ("gone".to_owned(), server("HTTP/1.1 404 no\r\n\r\n{\"data\":[]}")),
        ];
        let found = probe(&servers);
        assert_eq!(found, [Found { id: "one".to_owned(), models: vec!["m:1b".to_owned(), "n".to_owned()] }]);
    }

    #[test]
    fn only_this_machine_is_asked() {
        let far =
            ProviderTable { base_url: Some("http://192.0.2.1/v1".to_owned()), ..ProviderTable::default() };
        assert_eq!(probe(&[("far".to_owned(), far)]), []);
    }
}
