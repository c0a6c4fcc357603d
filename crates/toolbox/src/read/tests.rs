//! `read` as a model and a card see it.

use std::os::unix::fs::symlink;

use insta::assert_snapshot;
use lorimer_protocol::{ContentBlock, FsObservation};
use lorimer_tools::DurableResult;
use serde_json::{Value, json};

use super::*;
use crate::files::harness::{Desk, Ended, make_fifo};
use crate::{EditOptions, WriteOptions};

fn desk(options: ReadOptions) -> Desk {
    Desk::with(options, WriteOptions::default(), EditOptions::default())
}

fn envelope(body: &str) -> String {
    format!("<path>/w/f</path>\n<type>file</type>\n<content>\n{body}\n</content>")
}

async fn read_text(content: &str, options: ReadOptions, extra: Value) -> Ended {
    let desk = desk(options);
    desk.put("f", content);
    let mut arguments = json!({"file_path": "f"});
    arguments.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    desk.call("read", arguments).await
}

#[tokio::test]
async fn known_windows() {
    let plain = ReadOptions::default;
    let bytes = |read_max_bytes| ReadOptions { read_max_bytes, ..plain() };
    let units = |read_max_line_length| ReadOptions { read_max_line_length, ..plain() };
    for (content, options, extra, body) in [
        ("", plain(), json!({}), "(End of file - total 0 lines)"),
        ("a", plain(), json!({}), "1: a\n\n(End of file - total 1 lines)"),
        ("\n", plain(), json!({}), "1: \n\n(End of file - total 1 lines)"),
        ("a\r\nb\r\n", plain(), json!({}), "1: a\n2: b\n\n(End of file - total 2 lines)"),
        ("a\rb", plain(), json!({}), "1: a\rb\n\n(End of file - total 1 lines)"),
        ("\r", plain(), json!({}), "1: \n\n(End of file - total 1 lines)"),
        (
            "1\n2\n3\n4\n",
            plain(),
            json!({"offset": 2, "limit": 2}),
            "2: 2\n3: 3\n\n(Showing lines 2-3 of 4. Use offset=4 to continue.)",
        ),
        (
            "aaaa\nbbbb\ncccc\n",
            bytes(9),
            json!({}),
            "1: aaaa\n2: bbbb\n\n(Output capped. Showing lines 1-2. Use offset=3 to continue.)",
        ),
        (
            "aaaaaaaaaaaa\nb\n",
            bytes(9),
            json!({}),
            "(Output capped. Showing lines 1-0. Use offset=1 to continue.)",
        ),
        (
            "abcdef\n",
            units(5),
            json!({}),
            "1: abcde... (line truncated to 5 chars)\n\n(End of file - total 1 lines)",
        ),
        ("abcde\r\n", units(5), json!({}), "1: abcde\n\n(End of file - total 1 lines)"),
    ] {
        assert_eq!(read_text(content, options, extra).await.text, envelope(body), "{content:?}");
    }
}

#[tokio::test]
async fn an_offset_past_the_end() {
    for (content, offset, lines) in [("1\n2\n", 3, 2), ("", 2, 0)] {
        let ended = read_text(content, ReadOptions::default(), json!({ "offset": offset })).await;
        let text = format!("Error: offset {offset} is out of range for \"/w/f\" ({lines} lines)");
        assert_eq!((ended.text, ended.code.as_deref()), (text, Some("FS_NOT_FOUND")));
    }
}

#[tokio::test]
async fn arguments_are_checked_in_order() {
    for (extra, text) in [
        (json!({"file_path": " ", "offset": 0}), "file_path must be a non-empty string"),
        (json!({"offset": 0, "limit": 0}), "offset must be a positive integer"),
        (json!({"offset": 1.5}), "offset must be a positive integer"),
        (json!({"limit": -1}), "limit must be a positive integer"),
        (json!({"limit": 2001}), "limit must be less than or equal to 2000"),
    ] {
        let ended = read_text("", ReadOptions::default(), extra).await;
        assert_eq!((ended.text, ended.code), (format!("Error: {text}"), None));
    }
    let ended = read_text("a", ReadOptions::default(), json!({"file_path": 3})).await;
    assert!(ended.text.starts_with("Error: invalid arguments: \"file_path\" must be a string"));
    let ended =
        read_text("a", ReadOptions::default(), json!({"limit": 2000, "offset": 1.0, "other": []})).await;
    assert!(!ended.is_error);
}

