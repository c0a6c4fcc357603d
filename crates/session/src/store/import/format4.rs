//! Format 4, event by event.
//!
//! It differs from format 0 in this: the system prompt is a message of its own on the surface, a tool's message has the
//! role `tool` and no block around its content, a reply's stream is inside its message (or, for a request that failed,
//! in an `assistant/attempt`), and nested calls are called `ptc`.

use lorimer_protocol::{Draft, SurfaceOp};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::renumber::{Renumber, citing_members};
use super::sink::{Sink, kept};
use super::source::Row;
use super::stream::{self, Place};
use super::{Original, raw};

/// Converts the events of one log, in order.
#[derive(Default)]
pub(super) struct Format4 {
    next: u64,
    seqs: Renumber,
    surface: Vec<Node>,
    system: Option<String>,
    header: Option<Value>,
    /// Whether the system prompt changed after the latest request header.
    system_changed: bool,
}

/// A node of the original's surface.
struct Node {
    seq: u64,
    is_system: bool,
}

#[derive(Deserialize)]
struct StreamHolder {
    turn: u64,
    step: u64,
    #[serde(default)]
    stream: Option<Box<RawValue>>,
}

impl Format4 {
    /// Adds what becomes of one event.
    pub fn take(&mut self, row: Row, sink: &mut Sink) -> Result<(), String> {
        let old = row.seq.ok_or("has no seq")?;
        if old != self.next {
            return Err(format!("seq gap in committed region (expected {}, got {old})", self.next));
        }
        if !row.others.is_empty() {
            sink.note(format!("event {old} ({}) loses the members {}", row.kind, row.others.join(", ")));
        }
        let original = Original { seq: old, kind: row.kind.clone() };
        let time = row.time;
        let draft = self.convert(row, &original, sink)?;
        let new = match draft {
            Some(draft) => sink.emit(draft, time, &original)?,
            None => sink.next_seq().saturating_sub(1),
        };
        self.seqs.set(old, new);
        self.next += 1;
        Ok(())
    }

    fn convert(&mut self, row: Row, original: &Original, sink: &mut Sink) -> Result<Option<Draft>, String> {
        let is_system = row.kind == "system/message";
        let surface_op = match row.surface_op {
            Some(op) => self.place(original.seq, op, is_system, sink)?,
            None => None,
        };
        let sources = row
            .source_event_seqs
            .as_ref()
            .map(|seqs| seqs.iter().map(|seq| self.seqs.get(*seq).unwrap_or(*seq)).collect());
        let mut draft = Draft {
            kind: row.kind,
            data: row.data,
            source_event_seqs: sources,
            surface_op,
            ignorable: row.ignorable,
        };
        match draft.kind.as_str() {
            "system/message" => {
                self.take_system(&draft.data)?;
                draft.surface_op = row.surface_op;
                draft.source_event_seqs = row.source_event_seqs;
                draft = kept(4, original, &draft);
            }
            "request/header" => draft.data = self.request_header(&draft.data)?,
            "assistant/message" => {
                self.log_changed_system(row.time, original, sink)?;
                self.take_stream(&mut draft, row.time, original, sink)?;
            }
            "assistant/attempt" => {
                self.log_changed_system(row.time, original, sink)?;
                if self.take_stream(&mut draft, row.time, original, sink)? {
                    return Ok(None);
                }
            }
            "tool/result" => tool_result(&mut draft)?,
            "tool/ptc-dispatch-start" => nested_call(&mut draft, "tool/code-dispatch-start")?,
            "tool/ptc-dispatch" => nested_call(&mut draft, "tool/code-dispatch")?,
            kind => {
                let citing = citing_members(kind);
                if !citing.is_empty() {
                    let mut data = value(&draft.data)?;
                    self.seqs.payload(citing, &mut data);
                    draft.data = raw(&data);
                }
            }
        }
        Ok(Some(draft))
    }

    /// Follows the original's surface; what the operation is without its system messages.
    fn place(
        &mut self,
        seq: u64,
        op: SurfaceOp,
        is_system: bool,
        sink: &mut Sink,
    ) -> Result<Option<SurfaceOp>, String> {
        let node = Node { seq, is_system };
        let SurfaceOp::Replace { start, end } = op else {
            self.surface.push(node);
            return Ok((!is_system).then_some(SurfaceOp::Append));
        };
        let find = |wanted: u64| self.surface.iter().rposition(|node| node.seq == wanted);
        let (Some(first), Some(last)) = (find(start), find(end)) else {
            return Err(format!("surface replace: seqs {start} to {end} not found in surface"));
        };
        if first > last {
            return Err(format!("surface replace: start seq {start} is after end seq {end}"));
        }
        let replaced = &self.surface[first..=last];
        let mut ours = replaced.iter().filter(|node| !node.is_system).map(|node| self.seqs.get(node.seq));
        let start = ours.next().flatten();
        let end = ours.next_back().flatten().or(start);
        if is_system && start.is_some() {
            sink.note(format!("event {seq} replaces messages with a system message; they stay"));
            return Ok(None);
        }
        self.surface.splice(first..=last, [node]);
        Ok(match (start, end) {
            _ if is_system => None,
            (Some(start), Some(end)) => Some(SurfaceOp::Replace { start, end }),
            _ => Some(SurfaceOp::Append),
        })
    }

