//! Where converted events go: checked against the log so far, then written.

use std::sync::Arc;

use lorimer_protocol::{Draft, Event, SessionHeader, is_known_event_type};
use serde_json::json;
use serde_json::value::RawValue;

use super::{Original, raw};
use crate::fold::Log;
use crate::invariants::Checker;
use crate::store::publish::NewLog;

/// Type of the events that keep what has no place.
const KEPT_TYPE: &str = "lorimer/imported";
/// Most notes that are kept.
const MAX_NOTES: usize = 100;
/// Latest and, negated, earliest time that an event may have, epoch milliseconds: JavaScript's largest safe integer.
const MAX_TIME_MS: i64 = 9_007_199_254_740_991;
/// Events that a log makes no sense without: one that does not fit is an error, not something to keep aside.
const CORE: [&str; 8] = [
    "assistant/message",
    "step/end",
    "step/start",
    "tool/call",
    "tool/result",
    "turn/end",
    "turn/start",
    "user/message",
];

/// Checks events and writes them, when there is a log to write to.
pub(super) struct Sink {
    header: SessionHeader,
    log: Log,
    format: u64,
    checker: Checker,
    new: Option<NewLog>,
    notes: Vec<String>,
}

impl Sink {
    /// A sink that only counts, until [`Sink::write_to`].
    pub fn new(header: SessionHeader, format: u64) -> Self {
        let log = Log::new(header.clone());
        Self { header, log, format, checker: Checker::default(), new: None, notes: Vec::new() }
    }

    /// Sets what the header says of the seed, before the first event.
    pub fn set_seed_length(&mut self, length: Option<u64>) {
        self.header.seed_length = length;
        self.log = Log::new(self.header.clone());
    }

    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    pub fn write_to(&mut self, new: NewLog) {
        self.new = Some(new);
    }

    /// Seq of the next event.
    pub fn next_seq(&self) -> u64 {
        self.log.next_seq()
    }

    /// Adds an event and returns its seq. One that is not understood is kept aside.
    pub fn emit(&mut self, draft: Draft, time: i64, original: &Original) -> Result<u64, String> {
        let time = time.clamp(-MAX_TIME_MS, MAX_TIME_MS);
        if !draft.ignorable && !is_known_event_type(&draft.kind) {
            let aside = kept(self.format, original, &draft);
            return self.add(aside.into_event(self.next_seq(), time));
        }
        let event = draft.into_event(self.next_seq(), time);
        match self.log.apply(&event) {
            Ok(()) => self.write(event),
            Err(error) if CORE.contains(&event.kind.as_str()) => Err(error.to_string()),
            Err(error) => {
                self.note(format!("event {} ({}) is kept aside: {error}", original.seq, original.kind));
                let aside = kept(self.format, original, &Draft::from(event));
                self.add(aside.into_event(self.next_seq(), time))
            }
        }
    }

    fn add(&mut self, event: Event) -> Result<u64, String> {
        self.log.apply(&event).map_err(|error| error.to_string())?;
        self.write(event)
    }

    fn write(&mut self, event: Event) -> Result<u64, String> {
        self.checker.check(&event);
        for violation in self.checker.take_violations() {
            self.note(format!("against the rules: {violation}"));
        }
        let seq = event.seq;
        if let Some(new) = &mut self.new {
            new.push(Arc::new(event)).map_err(|error| format!("cannot be written: {error}"))?;
        }
        Ok(seq)
    }

    pub fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(note);
        }
    }

    pub fn note_torn(&mut self) {
        self.note("the last line was not written whole and is left out".to_owned());
    }

    /// Gives the log its name; returns the number of events and the notes.
    pub fn publish(mut self) -> std::io::Result<(u64, Vec<String>)> {
        if let Some(turn) = self.log.turn().open_turn() {
            self.note(format!("turn {turn} was not finished; it is closed when the session is opened"));
        }
        if let Some(new) = self.new {
            new.publish()?;
        }
        Ok((self.log.next_seq(), self.notes))
    }
}

/// An event of the original that has no place, as one that readers skip.
pub(super) fn kept(format: u64, original: &Original, draft: &Draft) -> Draft {
    Draft {
        kind: KEPT_TYPE.to_owned(),
        data: kept_data(format, original, draft),
        source_event_seqs: None,
        surface_op: None,
        ignorable: true,
    }
}

fn kept_data(format: u64, original: &Original, draft: &Draft) -> Box<RawValue> {
    // The original's data stays text: it may nest deeper than a value may.
    let place = json!({"format": format, "type": original.kind, "seq": original.seq}).to_string();
    let mut text = format!("{},\"data\":{}", place.trim_end_matches('}'), draft.data.get());
    if let Some(seqs) = &draft.source_event_seqs {
        text.push_str(&format!(",\"sourceEventSeqs\":{}", json!(seqs)));
    }
    if let Some(op) = &draft.surface_op {
        text.push_str(&format!(",\"surfaceOp\":{}", json!(op)));
    }
    text.push('}');
    RawValue::from_string(text).unwrap_or_else(|_| raw(&json!({"format": format, "type": original.kind})))
}