#[tokio::test]
async fn a_read_stores_its_window_and_shows_it() {
    let desk = Desk::new();
    desk.put("a.rs", "fn main() {\n}\n");
    let ended = desk.call("read", json!({"file_path": "a.rs", "offset": 2})).await;
    let meta = json!({
        "path": "/w/a.rs", "offset": 2, "lines": [{"number": 2, "text": "}"}], "totalLines": 2, "lang": "rs",
    });
    assert_eq!(ended.meta.unwrap().to_string(), meta.to_string());
    let mut view = json!({"card": "read"});
    view.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
    view["content"] = json!([{"type": "text", "text": "2: }\n\n(End of file - total 2 lines)"}]);
    assert_eq!(ended.view.unwrap(), view);
    let value =
        json!({"path": "/w/a.rs", "offset": 2, "lines": [{"number": 2, "text": "}"}], "totalLines": 2});
    assert_eq!(ended.value.unwrap(), value);
}

#[tokio::test]
async fn an_empty_window_keeps_its_place() {
    let options = ReadOptions { read_max_bytes: 4, ..ReadOptions::default() };
    let ended = read_text("a\nlonger\nb\n", options, json!({"offset": 2})).await;
    assert_eq!(ended.meta.unwrap(), json!({"path": "/w/f", "offset": 2, "lines": [], "totalLines": 3}));
    assert_eq!(ended.view.unwrap()["offset"], 2);
}

#[tokio::test]
async fn pending_cards() {
    let tool = Desk::new().tool("read");
    let shown = |arguments: Value| {
        let view = serde_json::to_value(tool.present_call(&arguments).unwrap()).unwrap();
        format!("{} @{}", view["title"].as_str().unwrap(), view["locations"][0]["line"])
    };
    assert_eq!(shown(json!({"file_path": "a"})), "Read a @1");
    assert_eq!(shown(json!({"file_path": "a", "offset": 5})), "Read a (from line 5) @5");
    assert_eq!(shown(json!({"file_path": "a", "offset": 5, "limit": 4})), "Read a (5 - 8) @5");
    assert_eq!(shown(json!({"file_path": "a", "limit": 4})), "Read a (1 - 4) @1");
    assert_eq!(tool.present_call(&json!({})), None);
}

#[test]
fn a_window_is_read_back_or_rejected() {
    let good = json!({
        "path": "/w/f", "offset": 2, "totalLines": 9, "lang": "ts", "more": 1,
        "lines": [{"number": 2, "text": "a", "more": 1}, {"number": 5, "text": ""}],
    });
    let meta = read_meta_from_meta(&good).unwrap();
    assert_eq!((meta.offset, meta.lines.len(), meta.lang.as_deref()), (2, 2, Some("ts")));
    let with = |key: &str, value: Value| {
        let mut changed = good.clone();
        changed[key] = value;
        changed
    };
    let without = |key: &str| {
        let mut changed = good.clone();
        changed.as_object_mut().unwrap().remove(key);
        changed
    };
    assert_eq!(read_meta_from_meta(&without("lang")).unwrap().lang, None);
    let empty = read_meta_from_meta(&with("lines", json!([]))).unwrap();
    assert_eq!((empty.offset, empty.lines.len()), (2, 0));
    let none = json!({"path": "", "offset": 1, "lines": [], "totalLines": 0});
    assert!(read_meta_from_meta(&none).is_some());
    assert!(read_meta_from_meta(&with("offset", json!(2.0))).is_some());

    let line = |number: Value| json!([{"number": number, "text": "a"}]);
    let mut bad = vec![json!(null), json!("x"), json!(3), json!([]), json!([good])];
    bad.extend(["path", "offset", "totalLines", "lines"].map(without));
    bad.extend([
        with("path", json!(1)),
        with("path", json!(null)),
        with("lang", json!(1)),
        with("lang", json!(null)),
        with("lines", json!({})),
        with("lines", json!("a")),
        with("lines", json!([null])),
        with("lines", json!(["a"])),
        with("lines", json!([[2, "a"]])),
        with("lines", json!([{"text": "a"}])),
        with("lines", json!([{"number": 2}])),
        with("lines", json!([{"number": 2, "text": 1}])),
        with("lines", json!([{"number": 2, "text": "a"}, {"number": 2, "text": "b"}])),
        with("lines", json!([{"number": 3, "text": "a"}, {"number": 2, "text": "b"}])),
    ]);
    for number in [json!(0), json!(-1), json!(1.5), json!("1"), json!(null), json!(1e300)] {
        bad.push(with("offset", number));
    }
    for number in [json!(-1), json!(1.5), json!("9"), json!(null)] {
        bad.push(with("totalLines", number));
    }
    for number in [json!(0), json!(1), json!(2.5), json!(10), json!("2"), json!(null), json!(-2)] {
        bad.push(with("lines", line(number)));
    }
    for meta in bad {
        assert_eq!(read_meta_from_meta(&meta), None, "{meta}");
    }
}

