//! Reading a log line by line, in bounded memory.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;

use lorimer_protocol::{Event, HeaderError, SessionHeader, StoredRow, SurfaceOp};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::encoding::LogFile;
use super::lines::{BUFFER_BYTES, Limits, LogLines, NextLine};
use super::open::{OpenError, Problem};
use crate::fold::{EventView, Log};

/// Where reading a log ended.
#[derive(Debug)]
pub(super) struct Scan {
    /// The fold of everything that could be interpreted.
    pub log: Log,
    /// How many event lines that is.
    pub lines: u64,
    /// Where a torn tail begins in the file.
    pub cut: u64,
    /// Whole lines after `cut`.
    pub recovered: Vec<u8>,
    /// What kept the rest from being interpreted.
    pub end: ScanEnd,
    /// Whether the header could not be read and another stands in for it.
    pub header_lost: bool,
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
pub(super) struct EventLine<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Cow<'a, str>,
    pub seq: u64,
    pub time: i64,
    #[serde(borrow)]
    pub data: &'a RawValue,
    #[serde(default)]
    pub source_event_seqs: Option<Vec<u64>>,
    #[serde(default)]
    pub surface_op: Option<SurfaceOp>,
    #[serde(default)]
    pub ignorable: Option<bool>,
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
pub(super) fn scan(log_file: &LogFile) -> Result<Scan, OpenError> {
    scan_or(log_file, None)
}

/// Folds a whole log. The header that is given stands in for one that cannot be read.
pub(super) fn scan_or(log_file: &LogFile, stand_in: Option<&SessionHeader>) -> Result<Scan, OpenError> {
    let path = &log_file.path;
    let (mut lines, header) = open_lines_or(log_file, stand_in)?;
    let header_lost = header.lost;
    lines.accept(header.line.as_slice());
    let mut log = Log::new(header.header);
    let (mut line, mut number) = (header.line, 0_u64);
    let end = loop {
        match lines.next(&mut line).map_err(|error| OpenError::io(path, &error))? {
            NextLine::Line => {}
            NextLine::End => break ScanEnd::Complete,
            NextLine::Torn => break ScanEnd::TornTail,
            NextLine::Damaged(why) => {
                break ScanEnd::Damaged(Problem::Damaged { line: number + 1, why });
            }
        }
        match apply_line(&mut log, &line) {
            Ok(()) => lines.accept(&line),
            Err(LineError::Unparsable(why)) => {
                let torn = lines.is_torn_tail().map_err(|error| OpenError::io(path, &error))?;
                let damaged = Problem::Damaged { line: number + 1, why };
                break if torn { ScanEnd::TornTail } else { ScanEnd::Damaged(damaged) };
            }
            Err(LineError::Problem(why)) => {
                break ScanEnd::Damaged(Problem::NotUnderstood { line: number + 1, why });
            }
        }
        number += 1;
    };
    let (cut, recovered) = lines.cut();
    Ok(Scan { log, lines: number, cut, recovered, end, header_lost })
}

pub(super) enum LineError {
    /// Not a row at all: torn when last, damage otherwise.
    Unparsable(String),
    /// A row that cannot be interpreted.
    Problem(String),
}

/// One stored line, only as far as it is needed.
pub(super) enum RowView<'a> {
    /// An event.
    Event(EventLine<'a>),
    /// A packed row: first seq, members, time of the last.
    Packed(u64, u64, i64),
}

/// Reads one line of a log.
pub(super) fn row_view(body: &[u8]) -> Result<RowView<'_>, LineError> {
    if body.starts_with(b"{\"type\":\"text-chunks\"")
        || body.starts_with(b"{\"type\":\"reasoning-chunks\"")
        || body.starts_with(b"{\"type\":\"tool-call-chunks\"")
    {
        let row: PackedLine = parse(body)?;
        let Some((count, last)) = row.extent() else {
            return Err(LineError::Problem("malformed packed row: dt and members do not match".to_owned()));
        };
        return Ok(RowView::Packed(row.seq0, count, last));
    }
    let line: EventLine<'_> = parse(body)?;
    if matches!(line.kind.as_ref(), "text-chunks" | "reasoning-chunks" | "tool-call-chunks") {
        return Err(LineError::Problem("a packed row in an unusual layout".to_owned()));
    }
    Ok(RowView::Event(line))
}

