//! The matching lines of one file, in bounded memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkMatch};

use super::scan::Scan;
use crate::files::{READ_FLAGS, open_without_links};

/// Bytes of a line that are searched. The rest of a longer line is read and forgotten.
pub(super) const MAX_SEARCHED_LINE_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of a matching line that are kept.
pub(super) const MAX_KEPT_LINE_BYTES: usize = 1024 * 1024;
/// Bytes of the searcher's buffer. Decoding from UTF-16 can lengthen a line by half.
const MAX_BUFFER_BYTES: usize = 4 * MAX_SEARCHED_LINE_BYTES;
/// Bytes that a match costs beside its path and line.
const MATCH_OVERHEAD_BYTES: usize = 128;
/// Stands for a line that cannot be shown.
const NOT_UTF8: &str = "(line is not valid UTF-8)";

/// One matching line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundLine {
    /// 1-based.
    pub(super) number: u64,
    /// Without its line end.
    pub(super) text: String,
}

/// A searcher for files that a walk came upon, which ends at a NUL byte, or for a file that the caller named, which
/// takes NUL bytes for line ends.
pub(super) fn searcher(named_by_caller: bool) -> Searcher {
    let binary = if named_by_caller { BinaryDetection::convert(0) } else { BinaryDetection::quit(0) };
    SearcherBuilder::new()
        .line_number(true)
        .binary_detection(binary)
        .heap_limit(Some(MAX_BUFFER_BYTES))
        // A mapped file that is shortened meanwhile would end the process.
        .memory_map(MmapChoice::never())
        .build()
}

/// The matching lines of a file; what was found before an error is kept, and the error noted.
pub(super) fn search(
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    scan: &Scan,
    path: &Path,
    named_by_caller: bool,
) -> Vec<FoundLine> {
    let mut lines = Lines { scan, path_bytes: path.as_os_str().len(), found: Vec::new() };
    let searched = open_regular(scan, path, named_by_caller).and_then(|file| {
        let reader = LineCap::new(file, MAX_SEARCHED_LINE_BYTES, || scan.is_over());
        searcher.search_reader(matcher, reader, &mut lines)
    });
    if let Err(why) = searched
        && !scan.is_over()
        // What has gone meanwhile is not missed.
        && why.kind() != io::ErrorKind::NotFound
    {
        scan.note_unreadable(format!("{}: {why}", scan.place().name_of(path)));
    }
    lines.found
}

/// Opens a regular file without ever waiting for the other end of a pipe or touching a device.
fn open_regular(scan: &Scan, path: &Path, follow_link: bool) -> io::Result<File> {
    let follow = if follow_link { 0 } else { libc::O_NOFOLLOW };
    let file = if scan.has_rules() {
        // What is opened is what the rules were asked about: a link on the way leads nowhere.
        File::from(open_without_links(&scan.place().real_path_of(path), READ_FLAGS)?)
    } else {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | follow).open(path)?
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    // A walk has no business in the kernel's tables, of this process least of all.
    if !follow_link && is_of_the_kernel(&file) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(file)
}

#[cfg(target_os = "linux")]
fn is_of_the_kernel(file: &File) -> bool {
    // `PROC_SUPER_MAGIC` of the kernel's headers.
    rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type == 0x9fa0)
}

#[cfg(not(target_os = "linux"))]
fn is_of_the_kernel(_file: &File) -> bool {
    false
}

/// Collects matching lines.
struct Lines<'a> {
    scan: &'a Scan,
    path_bytes: usize,
    found: Vec<FoundLine>,
}

impl Sink for &mut Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let line = found.bytes();
        if !self.scan.count(self.path_bytes + line.len().min(MAX_KEPT_LINE_BYTES) + MATCH_OVERHEAD_BYTES) {
            return Ok(false);
        }
        self.found.push(FoundLine { number: found.line_number().unwrap_or(0), text: text_of(line) });
        Ok(!self.scan.is_over())
    }
}