#[test]
fn a_card_needs_a_reads_text_and_window() {
    let meta = json!({"path": "/w/f", "offset": 1, "lines": [], "totalLines": 0});
    let text = envelope("body\n</content>\nmore");
    let view = |content: &[ContentBlock], is_error: bool, meta: Option<&Value>| {
        card::result_view(DurableResult { content, is_error, meta })
    };
    let block = |text: &str| vec![ContentBlock::text(text)];
    let Some(ResultView::Read { content: Some(body), .. }) = view(&block(&text), false, Some(&meta)) else {
        panic!("no card");
    };
    assert_eq!(body, block("body\n</content>\nmore"));
    assert!(view(&block(&envelope("")), false, Some(&meta)).is_some());

    assert_eq!(view(&block(&text), true, Some(&meta)), None);
    assert_eq!(view(&block(&text), false, None), None);
    assert_eq!(view(&block(&text), false, Some(&json!({}))), None);
    assert_eq!(view(&[], false, Some(&meta)), None);
    assert_eq!(view(&[block(&text), block(&text)].concat(), false, Some(&meta)), None);
    assert_eq!(view(&[ContentBlock::reasoning(text.as_str())], false, Some(&meta)), None);
    for other in [
        "plain",
        "<path>/w/f</path>\n<type>file</type>\n<content>\n</content>",
        "<path>/w/f\n</path>\n<type>file</type>\n<content>\nx\n</content>",
        "<path>/w/f</path>\n<type>image</type>\n<content>\nx\n</content>",
        "<path>/w/f</path>\n<type>file</type>\n<content>\nx\n</content>\n",
        " <path>/w/f</path>\n<type>file</type>\n<content>\nx\n</content>",
    ] {
        assert_eq!(view(&block(other), false, Some(&meta)), None, "{other}");
    }
}