fn apply_line(log: &mut Log, body: &[u8]) -> Result<(), LineError> {
    let applied = match row_view(body)? {
        RowView::Packed(seq0, count, last_time) => log.skip_chunks(seq0, count, last_time),
        RowView::Event(line) => log.apply_view(EventView {
            kind: &line.kind,
            seq: line.seq,
            time: line.time,
            data: line.data,
            source_event_seqs: line.source_event_seqs.as_deref(),
            surface_op: line.surface_op,
            ignorable: line.ignorable == Some(true),
        }),
    };
    applied.map_err(|error| LineError::Problem(error.to_string()))
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, LineError> {
    serde_json::from_slice(body).map_err(|error| match serde_json::from_slice::<IgnoredAny>(body) {
        // Whole JSON of another shape was written on purpose, by someone else: it is never cut off.
        Ok(_) => LineError::Problem(format!("has an invalid event envelope: {error}")),
        Err(_) => LineError::Unparsable(error.to_string()),
    })
}

/// A header with the line it was read from.
pub(super) struct HeaderLine {
    pub header: SessionHeader,
    pub line: Vec<u8>,
    /// Whether it could not be read and another stands in for it.
    pub lost: bool,
}

/// The lines of a log after its header.
pub(super) fn open_lines(log_file: &LogFile) -> Result<(LogLines, HeaderLine), OpenError> {
    open_lines_or(log_file, None)
}

/// The lines of a log after its header. The header that is given stands in for one that is damaged; a log of another
/// format is refused all the same.
pub(super) fn open_lines_or(
    log_file: &LogFile,
    stand_in: Option<&SessionHeader>,
) -> Result<(LogLines, HeaderLine), OpenError> {
    let path = &log_file.path;
    let io = |error: std::io::Error| OpenError::io(path, &error);
    let file = File::open(path).map_err(io)?;
    let mut lines = LogLines::new(file, log_file.compression, Limits::NONE, BUFFER_BYTES).map_err(io)?;
    let mut line = Vec::new();
    if lines.next(&mut line).map_err(io)? != NextLine::Line {
        return Err(OpenError::Header {
            path: path.to_owned(),
            why: "empty or header-less session log".to_owned(),
        });
    }
    let unusable = |why: String| OpenError::Header { path: path.to_owned(), why };
    let why = match std::str::from_utf8(&line).map(SessionHeader::from_json) {
        Ok(Ok(header)) => return Ok((lines, HeaderLine { header, line, lost: false })),
        Ok(Err(error @ HeaderError::Version(_))) => return Err(unusable(error.to_string())),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "corrupt session log: header line is not valid JSON: not UTF-8".to_owned(),
    };
    match stand_in {
        Some(header) => Ok((lines, HeaderLine { header: header.clone(), line, lost: true })),
        None => Err(unusable(why)),
    }
}

/// The events of a log one by one, packed rows taken apart. Ends at a torn last line.
pub struct Events {
    header: SessionHeader,
    lines: LogLines,
    unpacked: VecDeque<Event>,
    line: Vec<u8>,
    number: u64,
}

impl Events {
    /// Opens a log and reads its header.
    pub(super) fn open(log_file: &LogFile) -> Result<Self, OpenError> {
        let (lines, HeaderLine { header, line, .. }) = open_lines(log_file)?;
        Ok(Self { header, lines, unpacked: VecDeque::new(), line, number: 0 })
    }

    /// The log's header.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    fn read(&mut self) -> Result<bool, Problem> {
        let number = self.number + 1;
        let damaged = |why: String| Problem::Damaged { line: number, why };
        match self.lines.next(&mut self.line).map_err(|error| damaged(error.to_string()))? {
            NextLine::Line => self.number = number,
            NextLine::End | NextLine::Torn => return Ok(false),
            NextLine::Damaged(why) => return Err(damaged(why)),
        }
        let row = std::str::from_utf8(&self.line)
            .map_err(|error| error.to_string())
            .and_then(|text| StoredRow::from_json(text).map_err(|error| error.to_string()));
        self.unpacked.extend(row.map_err(damaged)?.into_events());
        Ok(true)
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
