//! `write` as a model and a card see it.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use insta::assert_snapshot;
use lorimer_protocol::PermissionMode;
use serde_json::{Value, json};

use super::*;
use crate::files::harness::{Desk, Ended, make_fifo, outside};
use crate::{EditOptions, ReadOptions};

async fn write(desk: &Desk, name: &str, content: &str) -> Ended {
    desk.call("write", json!({"file_path": name, "content": content})).await
}

fn shown(ended: &Ended) -> String {
    format!("{} [{}]", ended.text, ended.code.as_deref().unwrap_or_default())
}

#[tokio::test]
async fn a_new_file() {
    let desk = Desk::new();
    let ended = write(&desk, "a/b/notes.txt", "hello\r\n").await;
    assert_eq!(
        ended.text,
        "<path>/w/a/b/notes.txt</path>\n<type>file</type>\n<content>\nCreated file\n</content>"
    );
    assert_eq!(ended.meta, Some(json!({"diffs": []})));
    assert_eq!(desk.bytes("a/b/notes.txt"), b"hello\r\n");
    let value =
        json!({"path": "/w/a/b/notes.txt", "operation": "create", "before": null, "after": "hello\n"});
    assert_eq!(ended.value, Some(value));
    let whole = json!({"path": "a/b/notes.txt", "oldText": null, "newText": "hello\r\n"});
    assert_eq!(ended.view, Some(json!({"card": "diff", "title": "Write a/b/notes.txt", "diffs": [whole]})));
}

#[tokio::test]
async fn an_overwrite() {
    let desk = Desk::new();
    desk.put("data.txt", "original contents\n");
    desk.read("data.txt").await;
    let ended = write(&desk, "data.txt", "replaced").await;
    assert_eq!(
        ended.text,
        "<path>/w/data.txt</path>\n<type>file</type>\n<content>\nUpdated file\n</content>"
    );
    let diff = json!({
        "path": "data.txt", "oldText": "original contents", "newText": "replaced", "oldStart": 1, "newStart": 1,
    });
    assert_eq!(ended.meta, Some(json!({"diffs": [diff]})));
    assert_eq!(ended.view, Some(json!({"card": "diff", "title": "Write data.txt", "diffs": [diff]})));
    assert_eq!(desk.bytes("data.txt"), b"replaced");
    // The new version is known: no read is due before the next one.
    let ended = write(&desk, "data.txt", "replaced").await;
    assert_eq!(ended.meta, Some(json!({"diffs": []})));
    assert!(!write(&desk, "data.txt", "").await.is_error);
    assert_eq!(desk.bytes("data.txt"), b"");
}

