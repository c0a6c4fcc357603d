//! The cards of both tools, and what is stored for them (core spec 4.4).

use lorimer_protocol::{CallView, ResultView, SearchFile, ToolCallKind};
use lorimer_tools::DurableResult;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const PATHS: &str = "paths";
const MATCHES: &str = "matches";

/// The card of a pending call.
pub(super) fn call(verb: &str, pattern: &str, path: Option<&str>, include: Option<&str>) -> CallView {
    let place = path.map(|path| format!(" in {path}")).unwrap_or_default();
    let filter = include.map(|include| format!(" ({include})")).unwrap_or_default();
    CallView::Generic {
        title: format!("{verb} {pattern}{place}{filter}"),
        kind: Some(ToolCallKind::Search),
        raw_input: Some(Value::from(pattern)),
        content: None,
        locations: None,
    }
}

/// What is stored of a `glob`: as many of the shown paths as fit, at least one.
pub(super) fn paths_meta(shown: &[&str], total: usize, max_bytes: usize) -> Value {
    let meta = |paths: &[&str]| json!({ "shape": PATHS, "paths": paths, "truncated": paths.len() < total, "total": total });
    whole_or_cut(shown, max_bytes, meta)
}

/// What is stored of a `grep`: as many of the files with shown matches as fit, at least one.
pub(super) fn matches_meta(shown: &[SearchFile], total: usize, max_bytes: usize) -> Value {
    let meta = |files: &[SearchFile]| {
        let matches: usize = files.iter().map(|file| file.matches.len()).sum();
        json!({ "shape": MATCHES, "files": files, "truncated": matches < total, "total": total })
    };
    whole_or_cut(shown, max_bytes, meta)
}

/// The list in its envelope if that fits, else with as many items as do, at least one.
fn whole_or_cut<T: Serialize>(items: &[T], max_bytes: usize, envelope: impl Fn(&[T]) -> Value) -> Value {
    let whole = envelope(items);
    if items.len() <= 1 || json_bytes(&whole) <= max_bytes {
        return whole;
    }
    let mut bytes = json_bytes(&envelope(&[]));
    let fitting = items.iter().enumerate().take_while(|(index, item)| {
        bytes += json_bytes(item) + usize::from(*index > 0);
        bytes <= max_bytes
    });
    envelope(&items[..fitting.count().clamp(1, items.len() - 1)])
}

fn json_bytes(value: &impl Serialize) -> usize {
    // What cannot be written is too long for any limit.
    serde_json::to_string(value).map_or(usize::MAX / 4, |text| text.len())
}

/// The card of a finished `glob`.
pub(super) fn paths_view(result: DurableResult<'_>) -> Option<ResultView> {
    let meta: PathsMeta = read(result, PATHS)?;
    Some(ResultView::Search {
        title: None,
        shape: PATHS.to_owned(),
        files: None,
        paths: Some(meta.paths),
        truncated: meta.truncated,
        total: meta.total,
    })
}

/// The card of a finished `grep`.
pub(super) fn matches_view(result: DurableResult<'_>) -> Option<ResultView> {
    let meta: MatchesMeta = read(result, MATCHES)?;
    Some(ResultView::Search {
        title: None,
        shape: MATCHES.to_owned(),
        files: Some(meta.files),
        paths: None,
        truncated: meta.truncated,
        total: meta.total,
    })
}

#[derive(Deserialize)]
struct PathsMeta {
    paths: Vec<String>,
    truncated: bool,
    total: u64,
}

#[derive(Deserialize)]
struct MatchesMeta {
    files: Vec<SearchFile>,
    truncated: bool,
    total: u64,
}

/// The stored data, if it is there and of the right shape.
fn read<T: DeserializeOwned>(result: DurableResult<'_>, shape: &str) -> Option<T> {
    let meta = result.meta.filter(|_| !result.is_error)?;
    // An array of the fields' values would do for the deserializer.
    let is_of_shape = meta.as_object()?.get("shape").and_then(Value::as_str) == Some(shape);
    is_of_shape.then(|| serde_json::from_value(meta.clone()).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use lorimer_protocol::SearchMatch;

    use super::*;

    fn result(meta: &Value) -> DurableResult<'_> {
        DurableResult { content: &[], is_error: false, meta: Some(meta) }
    }

    #[test]
    fn a_call_shows_what_is_looked_for() {
        let view = call("Grep", "a|b", Some("src"), Some("*.rs"));
        insta::assert_json_snapshot!(view, @r#"
        {
          "card": "generic",
          "title": "Grep a|b in src (*.rs)",
          "kind": "search",
          "rawInput": "a|b"
        }
        "#);
        assert_eq!(call("Glob", "*.rs", None, None).title(), "Glob *.rs");
    }

    #[test]
    fn paths_are_dropped_until_they_fit() {
        let whole = paths_meta(&["a", "b"], 2, 1000);
        assert_eq!(whole.to_string(), r#"{"shape":"paths","paths":["a","b"],"truncated":false,"total":2}"#);
        let bytes = whole.to_string().len();
        assert_eq!(paths_meta(&["a", "b"], 2, bytes)["paths"], json!(["a", "b"]));
        let cut = paths_meta(&["a", "b"], 2, bytes - 2);
        assert_eq!(cut.to_string(), r#"{"shape":"paths","paths":["a"],"truncated":true,"total":2}"#);
        assert_eq!(paths_meta(&["a", "b"], 2, 0)["paths"], json!(["a"]));
        assert_eq!(paths_meta(&["a"], 5, 1000)["truncated"], json!(true));
        assert_eq!(paths_meta(&[], 0, 0)["truncated"], json!(false));
    }

    #[test]
    fn a_stored_result_becomes_a_card() {
        let file = SearchFile {
            path: "a".to_owned(),
            matches: vec![SearchMatch { line_number: 3, line: "foo".to_owned() }],
        };
        let meta = matches_meta(std::slice::from_ref(&file), 1, 1000);
        insta::assert_json_snapshot!(matches_view(result(&meta)), @r#"
        {
          "card": "search",
          "shape": "matches",
          "files": [
            {
              "path": "a",
              "matches": [
                {
                  "lineNumber": 3,
                  "line": "foo"
                }
              ]
            }
          ],
          "truncated": false,
          "total": 1
        }
        "#);
        let meta = paths_meta(&[], 0, 1000);
        assert!(paths_view(result(&meta)).is_some());
        assert!(matches_view(result(&meta)).is_none());
    }

    #[test]
    fn a_malformed_store_has_no_card() {
        for meta in [
            json!(null),
            json!(["paths", [], false, 0]),
            json!({ "shape": "paths" }),
            json!({ "shape": "paths", "paths": [1], "truncated": false, "total": 1 }),
            json!({ "shape": "paths", "paths": [], "truncated": "no", "total": 1 }),
            json!({ "shape": "paths", "paths": [], "truncated": false, "total": -1 }),
        ] {
            assert_eq!(paths_view(result(&meta)), None, "{meta}");
        }
        let meta = json!({ "shape": "paths", "paths": [], "truncated": false, "total": 0 });
        assert_eq!(paths_view(DurableResult { content: &[], is_error: true, meta: Some(&meta) }), None);
        assert_eq!(paths_view(DurableResult { content: &[], is_error: false, meta: None }), None);
    }
}
