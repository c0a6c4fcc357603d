//! New sessions from the beginning of old ones: forks, and what a damaged log still holds.

use std::path::Path;
use std::sync::Arc;

use lorimer_protocol::{Draft, EndSeed, Event, SessionHeader, SessionId, StoredRow};
use thiserror::Error;

use super::encoding::LogFile;
use super::lines::{LogLines, NextLine};
use super::open::{OpenError, Problem};
use super::prefix::Prefix;
use super::publish::NewLog;
use super::reader::{LineError, Scan, ScanEnd, open_lines, open_lines_or, scan_or};
use super::{Store, StoreError};
use crate::attachments::Attachments;
use crate::fold::closers;
use crate::live::now_ms;

/// Where the inherited part of a fork ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// With the last event of the log.
    End,
    /// With the end of this turn.
    Turn(u64),
    /// With this event.
    Seq(u64),
}

/// A fork that cannot be made. Nothing was changed.
#[derive(Debug, Error)]
pub enum ForkError {
    /// The parent cannot be read, or the child cannot be written.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The event is not in the log.
    #[error("fork boundary {boundary} does not exist in session \"{session}\" (last seq: {last_seq})")]
    NoSuchEvent {
        /// As it was asked for.
        boundary: u64,
        /// The parent.
        session: SessionId,
        /// What there is.
        last_seq: u64,
    },
    /// The turn has not ended in the log.
    #[error("turn {turn} has not ended in session \"{session}\" (last ended turn: {last_turn})")]
    NoSuchTurn {
        /// As it was asked for.
        turn: u64,
        /// The parent.
        session: SessionId,
        /// What there is.
        last_turn: u64,
    },
    /// The part before the boundary would end inside a turn.
    #[error("fork boundary {boundary} of session \"{session}\" ends inside open turn {turn}")]
    OpenTurn {
        /// Seq of the boundary.
        boundary: u64,
        /// The parent.
        session: SessionId,
        /// The turn.
        turn: u64,
    },
    /// The log is damaged, or not understood, before the boundary.
    #[error("session \"{session}\" cannot be forked there: {problem}")]
    Problem {
        /// The parent.
        session: SessionId,
        /// What is wrong.
        problem: Problem,
    },
}

/// A session made of what a damaged log still holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The new session.
    pub new_id: SessionId,
    /// How many events it keeps, closers of an interrupted turn not counted.
    pub kept_events: u64,
    /// What is not in it, for a person.
    pub dropped: String,
}

/// A repair that cannot be made. Nothing was changed.
#[derive(Debug, Error)]
pub enum RepairError {
    /// The log cannot be read at all, or the new one cannot be written.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log is whole; a torn tail is mended when it is opened.
    #[error("session \"{0}\" is whole: there is nothing to repair")]
    NothingToRepair(SessionId),
    /// The very first event cannot be understood.
    #[error("nothing of session \"{session}\" can be kept: {problem}")]
    NothingToKeep {
        /// The session.
        session: SessionId,
        /// What is wrong.
        problem: Problem,
    },
}

impl Store {
    /// A new session that begins with the events of another up to `point`, byte for byte.
    ///
    /// The parent may be open elsewhere: it is only read. Nothing of the child is seen before it is whole.
    ///
    /// # Errors
    /// See [`ForkError`].
    pub fn fork(&self, id: &SessionId, point: ForkPoint) -> Result<SessionId, ForkError> {
        let parent = self.find(id).map_err(OpenError::from)?;
        let length = prefix_length(&parent, point)?;
        let (mut lines, header) = open_lines(&parent)?;
        let child = SessionHeader {
            parent_session: Some(header.header.id),
            seed_length: Some(length),
            ..self.fresh_header(header.header.cwd)
        };
        let mut new = self.begin(&child)?;
        let marked = copy_prefix(&parent.path, &mut lines, length, &mut new)?;
        if !marked {
            let marker = Draft::new(&EndSeed {}).into_event(length, now_ms());
            new.push(Arc::new(marker)).map_err(StoreError::Io).map_err(OpenError::from)?;
        }
        new.publish().map_err(StoreError::Io).map_err(OpenError::from)?;
        self.share_images(&parent, &child.id);
        Ok(child.id)
    }

    /// A fork shows the images of its parent. They never change, so a second name for the same file is enough; one
    /// that cannot be given is told to the model by its placeholder.
    fn share_images(&self, parent: &LogFile, child: &SessionId) {
        let (Some(from), Ok(log)) = (parent.path.parent(), self.find(child)) else {
            return;
        };
        if let Some(to) = log.path.parent() {
            let _ = Attachments::of(from).share_with(&Attachments::of(to));
        }
    }

