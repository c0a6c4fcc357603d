//! Messages that wait for a turn or a step.

use lorimer_protocol::{Draft, InboxOutcome, InboxSpliced, InboxTarget, Message};
use lorimer_session::{AppendError, Session};

/// Puts a message at the end of a list.
pub(crate) fn push(session: &Session, target: InboxTarget, message: Message) -> Result<(), AppendError> {
    let start = session.with_log(|log| log.inbox().list(target).len() as u64);
    let splice = InboxSpliced { target, start, removed_count: None, inserted: vec![message], outcome: None };
    session.append(Draft::new(&splice)).map(drop)
}

/// Takes what the next step is made of: everything for the next step and, at the start of a turn, one message for the
/// next turn.
pub(crate) fn claim(session: &Session, opens_turn: bool) -> Result<Vec<Message>, AppendError> {
    let mut claimed = take(session, InboxTarget::NextStep, usize::MAX, None)?;
    if opens_turn {
        claimed.extend(take(session, InboxTarget::NextTurn, 1, None)?);
    }
    Ok(claimed)
}

/// Throws away everything that waits.
pub(crate) fn clear(session: &Session) -> Result<(), AppendError> {
    for target in [InboxTarget::NextStep, InboxTarget::NextTurn] {
        take(session, target, usize::MAX, Some(InboxOutcome::Canceled))?;
    }
    Ok(())
}

fn take(
    session: &Session,
    target: InboxTarget,
    most: usize,
    outcome: Option<InboxOutcome>,
) -> Result<Vec<Message>, AppendError> {
    let taken: Vec<Message> =
        session.with_log(|log| log.inbox().list(target).iter().take(most).cloned().collect());
    if taken.is_empty() {
        return Ok(taken);
    }
    let removed_count = Some(taken.len() as u64);
    let splice = InboxSpliced { target, start: 0, removed_count, inserted: Vec::new(), outcome };
    session.append(Draft::new(&splice))?;
    Ok(taken)
}
