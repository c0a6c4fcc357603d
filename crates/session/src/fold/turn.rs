//! Where the log stands in its turns and steps.

use lorimer_protocol::{CallId, ContentBlock, Message};

/// A tool call of the open step that has no result yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingCall {
    /// The call.
    pub call_id: CallId,
    /// The step whose message asked for it.
    pub step: u64,
    /// Seq of its `tool/call`, once started.
    pub call_seq: Option<u64>,
}

/// Where the log stands in its turns and steps (core spec 1.10).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnState {
    last_turn: u64,
    open_turn: Option<u64>,
    last_step: u64,
    open_step: Option<u64>,
    pending: Vec<PendingCall>,
    total_steps: u64,
}

impl TurnState {
    /// Number of the latest turn; 0 before the first.
    pub fn last_turn(&self) -> u64 {
        self.last_turn
    }

    /// The turn that has started and not ended.
    pub fn open_turn(&self) -> Option<u64> {
        self.open_turn
    }

    /// The step that has started and not ended.
    pub fn open_step(&self) -> Option<u64> {
        self.open_step
    }

    /// Number of the latest step of the open turn; 0 before its first.
    pub fn last_step(&self) -> u64 {
        self.last_step
    }

    /// How many steps there have been in all turns.
    pub fn total_steps(&self) -> u64 {
        self.total_steps
    }

    /// Calls without a result, in the order the model made them.
    pub fn pending(&self) -> &[PendingCall] {
        &self.pending
    }

    pub(super) fn start_turn(&mut self, turn: u64) {
        self.last_turn = turn;
        self.open_turn = Some(turn);
        self.last_step = 0;
        self.open_step = None;
        self.pending.clear();
    }

    pub(super) fn end_turn(&mut self) {
        self.open_turn = None;
        self.open_step = None;
        self.pending.clear();
    }

    pub(super) fn start_step(&mut self, step: u64) {
        self.last_step = step;
        self.open_step = Some(step);
        self.total_steps += 1;
    }

    pub(super) fn end_step(&mut self) {
        self.open_step = None;
        self.pending.clear();
    }

    pub(super) fn register(&mut self, message: &Message, step: u64) {
        for block in &message.content {
            if let ContentBlock::ToolCall(call) = block {
                self.pending.push(PendingCall { call_id: call.id.clone(), step, call_seq: None });
            }
        }
    }

    pub(super) fn call_started(&mut self, call_id: &CallId, seq: u64) {
        let waiting =
            self.pending.iter_mut().find(|call| call.call_id == *call_id && call.call_seq.is_none());
        if let Some(call) = waiting {
            call.call_seq = Some(seq);
        }
    }

    pub(super) fn call_ended(&mut self, call_id: &CallId) {
        if let Some(at) = self.pending.iter().position(|call| call.call_id == *call_id) {
            self.pending.remove(at);
        }
    }
}