    /// Puts what can be kept of a log that opens only for reading into a new session: everything before the first line
    /// that is damaged or not understood, and closers for the turn that this interrupts. The old log stays as it is.
    /// `workspace` is taken for the workspace of a log whose header is damaged and cannot tell.
    ///
    /// # Errors
    /// See [`RepairError`].
    pub fn repair(&self, id: &SessionId, workspace: &Path) -> Result<Repaired, RepairError> {
        let old = self.find(id).map_err(OpenError::from)?;
        let stand_in = self.fresh_header(Some(workspace.to_string_lossy().into_owned()));
        let Scan { log, lines: good_lines, end, header_lost, .. } = scan_or(&old, Some(&stand_in))?;
        let problem = match end {
            ScanEnd::Damaged(problem) => Some(problem),
            _ if header_lost => None,
            _ => return Err(RepairError::NothingToRepair(id.clone())),
        };
        let kept_events = log.next_seq();
        if kept_events == 0 {
            let nothing =
                || Problem::Damaged { line: 1, why: "nothing follows the damaged header".to_owned() };
            let problem = problem.unwrap_or_else(nothing);
            return Err(RepairError::NothingToKeep { session: id.clone(), problem });
        }
        let header = SessionHeader {
            id: self.fresh_header(None).id,
            parent_session: Some(id.clone()),
            seed_length: log.header().seed_length.map(|length| length.min(kept_events)),
            ..log.header().clone()
        };
        let mut new = self.begin(&header)?;
        let (mut lines, _) = open_lines_or(&old, Some(&stand_in))?;
        copy_prefix(&old.path, &mut lines, kept_events, &mut new)?;
        let written = closers(&log)
            .into_iter()
            .try_for_each(|event| new.push(Arc::new(event)))
            .and_then(|()| new.publish());
        written.map_err(StoreError::Io).map_err(OpenError::from)?;
        self.share_images(&old, &header.id);
        let header_text = header_lost.then(|| "its header, which is damaged".to_owned());
        let rest =
            problem.map(|problem| format!("everything from event line {} on: {problem}", good_lines + 1));
        let dropped = header_text.into_iter().chain(rest).collect::<Vec<_>>().join("; ");
        Ok(Repaired { new_id: header.id, kept_events, dropped })
    }

    /// A header for a session that is made now.
    pub(super) fn fresh_header(&self, cwd: Option<String>) -> SessionHeader {
        let id = SessionId(uuid::Uuid::new_v4().to_string());
        SessionHeader::new(id, u64::try_from(now_ms()).unwrap_or(0), cwd)
    }

    pub(super) fn begin(&self, header: &SessionHeader) -> Result<NewLog, OpenError> {
        let directory = self.directory_of(header.cwd.as_deref(), &header.id)?;
        NewLog::begin(&directory, header, &self.options).map_err(|error| StoreError::Io(error).into())
    }
}

/// How many events of the parent the fork inherits.
fn prefix_length(parent: &LogFile, point: ForkPoint) -> Result<u64, ForkError> {
    let (lines, header) = open_lines(parent)?;
    let session = header.header.id.clone();
    let mut reader = PrefixReader { path: &parent.path, session: header.header.id, lines, number: 0 };
    let mut prefix = Prefix::default();
    let mut line = header.line;
    let reached = |prefix: &Prefix| match point {
        ForkPoint::End => false,
        ForkPoint::Turn(turn) => turn > 0 && prefix.ended_turn == turn,
        ForkPoint::Seq(seq) => prefix.events > seq,
    };
    while !reached(&prefix) && reader.advance(&mut prefix, &mut line)? {}
    if !reached(&prefix) {
        match point {
            ForkPoint::End => {}
            ForkPoint::Turn(turn) => {
                return Err(ForkError::NoSuchTurn { turn, session, last_turn: prefix.ended_turn });
            }
            ForkPoint::Seq(boundary) => {
                let last_seq = prefix.events.saturating_sub(1);
                return Err(ForkError::NoSuchEvent { boundary, session, last_seq });
            }
        }
    }
    let length = if let ForkPoint::Seq(boundary) = point { boundary + 1 } else { prefix.events };
    match prefix.open_turn {
        Some(turn) => Err(ForkError::OpenTurn { boundary: length.saturating_sub(1), session, turn }),
        None => Ok(length),
    }
}

struct PrefixReader<'a> {
    path: &'a Path,
    session: SessionId,
    lines: LogLines,
    number: u64,
}

impl PrefixReader<'_> {
    /// Counts the events of the next line; `false` at the end or at a tail that was not written whole.
    fn advance(&mut self, prefix: &mut Prefix, line: &mut Vec<u8>) -> Result<bool, ForkError> {
        let io = |error: std::io::Error| OpenError::io(self.path, &error);
        self.number += 1;
        let number = self.number;
        let problem = match self.lines.next(line).map_err(io)? {
            NextLine::End | NextLine::Torn => return Ok(false),
            NextLine::Damaged(why) => Problem::Damaged { line: number, why },
            NextLine::Line => match prefix.advance(line) {
                Ok(()) => return Ok(true),
                Err(LineError::Problem(why)) => Problem::NotUnderstood { line: number, why },
                Err(LineError::Unparsable(_)) if self.lines.is_torn_tail().map_err(io)? => return Ok(false),
                Err(LineError::Unparsable(why)) => Problem::Damaged { line: number, why },
            },
        };
        Err(ForkError::Problem { session: self.session.clone(), problem })
    }
}

/// Copies the lines of the first `length` events; says whether the last of them marks the end of a seed.
fn copy_prefix(path: &Path, lines: &mut LogLines, length: u64, new: &mut NewLog) -> Result<bool, OpenError> {
    let mut line = Vec::new();
    let mut prefix = Prefix::default();
    let written = |error: std::io::Error| OpenError::from(StoreError::Io(error));
    while prefix.events < length {
        let next = lines.next(&mut line).map_err(|error| OpenError::io(path, &error))?;
        let before = prefix.events;
        if next != NextLine::Line || prefix.advance(&line).is_err() {
            let error = std::io::Error::other("the log changed while it was read");
            return Err(OpenError::io(path, &error));
        }
        if prefix.events <= length {
            new.push_line(&line).map_err(written)?;
        } else {
            for event in members(&line).into_iter().take((length - before) as usize) {
                new.push(Arc::new(event)).map_err(written)?;
            }
        }
    }
    Ok(prefix.marked && prefix.events == length)
}

/// The events of a packed row that the boundary divides.
fn members(line: &[u8]) -> Vec<Event> {
    std::str::from_utf8(line)
        .ok()
        .and_then(|text| StoredRow::from_json(text).ok())
        .map(StoredRow::into_events)
        .unwrap_or_default()
}