    fn take_system(&mut self, data: &RawValue) -> Result<(), String> {
        let data = value(data)?;
        let blocks = data.pointer("/message/content").and_then(Value::as_array);
        let text: String =
            blocks.into_iter().flatten().filter_map(|block| block.get("text")?.as_str()).collect();
        self.system_changed = self.system.as_ref() != Some(&text);
        self.system = Some(text).filter(|text| !text.is_empty());
        Ok(())
    }

    /// Puts the system prompt into a request header, where format 0 has it.
    fn request_header(&mut self, data: &RawValue) -> Result<Box<RawValue>, String> {
        let mut data = value(data)?;
        if let Some(header) = data.get_mut("header").and_then(Value::as_object_mut) {
            set_system(header, self.system.as_deref());
        }
        self.system_changed = false;
        self.header = data.get("header").cloned();
        Ok(raw(&data))
    }

    /// Logs the request header again when only the system prompt has changed.
    fn log_changed_system(&mut self, time: i64, original: &Original, sink: &mut Sink) -> Result<(), String> {
        if !std::mem::take(&mut self.system_changed) {
            return Ok(());
        }
        let Some(header) = self.header.as_mut().and_then(Value::as_object_mut) else {
            return Ok(());
        };
        header.remove("system");
        set_system(header, self.system.as_deref());
        let data = raw(&json!({"header": header, "reason": "change"}));
        let kind = "request/header".to_owned();
        let draft = Draft { kind, data, source_event_seqs: None, surface_op: None, ignorable: false };
        sink.emit(draft, time, original).map(drop)
    }

    /// Adds the chunks of a stream before what held it, which loses it; `false` when there are none.
    fn take_stream(
        &mut self,
        draft: &mut Draft,
        time: i64,
        original: &Original,
        sink: &mut Sink,
    ) -> Result<bool, String> {
        let holder: StreamHolder =
            serde_json::from_str(draft.data.get()).map_err(|error| format!("has invalid data: {error}"))?;
        let Some(stream) = holder.stream else {
            return Ok(false);
        };
        let place = Place { turn: holder.turn, step: holder.step };
        let chunks = stream::expand(&stream, place, original, sink)?;
        let mut data = value(&draft.data)?;
        if let Some(data) = data.as_object_mut() {
            data.shift_remove("stream");
            let beside = data.keys().filter(|key| !matches!(key.as_str(), "turn" | "step")).count();
            if draft.kind == "assistant/attempt" && beside > 0 {
                let rest = Draft { data: raw(&json!(data)), ..draft.clone() };
                sink.emit(kept(4, original, &rest), time, original)?;
            }
        }
        draft.data = raw(&data);
        let any = !chunks.is_empty();
        if draft.surface_op == Some(SurfaceOp::Append) {
            draft.source_event_seqs = Some(chunks);
        }
        Ok(any)
    }
}

/// Inserts the system prompt before the tools, unless there is one.
fn set_system(header: &mut Map<String, Value>, system: Option<&str>) {
    let Some(system) = system.filter(|_| !header.contains_key("system")) else {
        return;
    };
    let tools = header.shift_remove("tools");
    header.insert("system".to_owned(), system.into());
    if let Some(tools) = tools {
        header.insert("tools".to_owned(), tools);
    }
}

/// Puts a block around the content of a tool's message.
fn tool_result(draft: &mut Draft) -> Result<(), String> {
    let mut data = value(&draft.data)?;
    let Some(message) = data.get_mut("message").and_then(Value::as_object_mut) else {
        return Err("has no message".to_owned());
    };
    if message.get("role").is_none_or(|role| role != "tool") {
        return Ok(());
    }
    let mut old = std::mem::take(message);
    let mut block = Map::new();
    block.insert("type".to_owned(), "tool-result".into());
    for key in ["toolCallId", "content", "isError"] {
        if let Some(member) = old.shift_remove(key) {
            block.insert(key.to_owned(), member);
        }
    }
    old.shift_remove("role");
    if let Some(source) = old.shift_remove("source") {
        message.insert("source".to_owned(), source);
    }
    message.insert("content".to_owned(), json!([block]));
    message.insert("role".to_owned(), "user".into());
    message.extend(old);
    draft.data = raw(&data);
    Ok(())
}

/// Gives a nested call the name and the ids that format 0 has for it.
fn nested_call(draft: &mut Draft, kind: &str) -> Result<(), String> {
    let mut data = value(&draft.data)?;
    let root = data.get("rootCallId").and_then(Value::as_str).unwrap_or_default().to_owned();
    for key in ["parentCallId", "subCallId"] {
        let Some(Value::String(id)) = data.get_mut(key) else {
            continue;
        };
        if let Some(rest) = id.strip_prefix(root.as_str()) {
            *id = format!("{root}{}", rest.replace(":ptc:", ":code:"));
        }
    }
    draft.kind = kind.to_owned();
    draft.data = raw(&data);
    Ok(())
}

fn value(data: &RawValue) -> Result<Value, String> {
    serde_json::from_str(data.get()).map_err(|error| format!("has invalid data: {error}"))
}