/// A line as text, without its line end and not longer than is kept.
fn text_of(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").map_or(line, |line| line.strip_suffix(b"\r").unwrap_or(line));
    let kept = &line[..line.len().min(MAX_KEPT_LINE_BYTES)];
    match std::str::from_utf8(kept) {
        Ok(text) => text.to_owned(),
        // The cut went through a character.
        Err(why) if kept.len() < line.len() && why.error_len().is_none() => {
            String::from_utf8_lossy(&kept[..why.valid_up_to()]).into_owned()
        }
        Err(_) => NOT_UTF8.to_owned(),
    }
}

/// A reader that drops what is beyond a line's limit, and fails when the search is over.
struct LineCap<R, F> {
    inner: R,
    max_line_bytes: usize,
    /// Bytes of the current line that were read, those that were dropped included.
    column: usize,
    is_over: F,
}

impl<R: Read, F: Fn() -> bool> LineCap<R, F> {
    fn new(inner: R, max_line_bytes: usize, is_over: F) -> Self {
        Self { inner, max_line_bytes, column: 0, is_over }
    }

    /// Moves what is within the limit to the front and returns its length.
    fn compact(&mut self, chunk: &mut [u8]) -> usize {
        let (mut from, mut to) = (0, 0);
        while from < chunk.len() {
            let line_end = chunk[from..].iter().position(|byte| *byte == b'\n').map(|offset| from + offset);
            let text_end = line_end.unwrap_or(chunk.len());
            let kept = (text_end - from).min(self.max_line_bytes.saturating_sub(self.column));
            chunk.copy_within(from..from + kept, to);
            to += kept;
            self.column = self.column.saturating_add(text_end - from);
            from = text_end;
            if line_end.is_some() {
                chunk[to] = b'\n';
                to += 1;
                from += 1;
                self.column = 0;
            }
        }
        to
    }
}

impl<R: Read, F: Fn() -> bool> Read for LineCap<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if (self.is_over)() {
                return Err(io::Error::other("the search is over"));
            }
            let read = self.inner.read(buffer)?;
            let chunk = &mut buffer[..read];
            if self.column.saturating_add(read) <= self.max_line_bytes {
                // No line in here can be too long.
                self.column = match chunk.iter().rposition(|byte| *byte == b'\n') {
                    Some(line_end) => read - line_end - 1,
                    None => self.column + read,
                };
                return Ok(read);
            }
            let kept = self.compact(chunk);
            if kept > 0 || read == 0 {
                return Ok(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads at most `step` bytes at a time.
    struct Steps<'a>(&'a [u8], usize);

    impl Read for Steps<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let step = self.1.min(buffer.len());
            self.0.read(&mut buffer[..step])
        }
    }

    fn capped(text: &[u8], max_line_bytes: usize, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        LineCap::new(Steps(text, step), max_line_bytes, || false).read_to_end(&mut out).expect("reads");
        out
    }

    proptest! {
        #[test]
        fn every_line_keeps_its_beginning(
            lines in proptest::collection::vec("[a-c]{0,12}", 0..8),
            max_line_bytes in 1_usize..10,
            step in 1_usize..20,
        ) {
            let text = lines.join("\n");
            let expected: Vec<&str> = lines.iter().map(|line| &line[..line.len().min(max_line_bytes)]).collect();
            prop_assert_eq!(capped(text.as_bytes(), max_line_bytes, step), expected.join("\n").into_bytes());
        }
    }

    #[test]
    fn a_reader_ends_with_its_search() {
        let mut reader = LineCap::new(io::repeat(b'x'), 4, || true);
        assert!(reader.read(&mut [0; 16]).is_err());
    }

    #[test]
    fn line_ends_are_removed() {
        assert_eq!(text_of(b"a\n"), "a");
        assert_eq!(text_of(b"a\r\n"), "a");
        assert_eq!(text_of(b"a\r"), "a\r");
        assert_eq!(text_of(b"a\n\n"), "a\n");
        assert_eq!(text_of(b"\xff\n"), NOT_UTF8);
    }

    #[test]
    fn a_kept_line_ends_between_characters() {
        let line = format!("x{}", "é".repeat(MAX_KEPT_LINE_BYTES / 2));
        assert_eq!(text_of(line.as_bytes()).len(), MAX_KEPT_LINE_BYTES - 1);
    }
}
