//! Messages that wait for a turn or a step.

use lorimer_protocol::{Draft, InboxOutcome, InboxSpliced, InboxTarget, Message};
use lorimer_session::{AppendError, Session};

/// Puts a message at the end of a list.
pub(crate) fn push(session: &Session, target: InboxTarget, message: Message) -> Result<(), AppendError> {
    session
        .append_with(|log| {
            let start = log.inbox().list(target).len() as u64;
            let splice =
                InboxSpliced { target, start, removed_count: None, inserted: vec![message], outcome: None };
            Some((Draft::new(&splice), ()))
        })
        .map(drop)
}

/// Whether something waits for the next step or, at the start of a turn, for a turn.
pub(crate) fn waits(session: &Session, opens_turn: bool) -> bool {
    session.with_log(|log| {
        !log.inbox().list(InboxTarget::NextStep).is_empty()
            || (opens_turn && !log.inbox().list(InboxTarget::NextTurn).is_empty())
    })
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
    let taken = session.append_with(|log| {
        let taken: Vec<Message> = log.inbox().list(target).iter().take(most).cloned().collect();
        let removed_count = Some(taken.len() as u64).filter(|count| *count > 0)?;
        let splice = InboxSpliced {
            target,
            start: 0,
            removed_count: Some(removed_count),
            inserted: Vec::new(),
            outcome,
        };
        Some((Draft::new(&splice), taken))
    })?;
    Ok(taken.unwrap_or_default())
}
