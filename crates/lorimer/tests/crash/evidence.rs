//! What a kill has left, and which phase it says was hit.

use std::collections::BTreeMap;

use lorimer_protocol::{ContentBlock, Event, Payload, StoredRow};

use crate::doomed::Shot;
use crate::script::Marks;
use crate::server::Exchange;

/// Where in a step a run can die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The request is out and nothing of the reply has come.
    FirstByte,
    /// Some of the reply has come.
    Stream,
    /// Between reply and call, or between a call and its result, with no body running.
    CallGap,
    /// In the body of a call.
    Body,
    /// Between the write of a batch and the end of its sync.
    Append,
    /// Waiting before a failed request is repeated.
    RetryWait,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::FirstByte, Self::Stream, Self::CallGap, Self::Body, Self::Append, Self::RetryWait];

    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstByte => "before the first byte",
            Self::Stream => "mid-stream",
            Self::CallGap => "around a call",
            Self::Body => "in a tool's body",
            Self::Append => "in an append",
            Self::RetryWait => "in a retry wait",
        }
    }

    /// The longest random time between seeing the phase and the kill, in microseconds: mostly shorter than it lasts.
    pub fn longest_pause_us(self) -> u64 {
        match self {
            Self::FirstByte => 25_000,
            Self::Stream => 40_000,
            Self::CallGap => 6_000,
            Self::Body => 25_000,
            Self::Append => 0,
            Self::RetryWait => 200_000,
        }
    }
}

/// Everything that is known about a kill.
#[derive(Debug)]
pub struct Evidence {
    /// The log as the kill left it, to the byte.
    pub disk: Vec<u8>,
    /// The events in it.
    pub durable: Vec<Event>,
    /// The events that came on standard output.
    pub said: Vec<Event>,
    /// Begun and ended of each body.
    pub marks: BTreeMap<String, (usize, usize)>,
    /// What passed the relay.
    pub exchanges: Vec<Exchange>,
    /// The kill itself.
    pub shot: Shot,
}

/// The whole lines of a log, the header included.
pub fn whole_lines(log: &[u8]) -> &[u8] {
    &log[..log.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)]
}

/// The events in the whole lines of a log.
pub fn events_of(log: &[u8]) -> Result<Vec<Event>, String> {
    let text = std::str::from_utf8(whole_lines(log)).map_err(|error| format!("the log: {error}"))?;
    let rows = text.lines().enumerate().skip(1).map(|(number, line)| {
        StoredRow::from_json(line).map_err(|error| format!("line {} of the log: {error}", number + 1))
    });
    Ok(rows.collect::<Result<Vec<_>, _>>()?.into_iter().flat_map(StoredRow::into_events).collect())
}

/// The ids of the calls that a reply makes.
pub fn calls_in(content: &[ContentBlock]) -> impl Iterator<Item = String> {
    content.iter().filter_map(|block| match block {
        ContentBlock::ToolCall(call) => Some(call.id.to_string()),
        _ => None,
    })
}

/// Where the open step stands.
#[derive(Debug, Default)]
struct Step {
    open: bool,
    retry_waits: bool,
    chunks: bool,
    replied: bool,
    unanswered: Vec<String>,
}

impl Step {
    fn follow(&mut self, payload: Payload) {
        match payload {
            Payload::StepStart(_) => *self = Self { open: true, ..Self::default() },
            Payload::StepEnd(_) => *self = Self::default(),
            Payload::LlmRetry(_) => (self.retry_waits, self.chunks) = (true, false),
            Payload::LlmRetryStarted(_) => self.retry_waits = false,
            Payload::AssistantChunk(_) => self.chunks = true,
            Payload::AssistantMessage(reply) => {
                self.replied = true;
                self.unanswered = calls_in(&reply.message.content).collect();
            }
            Payload::ToolResult(result) => {
                if let Some(block) = result.message.tool_result() {
                    self.unanswered.retain(|id| *id != block.tool_call_id.to_string());
                }
            }
            _ => {}
        }
    }
}

impl Evidence {
    /// Puts it together. `marks` are read when nothing of the run is left.
    pub fn new(
        disk: Vec<u8>,
        said: Vec<Event>,
        marks: &Marks,
        exchanges: Vec<Exchange>,
        shot: Shot,
    ) -> Result<Self, String> {
        let durable = events_of(&disk)?;
        Ok(Self { disk, durable, said, marks: marks.all(), exchanges, shot })
    }

    /// The phase that was hit; `None` when it was none of the six.
    pub fn phase(&self) -> Option<Phase> {
        if self.was_in_append() {
            return Some(Phase::Append);
        }
        let (step, on_disk) = (self.step(true), self.step(false));
        if !step.open {
            return None;
        }
        if step.replied {
            let in_body = |id: &String| matches!(self.marks.get(id), Some((1.., 0)));
            return match step.unanswered.iter().any(in_body) {
                true => Some(Phase::Body),
                false if step.unanswered.is_empty() => None,
                false => Some(Phase::CallGap),
            };
        }
        if step.retry_waits {
            return on_disk.retry_waits.then_some(Phase::RetryWait);
        }
        if self.exchanges.last().is_some_and(|last| last.is_waiting_at(self.shot.at)) {
            return Some(Phase::FirstByte);
        }
        step.chunks.then_some(Phase::Stream)
    }

    /// The writing thread sleeps uninterruptibly only in a write or a sync. When the log has just grown it is enough
    /// that it does not wait for its next batch.
    fn was_in_append(&self) -> bool {
        self.shot.journal == 'D' || (self.shot.grew && self.shot.journal == 'R')
    }

    /// Where the step stands that the last event is in, by the log alone or by standard output as well.
    fn step(&self, with_said: bool) -> Step {
        let said = self.said.iter().filter(|_| with_said);
        let known: BTreeMap<u64, &Event> =
            self.durable.iter().chain(said).map(|event| (event.seq, event)).collect();
        let mut step = Step::default();
        known.values().filter_map(|event| event.payload().ok()).for_each(|payload| step.follow(payload));
        step
    }
}
