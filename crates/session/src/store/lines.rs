//! The lines of a log, from either encoding, in bounded memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::encoding::Compression;
use super::frames::{Fill, Frames, MAX_PROBED_BYTES, frame_follows};

/// Read-ahead of a log.
pub(super) const BUFFER_BYTES: usize = 256 * 1024;

/// What reading a line came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextLine {
    /// A whole line, without its end.
    Line,
    /// Nothing is left.
    End,
    /// What is left was not written whole.
    Torn,
    /// What is left is damaged, and more was written after it.
    Damaged(String),
}

/// How much is read before a log is refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Longest line in bytes.
    pub line_bytes: u64,
    /// All lines together in bytes, as they are after decompression.
    pub total_bytes: u64,
}

impl Limits {
    /// For logs of this store, which its own writers made.
    pub const NONE: Self = Self { line_bytes: u64::MAX - 1, total_bytes: u64::MAX };
}

/// Reads line after line.
pub(super) struct LogLines {
    source: Source,
    limits: Limits,
    read_bytes: u64,
}

enum Source {
    Plain(PlainLines),
    Zstd(Box<FrameLines>),
}

struct PlainLines {
    reader: BufReader<File>,
    accepted: u64,
}

struct FrameLines {
    file: File,
    frames: Frames<BufReader<File>>,
    decoded: Vec<u8>,
    position: usize,
    /// Lines of the frame that is being decoded; they are lost with it when it is cut off.
    recovered: Vec<u8>,
}

impl LogLines {
    /// The lines of a file from its beginning.
    pub fn new(
        mut file: File,
        compression: Compression,
        limits: Limits,
        buffer_bytes: usize,
    ) -> std::io::Result<Self> {
        file.seek(SeekFrom::Start(0))?;
        let source = match compression {
            Compression::None => Source::Plain(PlainLines {
                reader: BufReader::with_capacity(buffer_bytes, file),
                accepted: 0,
            }),
            Compression::Zstd => Source::Zstd(Box::new(FrameLines {
                // Both share a position: the second is used only after the first has met a broken frame.
                frames: Frames::new(BufReader::with_capacity(buffer_bytes, file.try_clone()?))?,
                file,
                decoded: Vec::new(),
                position: 0,
                recovered: Vec::new(),
            })),
        };
        Ok(Self { source, limits, read_bytes: 0 })
    }

    /// Reads the next line into `line`.
    pub fn next(&mut self, line: &mut Vec<u8>) -> std::io::Result<NextLine> {
        line.clear();
        let next = match &mut self.source {
            Source::Plain(lines) => lines.next(line, self.limits.line_bytes)?,
            Source::Zstd(lines) => lines.next(line, self.limits.line_bytes)?,
        };
        self.read_bytes += line.len() as u64 + 1;
        if self.read_bytes > self.limits.total_bytes {
            let why = format!("holds more than {} bytes", self.limits.total_bytes);
            return Ok(NextLine::Damaged(why));
        }
        Ok(next)
    }

    /// Says that the line was understood, so that it stays when what follows is cut off.
    pub fn accept(&mut self, line: &[u8]) {
        match &mut self.source {
            Source::Plain(lines) => lines.accepted += line.len() as u64 + 1,
            Source::Zstd(lines) => {
                lines.recovered.extend_from_slice(line);
                lines.recovered.push(b'\n');
            }
        }
    }

    /// Whether a line that is no row is a torn last line rather than damage.
    pub fn is_torn_tail(&mut self) -> std::io::Result<bool> {
        match &mut self.source {
            Source::Plain(lines) => Ok(lines.reader.fill_buf()?.is_empty()),
            Source::Zstd(lines) => lines.rest_is_torn(),
        }
    }

    /// Where a torn tail begins in the file, and the whole lines that are lost when it is cut off there.
    pub fn cut(self) -> (u64, Vec<u8>) {
        match self.source {
            Source::Plain(lines) => (lines.accepted, Vec::new()),
            Source::Zstd(lines) => (lines.frames.frame_start(), lines.recovered),
        }
    }
}

impl PlainLines {
    fn next(&mut self, line: &mut Vec<u8>, limit: u64) -> std::io::Result<NextLine> {
        let length = self.reader.by_ref().take(limit + 1).read_until(b'\n', line)?;
        if length == 0 {
            return Ok(NextLine::End);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            return Ok(NextLine::Line);
        }
        Ok(if length as u64 > limit { too_long(limit) } else { NextLine::Torn })
    }
}

impl FrameLines {
    fn next(&mut self, line: &mut Vec<u8>, limit: u64) -> std::io::Result<NextLine> {
        loop {
            let rest = &self.decoded[self.position..];
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                line.extend_from_slice(&rest[..end]);
                self.position += end + 1;
                return Ok(if line.len() as u64 > limit { too_long(limit) } else { NextLine::Line });
            }
            line.extend_from_slice(rest);
            self.decoded.clear();
            self.position = 0;
            if line.len() as u64 > limit {
                return Ok(too_long(limit));
            }
            match self.frames.fill(&mut self.decoded)? {
                Fill::Data => {}
                Fill::FrameEnd if line.is_empty() => self.recovered.clear(),
                Fill::FrameEnd => {
                    return Ok(NextLine::Damaged(
                        "complete Zstandard frame contains a torn JSONL record".to_owned(),
                    ));
                }
                Fill::End => return Ok(NextLine::End),
                Fill::Broken(why) => return self.broken(why),
            }
        }
    }

    fn broken(&self, why: String) -> std::io::Result<NextLine> {
        if frame_follows(&self.file, self.frames.frame_start())? {
            return Ok(NextLine::Damaged(why));
        }
        Ok(NextLine::Torn)
    }

    fn rest_is_torn(&mut self) -> std::io::Result<bool> {
        let mut probed = 0;
        while probed < MAX_PROBED_BYTES {
            self.decoded.clear();
            self.position = 0;
            match self.frames.fill(&mut self.decoded)? {
                Fill::Data => probed += self.decoded.len() as u64,
                Fill::FrameEnd | Fill::End => return Ok(false),
                Fill::Broken(why) => return Ok(self.broken(why)? == NextLine::Torn),
            }
        }
        Ok(false)
    }
}

fn too_long(limit: u64) -> NextLine {
    NextLine::Damaged(format!("a line is longer than {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(bytes: &[u8], compression: Compression, limits: Limits) -> LogLines {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        LogLines::new(file, compression, limits, 16).expect("opens")
    }

    #[test]
    fn limits_hold_for_lines_and_for_the_whole() {
        let limits = Limits { line_bytes: 10, total_bytes: 30 };
        let text = format!("{}\n{}\n", "a".repeat(10), "b".repeat(11));
        for compression in [Compression::None, Compression::Zstd] {
            let bytes = |text: &str| match compression {
                Compression::None => text.as_bytes().to_vec(),
                Compression::Zstd => zstd::encode_all(text.as_bytes(), 1).expect("a frame"),
            };
            let mut line = Vec::new();
            let mut read = lines(&bytes(&text), compression, limits);
            assert_eq!(read.next(&mut line).expect("reads"), NextLine::Line);
            assert_eq!(read.next(&mut line).expect("reads"), too_long(10));
            let mut read = lines(&bytes(&"1234567\n".repeat(9)), compression, limits);
            let ends = std::iter::from_fn(|| Some(read.next(&mut line).expect("reads")));
            let good = ends.take_while(|next| *next == NextLine::Line).count();
            assert_eq!(good, 3, "{compression:?}");
        }
    }
}
