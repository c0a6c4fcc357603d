//! Taking in logs that DSH wrote: format 0 (plain, compressed, or a fixture without seqs) and format 4.
//!
//! What has a place in format 0 is converted. What has none stays in the log as an event of type `lorimer/imported`
//! (ignorable, off the surface) with `{format, type, seq, data}` of the original; seqs inside it are the original's.

mod format4;
mod legacy;
mod renumber;
mod sink;
mod source;
mod stream;
mod tokens;

use std::path::{Path, PathBuf};

use lorimer_protocol::{ChunkRowError, Draft, Event, SessionHeader, SessionId, StoredRow};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use self::format4::Format4;
use self::sink::{Sink, kept};
use self::source::{Next, Source};
use self::tokens::Tokens;
use super::open::OpenError;
use super::{Store, StoreError, key};

/// Longest folder name that an imported session may have, in bytes.
const MAX_SEGMENT_BYTES: usize = 255;

/// A log that was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The new session; the log's own id when that was free here.
    pub id: SessionId,
    /// The format that was read.
    pub format: u64,
    /// How many events the new log has.
    pub events: u64,
    /// What a person should know: what was left out, kept aside, or against the rules.
    pub notes: Vec<String>,
}

/// A log that cannot be taken in. Nothing of it is stored.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// In the system's words.
        why: String,
    },
    /// The first line is not a session header.
    #[error("{} is not a session log: {why}", path.display())]
    NotALog {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A format of another age.
    #[error("{} has log format {format}; formats 0 and 4 can be imported", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// As its header says.
        format: u64,
    },
    /// A fixture that leaves its working directory open.
    #[error("{} does not say its working directory; give one with -C", path.display())]
    NoDirectory {
        /// The file.
        path: PathBuf,
    },
    /// An event that cannot be understood.
    #[error("{}, event line {line}: {why}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// 1-based; the header is not counted.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The new log cannot be written.
    #[error(transparent)]
    Store(#[from] OpenError),
}

impl Store {
    /// Makes a session of a log file that DSH wrote. The file is only read.
    ///
    /// The session has the log's id when that is free here and a fresh one otherwise, its time of creation, and its
    /// working directory unless `cwd_override` names another. The stream that format 4 keeps inside a message becomes
    /// `assistant/chunk` events before it.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn import(&self, path: &Path, cwd_override: Option<&Path>) -> Result<Imported, ImportError> {
        let mut source = Source::open(path)?;
        let format = source.format();
        let header = self.imported_header(&source, cwd_override)?;
        let tokens = Tokens::new(&source, &header);
        let mut sink = Sink::new(header.clone(), format);
        if format == 4 {
            let seeded = source.header_flag("isSeeded") || source.header_number("seedLength").is_some();
            if seeded {
                sink.set_seed_length(seed_length(path, &header)?);
            }
            sink.write_to(self.begin(sink.header())?);
            import_format4(&mut source, &mut sink, |_, _| false)?;
        } else {
            sink.write_to(self.begin(&header)?);
            import_format0(&mut source, &mut sink, tokens.as_ref())?;
        }
        let (events, notes) = sink.publish().map_err(|error| OpenError::from(StoreError::Io(error)))?;
        Ok(Imported { id: header.id, format, events, notes })
    }

    fn imported_header(
        &self,
        source: &Source,
        cwd_override: Option<&Path>,
    ) -> Result<SessionHeader, ImportError> {
        let cwd = match (cwd_override, source.header_text("cwd")) {
            (Some(cwd), _) => Some(cwd.to_string_lossy().into_owned()),
            (None, Some(cwd)) if cwd.contains("{{") => {
                return Err(ImportError::NoDirectory { path: source.path().to_owned() });
            }
            (None, cwd) => cwd.map(str::to_owned),
        };
        let mut header = self.fresh_header(cwd);
        if let Some(id) = source.header_text("id").filter(|id| self.is_free(id)) {
            header.id = id.into();
        }
        header.created_at = source.header_number("createdAt").unwrap_or(0);
        header.parent_session =
            source.header_text("parentSession").filter(|id| !id.contains("{{")).map(SessionId::from);
        header.seed_length = source.header_number("seedLength");
        header.origin =
            source.header_text("origin").filter(|origin| *origin == "subagent").map(str::to_owned);
        header.delegation_depth = source.header_number("delegationDepth").unwrap_or(0);
        header.agent_preset = source.header_text("agentPreset").map(str::to_owned);
        Ok(header)
    }

    fn is_free(&self, id: &str) -> bool {
        let usable = key::encode_segment(id).is_some_and(|segment| segment.len() <= MAX_SEGMENT_BYTES);
        usable && !id.contains("{{") && self.find(&id.into()).is_err()
    }
}

