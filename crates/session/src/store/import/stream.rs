//! The stream that format 4 keeps inside a message, taken apart into chunk events.

use lorimer_protocol::Draft;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::sink::Sink;
use super::{Original, raw};

/// One element of a stream: a chunk, or a run of deltas without `seq0`, `turn` and `step`.
#[derive(Deserialize)]
struct Element {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    time: i64,
    #[serde(default)]
    time0: i64,
    #[serde(default)]
    chunk: Option<Box<RawValue>>,
    #[serde(default)]
    index: Value,
    #[serde(default)]
    dt: Vec<i64>,
    #[serde(default)]
    texts: Vec<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

/// Where in the turns a stream belongs.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub turn: u64,
    pub step: u64,
}

/// Adds a stream's chunks and returns their seqs. Elements of unknown kinds are kept aside.
pub(super) fn expand(
    stream: &RawValue,
    place: Place,
    original: &Original,
    sink: &mut Sink,
) -> Result<Vec<u64>, String> {
    let elements: Vec<&RawValue> =
        serde_json::from_str(stream.get()).map_err(|error| format!("has an invalid stream: {error}"))?;
    let mut seqs = Vec::new();
    for text in elements {
        let element: Element =
            serde_json::from_str(text.get()).map_err(|error| format!("has an invalid stream: {error}"))?;
        let members = match element.kind.as_str() {
            "chunk" => {
                let chunk = element.chunk.ok_or("has a stream element without its chunk")?;
                seqs.push(sink.emit(chunk_draft(place, &chunk), element.time, original)?);
                continue;
            }
            "text-chunks" | "reasoning-chunks" => &element.texts,
            "tool-call-chunks" => &element.args,
            _ => {
                let part = Original { seq: original.seq, kind: format!("{}#stream", original.kind) };
                let draft = Draft { kind: String::new(), ..chunk_draft(place, text) };
                let aside = super::kept(4, &part, &draft);
                sink.emit(aside, element.time, &part)?;
                continue;
            }
        };
        let mut time = element.time0;
        for (at, member) in members.iter().enumerate() {
            let gap = at.checked_sub(1).and_then(|before| element.dt.get(before));
            time = time.saturating_add(gap.copied().unwrap_or(0));
            let chunk = raw(&delta(&element, member));
            seqs.push(sink.emit(chunk_draft(place, &chunk), time, original)?);
        }
    }
    Ok(seqs)
}

fn delta(element: &Element, member: &str) -> Value {
    let kind = match element.kind.as_str() {
        "text-chunks" => "text-delta",
        "reasoning-chunks" => "reasoning-delta",
        _ => "tool-call-delta",
    };
    let mut chunk = Map::new();
    chunk.insert("type".to_owned(), kind.into());
    chunk.insert("index".to_owned(), element.index.clone());
    if kind != "tool-call-delta" {
        chunk.insert("text".to_owned(), member.into());
        return chunk.into();
    }
    chunk.insert("id".to_owned(), json!(element.id));
    if let Some(name) = &element.name {
        chunk.insert("name".to_owned(), name.clone().into());
    }
    chunk.insert("argumentsDelta".to_owned(), member.into());
    chunk.into()
}

fn chunk_draft(place: Place, chunk: &RawValue) -> Draft {
    let text = format!("{{\"turn\":{},\"step\":{},\"chunk\":{}}}", place.turn, place.step, chunk.get());
    Draft {
        kind: "assistant/chunk".to_owned(),
        data: RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned()),
        source_event_seqs: None,
        surface_op: None,
        ignorable: false,
    }
}
