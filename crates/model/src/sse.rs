//! Server-sent events: bytes in, events out.
//!
//! What must hold:
//! - The events depend on the bytes alone, never on how they were cut into pieces.
//! - Each byte is looked at a constant number of times, and no more than one frame is held.
//! - Text is never repaired: a frame that is not UTF-8 is an error.

use thiserror::Error;

/// Largest frame that is taken, in bytes; a longer one is an error rather than a growing buffer.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One dispatched event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; empty when there was none.
    pub name: String,
    /// The `data` fields, joined by line feeds.
    pub data: String,
}

/// Bytes that are no event stream. The decoder gives the same error for everything that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SseError {
    /// A frame is longer than the limit.
    #[error("a frame of the event stream is longer than {max_bytes} bytes")]
    TooLong {
        /// The limit.
        max_bytes: usize,
    },
    /// A frame is not UTF-8.
    #[error("a frame of the event stream is not valid UTF-8")]
    NotUtf8,
}

/// A push decoder for one stream.
#[derive(Debug)]
pub struct SseDecoder {
    max_bytes: usize,
    /// The line that has not ended yet.
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    name: Vec<u8>,
    at_first_line: bool,
    after_cr: bool,
    seen_field: bool,
    broken: Option<SseError>,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new(MAX_FRAME_BYTES)
    }
}