/// How many events of the converted log are inherited.
fn seed_length(path: &Path, header: &SessionHeader) -> Result<Option<u64>, ImportError> {
    let mut source = Source::open(path)?;
    let wanted = source.header_number("seedLength");
    let mut sink = Sink::new(header.clone(), 4);
    let mut found = false;
    import_format4(&mut source, &mut sink, |seq, kind| {
        found = wanted.map_or(kind == "session/end-seed", |wanted| seq == wanted);
        found
    })?;
    // Where it stopped, the converted events so far are those of the seed.
    Ok(found.then(|| sink.next_seq()))
}

fn import_format4(
    source: &mut Source,
    sink: &mut Sink,
    mut stop: impl FnMut(u64, &str) -> bool,
) -> Result<(), ImportError> {
    let mut converter = Format4::default();
    loop {
        match source.next_row()? {
            Next::End => return Ok(()),
            Next::Torn => {
                sink.note_torn();
                return Ok(());
            }
            Next::Row(row) if stop(row.seq.unwrap_or(0), &row.kind) => return Ok(()),
            Next::Row(row) => converter.take(row, sink).map_err(|why| source.line_error(why))?,
        }
    }
}

fn import_format0(source: &mut Source, sink: &mut Sink, tokens: Option<&Tokens>) -> Result<(), ImportError> {
    let original_id = source.header_text("id").unwrap_or_default().to_owned();
    while source.next_text()? {
        let text = match tokens.map(|tokens| tokens.fill(source.text(), sink.next_seq())) {
            None => Ok(source.text().to_owned()),
            Some(filled) => filled,
        };
        let row = text
            .map_err(|error| error.to_string())
            .and_then(|text| StoredRow::from_json(&text).map_err(|error: ChunkRowError| error.to_string()));
        match row {
            Ok(row) => take_format0(row, sink, &original_id).map_err(|why| source.line_error(why))?,
            Err(_) if source.is_torn()? => break,
            Err(why) => return Err(source.line_error(why)),
        }
    }
    if source.ended_torn() {
        sink.note_torn();
    }
    Ok(())
}

fn take_format0(row: StoredRow, sink: &mut Sink, original_id: &str) -> Result<(), String> {
    match row {
        StoredRow::Event(event) => take_event(event, sink, original_id),
        StoredRow::Chunks(row) => row.events().try_for_each(|event| take_event(event, sink, original_id)),
    }
}

fn take_event(mut event: Event, sink: &mut Sink, original_id: &str) -> Result<(), String> {
    let expected = sink.next_seq();
    if event.seq != expected {
        return Err(format!(
            "corrupt session log: seq gap in committed region (expected {expected}, got {})",
            event.seq
        ));
    }
    legacy::migrate(&mut event, original_id);
    let time = event.time;
    let original = Original { seq: event.seq, kind: event.kind.clone() };
    sink.emit(Draft::from(event), time, &original).map(drop)
}

/// What an event was before it was converted.
struct Original {
    seq: u64,
    kind: String,
}

/// A value as JSON text.
fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
