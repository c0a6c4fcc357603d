//! Reading a foreign log file within limits.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use lorimer_protocol::SurfaceOp;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::ImportError;
use crate::store::encoding::Compression;
use crate::store::frames::MAGIC;
use crate::store::lines::{BUFFER_BYTES, Limits, LogLines, NextLine};

/// Longest line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;
/// Most that a log may hold, in bytes, as it is after decompression. What stays visible of it is held in memory.
const MAX_LOG_BYTES: u64 = 1024 * 1024 * 1024;

/// One event of a foreign log.
pub(super) struct Row {
    pub kind: String,
    pub seq: Option<u64>,
    pub time: i64,
    pub data: Box<RawValue>,
    pub source_event_seqs: Option<Vec<u64>>,
    pub surface_op: Option<SurfaceOp>,
    pub ignorable: bool,
    /// Names of envelope members that have no place.
    pub others: Vec<String>,
}

/// What reading an event came to.
pub(super) enum Next {
    Row(Row),
    End,
    Torn,
}

/// A foreign log file.
pub(super) struct Source {
    path: PathBuf,
    lines: LogLines,
    header: Map<String, Value>,
    line: Vec<u8>,
    number: u64,
    torn: bool,
}

impl Source {
    /// Opens a file, plain or compressed, and reads its header.
    pub fn open(path: &Path) -> Result<Self, ImportError> {
        let read_error =
            |error: std::io::Error| ImportError::Read { path: path.to_owned(), why: error.to_string() };
        let not_a_log = |why: &str| ImportError::NotALog { path: path.to_owned(), why: why.to_owned() };
        // Before it is opened: opening a pipe waits for a writer.
        if !std::fs::metadata(path).map_err(read_error)?.is_file() {
            return Err(not_a_log("it is not a file"));
        }
        let mut file = File::open(path).map_err(read_error)?;
        let compression = compression_of(&mut file).map_err(read_error)?;
        let limits = Limits { line_bytes: MAX_LINE_BYTES, total_bytes: MAX_LOG_BYTES };
        let mut lines = LogLines::new(file, compression, limits, BUFFER_BYTES).map_err(read_error)?;
        let mut line = Vec::new();
        match lines.next(&mut line).map_err(read_error)? {
            NextLine::Line => {}
            NextLine::End | NextLine::Torn => return Err(not_a_log("it has no whole first line")),
            NextLine::Damaged(why) => return Err(not_a_log(&why)),
        }
        let header: Map<String, Value> =
            serde_json::from_slice(&line).map_err(|error| not_a_log(&error.to_string()))?;
        if header.get("type").is_none_or(|tag| tag != "session") {
            return Err(not_a_log("its first line is not a session header"));
        }
        let source = Self { path: path.to_owned(), lines, header, line, number: 0, torn: false };
        match source.header_number("version") {
            Some(0 | 4) => Ok(source),
            Some(format) => Err(ImportError::Format { path: path.to_owned(), format }),
            None => Err(not_a_log("its header has no version")),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn format(&self) -> u64 {
        self.header_number("version").unwrap_or(0)
    }

    pub fn header_text(&self, key: &str) -> Option<&str> {
        self.header.get(key).and_then(Value::as_str)
    }

    pub fn header_number(&self, key: &str) -> Option<u64> {
        self.header.get(key).and_then(Value::as_u64)
    }

    pub fn header_flag(&self, key: &str) -> bool {
        self.header.get(key) == Some(&Value::Bool(true))
    }

    /// Reads the next line; `false` at the end and at a tail that was not written whole.
    pub fn next_text(&mut self) -> Result<bool, ImportError> {
        let next = self.lines.next(&mut self.line).map_err(|error| self.read_error(&error))?;
        self.number += 1;
        match next {
            NextLine::Line if std::str::from_utf8(&self.line).is_ok() => Ok(true),
            NextLine::Line if self.is_torn()? => Ok(false),
            NextLine::Line => Err(self.line_error("is not UTF-8".to_owned())),
            NextLine::End => Ok(false),
            NextLine::Torn => {
                self.torn = true;
                Ok(false)
            }
            NextLine::Damaged(why) => Err(self.line_error(why)),
        }
    }

    /// The line that was read last.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.line).unwrap_or_default()
    }

    /// Whether the last line is no JSON because it was not written whole.
    pub fn is_torn(&mut self) -> Result<bool, ImportError> {
        if serde_json::from_slice::<IgnoredAny>(&self.line).is_err() {
            self.torn = self.lines.is_torn_tail().map_err(|error| self.read_error(&error))?;
        }
        Ok(self.torn)
    }

    /// Whether the log ended with a tail that was not written whole.
    pub fn ended_torn(&self) -> bool {
        self.torn
    }

    /// Reads the next event of a log without packed rows.
    pub fn next_row(&mut self) -> Result<Next, ImportError> {
        if !self.next_text()? {
            return Ok(if self.torn { Next::Torn } else { Next::End });
        }
        match parse_row(self.text()) {
            Ok(row) => Ok(Next::Row(row)),
            Err(_) if self.is_torn()? => Ok(Next::Torn),
            Err(why) => Err(self.line_error(why)),
        }
    }

    /// An error at the line that was read last.
    pub fn line_error(&self, why: String) -> ImportError {
        ImportError::Line { path: self.path.clone(), line: self.number, why }
    }

    fn read_error(&self, error: &std::io::Error) -> ImportError {
        ImportError::Read { path: self.path.clone(), why: error.to_string() }
    }
}

fn compression_of(file: &mut File) -> std::io::Result<Compression> {
    let mut first = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut first)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(if first == MAGIC { Compression::Zstd } else { Compression::None })
}

fn parse_row(text: &str) -> Result<Row, String> {
    let mut members: HashMap<String, Box<RawValue>> =
        serde_json::from_str(text).map_err(|error| format!("is not an event: {error}"))?;
    let kind = member(&mut members, "type")?.ok_or("has no type")?;
    let data = members.remove("data").ok_or("has no data")?;
    Ok(Row {
        kind,
        seq: member(&mut members, "seq")?,
        time: member(&mut members, "time")?.unwrap_or(0),
        data,
        source_event_seqs: member(&mut members, "sourceEventSeqs")?,
        surface_op: member(&mut members, "surfaceOp")?,
        ignorable: member::<bool>(&mut members, "ignorable")?.unwrap_or(false),
        others: members.into_keys().collect(),
    })
}

fn member<T: DeserializeOwned>(
    members: &mut HashMap<String, Box<RawValue>>,
    key: &str,
) -> Result<Option<T>, String> {
    let Some(text) = members.remove(key) else {
        return Ok(None);
    };
    serde_json::from_str(text.get()).map(Some).map_err(|error| format!("has an invalid {key}: {error}"))
}
