//! How a log is encoded on disk: plain JSON lines, or the same lines in Zstandard frames.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lorimer_protocol::{Event, MIN_PACKED_RUN, PackedRow, SessionHeader, pack_borrowed};

/// File name of a plain log.
const PLAIN_FILE: &str = "session.jsonl";
/// File name of a compressed log.
const ZSTD_FILE: &str = "session.jsonl.zstd";
/// Zstandard's effort, 1 to 22; its own default.
const ZSTD_LEVEL: i32 = 3;

/// About as much as the envelope of an event takes, for room.
const ENVELOPE_BYTES: usize = 160;

/// How new logs are written. Logs are read in either encoding whatever this says, and go on in their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// `session.jsonl`: JSON lines.
    #[default]
    None,
    /// `session.jsonl.zstd`: concatenated frames with checksums, the header line in the first, a batch in each other.
    Zstd,
}

/// The log file of a session folder.
#[derive(Clone, Debug)]
pub(super) struct LogFile {
    pub path: PathBuf,
    pub compression: Compression,
}

impl LogFile {
    /// Where a log of this encoding is in a session folder.
    pub fn named(directory: &Path, compression: Compression) -> Self {
        let name = match compression {
            Compression::None => PLAIN_FILE,
            Compression::Zstd => ZSTD_FILE,
        };
        Self { path: directory.join(name), compression }
    }

    /// The log that a session folder holds.
    pub fn find(directory: &Path) -> Option<Self> {
        [Compression::None, Compression::Zstd]
            .into_iter()
            .map(|compression| Self::named(directory, compression))
            .find(|log| log.path.is_file())
    }

    /// The log's path with something after its name.
    pub fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    }
}

/// Turns headers and batches of events into the bytes of a log.
pub(super) struct RowEncoder {
    pack_chunks: bool,
    compression: Compression,
}

impl RowEncoder {
    pub fn new(compression: Compression, pack_chunks: bool) -> Self {
        Self { pack_chunks, compression }
    }

    /// The header's bytes: one line, in a frame of its own when compressed.
    pub fn header(&self, header: &SessionHeader) -> std::io::Result<Vec<u8>> {
        let mut line = header.to_json().into_bytes();
        line.push(b'\n');
        self.frame(line)
    }

    /// The bytes of one batch.
    pub fn batch(&self, events: &[Arc<Event>]) -> std::io::Result<Vec<u8>> {
        let size: usize = events.iter().map(|event| event.data.get().len() + ENVELOPE_BYTES).sum();
        let mut lines = Vec::with_capacity(size);
        self.lines(&mut lines, events);
        self.frame(lines)
    }

    /// Appends the lines of some events, packed when that is wanted.
    pub fn lines(&self, out: &mut Vec<u8>, events: &[Arc<Event>]) {
        let is_chunk = |event: &Arc<Event>| event.kind == "assistant/chunk";
        // Only chunks that follow each other are ever packed, and few of them never are.
        for run in events.chunk_by(|a, b| is_chunk(a) && is_chunk(b)) {
            if !self.pack_chunks || run.len() < MIN_PACKED_RUN {
                run.iter().for_each(|event| write_event(out, event));
                continue;
            }
            for row in pack_borrowed(run.iter().map(Arc::as_ref)) {
                match row {
                    PackedRow::Event(event) => write_event(out, event),
                    PackedRow::Chunks(chunks) => {
                        out.extend_from_slice(chunks.to_json().as_bytes());
                        out.push(b'\n');
                    }
                }
            }
        }
    }

    /// Whole lines as they go to the file: unchanged, or one frame.
    pub fn frame(&self, lines: Vec<u8>) -> std::io::Result<Vec<u8>> {
        match self.compression {
            Compression::None => Ok(lines),
            Compression::Zstd if lines.is_empty() => Ok(lines),
            Compression::Zstd => {
                let mut compressor = zstd::bulk::Compressor::new(ZSTD_LEVEL)?;
                compressor.include_checksum(true)?;
                compressor.compress(&lines)
            }
        }
    }
}

fn write_event(out: &mut Vec<u8>, event: &Event) {
    let before = out.len();
    if serde_json::to_writer(&mut *out, event).is_err() {
        out.truncate(before);
        return;
    }
    out.push(b'\n');
}
