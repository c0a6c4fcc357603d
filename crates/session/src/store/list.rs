//! Listing sessions from the heads and tails of their logs.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use lorimer_protocol::{Event, SessionHeader, SessionTitle};

use super::LOG_FILE;
use super::reader::header_of;

/// How much of each end of a log is looked at for a title.
const PEEK_BYTES: u64 = 64 * 1024;

/// What a list shows of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// The header.
    pub header: SessionHeader,
    /// The latest title near the ends of the log.
    pub title: Option<String>,
    /// Last write, epoch milliseconds.
    pub updated_at: u64,
    /// Size of the log in bytes.
    pub size_bytes: u64,
    /// The log.
    pub path: PathBuf,
}

pub(super) fn project_directories(root: &Path) -> impl Iterator<Item = PathBuf> {
    directories(root)
}

pub(super) fn session_directories(root: &Path) -> impl Iterator<Item = PathBuf> {
    directories(root)
        .flat_map(|project| directories(&project))
        .filter(|session| session.join(LOG_FILE).is_file())
}

fn directories(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()).then(|| entry.path()))
}

pub(super) fn list(root: &Path, cwd: Option<&Path>) -> Vec<SessionSummary> {
    let wanted = cwd.map(|cwd| cwd.to_string_lossy().into_owned());
    let mut all: Vec<SessionSummary> = match &wanted {
        Some(cwd) => directories(&root.join(super::project_key(cwd)))
            .filter_map(|session| summary(&session.join(LOG_FILE)))
            .filter(|summary| summary.header.cwd.as_ref() == Some(cwd))
            .collect(),
        None => session_directories(root).filter_map(|session| summary(&session.join(LOG_FILE))).collect(),
    };
    all.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then_with(|| b.header.id.cmp(&a.header.id)));
    all
}

fn summary(path: &Path) -> Option<SessionSummary> {
    let header = header_of(path).ok()?;
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let updated = metadata.modified().ok()?;
    Some(SessionSummary {
        title: title(&mut file, metadata.len()),
        header,
        updated_at: epoch_ms(updated),
        size_bytes: metadata.len(),
        path: path.to_owned(),
    })
}

fn epoch_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos() / 1_000_000).unwrap_or(u64::MAX)
}

/// The last title in the tail, else the last in the head.
fn title(file: &mut File, length: u64) -> Option<String> {
    let tail_start = length.saturating_sub(PEEK_BYTES);
    let tail = last_title(&read_at(file, tail_start)?);
    if tail.is_some() || tail_start == 0 {
        return tail;
    }
    last_title(&read_at(file, 0)?)
}

fn read_at(file: &mut File, start: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).ok()?;
    file.take(PEEK_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn last_title(bytes: &[u8]) -> Option<String> {
    bytes
        .split(|byte| *byte == b'\n')
        .rev()
        .filter(|line| line.starts_with(b"{\"type\":\"session/title\""))
        .find_map(|line| {
            let event = Event::from_json(std::str::from_utf8(line).ok()?).ok()?;
            Some(event.data_as::<SessionTitle>().ok()??.title)
        })
}
