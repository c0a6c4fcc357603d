//! Listing sessions from the heads and tails of their logs.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use lorimer_protocol::{Event, Message, SessionHeader, SessionId, SessionTitle, Source};

use super::encoding::{Compression, LogFile};
use super::frames::{Fill, Frames, decode_tail};

/// How much of each end of a log is looked at, in bytes, as it is after decompression.
const PEEK_BYTES: usize = 64 * 1024;
/// How much of the end of a compressed log is decoded, in bytes of the file.
const ZSTD_TAIL_BYTES: usize = 16 * 1024;
/// Longest first user text that is kept, in characters.
const FIRST_TEXT_CHARS: usize = 200;

/// What a list shows of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// The header.
    pub header: SessionHeader,
    /// The latest title near the ends of the log.
    pub title: Option<String>,
    /// What the person said first, cut to 200 characters, when it is near the beginning of the log.
    pub first_user_text: Option<String>,
    /// The session this one was forked or spawned from.
    pub parent_session: Option<SessionId>,
    /// Last write, epoch milliseconds.
    pub updated_at: u64,
    /// Size of the log in bytes, as it is stored.
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
        .filter(|session| LogFile::find(session).is_some())
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
    let summaries = |project: PathBuf| {
        directories(&project).filter_map(|session| LogFile::find(&session)).filter_map(|log| summary(&log))
    };
    let mut all: Vec<SessionSummary> = match &wanted {
        Some(cwd) => summaries(root.join(super::project_key(cwd)))
            .filter(|summary| summary.header.cwd.as_ref() == Some(cwd))
            .collect(),
        None => directories(root).flat_map(summaries).collect(),
    };
    all.sort_by(|a, b| b.updated_at.cmp(&a.updated_at).then_with(|| b.header.id.cmp(&a.header.id)));
    all
}

/// The logs of a workspace's folder that a list leaves out, because their header cannot be read, with their last write.
pub(super) fn unreadable(root: &Path, cwd: &Path) -> Vec<(PathBuf, u64)> {
    directories(&root.join(super::project_key(&cwd.to_string_lossy())))
        .filter_map(|session| LogFile::find(&session))
        .filter(|log| summary(log).is_none())
        .filter_map(|log| {
            let updated = std::fs::metadata(&log.path).and_then(|metadata| metadata.modified()).ok()?;
            Some((log.path, epoch_ms(updated)))
        })
        .collect()
}

fn summary(log: &LogFile) -> Option<SessionSummary> {
    let mut file = File::open(&log.path).ok()?;
    let metadata = file.metadata().ok()?;
    let updated = metadata.modified().ok()?;
    let head = head(&file, log.compression)?;
    let header_end = head.iter().position(|byte| *byte == b'\n')?;
    let header = SessionHeader::from_json(std::str::from_utf8(&head[..header_end]).ok()?).ok()?;
    let title = tail(&mut file, log.compression, metadata.len())
        .and_then(|tail| last_title(&tail))
        .or_else(|| last_title(&head));
    Some(SessionSummary {
        title,
        first_user_text: first_user_text(&head),
        parent_session: header.parent_session.clone(),
        header,
        updated_at: epoch_ms(updated),
        size_bytes: metadata.len(),
        path: log.path.clone(),
    })
}

fn epoch_ms(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos() / 1_000_000).unwrap_or(u64::MAX)
}

/// The first bytes of a log, decoded.
fn head(file: &File, compression: Compression) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if compression == Compression::None {
        file.take(PEEK_BYTES as u64).read_to_end(&mut bytes).ok()?;
        return Some(bytes);
    }
    let mut frames = Frames::new(BufReader::new(file)).ok()?;
    while bytes.len() < PEEK_BYTES {
        match frames.fill(&mut bytes).ok()? {
            Fill::Data | Fill::FrameEnd => {}
            Fill::End | Fill::Broken(_) => break,
        }
    }
    Some(bytes)
}

/// The last bytes of a log that `head` did not see.
fn tail(file: &mut File, compression: Compression, length: u64) -> Option<Vec<u8>> {
    let peek = if compression == Compression::None { PEEK_BYTES } else { ZSTD_TAIL_BYTES };
    let start = length.checked_sub(peek as u64).filter(|start| *start > 0)?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).ok()?;
    file.take(peek as u64).read_to_end(&mut bytes).ok()?;
    if compression == Compression::None { Some(bytes) } else { decode_tail(&bytes, PEEK_BYTES) }
}

fn last_title(bytes: &[u8]) -> Option<String> {
    bytes
        .split(|byte| *byte == b'\n')
        .rev()
        .filter(|line| line.starts_with(b"{\"type\":\"session/title\""))
        .find_map(|line| Some(event(line)?.data_as::<SessionTitle>().ok()??.title))
}

fn first_user_text(bytes: &[u8]) -> Option<String> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| line.starts_with(b"{\"type\":\"user/message\""))
        .filter_map(|line| event(line)?.data_as::<Message>().ok()?)
        .find(|message| matches!(message.source, Source::User { .. }))
        .map(|message| message.text().chars().take(FIRST_TEXT_CHARS).collect())
}

fn event(line: &[u8]) -> Option<Event> {
    Event::from_json(std::str::from_utf8(line).ok()?).ok()
}
