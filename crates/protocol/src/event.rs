//! The event envelope (core spec 1.2).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::payload::{EventData, Payload, PayloadError};

/// How an event enters the surface, the ordered list of events that form the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceOp {
    /// At the end.
    Append,
    /// In place of the nodes from seq `start` to seq `end`, both included.
    Replace {
        /// First shadowed seq.
        start: u64,
        /// Last shadowed seq.
        end: u64,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplaceWire {
    op: Cow<'static, str>,
    start: u64,
    end: u64,
}

impl Serialize for SurfaceOp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Append => serializer.serialize_str("append"),
            Self::Replace { start, end } => {
                ReplaceWire { op: Cow::Borrowed("replace"), start, end }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for SurfaceOp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            Name(String),
            Replace(ReplaceWire),
        }
        match Wire::deserialize(deserializer)? {
            Wire::Name(name) if name == "append" => Ok(Self::Append),
            Wire::Replace(wire) if wire.op == "replace" => {
                Ok(Self::Replace { start: wire.start, end: wire.end })
            }
            _ => Err(serde::de::Error::custom("carries an invalid surfaceOp")),
        }
    }
}

/// One event of a session log. Its identity is (session, `seq`).
///
/// `data` is the JSON text it was read with, so an event is written back byte for byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Event {
    /// The event type, `turn/start` for one. Unknown types are legal when `ignorable`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Position in the log, contiguous from 0.
    pub seq: u64,
    /// Epoch milliseconds.
    pub time: i64,
    /// The payload's JSON text.
    pub data: Box<RawValue>,
    /// Earlier events that this one is made of; surface events only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_event_seqs: Option<Vec<u64>>,
    /// How it enters the surface; surface events only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface_op: Option<SurfaceOp>,
    /// `true`: a reader that does not know the type may skip it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignorable: Option<bool>,
}

/// An event that could not be read.
#[derive(Debug, Error)]
pub enum EventError {
    /// The text is not an event envelope.
    #[error("not a session event: {0}")]
    Envelope(#[source] serde_json::Error),
}

impl Event {
    /// Reads one line of a log.
    ///
    /// # Errors
    /// When the text is not JSON, lacks an envelope key, or has a key that no envelope has.
    pub fn from_json(text: &str) -> Result<Self, EventError> {
        serde_json::from_str(text).map_err(EventError::Envelope)
    }

    /// The event as one line, without the line end.
    pub fn to_json(&self) -> String {
        // Every member serialises: strings, integers and JSON text that was checked when it was made.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The typed view of `data`.
    ///
    /// # Errors
    /// When the type is known and `data` does not have its shape.
    pub fn payload(&self) -> Result<Payload, PayloadError> {
        Payload::parse(&self.kind, &self.data)
    }

    /// The typed view of `data` as one payload type; `None` when the event is of another type.
    ///
    /// # Errors
    /// When `data` does not have the shape of the type.
    pub fn data_as<T: EventData>(&self) -> Result<Option<T>, PayloadError> {
        if self.kind != T::TYPE {
            return Ok(None);
        }
        serde_json::from_str(self.data.get())
            .map(Some)
            .map_err(|source| PayloadError { kind: self.kind.clone(), source })
    }
}

/// An event that has no place in a log yet: everything but `seq` and `time`.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The event type.
    pub kind: String,
    /// The payload's JSON text.
    pub data: Box<RawValue>,
    /// See [`Event::source_event_seqs`].
    pub source_event_seqs: Option<Vec<u64>>,
    /// See [`Event::surface_op`].
    pub surface_op: Option<SurfaceOp>,
    /// See [`Event::ignorable`].
    pub ignorable: bool,
}

impl Draft {
    /// A draft of a typed payload, off the surface.
    ///
    /// # Panics
    /// Never: payload types hold only JSON values with string keys.
    pub fn new<T: EventData>(data: &T) -> Self {
        Self::written::<T>(data)
    }

    /// A draft of a payload of type `T` from data that is written as one.
    ///
    /// # Panics
    /// Never, see [`Draft::new`].
    pub fn written<T: EventData>(data: &impl Serialize) -> Self {
        let raw = serde_json::value::to_raw_value(data).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self {
            kind: T::TYPE.to_owned(),
            data: raw,
            source_event_seqs: None,
            surface_op: None,
            ignorable: T::IGNORABLE,
        }
    }

    /// The same draft, appended to the surface.
    #[must_use]
    pub fn on_surface(mut self) -> Self {
        self.surface_op = Some(SurfaceOp::Append);
        self
    }

    /// The same draft, replacing surface nodes `start..=end`.
    #[must_use]
    pub fn replacing(mut self, start: u64, end: u64) -> Self {
        self.surface_op = Some(SurfaceOp::Replace { start, end });
        self
    }

    /// The same draft, citing earlier events.
    #[must_use]
    pub fn citing(mut self, seqs: Vec<u64>) -> Self {
        self.source_event_seqs = Some(seqs);
        self
    }

    /// The draft as the event at `seq`.
    pub fn into_event(self, seq: u64, time: i64) -> Event {
        Event {
            kind: self.kind,
            seq,
            time,
            data: self.data,
            source_event_seqs: self.source_event_seqs,
            surface_op: self.surface_op,
            ignorable: self.ignorable.then_some(true),
        }
    }
}

/// What an event is without its place in a log.
impl From<Event> for Draft {
    fn from(event: Event) -> Self {
        Self {
            kind: event.kind,
            data: event.data,
            source_event_seqs: event.source_event_seqs,
            surface_op: event.surface_op,
            ignorable: event.ignorable == Some(true),
        }
    }
}
