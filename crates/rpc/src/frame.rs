//! One JSON-RPC object a line (wire spec 1.1): taking lines apart, and lines from bytes.

use std::io::{self, BufRead};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::OwnedSemaphorePermit;

/// How much of a line that is too long is kept, in bytes: enough to find out whose request it is.
const KEPT_OF_TOO_LONG_BYTES: usize = 4096;

/// A request's id as it was written: a string or a number. It is echoed byte for byte. As long as it is kept, its
/// request takes up room.
#[derive(Clone, Debug)]
pub(crate) struct RequestId {
    text: Box<RawValue>,
    room: Option<Arc<OwnedSemaphorePermit>>,
}

impl RequestId {
    /// The JSON text.
    pub fn get(&self) -> &str {
        self.text.get()
    }

    /// Keeps room until the last copy of the id is gone, which is when the request is answered.
    pub fn hold(&mut self, room: OwnedSemaphorePermit) {
        self.room = Some(Arc::new(room));
    }
}

impl From<Box<RawValue>> for RequestId {
    fn from(text: Box<RawValue>) -> Self {
        Self { text, room: None }
    }
}

/// What a client sent.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// It wants an answer.
    Request {
        /// Comes back with the answer.
        id: RequestId,
        /// What is asked for.
        method: String,
        /// Always an object.
        params: Box<RawValue>,
    },
    /// It answers a request of ours.
    Response {
        /// Ours.
        id: RequestId,
        /// The result, or the error as it came.
        result: Result<Box<RawValue>, Box<RawValue>>,
    },
    /// It tells something; nothing is told to a server yet.
    Notification,
    /// Not a frame: it is dropped, and said on standard error.
    Junk(String),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Incoming {
    /// Takes one line apart. Blank lines are `None`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        if line[0] != b'{' {
            return Some(Self::Junk("it is not a JSON object".to_owned()));
        }
        Some(match serde_json::from_slice::<Envelope<'_>>(line) {
            Ok(envelope) => Self::classify(envelope),
            Err(error) => Self::Junk(error.to_string()),
        })
    }

    fn classify(envelope: Envelope<'_>) -> Self {
        let id = envelope.id.filter(|id| is_id(id)).map(|id| RequestId::from(id.to_owned()));
        match (id, envelope.method) {
            (Some(id), Some(method)) => Self::Request { id, method, params: object(envelope.params) },
            (Some(id), None) => {
                let result = match (envelope.error, envelope.result) {
                    (Some(error), _) => Err(error.to_owned()),
                    (None, result) => Ok(result.unwrap_or(RawValue::NULL).to_owned()),
                };
                Self::Response { id, result }
            }
            (None, Some(_)) => Self::Notification,
            (None, None) => Self::Junk("it has neither \"id\" nor \"method\"".to_owned()),
        }
    }
}

fn is_id(id: &RawValue) -> bool {
    id.get().starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
}

/// `params` that is missing or not an object is taken for `{}`.
fn object(params: Option<&RawValue>) -> Box<RawValue> {
    match params {
        Some(params) if params.get().starts_with('{') => params.to_owned(),
        _ => RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned()),
    }
}

/// What the next line is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// A line longer than the limit: its beginning. The rest was thrown away.
    TooLong(Vec<u8>),
}

/// Reads lines of at most `max_bytes`; what is longer is skipped without being kept. Bytes after the last line end are
/// no line.
///
/// # Errors
/// When the input cannot be read.
pub(crate) fn next_line(input: &mut impl BufRead, max_bytes: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(None);
        }
        let end = memchr::memchr(b'\n', available);
        let part = &available[..end.unwrap_or(available.len())];
        too_long = too_long || line.len() + part.len() > max_bytes;
        if too_long {
            let room = KEPT_OF_TOO_LONG_BYTES.saturating_sub(line.len());
            line.extend_from_slice(&part[..part.len().min(room)]);
            line.truncate(KEPT_OF_TOO_LONG_BYTES);
            line.shrink_to_fit();
        } else {
            line.extend_from_slice(part);
        }
        let taken = part.len() + usize::from(end.is_some());
        input.consume(taken);
        if end.is_some() {
            return Ok(Some(if too_long { Line::TooLong(line) } else { Line::Whole(line) }));
        }
    }
}

/// The id of a request of which only the beginning was kept, when that beginning shows it.
pub(crate) fn id_of_beginning(line: &[u8]) -> Option<RequestId> {
    let key = memchr::memmem::find(line, b"\"id\"")?;
    let rest = line[key + 4..].trim_ascii_start().strip_prefix(b":")?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Box<RawValue>>();
    values.next()?.ok().filter(|id| is_id(id)).map(RequestId::from)
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    fn lines(text: &[u8], max_bytes: usize, buffer: usize) -> Vec<Line> {
        let mut input = BufReader::with_capacity(buffer, text);
        std::iter::from_fn(|| next_line(&mut input, max_bytes).expect("readable")).collect()
    }

    #[test]
    fn ids_come_back_as_they_were_written() {
        for id in ["1", "-7", "1.50", "\"a\"", "\"\\u00e4\"", "123456789012345678901234567890"] {
            let line = format!("{{\"id\":{id},\"method\":\"m\",\"params\":[1],\"later\":{{}}}}");
            match Incoming::parse(line.as_bytes()) {
                Some(Incoming::Request { id: got, method, params }) => {
                    assert_eq!((got.get(), method.as_str(), params.get()), (id, "m", "{}"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_junk() {
        let junk = [
            "[1]",
            "7",
            "nonsense",
            "{",
            "{}",
            "{\"id\":null}",
            "{\"id\":{},\"method\":1}",
            "{\"id\":\"\\ud8\"}",
        ];
        for line in junk {
            assert!(matches!(Incoming::parse(line.as_bytes()), Some(Incoming::Junk(_))), "{line}");
        }
        assert!(matches!(Incoming::parse(b"{\"id\":\"\xff\",\"method\":\"m\"}"), Some(Incoming::Junk(_))));
        assert!(Incoming::parse(b" \r").is_none());
        assert!(matches!(Incoming::parse(b"{\"id\":null,\"method\":\"m\"}"), Some(Incoming::Notification)));
        let error = Incoming::parse(b"{\"id\":1,\"error\":{\"code\":1}}\r");
        assert!(matches!(error, Some(Incoming::Response { result: Err(_), .. })));
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_its_id_found() {
        let mut text = b"{\"jsonrpc\":\"2.0\",\"id\": \"long\",\"params\":\"".to_vec();
        text.extend(std::iter::repeat_n(b'x', 100_000));
        text.extend(b"\"}\n{\"id\":2}\nrest");
        let got = lines(&text, 1000, 64);
        let [Line::TooLong(beginning), Line::Whole(whole)] = got.as_slice() else { panic!("{got:?}") };
        assert_eq!(beginning.len(), KEPT_OF_TOO_LONG_BYTES);
        assert_eq!(id_of_beginning(beginning).expect("an id").get(), "\"long\"");
        assert_eq!(whole, b"{\"id\":2}");
        assert!(id_of_beginning(b"{\"method\":\"id\"").is_none());
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_are_cut(
            parts in prop::collection::vec("[^\n]{0,40}", 0..8),
            buffer in 1_usize..50,
        ) {
            let text = parts.iter().flat_map(|part| [part.as_bytes(), b"\n"].concat()).collect::<Vec<u8>>();
            let whole: Vec<Line> = parts.iter().map(|part| Line::Whole(part.clone().into_bytes())).collect();
            prop_assert_eq!(lines(&text, 200, buffer), whole);
        }
    }
}
