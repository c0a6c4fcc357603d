//! `edit` as a model and a card see it.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use insta::assert_snapshot;
use lorimer_protocol::PermissionMode;
use serde_json::json;

use super::*;
use crate::files::harness::{Desk, Ended};
use crate::{ReadOptions, WriteOptions};

async fn edit(desk: &Desk, name: &str, old: &str, new: &str) -> Ended {
    desk.call("edit", json!({"file_path": name, "old_string": old, "new_string": new})).await
}

fn shown(ended: &Ended) -> String {
    format!("{} [{}]", ended.text, ended.code.as_deref().unwrap_or_default())
}

#[tokio::test]
async fn one_place() {
    let desk = Desk::new();
    desk.put("config.txt", "mode=DEBUG\nlevel=info\n");
    desk.read("config.txt").await;
    let ended = edit(&desk, "config.txt", "DEBUG", "RELEASE").await;
    assert_eq!(ended.text, "The file /w/config.txt has been updated successfully.");
    let diff = json!({
        "path": "config.txt", "oldText": "mode=DEBUG\nlevel=info", "newText": "mode=RELEASE\nlevel=info",
        "oldStart": 1, "newStart": 1,
    });
    assert_eq!(ended.meta, Some(json!({"diffs": [diff]})));
    assert_eq!(ended.view, Some(json!({"card": "diff", "title": "Edit config.txt", "diffs": [diff]})));
    let value = json!({
        "path": "/w/config.txt", "before": "mode=DEBUG\nlevel=info\n", "after": "mode=RELEASE\nlevel=info\n",
    });
    assert_eq!(ended.value, Some(value));
    // The new version is known: no read is due before the next one.
    assert!(!edit(&desk, "config.txt", "info", "warn").await.is_error);
    assert_eq!(desk.bytes("config.txt"), b"mode=RELEASE\nlevel=warn\n");
}

#[tokio::test]
async fn every_place() {
    let desk = Desk::new();
    desk.put("f", "a b a\n");
    desk.read("f").await;
    let arguments = json!({"file_path": "f", "old_string": "a", "new_string": "$&", "replace_all": true});
    let ended = desk.call("edit", arguments).await;
    assert_eq!(ended.text, "The file /w/f has been updated. All occurrences were successfully replaced.");
    assert_eq!(desk.bytes("f"), b"$& b $&\n");
}

