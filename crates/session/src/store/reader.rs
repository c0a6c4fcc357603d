//! Reading a log line by line, in bounded memory.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

use lorimer_protocol::{Event, HeaderError, SessionHeader, StoredRow, SurfaceOp};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::open::{OpenError, Problem};
use crate::fold::{EventView, Log};

/// Read-ahead of a log.
const BUFFER_BYTES: usize = 256 * 1024;

/// Where reading a log ended.
#[derive(Debug)]
pub(super) struct Scan {
    /// The fold of everything that could be interpreted.
    pub log: Log,
    /// Bytes that were interpreted: header and whole good lines.
    pub good_bytes: u64,
    /// What kept the rest from being interpreted.
    pub end: ScanEnd,
}

#[derive(Debug)]
pub(super) enum ScanEnd {
    /// Nothing is left.
    Complete,
    /// The last line is torn.
    TornTail,
    /// Something else is wrong.
    Damaged(Problem),
}

/// One stored line, borrowed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EventLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    seq: u64,
    time: i64,
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(default)]
    source_event_seqs: Option<Vec<u64>>,
    #[serde(default)]
    surface_op: Option<SurfaceOp>,
    #[serde(default)]
    ignorable: Option<bool>,
}

/// A packed row, only as far as its place in the log.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackedLine {
    #[serde(rename = "type")]
    _tag: IgnoredAny,
    seq0: u64,
    time0: i64,
    data: PackedData,
}

#[derive(Deserialize)]
struct PackedData {
    dt: Vec<i64>,
    #[serde(alias = "args")]
    texts: Vec<TextMember>,
}

/// A member that is text; the text itself does not matter here.
struct TextMember;

impl<'de> Deserialize<'de> for TextMember {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IsText;
        impl serde::de::Visitor<'_> for IsText {
            type Value = TextMember;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("text")
            }
            fn visit_str<E>(self, _text: &str) -> Result<TextMember, E> {
                Ok(TextMember)
            }
        }
        deserializer.deserialize_str(IsText)
    }
}

impl PackedLine {
    /// How many events the row holds and when the last one was.
    fn extent(&self) -> Option<(u64, i64)> {
        let count = self.data.texts.len();
        let last = self.data.dt.iter().try_fold(self.time0, |time, gap| time.checked_add(*gap))?;
        (count == self.data.dt.len() + 1).then_some((count as u64, last))
    }
}

/// Folds a whole log.
pub(super) fn scan(path: &Path, file: &File) -> Result<Scan, OpenError> {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    reader.rewind().map_err(|error| OpenError::io(path, &error))?;
    let mut line = Vec::new();
    let header = read_header(path, &mut reader, &mut line)?;
    let mut scan = Scan { log: Log::new(header), good_bytes: line.len() as u64, end: ScanEnd::Complete };
    let mut number = 0_u64;
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line).map_err(|error| OpenError::io(path, &error))?;
        if length == 0 {
            return Ok(scan);
        }
        number += 1;
        let Some(body) = line.strip_suffix(b"\n") else {
            scan.end = ScanEnd::TornTail;
            return Ok(scan);
        };
        match apply_line(&mut scan.log, body) {
            Ok(()) => scan.good_bytes += length as u64,
            Err(LineError::Unparsable(why)) => {
                let last = reader.fill_buf().map_err(|error| OpenError::io(path, &error))?.is_empty();
                scan.end = if last {
                    ScanEnd::TornTail
                } else {
                    ScanEnd::Damaged(Problem::Damaged { line: number, why })
                };
                return Ok(scan);
            }
            Err(LineError::Problem(why)) => {
                scan.end = ScanEnd::Damaged(Problem::NotUnderstood { line: number, why });
                return Ok(scan);
            }
        }
    }
}

enum LineError {
    /// Not a row at all: torn when last, damage otherwise.
    Unparsable(String),
    /// A row that cannot be interpreted.
    Problem(String),
}

