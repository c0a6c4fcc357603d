//! The inbox: messages that wait for a turn or a step (core spec 1.5).

use std::collections::HashSet;

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

    /// Replays one logged splice. A refused one changes nothing.
    ///
    /// # Errors
    /// When its bounds are outside the list or an inserted message waits already.
    pub(super) fn apply(&mut self, splice: InboxSpliced) -> Result<(), String> {
        let length = self.list(splice.target).len() as u64;
        let end = splice.start.saturating_add(splice.removed_count.unwrap_or(0));
        if splice.start > length || end > length {
            return Err("invalid inbox splice".to_owned());
        }
        let range = splice.start as usize..end as usize;
        let (list, other) = match splice.target {
            InboxTarget::NextTurn => (&mut self.next_turn, &self.next_step),
            InboxTarget::NextStep => (&mut self.next_step, &self.next_turn),
        };
        let staying = list[..range.start].iter().chain(&list[range.end..]).chain(other);
        let mut ids: HashSet<&MessageId> = staying.map(|message| &message.id).collect();
        if let Some(twice) = splice.inserted.iter().find(|message| !ids.insert(&message.id)) {
            return Err(format!("message \"{}\" is already pending", twice.id));
        }
        list.splice(range, splice.inserted);
        Ok(())
    }
}