impl SseDecoder {
    /// A decoder at the start of a stream that takes frames of up to `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            name: Vec::new(),
            at_first_line: true,
            after_cr: false,
            seen_field: false,
            broken: None,
        }
    }

    /// Takes the next bytes and appends the events they complete to `events`.
    ///
    /// An event is complete at its blank line; what a stream leaves unfinished at its end is not an event.
    ///
    /// # Errors
    /// When a frame is too long or not UTF-8. Events before it have been appended.
    pub fn feed(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        self.feed_lines(bytes, events).inspect_err(|error| self.broken = Some(*error))
    }

    /// Whether a line so far, or the beginning of the unfinished one, was a comment or a field of an event stream.
    /// When none was, the bytes are likely something else altogether.
    pub fn seen_field(&self) -> bool {
        let starts = [&b":"[..], b"data:", b"event:", b"id:", b"retry:"];
        self.seen_field || starts.iter().any(|start| self.line.starts_with(start))
    }

    fn feed_lines(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let mut rest = bytes;
        loop {
            if self.after_cr && !rest.is_empty() {
                self.after_cr = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.check_room(rest.len())?;
                self.line.extend_from_slice(rest);
                return Ok(());
            };
            let (tail, after) = rest.split_at(end);
            self.check_room(tail.len())?;
            if self.line.is_empty() {
                self.take_line(tail, events)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(tail);
                self.take_line(&line, events)?;
                line.clear();
                self.line = line;
            }
            self.after_cr = after.starts_with(b"\r");
            rest = after.get(1..).unwrap_or_default();
        }
    }

    fn check_room(&self, more: usize) -> Result<(), SseError> {
        if self.data.len() + self.line.len() + more > self.max_bytes {
            return Err(SseError::TooLong { max_bytes: self.max_bytes });
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let line = match std::mem::take(&mut self.at_first_line) {
            true => line.strip_prefix(BOM).unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            return self.dispatch(events);
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // Comments and the fields of reconnection, which a POST never makes.
            b"" | b"id" | b"retry" => {}
            _ => return Ok(()),
        }
        self.seen_field = true;
        Ok(())
    }

    fn dispatch(&mut self, events: &mut Vec<SseEvent>) -> Result<(), SseError> {
        let name = std::mem::take(&mut self.name);
        if std::mem::take(&mut self.has_data) {
            let data = std::mem::take(&mut self.data);
            events.push(SseEvent {
                name: String::from_utf8(name).map_err(|_| SseError::NotUtf8)?,
                data: String::from_utf8(data).map_err(|_| SseError::NotUtf8)?,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<SseEvent>, Option<SseError>) {
        decode_within(MAX_FRAME_BYTES, pieces)
    }

    fn decode_within<'a>(
        max_bytes: usize,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> (Vec<SseEvent>, Option<SseError>) {
        let mut decoder = SseDecoder::new(max_bytes);
        let mut events = Vec::new();
        let mut error = None;
        for piece in pieces {
            error = decoder.feed(piece, &mut events).err();
        }
        (events, error)
    }

    fn data(text: &str) -> Vec<String> {
        let (events, error) = decode([text.as_bytes()]);
        assert_eq!(error, None);
        events.into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn takes_every_line_ending() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("data: a{end}data:b{end}{end}data: c{end}{end}");
            assert_eq!(data(&text), ["a\nb", "c"], "{end:?}");
        }
    }

    #[test]
    fn skips_comments_ids_and_unknown_fields() {
        assert_eq!(data(": hi\nid: 1\nretry: 5\nweird: x\ndata:  two spaces\n\n: bye\n\n"), [" two spaces"]);
    }

    #[test]
    fn keeps_the_event_name_for_its_frame_only() {
        let (events, _) = decode([b"event: error\ndata: x\n\ndata: y\n\n".as_slice()]);
        assert_eq!((events[0].name.as_str(), events[1].name.as_str()), ("error", ""));
    }

    #[test]
    fn an_empty_data_field_is_an_event_and_a_bare_name_is_none() {
        assert_eq!(data("data\n\nevent: ping\n\n\n\ndata:\n\n"), ["", ""]);
    }

    #[test]
    fn strips_one_byte_order_mark() {
        assert_eq!(data("\u{feff}data: x\n\n\u{feff}data: y\n\n"), ["x"]);
    }

    #[test]
    fn an_unfinished_frame_is_no_event() {
        assert!(data("data: x\n").is_empty());
    }

    #[test]
    fn invalid_utf8_is_an_error_that_stays() {
        let (events, error) =
            decode([b"data: a\n\ndata: \xe4\xb8\n\n".as_slice(), b"data: b\n\n".as_slice()]);
        assert_eq!((events.len(), error), (1, Some(SseError::NotUtf8)));
    }

    #[test]
    fn a_frame_over_the_limit_is_an_error() {
        let within = decode_within(16, [b"data: 0123456789\n\n".as_slice()]);
        assert_eq!((within.0.len(), within.1), (1, None));
        let line = decode_within(16, [b"data: 0123456789x".as_slice()]);
        assert_eq!(line.1, Some(SseError::TooLong { max_bytes: 16 }));
        let many = decode_within(16, [b"data: 01234\ndata: 01234\ndata: 01\n\n".as_slice()]);
        assert_eq!(many.1, Some(SseError::TooLong { max_bytes: 16 }));
        assert_eq!(decode_within(16, [b": 0123456789\n".repeat(9).as_slice()]).1, None);
    }

    #[test]
    fn tells_an_event_stream_from_something_else() {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        decoder.feed(b"<html>\n<a href=\"x: y\">\n", &mut events).unwrap();
        assert!(!decoder.seen_field());
        decoder.feed(b": keep-alive\n", &mut events).unwrap();
        assert!(decoder.seen_field());
    }

    fn stream_bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"data:".to_vec()),
            Just(b"event: e".to_vec()),
            Just(b": note".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\r".to_vec()),
            Just("漢é😀".as_bytes().to_vec()),
            Just(BOM.to_vec()),
            Just(b"\xff".to_vec()),
            "[ -~]{0,9}".prop_map(String::into_bytes),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_events(bytes in stream_bytes(), size in 1usize..7, max in 8usize..64) {
            let whole = decode_within(max, [bytes.as_slice()]);
            let cut = decode_within(max, bytes.chunks(size));
            prop_assert_eq!(whole, cut);
        }
    }
}
