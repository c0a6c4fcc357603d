//! One output stream of a command: what is kept in memory, and the spill file that has all of it.
//!
//! The spill file appears when the stream no longer fits in memory and then starts at byte 0. A spill that fails is
//! given up and its file removed: a full disk must not fail the command.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::head_tail::HeadTail;
use crate::spec::{CaptureSpec, Captured};

/// How often a new name is tried when the name of a spill file is taken.
const NAME_ATTEMPTS: u32 = 16;

/// Numbers the spill files of this process.
static NEXT_SPILL: AtomicU64 = AtomicU64::new(0);

/// Collects one stream.
#[derive(Debug)]
pub(crate) struct Capture {
    stream: &'static str,
    kept: HeadTail,
    spill: Spill,
    spill_dir: Option<PathBuf>,
    spill_max_bytes: u64,
}

#[derive(Debug)]
enum Spill {
    NotYet,
    Open { file: File, path: PathBuf, written_bytes: u64 },
    Failed,
}

impl Capture {
    /// A capture of the stream called `stream` in the name of its spill file.
    pub(crate) fn new(stream: &'static str, spec: &CaptureSpec) -> Self {
        Self {
            stream,
            kept: HeadTail::new(spec.head_bytes, spec.tail_bytes),
            spill: Spill::NotYet,
            spill_dir: spec.spill_dir.clone(),
            spill_max_bytes: spec.spill_max_bytes,
        }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if let Err(_failed) = self.spill(bytes)
            && let Spill::Open { path, .. } = std::mem::replace(&mut self.spill, Spill::Failed)
        {
            // Nothing is left to be done when even the removal fails; the result names no file either way.
            let _ = fs::remove_file(path);
        }
        self.kept.push(bytes);
    }

    /// What was captured so far.
    pub(crate) fn captured(&self) -> Captured {
        let kept = self.kept.kept();
        let spill_path = match &self.spill {
            Spill::Open { path, .. } => Some(path.clone()),
            Spill::NotYet | Spill::Failed => None,
        };
        Captured {
            text: kept.to_text(),
            truncated: kept.omitted_bytes > 0,
            total_bytes: self.kept.total_bytes(),
            omitted_bytes: kept.omitted_bytes,
            spill_path,
        }
    }

    fn spill(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(dir) = &self.spill_dir else { return Ok(()) };
        if matches!(self.spill, Spill::NotYet) {
            if self.kept.has_room_for(bytes.len()) {
                return Ok(());
            }
            let created = create_spill_file(dir, self.stream);
            self.spill = Spill::Failed;
            let (file, path) = created?;
            self.spill = Spill::Open { file, path, written_bytes: 0 };
            for part in self.kept.held() {
                write_capped(&mut self.spill, part, self.spill_max_bytes)?;
            }
        }
        write_capped(&mut self.spill, bytes, self.spill_max_bytes)
    }
}

/// Appends to an open spill file what still fits under `max_bytes`.
fn write_capped(spill: &mut Spill, bytes: &[u8], max_bytes: u64) -> io::Result<()> {
    let Spill::Open { file, written_bytes, .. } = spill else { return Ok(()) };
    let room_bytes = usize::try_from(max_bytes.saturating_sub(*written_bytes)).unwrap_or(usize::MAX);
    let bytes = &bytes[..bytes.len().min(room_bytes)];
    file.write_all(bytes)?;
    *written_bytes += bytes.len() as u64;
    Ok(())
}

/// Creates a file that only this user can read, in a directory that is made private when it has to be created.
fn create_spill_file(dir: &Path, stream: &str) -> io::Result<(File, PathBuf)> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..NAME_ATTEMPTS {
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let serial = NEXT_SPILL.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{nanos:x}-{}-{serial}.{stream}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => last = taken,
            Err(other) => return Err(other),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn spec(dir: &Path, spill_max_bytes: u64) -> CaptureSpec {
        CaptureSpec { head_bytes: 4, tail_bytes: 4, spill_dir: Some(dir.to_owned()), spill_max_bytes }
    }

    #[test]
    fn a_short_stream_has_no_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut capture = Capture::new("stdout", &spec(&dir.path().join("s"), 100));
        capture.push(b"12345678");
        assert_eq!(capture.captured().spill_path, None);
        assert!(!dir.path().join("s").exists());
    }

    #[test]
    fn a_long_stream_is_in_the_file_from_its_first_byte() {
        let dir = tempfile::tempdir().expect("a directory");
        let spill_dir = dir.path().join("a/b");
        let mut capture = Capture::new("stdout", &spec(&spill_dir, 100));
        for part in ["12345", "678", "9", "abc"] {
            capture.push(part.as_bytes());
        }
        let captured = capture.captured();
        let path = captured.spill_path.expect("a spill file");
        assert_eq!(fs::read(&path).expect("its bytes"), b"123456789abc");
        assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&spill_dir).expect("the directory").permissions().mode() & 0o777, 0o700);
        assert_eq!((captured.total_bytes, captured.omitted_bytes, captured.truncated), (12, 4, true));
    }

    #[test]
    fn the_file_stops_at_its_cap() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut capture = Capture::new("stderr", &spec(dir.path(), 10));
        capture.push(&[b'x'; 9]);
        capture.push(&[b'y'; 9]);
        let path = capture.captured().spill_path.expect("a spill file");
        assert_eq!(fs::read(path).expect("its bytes"), b"xxxxxxxxxy");
    }

    #[test]
    fn a_spill_that_fails_is_given_up() {
        let dir = tempfile::tempdir().expect("a directory");
        let blocked = dir.path().join("file");
        fs::write(&blocked, b"").expect("a file in the way");
        let mut capture = Capture::new("stdout", &spec(&blocked, 100));
        capture.push(&[b'x'; 20]);
        capture.push(&[b'y'; 20]);
        let captured = capture.captured();
        assert_eq!(captured.spill_path, None);
        assert_eq!(captured.total_bytes, 40);
    }
}
