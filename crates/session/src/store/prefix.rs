//! A prefix of a log, read without folding its messages.

use lorimer_protocol::{TurnEnd, TurnStart, is_known_event_type};

use super::reader::{EventLine, LineError, RowView, row_view};

/// How far a log has been read.
#[derive(Debug, Default)]
pub(super) struct Prefix {
    /// Events so far.
    pub events: u64,
    /// The turn that has started and not ended.
    pub open_turn: Option<u64>,
    /// The latest turn that has ended; 0 before the first.
    pub ended_turn: u64,
    /// Whether the last event is `session/end-seed`.
    pub marked: bool,
}

impl Prefix {
    /// Counts the events of a line.
    pub fn advance(&mut self, line: &[u8]) -> Result<(), LineError> {
        match row_view(line)? {
            RowView::Packed(seq0, count, _) => {
                self.expect(seq0)?;
                self.events += count;
                self.marked = false;
            }
            RowView::Event(event) => {
                self.expect(event.seq)?;
                self.event(&event)?;
                self.events += 1;
                self.marked = event.kind == "session/end-seed";
            }
        }
        Ok(())
    }

    fn expect(&self, seq: u64) -> Result<(), LineError> {
        if seq == self.events {
            return Ok(());
        }
        let why = format!("session event seq {seq} is not contiguous; expected {}", self.events);
        Err(LineError::Problem(why))
    }

    fn event(&mut self, event: &EventLine<'_>) -> Result<(), LineError> {
        let malformed = |error: serde_json::Error| LineError::Problem(error.to_string());
        match event.kind.as_ref() {
            "turn/start" => {
                let start: TurnStart = serde_json::from_str(event.data.get()).map_err(malformed)?;
                self.open_turn = Some(start.turn);
            }
            "turn/end" => {
                let end: TurnEnd = serde_json::from_str(event.data.get()).map_err(malformed)?;
                (self.open_turn, self.ended_turn) = (None, end.turn);
            }
            kind if event.ignorable != Some(true) && !is_known_event_type(kind) => {
                return Err(LineError::Problem(format!("contains the unknown event type \"{kind}\"")));
            }
            _ => {}
        }
        Ok(())
    }
}