#[tokio::test]
async fn odd_files() {
    let desk = Desk::new();
    make_fifo(&desk.path("fifo"));
    symlink("/dev/zero", desk.path("zero")).unwrap();
    symlink("nowhere", desk.path("dangling")).unwrap();
    desk.put("utf16", b"\xff\xfea\0\n\0");
    desk.put("utf16-cjk", b"\xff\xfe\x2d\x4e\x87\x65");
    desk.put("gbk", b"const x = 1;\n// \xd6\xd0\xce\xc4\xd7\xa2\xca\xcd\n");
    desk.put("latin1", b"const x = 1;\n// caf\xe9\n");
    desk.put("nul", b"head\n\0\0\0\ntail\n");
    desk.put("invalid", b"ok \x80\x81\xff\n");
    let mut shown = String::new();
    for name in
        ["fifo", "zero", ".", "dangling", "nul/x", "utf16", "utf16-cjk", "gbk", "latin1", "nul", "invalid"]
    {
        let ended = desk.read(name).await;
        shown.push_str(&format!("{} [{}]\n", ended.text, ended.code.unwrap_or_default()));
    }
    assert_snapshot!(shown, @r#"
    Error: cannot read "/w/fifo": not a regular file [FS_NOT_REGULAR_FILE]
    Error: cannot read "/w/zero": not a regular file [FS_NOT_REGULAR_FILE]
    Error: cannot read "/w": not a regular file [FS_NOT_REGULAR_FILE]
    Error: cannot read "/w/dangling": not found [FS_NOT_FOUND]
    Error: cannot resolve "/w/nul/x": a parent path segment is not a directory [FS_NOT_FOUND]
    Error: cannot read "/w/utf16": binary file (looks like UTF-16LE text; convert it to UTF-8 first) [FS_NOT_TEXT]
    Error: cannot read "/w/utf16-cjk": invalid UTF-8 text (looks like UTF-16LE text; convert it to UTF-8 first) [FS_NOT_TEXT]
    Error: cannot read "/w/gbk": invalid UTF-8 text (looks like GBK text; convert it to UTF-8 first) [FS_NOT_TEXT]
    Error: cannot read "/w/latin1": invalid UTF-8 text (looks like Latin-1 text; convert it to UTF-8 first) [FS_NOT_TEXT]
    Error: cannot read "/w/nul": binary file (it has NUL bytes) [FS_NOT_TEXT]
    Error: cannot read "/w/invalid": invalid UTF-8 text [FS_NOT_TEXT]
    "#);
}

#[tokio::test]
async fn a_mark_and_odd_separators() {
    let desk = Desk::new();
    desk.put("f", "\u{feff}import os\nx\u{2028}y\u{85}z\u{b}\n");
    let ended = desk.read("f").await;
    assert_eq!(
        ended.text,
        envelope("1: import os\n2: x\u{2028}y\u{85}z\u{b}\n\n(End of file - total 2 lines)")
    );
}

#[tokio::test]
async fn a_long_line_is_shown_in_part() {
    let ended = read_text(&"x".repeat(5 * 1024 * 1024), ReadOptions::default(), json!({})).await;
    let body =
        format!("1: {}... (line truncated to 2000 chars)\n\n(End of file - total 1 lines)", "x".repeat(2000));
    assert_eq!(ended.text, envelope(&body));
}

#[tokio::test]
async fn a_file_without_a_size_is_read() {
    let desk = Desk::new();
    let ended = desk.read("/proc/meminfo").await;
    if cfg!(target_os = "linux") {
        assert!(ended.text.contains("1: MemTotal:"), "{}", ended.text);
    }
}

#[tokio::test]
async fn what_was_seen_is_logged_once() {
    let desk = Desk::new();
    desk.put("f", "a\n");
    let seen = |desk: &Desk, name: &str| {
        let key = desk.path(name).to_string_lossy().into_owned();
        desk.session.with_log(|log| log.observation(&key).cloned())
    };
    desk.call("read", json!({"file_path": "f", "limit": 1})).await;
    let version = FileFacts::at(&desk.path("f")).unwrap().unwrap().version;
    assert_eq!(seen(&desk, "f"), Some(FsObservation::Present { version }));
    let events = desk.events();
    desk.read("f").await;
    assert_eq!(desk.events(), events);
    desk.read("missing/g").await;
    desk.read("missing/g").await;
    assert_eq!(seen(&desk, "missing/g"), Some(FsObservation::Absent));
    assert_eq!(desk.events(), events + 1);
    desk.call("read", json!({"file_path": "f", "offset": 9})).await;
    desk.read(".").await;
    assert_eq!(desk.events(), events + 1);
}

#[tokio::test]
async fn a_cancelled_read_ends() {
    let desk = Desk::new();
    desk.put("f", "a\n");
    desk.cancel.cancel();
    assert_eq!(desk.read("f").await.code.as_deref(), Some("ABORTED_BEFORE_DISPATCH"));
}

#[test]
fn the_schema_a_model_sees() {
    let schema = lorimer_tools::schema_of::<ReadArgs>();
    assert_eq!(schema["required"], json!(["file_path"]));
    assert_eq!(schema["properties"]["offset"]["type"], "number");
    assert_eq!(schema["properties"]["limit"]["type"], "number");
}

#[tokio::test]
async fn the_harness_itself_is_not_read() {
    let desk = Desk::new();
    for path in ["/proc/self/environ", "/proc/thread-self/status"] {
        let ended = desk.read(path).await;
        assert!(
            !cfg!(target_os = "linux") || ended.text.contains("belongs to the harness itself"),
            "{}",
            ended.text
        );
    }
}
