//! Zstandard frames, one after the other, decoded in bounded memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Decoded bytes of one look.
const OUT_BYTES: usize = 128 * 1024;
/// Bytes that begin a frame.
pub(super) const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// How many places that look like a frame's beginning are tried after a broken one.
const MAX_CANDIDATES: usize = 64;
/// How much of a frame is decoded to tell whether it is whole, in bytes: one that is good for so long counts as whole.
pub(super) const MAX_PROBED_BYTES: u64 = 64 * 1024 * 1024;
/// Read-ahead while looking for a later frame.
const SEARCH_BYTES: usize = 64 * 1024;

/// What decoding came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fill {
    /// More bytes were decoded.
    Data,
    /// A frame ended whole.
    FrameEnd,
    /// The file ended after a whole frame.
    End,
    /// The frame is cut off or its bytes are wrong.
    Broken(String),
}

/// Decodes frame after frame.
pub(super) struct Frames<R> {
    input: R,
    decoder: Decoder<'static>,
    out: Vec<u8>,
    consumed: u64,
    frame_start: u64,
    in_frame: bool,
    ended: bool,
    broken: Option<String>,
}

impl<R: BufRead> Frames<R> {
    pub fn new(input: R) -> std::io::Result<Self> {
        Ok(Self {
            input,
            decoder: Decoder::new()?,
            out: vec![0; OUT_BYTES],
            consumed: 0,
            frame_start: 0,
            in_frame: false,
            ended: false,
            broken: None,
        })
    }

    /// Where the frame that is being decoded begins in the file.
    pub fn frame_start(&self) -> u64 {
        self.frame_start
    }

    /// Decodes some more and appends it to `into`.
    pub fn fill(&mut self, into: &mut Vec<u8>) -> std::io::Result<Fill> {
        loop {
            if let Some(why) = &self.broken {
                return Ok(Fill::Broken(why.clone()));
            }
            if std::mem::take(&mut self.ended) {
                self.frame_start = self.consumed;
                return Ok(Fill::FrameEnd);
            }
            let input = self.input.fill_buf()?;
            let at_end = input.is_empty();
            if at_end && !self.in_frame {
                return Ok(Fill::End);
            }
            let mut source = InBuffer::around(input);
            let mut target = OutBuffer::around(self.out.as_mut_slice());
            let hint = self.decoder.run(&mut source, &mut target);
            let (taken, made) = (source.pos(), target.pos());
            self.input.consume(taken);
            self.consumed += taken as u64;
            self.in_frame = true;
            into.extend_from_slice(&self.out[..made]);
            match hint {
                Ok(0) => (self.in_frame, self.ended) = (false, true),
                Ok(_) if at_end && made == 0 => self.broken = Some("the last frame is cut off".to_owned()),
                Ok(_) => {}
                Err(error) => self.broken = Some(error.to_string()),
            }
            if made > 0 {
                return Ok(Fill::Data);
            }
        }
    }
}

/// Whether a whole frame of JSON lines begins anywhere in `file` after `start`.
pub(super) fn frame_follows(file: &File, start: u64) -> std::io::Result<bool> {
    let mut position = start + 1;
    for _ in 0..MAX_CANDIDATES {
        let Some(candidate) = find_magic(file, position)? else {
            return Ok(false);
        };
        if is_whole_frame(file, candidate)? {
            return Ok(true);
        }
        position = candidate + 1;
    }
    Ok(false)
}

fn find_magic(mut file: &File, start: u64) -> std::io::Result<Option<u64>> {
    let mut window = vec![0; SEARCH_BYTES];
    let mut position = start;
    loop {
        file.seek(SeekFrom::Start(position))?;
        let mut filled = 0;
        while filled < window.len() {
            match file.read(&mut window[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        if let Some(at) = window[..filled].windows(MAGIC.len()).position(|bytes| bytes == MAGIC) {
            return Ok(Some(position + at as u64));
        }
        if filled < window.len() {
            return Ok(None);
        }
        position += (filled - (MAGIC.len() - 1)) as u64;
    }
}

fn is_whole_frame(mut file: &File, start: u64) -> std::io::Result<bool> {
    file.seek(SeekFrom::Start(start))?;
    let mut frames = Frames::new(BufReader::new(file))?;
    let mut decoded = Vec::new();
    let (mut is_text, mut probed) = (None, 0);
    while probed < MAX_PROBED_BYTES {
        match frames.fill(&mut decoded)? {
            Fill::Data => {
                probed += decoded.len() as u64;
                is_text.get_or_insert(decoded.starts_with(b"{"));
                if is_text == Some(false) {
                    return Ok(false);
                }
                decoded.clear();
            }
            Fill::FrameEnd => return Ok(is_text == Some(true)),
            Fill::End | Fill::Broken(_) => return Ok(false),
        }
    }
    Ok(true)
}

/// The last bytes of a compressed log, decoded from the first whole frame in them.
pub(super) fn decode_tail(tail: &[u8], limit: usize) -> Option<Vec<u8>> {
    let starts = tail.windows(MAGIC.len()).enumerate().filter(|(_, bytes)| *bytes == MAGIC);
    starts.take(MAX_CANDIDATES).find_map(|(start, _)| decode_all(&tail[start..], limit))
}

/// Decodes whole frames; the last `limit` bytes are kept. `None` when they are not frames to the end.
fn decode_all(frames: &[u8], limit: usize) -> Option<Vec<u8>> {
    let mut frames = Frames::new(frames).ok()?;
    let mut decoded = Vec::new();
    loop {
        match frames.fill(&mut decoded).ok()? {
            Fill::Data if decoded.len() > 2 * limit => drop(decoded.drain(..decoded.len() - limit)),
            Fill::Data | Fill::FrameEnd => {}
            Fill::End => return Some(decoded),
            Fill::Broken(_) => return None,
        }
    }
}
