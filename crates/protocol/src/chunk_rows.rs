//! Packed chunk rows: several `assistant/chunk` events in one stored row (core spec 1.11).

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::event::{Event, EventError};

/// Fewest events that make a packed row.
pub const MIN_PACKED_RUN: usize = 3;
/// JavaScript's largest safe integer; numbers in a log stay within it.
const MAX_SAFE: i64 = 9_007_199_254_740_991;

/// One line of a stored log after the header.
#[derive(Clone, Debug)]
pub enum StoredRow {
    /// One event.
    Event(Event),
    /// Several chunk events.
    Chunks(Box<ChunkRow>),
}

/// Which deltas a packed row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackedKind {
    /// `text-chunks`
    Text,
    /// `reasoning-chunks`
    Reasoning,
    /// `tool-call-chunks`
    ToolCall,
}

impl PackedKind {
    fn from_tag(tag: &str) -> Option<Self> {
        Some(match tag {
            "text-chunks" => Self::Text,
            "reasoning-chunks" => Self::Reasoning,
            "tool-call-chunks" => Self::ToolCall,
            _ => return None,
        })
    }

    fn tag(self) -> &'static str {
        match self {
            Self::Text => "text-chunks",
            Self::Reasoning => "reasoning-chunks",
            Self::ToolCall => "tool-call-chunks",
        }
    }

    fn delta(self) -> &'static str {
        match self {
            Self::Text => "text-delta",
            Self::Reasoning => "reasoning-delta",
            Self::ToolCall => "tool-call-delta",
        }
    }

    fn members_key(self) -> &'static str {
        match self {
            Self::ToolCall => "args",
            _ => "texts",
        }
    }
}

/// A packed row, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkRow {
    /// Which deltas.
    pub kind: PackedKind,
    /// Seq of the first member.
    pub seq0: u64,
    /// Time of the first member, epoch milliseconds.
    pub time0: i64,
    /// Turn of all members, as it was written.
    pub turn: Value,
    /// Step of all members.
    pub step: Value,
    /// Block index of all members.
    pub index: Value,
    /// Call id, for tool calls.
    pub id: Option<String>,
    /// Tool name, for tool calls, when each member has it.
    pub name: Option<String>,
    /// Milliseconds between members, one fewer than members.
    pub dt: Vec<i64>,
    /// The pieces.
    pub members: Vec<String>,
}

/// A row that is not a legal event or packed row.
#[derive(Debug, Error)]
pub enum ChunkRowError {
    /// A packed row that breaks a rule.
    #[error("malformed {tag} storage row: {why}")]
    Malformed {
        /// The row's tag.
        tag: &'static str,
        /// The rule.
        why: String,
    },
    /// Not an event either.
    #[error(transparent)]
    Event(#[from] EventError),
}

impl StoredRow {
    /// Reads one line. A record whose `type` is none of the three packed tags is taken as a plain event.
    ///
    /// # Errors
    /// When the line is neither a legal event nor a legal packed row.
    pub fn from_json(line: &str) -> Result<Self, ChunkRowError> {
        // `type` is written first, so a cheap look tells the common case.
        if !line.contains("-chunks\"") {
            return Ok(Self::Event(Event::from_json(line)?));
        }
        #[derive(Deserialize)]
        struct Tag {
            #[serde(rename = "type")]
            tag: String,
        }
        match serde_json::from_str::<Tag>(line).ok().and_then(|tag| PackedKind::from_tag(&tag.tag)) {
            Some(kind) => Ok(Self::Chunks(Box::new(ChunkRow::parse(kind, line)?))),
            None => Ok(Self::Event(Event::from_json(line)?)),
        }
    }

    /// The events of the row in order.
    pub fn into_events(self) -> Vec<Event> {
        match self {
            Self::Event(event) => vec![event],
            Self::Chunks(row) => row.events().collect(),
        }
    }

