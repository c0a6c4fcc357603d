//! The inbox: messages that wait for a turn or a step (core spec 1.5).

use lorimer_protocol::{InboxSpliced, InboxTarget, Message, MessageId};

/// Two ordered lists of waiting messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inbox {
    next_turn: Vec<Message>,
    next_step: Vec<Message>,
}

impl Inbox {
    /// The messages of one list, oldest first.
    pub fn list(&self, target: InboxTarget) -> &[Message] {
        match target {
            InboxTarget::NextTurn => &self.next_turn,
            InboxTarget::NextStep => &self.next_step,
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.next_turn.is_empty() && self.next_step.is_empty()
    }

    /// Whether a message waits in either list.
    pub fn contains(&self, id: &MessageId) -> bool {
        self.next_turn.iter().chain(&self.next_step).any(|message| message.id == *id)
    }

    /// Replays one logged splice.
    ///
    /// # Errors
    /// When its bounds are outside the list or an inserted message waits already.
    pub(super) fn apply(&mut self, splice: InboxSpliced) -> Result<(), String> {
        let length = self.list(splice.target).len() as u64;
        let end = splice.start.saturating_add(splice.removed_count.unwrap_or(0));
        if splice.start > length || end > length {
            return Err("invalid inbox splice".to_owned());
        }
        let (start, end) = (splice.start as usize, end as usize);
        let list = match splice.target {
            InboxTarget::NextTurn => &mut self.next_turn,
            InboxTarget::NextStep => &mut self.next_step,
        };
        let removed: Vec<_> = list.drain(start..end).collect();
        let pending = splice.inserted.iter().find(|message| self.contains(&message.id));
        let refused = pending.map(|message| format!("message \"{}\" is already pending", message.id));
        let list = match splice.target {
            InboxTarget::NextTurn => &mut self.next_turn,
            InboxTarget::NextStep => &mut self.next_step,
        };
        match refused {
            Some(why) => {
                list.splice(start..start, removed);
                Err(why)
            }
            None => {
                list.splice(start..start, splice.inserted);
                Ok(())
            }
        }
    }
}