#[tokio::test]
async fn refusals() {
    let desk = Desk::new();
    let mut texts = Vec::new();
    desk.put("f", "a b a\n");
    texts.push(edit(&desk, "", "a", "b").await);
    texts.push(edit(&desk, "f", "", "b").await);
    texts.push(edit(&desk, "f", "a", "a").await);
    texts.push(edit(&desk, "f", "a", "b").await);
    desk.read("f").await;
    desk.read("missing").await;
    texts.push(edit(&desk, "missing", "a", "b").await);
    texts.push(edit(&desk, "f", "zz", "b").await);
    texts.push(edit(&desk, "f", "a", "b").await);
    desk.put("f", "changed by hand");
    texts.push(edit(&desk, "f", "a", "b").await);
    std::fs::remove_file(desk.path("f")).unwrap();
    texts.push(edit(&desk, "f", "a", "b").await);
    std::fs::create_dir(desk.path("f")).unwrap();
    texts.push(edit(&desk, "f", "a", "b").await);
    let texts: Vec<String> = texts.iter().map(shown).collect();
    assert_snapshot!(texts.join("\n"), @r#"
    Error: file_path must be a non-empty string []
    Error: old_string must be a non-empty string []
    Error: old_string and new_string must differ []
    Error: edit requires reading "/w/f" first — read the file, then retry [FS_NOT_OBSERVED]
    Error: cannot edit "/w/missing": not found [FS_NOT_FOUND]
    Error: old_string was not found in "/w/f" [FS_EDIT_NOT_FOUND]
    Error: old_string matched 2 times in "/w/f"; provide a more specific old_string or set replace_all to true [FS_AMBIGUOUS_EDIT]
    Error: cannot edit "/w/f": file changed since it was read — re-read the file, then retry [FS_STALE_VERSION]
    Error: cannot edit "/w/f": file changed since it was read — re-read the file, then retry [FS_STALE_VERSION]
    Error: cannot edit "/w/f": not a regular file [FS_NOT_REGULAR_FILE]
    "#);
}

/// A `read` refuses these, so what was seen of them is put into the log by hand.
#[tokio::test]
async fn what_is_not_text_is_left_alone() {
    let desk = Desk::new();
    let mut shown_texts = Vec::new();
    let mut late_nul = vec![b'a'; 9000];
    late_nul.push(0);
    for (name, bytes) in [
        ("gbk", &b"// \xd6\xd0\xce\xc4\xd7\xa2\xca\xcd\n"[..]),
        ("latin1", b"// caf\xe9\n"),
        ("utf16", b"\xff\xfea\0\n\0"),
        ("late-nul", &late_nul),
    ] {
        desk.put(name, bytes);
        let target = resolve(&desk.root, name).unwrap();
        let version = FileFacts::at(&target.real_path).unwrap().unwrap().version;
        record(&desk.session, &target, FsObservation::Present { version }).unwrap();
        shown_texts.push(shown(&edit(&desk, name, "a", "b").await));
        assert_eq!(desk.bytes(name), bytes);
    }
    assert_snapshot!(shown_texts.join("\n"), @r#"
    Error: cannot edit "/w/gbk": invalid UTF-8 text (looks like GBK text; convert it to UTF-8 first) [FS_NOT_TEXT]
    Error: cannot edit "/w/latin1": invalid UTF-8 text (looks like Latin-1 text; convert it to UTF-8 first) [FS_NOT_TEXT]
    Error: cannot edit "/w/utf16": binary file (looks like UTF-16LE text; convert it to UTF-8 first) [FS_NOT_TEXT]
    Error: cannot edit "/w/late-nul": binary file (it has NUL bytes) [FS_NOT_TEXT]
    "#);
}

#[tokio::test]
async fn bytes_around_the_match_stay() {
    let desk = Desk::new();
    desk.put("f", b"\xef\xbb\xbfa\r\nb\nprog\r10%\r20%\nc\r\n");
    desk.read("f").await;
    let ended = edit(&desk, "f", "a\nb\n", "A\nB\n").await;
    assert_eq!(desk.bytes("f"), b"\xef\xbb\xbfA\r\nB\nprog\r10%\r20%\nc\r\n");
    assert_eq!(ended.value.unwrap()["before"], "a\nb\nprog\r10%\r20%\nc\n");
}

#[tokio::test]
async fn modes_and_links_stay() {
    let desk = Desk::new();
    desk.put("run.sh", "#!/bin/sh\necho hi\n");
    std::fs::set_permissions(desk.path("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("run.sh", desk.path("link")).unwrap();
    desk.read("link").await;
    assert!(!edit(&desk, "link", "hi", "ho").await.is_error);
    assert_eq!(desk.bytes("run.sh"), b"#!/bin/sh\necho ho\n");
    assert_eq!(desk.path("run.sh").metadata().unwrap().mode() & 0o777, 0o755);
    assert!(desk.path("link").symlink_metadata().unwrap().is_symlink());
}

#[tokio::test]
async fn the_permission_mode_holds() {
    let desk = Desk::new();
    desk.put("f", "a\n");
    desk.read("f").await;
    desk.set_mode(PermissionMode::ReadOnly);
    let ended = edit(&desk, "f", "a", "b").await;
    assert_eq!(
        shown(&ended),
        "Error: [sandbox: file access denied under read-only mode] [FS_SANDBOX_DENIED]"
    );
    assert_eq!(desk.bytes("f"), b"a\n");
}

#[tokio::test]
async fn limits() {
    let options = EditOptions { diff_basis_max_bytes: 4, edit_max_bytes: 8, ..EditOptions::default() };
    let desk = Desk::with(ReadOptions::default(), WriteOptions::default(), options);
    desk.put("f", "abcd");
    desk.read("f").await;
    assert_eq!(edit(&desk, "f", "a", "x").await.meta, Some(json!({"diffs": []})));
    desk.put("f", "123456789");
    desk.read("f").await;
    let ended = edit(&desk, "f", "1", "x").await;
    assert_eq!(shown(&ended), "Error: cannot edit \"/w/f\": 9 bytes exceeds the 8-byte limit [FS_TOO_LARGE]");
}

#[tokio::test]
async fn what_was_seen_outlives_a_resume() {
    let desk = Desk::new();
    desk.put("f", "a\n");
    let mut events = desk.session.subscribe();
    desk.read("f").await;
    let logged = events.try_recv().unwrap();
    assert_eq!((logged.kind.as_str(), logged.ignorable), ("lorimer/fs-observed", Some(true)));
    assert!(!edit(&desk, "f", "a", "b").await.is_error);
    let later = events.try_recv().unwrap();

    let resumed = desk.resumed([logged, later]);
    assert!(!edit(&resumed, "f", "b", "c").await.is_error);
    assert_eq!(desk.bytes("f"), b"c\n");
}

/// Two sessions have read the file; whoever comes second is told to read it again.
#[tokio::test]
async fn changes_of_one_file_stand_in_line() {
    let first = Desk::new();
    first.put("f", "0\n");
    let second = first.resumed([]);
    for round in 0..10 {
        first.read("f").await;
        second.read("f").await;
        let (old, new) = (format!("{round}\n"), format!("{}\n", round + 1));
        let (one, two) = tokio::join!(edit(&first, "f", &old, &new), edit(&second, "f", &old, &new));
        let mut codes = [one.code, two.code];
        codes.sort();
        assert_eq!(codes, [None, Some("FS_STALE_VERSION".to_owned())]);
        assert_eq!(first.bytes("f"), new.as_bytes());
    }
}

#[tokio::test]
async fn pending_card() {
    let tool = Desk::new().tool("edit");
    let view = |old: &str| {
        let arguments = json!({"file_path": "a.ts", "old_string": old, "new_string": "y"});
        serde_json::to_value(tool.present_call(&arguments).unwrap()).unwrap()
    };
    let expected = json!({
        "card": "diff", "title": "Edit a.ts",
        "diffs": [{"path": "a.ts", "oldText": "x", "newText": "y"}],
        "locations": [{"path": "a.ts"}],
    });
    assert_eq!(view("x"), expected);
    assert_eq!(view("")["diffs"][0]["oldText"], json!(null));
}