fn apply_line(log: &mut Log, body: &[u8]) -> Result<(), LineError> {
    if body.starts_with(b"{\"type\":\"text-chunks\"")
        || body.starts_with(b"{\"type\":\"reasoning-chunks\"")
        || body.starts_with(b"{\"type\":\"tool-call-chunks\"")
    {
        let row: PackedLine = parse(body)?;
        let Some((count, last)) = row.extent() else {
            return Err(LineError::Problem("malformed packed row: dt and members do not match".to_owned()));
        };
        return log.skip_chunks(row.seq0, count, last).map_err(|error| LineError::Problem(error.to_string()));
    }
    let line: EventLine<'_> = parse(body)?;
    if matches!(line.kind.as_ref(), "text-chunks" | "reasoning-chunks" | "tool-call-chunks") {
        return Err(LineError::Problem("a packed row in an unusual layout".to_owned()));
    }
    let view = EventView {
        kind: &line.kind,
        seq: line.seq,
        time: line.time,
        data: line.data,
        source_event_seqs: line.source_event_seqs.as_deref(),
        surface_op: line.surface_op,
        ignorable: line.ignorable == Some(true),
    };
    log.apply_view(view).map_err(|error| LineError::Problem(error.to_string()))
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, LineError> {
    serde_json::from_slice(body).map_err(|error| match serde_json::from_slice::<IgnoredAny>(body) {
        // Whole JSON of another shape was written on purpose, by someone else: it is never cut off.
        Ok(_) => LineError::Problem(format!("has an invalid event envelope: {error}")),
        Err(_) => LineError::Unparsable(error.to_string()),
    })
}

fn read_header(
    path: &Path,
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
) -> Result<SessionHeader, OpenError> {
    line.clear();
    reader.read_until(b'\n', line).map_err(|error| OpenError::io(path, &error))?;
    let Some(body) = line.strip_suffix(b"\n") else {
        return Err(OpenError::Header {
            path: path.to_owned(),
            why: "empty or header-less session log".to_owned(),
        });
    };
    let header_error =
        |error: HeaderError| OpenError::Header { path: path.to_owned(), why: error.to_string() };
    let text = std::str::from_utf8(body).map_err(|_| OpenError::Header {
        path: path.to_owned(),
        why: "corrupt session log: header line is not valid JSON: not UTF-8".to_owned(),
    })?;
    SessionHeader::from_json(text).map_err(header_error)
}

/// Reads only the header of a log.
pub(super) fn header_of(path: &Path) -> Result<SessionHeader, OpenError> {
    let file = File::open(path).map_err(|error| OpenError::io(path, &error))?;
    let mut line = Vec::new();
    read_header(path, &mut BufReader::new(file.take(64 * 1024)), &mut line)
}

/// The events of a log one by one, packed rows taken apart. Ends at a torn last line.
pub struct Events {
    header: SessionHeader,
    reader: BufReader<File>,
    unpacked: VecDeque<Event>,
    line: Vec<u8>,
    number: u64,
}

impl Events {
    /// Opens a log and reads its header.
    ///
    /// # Errors
    /// When the file cannot be read or does not begin with a header.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let file = File::open(path).map_err(|error| OpenError::io(path, &error))?;
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut line = Vec::new();
        let header = read_header(path, &mut reader, &mut line)?;
        Ok(Self { header, reader, unpacked: VecDeque::new(), line, number: 0 })
    }

    /// The log's header.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    fn read(&mut self) -> Result<bool, Problem> {
        self.line.clear();
        let damaged = |number: u64, why: String| Problem::Damaged { line: number, why };
        self.reader
            .read_until(b'\n', &mut self.line)
            .map_err(|error| damaged(self.number + 1, error.to_string()))?;
        let Some(body) = self.line.strip_suffix(b"\n") else {
            return Ok(false);
        };
        self.number += 1;
        let row = std::str::from_utf8(body)
            .map_err(|error| error.to_string())
            .and_then(|text| StoredRow::from_json(text).map_err(|error| error.to_string()));
        match row {
            Ok(row) => {
                self.unpacked.extend(row.into_events());
                Ok(true)
            }
            Err(why) => Err(damaged(self.number, why)),
        }
    }
}

impl Iterator for Events {
    type Item = Result<Event, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.unpacked.is_empty() {
            match self.read() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(problem) => return Some(Err(problem)),
            }
        }
        self.unpacked.pop_front().map(Ok)
    }
}