    /// The row as one line, without the line end.
    pub fn to_json(&self) -> String {
        match self {
            Self::Event(event) => event.to_json(),
            Self::Chunks(row) => row.to_json(),
        }
    }
}

impl ChunkRow {
    fn parse(kind: PackedKind, line: &str) -> Result<Self, ChunkRowError> {
        let tag = kind.tag();
        let fail = |why: &str| ChunkRowError::Malformed { tag, why: why.to_owned() };
        let value: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| ChunkRowError::Event(EventError::Envelope(error)))?;
        if !has_exactly(&value, &["type", "seq0", "time0", "data"]) {
            return Err(fail("envelope must be exactly {type, seq0, time0, data}"));
        }
        let seq0 = value["seq0"]
            .as_u64()
            .filter(|&seq| seq <= MAX_SAFE as u64)
            .ok_or_else(|| fail("seq0 must be a non-negative safe integer"))?;
        let time0 = safe_integer(&value["time0"]).ok_or_else(|| fail("time0 must be a safe integer"))?;
        let data = value["data"].as_object().ok_or_else(|| fail("data must be an object"))?;
        let (id, name) = Self::check_keys(kind, data)?;
        for key in ["turn", "step", "index"] {
            if !data[key].is_number() {
                return Err(fail("turn/step/index must be numbers"));
            }
        }
        let members = string_array(&data[kind.members_key()])
            .ok_or_else(|| fail(&format!("{} must be a non-empty string array", kind.members_key())))?;
        let dt = data["dt"]
            .as_array()
            .and_then(|gaps| gaps.iter().map(safe_integer).collect::<Option<Vec<i64>>>())
            .ok_or_else(|| fail("dt must be an array of safe integers"))?;
        if dt.len() + 1 != members.len() {
            return Err(fail(&format!("dt length {} does not match {} members", dt.len(), members.len())));
        }
        if seq0 + members.len() as u64 - 1 > MAX_SAFE as u64 {
            return Err(fail("member seqs must stay safe integers"));
        }
        let mut time = time0;
        for gap in &dt {
            time = time
                .checked_add(*gap)
                .filter(|time| time.abs() <= MAX_SAFE)
                .ok_or_else(|| fail("member times must stay safe integers"))?;
        }
        let (turn, step, index) = (data["turn"].clone(), data["step"].clone(), data["index"].clone());
        Ok(Self { kind, seq0, time0, turn, step, index, id, name, dt, members })
    }

    fn check_keys(
        kind: PackedKind,
        data: &Map<String, Value>,
    ) -> Result<(Option<String>, Option<String>), ChunkRowError> {
        let fail = |why: &str| ChunkRowError::Malformed { tag: kind.tag(), why: why.to_owned() };
        if kind != PackedKind::ToolCall {
            return if has_exactly(data, &["turn", "step", "index", "dt", "texts"]) {
                Ok((None, None))
            } else {
                Err(fail("data must be exactly {turn, step, index, dt, texts}"))
            };
        }
        let named = data.contains_key("name");
        let keys: &[&str] = if named {
            &["turn", "step", "index", "id", "name", "dt", "args"]
        } else {
            &["turn", "step", "index", "id", "dt", "args"]
        };
        if !has_exactly(data, keys) {
            return Err(fail("data must be exactly {turn, step, index, id, name?, dt, args}"));
        }
        let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
        match (text("id"), named, text("name")) {
            (Some(id), false, _) => Ok((Some(id), None)),
            (Some(id), true, Some(name)) => Ok((Some(id), Some(name))),
            _ => Err(fail("id (and name when present) must be strings")),
        }
    }

    /// How many events the row holds.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Always false: a row has at least one member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The row's events in order.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        let mut time = self.time0;
        self.members.iter().enumerate().map(move |(at, member)| {
            if at > 0 {
                time += self.dt[at - 1];
            }
            Event {
                kind: "assistant/chunk".to_owned(),
                seq: self.seq0 + at as u64,
                time,
                data: self.member_data(member),
                source_event_seqs: None,
                surface_op: None,
                ignorable: None,
            }
        })
    }

    fn member_data(&self, member: &str) -> Box<RawValue> {
        let mut chunk = Map::new();
        chunk.insert("type".to_owned(), self.kind.delta().into());
        chunk.insert("index".to_owned(), self.index.clone());
        if let Some(id) = &self.id {
            chunk.insert("id".to_owned(), id.clone().into());
            if let Some(name) = &self.name {
                chunk.insert("name".to_owned(), name.clone().into());
            }
            chunk.insert("argumentsDelta".to_owned(), member.into());
        } else {
            chunk.insert("text".to_owned(), member.into());
        }
        let data = json!({"turn": self.turn, "step": self.step, "chunk": chunk});
        serde_json::value::to_raw_value(&data).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }

    /// The row as one line, without the line end.
    pub fn to_json(&self) -> String {
        let mut data = Map::new();
        data.insert("turn".to_owned(), self.turn.clone());
        data.insert("step".to_owned(), self.step.clone());
        data.insert("index".to_owned(), self.index.clone());
        data.insert("dt".to_owned(), self.dt.clone().into());
        if self.kind == PackedKind::ToolCall {
            data.insert("id".to_owned(), self.id.clone().unwrap_or_default().into());
            if let Some(name) = &self.name {
                data.insert("name".to_owned(), name.clone().into());
            }
        }
        data.insert(self.kind.members_key().to_owned(), self.members.clone().into());
        json!({"type": self.kind.tag(), "seq0": self.seq0, "time0": self.time0, "data": data}).to_string()
    }

    /// Adds an event when it continues the run, whose last member has the time `last_time`.
    fn push(&mut self, event: &Event, delta: &Delta, last_time: i64) -> bool {
        let continues = event.seq == self.seq0 + self.members.len() as u64
            && self.kind == delta.kind
            && self.turn == delta.turn
            && self.step == delta.step
            && self.index == delta.index
            && self.id == delta.id
            && self.name == delta.name
            && (event.time - last_time).abs() <= MAX_SAFE;
        if continues {
            self.dt.push(event.time - last_time);
            self.members.push(delta.member.clone());
        }
        continues
    }
}

