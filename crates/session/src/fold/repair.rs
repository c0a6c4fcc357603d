//! Closers for a turn that a dead process left open (core spec 1.10).

use lorimer_protocol::{
    ContentBlock, Draft, ErrorInfo, Event, Extra, Message, Role, Source, StepEnd, ToolResult,
    ToolResultBlock, TurnEnd, TurnEndReason,
};

use super::log::Log;
use super::turn::PendingCall;

const OUTCOME_UNKNOWN: &str = "The tool call was interrupted after it was recorded, but no result was durably \
recorded. Its outcome is unknown. Decide whether to retry from the tool semantics: retry only if the operation is \
read-only or idempotent; if it may have side effects, first verify external state or ask the user. Do not retry blindly.";
const NOT_STARTED: &str = "The tool call was interrupted before the Harness recorded it as started. Retry it if it is still needed.";

/// The events that close an interrupted turn, in order: one result for each unanswered call, the step's end, the
/// turn's end. Empty when no turn is open.
pub fn closers(log: &Log) -> Vec<Event> {
    let state = log.turn();
    let Some(turn) = state.open_turn() else {
        return Vec::new();
    };
    let (mut seq, time) = (log.next_seq(), log.last_time());
    let mut events = Vec::new();
    let mut push = |draft: Draft, seq: &mut u64| {
        events.push(draft.into_event(*seq, time));
        *seq += 1;
    };
    for call in state.pending() {
        let draft = interrupted_result(turn, call, seq);
        push(draft, &mut seq);
    }
    if let Some(step) = state.open_step() {
        push(Draft::new(&StepEnd { turn, step }), &mut seq);
    }
    push(Draft::new(&TurnEnd { turn, reason: TurnEndReason::Interrupted }), &mut seq);
    events
}

fn interrupted_result(turn: u64, call: &PendingCall, seq: u64) -> Draft {
    let (text, error) = match call.call_seq {
        Some(_) => (OUTCOME_UNKNOWN, ErrorInfo::new("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN")),
        None => (NOT_STARTED, ErrorInfo::new("ToolNotStartedError", "TOOL_NOT_STARTED")),
    };
    let block = ToolResultBlock {
        tool_call_id: call.call_id.clone(),
        content: vec![ContentBlock::text(text)],
        is_error: Some(true),
        extra: Extra::new(),
    };
    let message = Message {
        id: format!("interrupted-tool-result-{}-{seq}", call.call_id).into(),
        role: Role::User,
        content: vec![ContentBlock::ToolResult(block)],
        source: Source::tool(call.call_id.clone()),
        extra: Extra::new(),
    };
    let draft = Draft::new(&ToolResult { turn, step: call.step, message, error: Some(error), meta: None })
        .on_surface();
    match call.call_seq {
        Some(call_seq) => draft.citing(vec![call_seq]),
        None => draft,
    }
}
