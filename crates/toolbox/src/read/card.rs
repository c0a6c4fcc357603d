//! What a read shows: the text for the model and the cards for people.

use std::fmt::Write;

use lorimer_protocol::{
    CallView, ContentBlock, FileLocation, ReadFileLine, ResultView, ToolCallKind, lang_from_path,
};
use lorimer_tools::{DurableResult, Meta};
use serde::Serialize;
use serde_json::Value;

use super::{ReadArgs, ReadLine, ReadValue};

/// What is between the path line of the envelope and its body.
const ENVELOPE_HEAD: &str = "<type>file</type>\n<content>\n";

/// What is after the body.
const ENVELOPE_TAIL: &str = "\n</content>";

/// The text for the model. `limit` is the number of lines that were asked for.
pub(crate) fn rendered(value: &ReadValue, limit: usize) -> String {
    let size: usize = value.lines.iter().map(|line| line.text.len() + 12).sum();
    let mut text = String::with_capacity(size + value.path.len() + 200);
    // Writing to a string does not fail.
    let _ = write!(text, "<path>{}</path>\n{ENVELOPE_HEAD}", value.path);
    for line in &value.lines {
        let _ = writeln!(text, "{}: {}", line.number, line.text);
    }
    if !value.lines.is_empty() {
        text.push('\n');
    }
    text.push_str(&footer(value, limit));
    text.push_str(ENVELOPE_TAIL);
    text
}

fn footer(value: &ReadValue, limit: usize) -> String {
    let (offset, total) = (value.offset, value.total_lines);
    let end = value.lines.last().map_or(offset.saturating_sub(1), |line| line.number);
    let next = end.saturating_add(1);
    if end >= total {
        format!("(End of file - total {total} lines)")
    } else if value.lines.len() < limit {
        format!("(Output capped. Showing lines {offset}-{end}. Use offset={next} to continue.)")
    } else {
        format!("(Showing lines {offset}-{end} of {total}. Use offset={next} to continue.)")
    }
}

/// The stored window as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StoredWindow<'a> {
    path: &'a str,
    offset: u64,
    lines: &'a [ReadLine],
    total_lines: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lang: Option<&'a str>,
}

/// What is stored for the card.
pub(crate) fn meta(value: &ReadValue) -> Option<Meta> {
    Meta::of(&StoredWindow {
        path: &value.path,
        offset: value.offset,
        lines: &value.lines,
        total_lines: value.total_lines,
        lang: lang_from_path(&value.path),
    })
}

/// The stored window of a read, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadMeta {
    /// The absolute path.
    pub path: String,
    /// First requested line, 1-based. It is what an empty window is placed by.
    pub offset: u64,
    /// The lines of the window.
    pub lines: Vec<ReadFileLine>,
    /// Lines in the whole file.
    pub total_lines: u64,
    /// Highlighting hint.
    pub lang: Option<String>,
}

/// Reads a stored window. Whatever is not one is `None`: another shape, numbers that are no line numbers, lines that
/// are out of order or outside of the window or the file.
pub fn read_meta_from_meta(meta: &Value) -> Option<ReadMeta> {
    let record = meta.as_object()?;
    let offset = positive(record.get("offset")?)?;
    let total_lines = integer(record.get("totalLines")?)?;
    let lang = match record.get("lang") {
        Some(lang) => Some(lang.as_str()?.to_owned()),
        None => None,
    };
    let lines = record.get("lines")?.as_array()?.iter().map(line).collect::<Option<Vec<_>>>()?;
    let mut least = offset;
    for line in &lines {
        if line.number < least || line.number > total_lines {
            return None;
        }
        least = line.number + 1;
    }
    Some(ReadMeta { path: record.get("path")?.as_str()?.to_owned(), offset, lines, total_lines, lang })
}

fn line(value: &Value) -> Option<ReadFileLine> {
    let record = value.as_object()?;
    let number = positive(record.get("number")?)?;
    Some(ReadFileLine { number, text: record.get("text")?.as_str()?.to_owned() })
}

fn positive(value: &Value) -> Option<u64> {
    integer(value).filter(|number| *number >= 1)
}

/// Largest integer that a JSON number of any writer holds exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A JSON number that is a whole one, 0 or more. `2.0` is 2.
fn integer(value: &Value) -> Option<u64> {
    let number = value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number >= 0.0).then_some(number as u64)
    })?;
    (number <= MAX_SAFE_INTEGER).then_some(number)
}

/// The card of a pending read.
pub(crate) fn call_view(args: &ReadArgs) -> CallView {
    let first = args.offset.unwrap_or(1.0);
    let range = match (args.limit, args.offset) {
        (Some(limit), _) => format!(" ({first} - {})", first + limit - 1.0),
        (None, Some(offset)) => format!(" (from line {offset})"),
        (None, None) => String::new(),
    };
    CallView::Generic {
        title: format!("Read {}{range}", args.file_path),
        kind: Some(ToolCallKind::Read),
        raw_input: None,
        content: None,
        locations: Some(vec![FileLocation { path: args.file_path.clone(), line: Some(first as u64) }]),
    }
}

/// The card of a finished read; `None` for a failed one and for what is not a read's text with its window.
pub(crate) fn result_view(result: DurableResult<'_>) -> Option<ResultView> {
    let [block] = result.content else {
        return None;
    };
    if result.is_error {
        return None;
    }
    let meta = read_meta_from_meta(result.meta?)?;
    let body = envelope_body(block.as_text()?)?;
    Some(ResultView::Read {
        title: None,
        path: meta.path,
        offset: meta.offset,
        lines: meta.lines,
        total_lines: meta.total_lines,
        lang: meta.lang,
        content: Some(vec![ContentBlock::text(body)]),
    })
}

/// The body of a text of the form `<path>…</path>`, `<type>file</type>`, `<content>`, body, `</content>`.
fn envelope_body(text: &str) -> Option<&str> {
    let (path, rest) = text.split_once('\n')?;
    path.strip_prefix("<path>")?.strip_suffix("</path>")?;
    rest.strip_prefix(ENVELOPE_HEAD)?.strip_suffix(ENVELOPE_TAIL)
}
