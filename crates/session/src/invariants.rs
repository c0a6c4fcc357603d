//! The structural rules that a conforming writer keeps (core spec 1.7). A reader does not enforce them.

use std::collections::HashSet;

use lorimer_protocol::{Event, Payload, SurfaceOp};
use thiserror::Error;

/// A rule that an event breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("event {seq} ({kind}): {why}")]
pub struct Violation {
    /// The event.
    pub seq: u64,
    /// Its type.
    pub kind: String,
    /// The rule.
    pub why: String,
}

/// Every rule that a log breaks; empty for a log of a conforming writer.
pub fn check_invariants<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Violation> {
    let mut checker = Checker::default();
    for event in events {
        checker.check(event);
    }
    checker.violations
}

/// Checks events one by one.
#[derive(Default)]
pub(crate) struct Checker {
    last_turn: u64,
    open_turn: Option<u64>,
    last_step: u64,
    open_step: Option<u64>,
    called: HashSet<String>,
    answered: HashSet<String>,
    violations: Vec<Violation>,
}

impl Checker {
    /// What was found since this was last asked.
    pub(crate) fn take_violations(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }

    pub(crate) fn check(&mut self, event: &Event) {
        let payload = match event.payload() {
            Ok(payload) => payload,
            Err(error) => return self.report(event, error.to_string()),
        };
        match payload {
            Payload::TurnStart(start) => self.turn_start(event, start.turn),
            Payload::TurnEnd(end) => self.turn_end(event, end.turn),
            Payload::StepStart(start) => self.step_start(event, start.turn, start.step),
            Payload::StepEnd(end) => {
                self.expect_place(event, end.turn, end.step);
                self.open_step = None;
            }
            Payload::AssistantChunk(chunk) => self.expect_place(event, chunk.turn, chunk.step),
            Payload::AssistantMessage(message) => self.expect_place(event, message.turn, message.step),
            Payload::ToolCall(call) => {
                self.expect_place(event, call.turn, call.step);
                self.called.insert(call.call_id.0);
            }
            Payload::ToolResult(result) => self.tool_result(event, &result),
            Payload::TodoWrite(_) | Payload::RequestHeader(_) | Payload::RequestContext(_) => {
                self.require(event, self.open_turn.is_some(), "needs an open turn");
            }
            _ => {}
        }
    }

    fn turn_start(&mut self, event: &Event, turn: u64) {
        self.require(event, self.open_turn.is_none(), "a turn is open already");
        self.require(
            event,
            turn == self.last_turn.saturating_add(1),
            "turn number must be the last plus one",
        );
        (self.last_turn, self.open_turn, self.last_step) = (turn, Some(turn), 0);
    }

    fn turn_end(&mut self, event: &Event, turn: u64) {
        self.require(event, self.open_turn == Some(turn), "does not match the open turn");
        self.require(event, self.open_step.is_none(), "a step is still open");
        self.open_turn = None;
    }

    fn step_start(&mut self, event: &Event, turn: u64, step: u64) {
        self.require(event, self.open_turn == Some(turn), "does not match the open turn");
        self.require(event, self.open_step.is_none(), "a step is open already");
        self.require(
            event,
            step == self.last_step.saturating_add(1),
            "step number must be the last plus one",
        );
        (self.last_step, self.open_step) = (step, Some(step));
        self.called.clear();
        self.answered.clear();
    }

    fn tool_result(&mut self, event: &Event, result: &lorimer_protocol::ToolResult) {
        if matches!(event.surface_op, Some(SurfaceOp::Replace { .. })) {
            return self.require(event, self.open_turn.is_some(), "a replacement needs an open turn");
        }
        self.expect_place(event, result.turn, result.step);
        let Some(block) = result.message.tool_result() else {
            return self.report(event, "must contain one tool-result block".to_owned());
        };
        let id = block.tool_call_id.0.clone();
        let not_started = result.error.as_ref().is_some_and(|error| error.code == "TOOL_NOT_STARTED");
        self.require(
            event,
            not_started || self.called.contains(&id),
            "no tool/call with this id in the step",
        );
        let first = self.answered.insert(id);
        self.require(event, first, "the call has a result already");
    }

    fn expect_place(&mut self, event: &Event, turn: u64, step: u64) {
        self.require(
            event,
            self.open_turn == Some(turn) && self.open_step == Some(step),
            "does not name the open turn and step",
        );
    }

    fn require(&mut self, event: &Event, holds: bool, why: &str) {
        if !holds {
            self.report(event, why.to_owned());
        }
    }

    fn report(&mut self, event: &Event, why: String) {
        self.violations.push(Violation { seq: event.seq, kind: event.kind.clone(), why });
    }
}