#[tokio::test]
async fn guards() {
    let desk = Desk::new();
    let mut texts = Vec::new();
    desk.put("f", "theirs");
    texts.push(write(&desk, "f", "x").await);
    desk.read("f").await;
    desk.put("f", "changed by hand");
    texts.push(write(&desk, "f", "x").await);
    std::fs::remove_file(desk.path("f")).unwrap();
    texts.push(write(&desk, "f", "x").await);
    desk.read("f").await;
    assert!(!write(&desk, "f", "made again").await.is_error);
    std::fs::create_dir(desk.path("d")).unwrap();
    texts.push(write(&desk, "d", "x").await);
    make_fifo(&desk.path("fifo"));
    texts.push(write(&desk, "fifo", "x").await);
    texts.push(write(&desk, "f/x", "x").await);
    texts.push(write(&desk, " ", "x").await);
    let texts: Vec<String> = texts.iter().map(shown).collect();
    assert_snapshot!(texts.join("\n"), @r#"
    Error: cannot overwrite existing "/w/f" without reading it first — read the file, then retry [FS_NOT_OBSERVED]
    Error: cannot write "/w/f": file changed since it was read — re-read the file, then retry [FS_STALE_VERSION]
    Error: cannot write "/w/f": file no longer exists — re-read the file, then retry [FS_STALE_VERSION]
    Error: cannot write "/w/d": not a regular file [FS_NOT_REGULAR_FILE]
    Error: cannot write "/w/fifo": not a regular file [FS_NOT_REGULAR_FILE]
    Error: cannot resolve "/w/f/x": a parent path segment is not a directory [FS_NOT_FOUND]
    Error: file_path must be a non-empty string []
    "#);
    assert_eq!(desk.bytes("f"), b"made again");
}

#[tokio::test]
async fn what_no_diff_is_made_of() {
    let options = WriteOptions { diff_basis_max_bytes: 10, ..WriteOptions::default() };
    let desk = Desk::with(ReadOptions::default(), options, EditOptions::default());
    for (before, after, is_shown) in
        [("123456789", "1", true), ("1234567890", "1", false), ("1", "1234567890", false)]
    {
        desk.put("f", before);
        desk.read("f").await;
        let ended = write(&desk, "f", after).await;
        let value = ended.value.unwrap();
        assert_eq!(value["before"], if is_shown { json!(before) } else { Value::Null });
        assert_eq!(value["operation"], "update");
        assert_eq!(ended.meta.unwrap()["diffs"] != json!([]), is_shown, "{before} {after}");
    }
}

#[tokio::test]
async fn content_that_is_no_text_can_be_replaced_when_it_was_seen() {
    let desk = Desk::new();
    desk.put("f", "text");
    desk.read("f").await;
    write(&desk, "f", "a\0b").await;
    let ended = write(&desk, "f", "text").await;
    assert_eq!(ended.value.unwrap()["before"], Value::Null);
    assert_eq!(ended.meta, Some(json!({"diffs": []})));
}

#[tokio::test]
async fn a_link_stays_a_link() {
    let desk = Desk::new();
    desk.put("target", "old");
    symlink("target", desk.path("link")).unwrap();
    symlink("sub/new", desk.path("dangling")).unwrap();
    desk.read("link").await;
    assert!(write(&desk, "link", "new").await.text.contains("<path>/w/link</path>"));
    assert_eq!(desk.bytes("target"), b"new");
    assert!(desk.path("link").symlink_metadata().unwrap().is_symlink());
    assert!(write(&desk, "dangling", "made").await.text.contains("Created file"));
    assert_eq!(desk.bytes("sub/new"), b"made");
    assert!(desk.path("dangling").symlink_metadata().unwrap().is_symlink());
    // The file is known by its real path.
    assert!(!write(&desk, "target", "again").await.is_error);
}

#[tokio::test]
async fn modes_and_hard_links() {
    let desk = Desk::new();
    for mode in [0o755, 0o600] {
        desk.put("f", "old");
        std::fs::set_permissions(desk.path("f"), std::fs::Permissions::from_mode(mode)).unwrap();
        desk.read("f").await;
        write(&desk, "f", "new").await;
        assert_eq!(desk.path("f").metadata().unwrap().mode() & 0o7777, mode);
    }
    desk.put("one", "old");
    std::fs::hard_link(desk.path("one"), desk.path("two")).unwrap();
    desk.read("one").await;
    write(&desk, "one", "new").await;
    assert_eq!((desk.bytes("one"), desk.bytes("two")), (b"new".to_vec(), b"old".to_vec()));
}

#[tokio::test]
async fn the_permission_mode_holds() {
    let desk = Desk::new();
    let Some(outside) = outside() else {
        return;
    };
    let victim = outside.path().join("victim");
    std::fs::write(&victim, "ORIGINAL").unwrap();
    symlink(&victim, desk.path("link")).unwrap();
    symlink(outside.path().join("new"), desk.path("dangling")).unwrap();
    symlink(outside.path(), desk.path("folder")).unwrap();
    desk.read("link").await;
    desk.set_mode(PermissionMode::WorkspaceWrite);
    let absolute = outside.path().join("x/y");
    for name in ["link", "dangling", "folder/x", &absolute.to_string_lossy()] {
        let ended = write(&desk, name, "x").await;
        assert_eq!(
            shown(&ended),
            "Error: [sandbox: file access denied under workspace-write mode] [FS_SANDBOX_DENIED]"
        );
        assert_eq!(ended.view, None);
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    desk.set_mode(PermissionMode::ReadOnly);
    let ended = write(&desk, "mine", "x").await;
    assert_eq!(ended.text, "Error: [sandbox: file access denied under read-only mode]");
    desk.set_mode(PermissionMode::DangerFullAccess);
    assert!(!write(&desk, "link", "x").await.is_error);
    assert_eq!(std::fs::read(&victim).unwrap(), b"x");
}

#[test]
fn the_hunks_are_no_part_of_the_value() {
    let names = |schema: Value| -> Vec<String> {
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(names(lorimer_tools::schema_of::<WriteValue>()), ["path", "operation", "before", "after"]);
    assert_eq!(names(lorimer_tools::schema_of::<crate::EditValue>()), ["path", "before", "after"]);
}

#[tokio::test]
async fn pending_card() {
    let tool = Desk::new().tool("write");
    let view = tool.present_call(&json!({"file_path": "a.txt", "content": "x\n"})).unwrap();
    let expected = json!({
        "card": "diff", "title": "Write a.txt",
        "diffs": [{"path": "a.txt", "oldText": null, "newText": "x\n"}],
        "locations": [{"path": "a.txt"}],
    });
    assert_eq!(serde_json::to_value(view).unwrap(), expected);
}