/// A chunk event that may be packed, taken apart.
struct Delta {
    kind: PackedKind,
    turn: Value,
    step: Value,
    index: Value,
    id: Option<String>,
    name: Option<String>,
    member: String,
}

impl Delta {
    /// `None` when the event must stay as it is.
    fn of(event: &Event) -> Option<Self> {
        if event.kind != "assistant/chunk"
            || event.source_event_seqs.is_some()
            || event.surface_op.is_some()
            || event.ignorable.is_some()
            || !event.data.get().contains("-delta\"")
        {
            return None;
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Data {
            turn: Value,
            step: Value,
            chunk: Chunk,
        }
        #[derive(Deserialize, Serialize)]
        #[serde(deny_unknown_fields)]
        struct Chunk {
            #[serde(rename = "type")]
            kind: String,
            index: Value,
            text: Option<String>,
            id: Option<String>,
            name: Option<String>,
            #[serde(rename = "argumentsDelta")]
            arguments_delta: Option<String>,
        }
        let data: Data = serde_json::from_str(event.data.get()).ok()?;
        let chunk = data.chunk;
        let (kind, member) = match (chunk.kind.as_str(), chunk.text, chunk.arguments_delta) {
            ("text-delta", Some(text), None) => (PackedKind::Text, text),
            ("reasoning-delta", Some(text), None) => (PackedKind::Reasoning, text),
            ("tool-call-delta", None, Some(text)) if chunk.id.is_some() => (PackedKind::ToolCall, text),
            _ => return None,
        };
        if kind != PackedKind::ToolCall && (chunk.id.is_some() || chunk.name.is_some()) {
            return None;
        }
        if !(data.turn.is_number() && data.step.is_number() && chunk.index.is_number()) {
            return None;
        }
        let (turn, step, index, id, name) = (data.turn, data.step, chunk.index, chunk.id, chunk.name);
        Some(Self { kind, turn, step, index, id, name, member })
    }

    fn open(self, event: &Event) -> ChunkRow {
        ChunkRow {
            kind: self.kind,
            seq0: event.seq,
            time0: event.time,
            turn: self.turn,
            step: self.step,
            index: self.index,
            id: self.id,
            name: self.name,
            dt: Vec::new(),
            members: vec![self.member],
        }
    }
}

/// Packs one batch of events into maximal runs; runs shorter than [`MIN_PACKED_RUN`] stay plain events.
///
/// Unpacking gives equal events: `pack_rows(e).flat_map(into_events) == e`.
pub fn pack_rows<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<StoredRow> {
    let rows = pack_borrowed(events).into_iter();
    rows.map(|row| match row {
        PackedRow::Event(event) => StoredRow::Event(event.clone()),
        PackedRow::Chunks(row) => StoredRow::Chunks(row),
    })
    .collect()
}

/// A row of [`pack_borrowed`].
#[derive(Clone, Debug)]
pub enum PackedRow<'a> {
    /// One event.
    Event(&'a Event),
    /// Several chunk events.
    Chunks(Box<ChunkRow>),
}

/// [`pack_rows`] without copies of the events that stay as they are.
pub fn pack_borrowed<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<PackedRow<'a>> {
    let mut packer = Packer::default();
    for event in events {
        packer.push(event);
    }
    packer.flush();
    packer.rows
}

#[derive(Default)]
struct Packer<'a> {
    rows: Vec<PackedRow<'a>>,
    run: Option<(ChunkRow, Vec<&'a Event>)>,
}

impl<'a> Packer<'a> {
    fn push(&mut self, event: &'a Event) {
        let Some(delta) = Delta::of(event) else {
            self.flush();
            self.rows.push(PackedRow::Event(event));
            return;
        };
        if let Some((row, events)) = &mut self.run
            && row.push(event, &delta, events.last().map_or(row.time0, |last| last.time))
        {
            events.push(event);
            return;
        }
        self.flush();
        self.run = Some((delta.open(event), vec![event]));
    }

    fn flush(&mut self) {
        match self.run.take() {
            Some((row, events)) if events.len() >= MIN_PACKED_RUN => {
                self.rows.push(PackedRow::Chunks(Box::new(row)))
            }
            Some((_, events)) => self.rows.extend(events.into_iter().map(PackedRow::Event)),
            None => {}
        }
    }
}

fn has_exactly(map: &Map<String, Value>, keys: &[&str]) -> bool {
    map.len() == keys.len() && keys.iter().all(|key| map.contains_key(*key))
}

fn safe_integer(value: &Value) -> Option<i64> {
    value.as_i64().filter(|number| number.abs() <= MAX_SAFE)
}

fn string_array(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array().filter(|items| !items.is_empty())?;
    items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
