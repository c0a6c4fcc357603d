//! Entries that are not plain text files.

use super::super::file::{MAX_KEPT_LINE_BYTES, MAX_SEARCHED_LINE_BYTES};
use super::*;

#[tokio::test]
async fn odd_entries_are_passed_by() {
    let tree = Tree::new(&["a/file"]);
    symlink(tree.path(), tree.path().join("a/loop")).expect("a link");
    symlink("file", tree.path().join("a/link")).expect("a link");
    symlink("nowhere", tree.path().join("a/broken")).expect("a link");
    tree.add_pipe("a/pipe");
    let _socket = std::os::unix::net::UnixListener::bind(tree.path().join("a/socket")).expect("a socket");
    assert_eq!(tree.paths("*", None).await, ["a/file"]);
    assert_eq!(tree.rows("needle", None, None).await, ["a/file:1:needle"]);
    // A link that is named is followed.
    assert_eq!(tree.rows("needle", Some("a/loop/a"), None).await, ["a/loop/a/file:1:needle"]);
    assert_eq!(tree.rows("needle", Some("a/link"), None).await, ["a/link:1:needle"]);
    assert_eq!(tree.paths("file", Some("a/loop")).await, ["a/loop/a/file"]);
}

#[tokio::test]
async fn a_pipe_is_never_opened() {
    let tree = Tree::new(&[]);
    tree.add_pipe("pipe");
    let expected = "grep search failed (exit 2): pipe: not a regular file or directory";
    assert_eq!(
        failure(tree.grep("x", Some("pipe")).await),
        ("SEARCH_FAILED".to_owned(), expected.to_owned())
    );
    assert_eq!(failure(tree.glob("*", Some("pipe")).await).0, "SEARCH_FAILED");
}

#[tokio::test]
async fn ignore_rules_that_cannot_be_read_do_not_hold_a_search() {
    let tree = Tree::new(&["a/file", "b/file", "c/file"]);
    tree.add_pipe("a/.gitignore");
    symlink("/dev/zero", tree.path().join("b/.ignore")).expect("a link");
    symlink("/dev/null", tree.path().join("c/.ignore")).expect("a link");
    assert_eq!(tree.rows("needle", None, None).await, ["c/file:1:needle"]);
    let (code, message) = failure(tree.grep("needle", Some("a")).await);
    assert_eq!(code, "SEARCH_FAILED");
    assert!(message.ends_with("a/.gitignore: not a regular file of ignore rules"), "{message}");
}

#[tokio::test]
async fn the_rules_of_a_worktree_are_looked_at_first() {
    let mut tree = Tree::new(&["a/file"]);
    let folder = tree.path().join("own");
    fs::create_dir(&folder).expect("a folder");
    tree.add("a/.git", format!("gitdir: {}\n", folder.display()));
    tree.add_pipe("own/commondir");
    assert_eq!(failure(tree.grep("needle", Some("a")).await).0, "SEARCH_FAILED");
    fs::remove_file(folder.join("commondir")).expect("removes");
    tree.add("own/commondir", "..\n");
    assert_eq!(tree.rows("needle", Some("a"), None).await, ["a/file:1:needle"]);
}

#[tokio::test]
async fn names_that_are_not_utf8_are_shown() {
    let mut tree = Tree::new(&[]);
    tree.add(std::ffi::OsStr::from_bytes(b"bad\xff.txt"), "needle\n");
    assert_eq!(tree.paths("*.txt", None).await, ["bad\u{fffd}.txt"]);
    assert_eq!(tree.rows("needle", None, None).await, ["bad\u{fffd}.txt:1:needle"]);
}

#[tokio::test]
async fn a_long_line_costs_bounded_memory() {
    let mut tree = Tree::new(&[]);
    let mut content = b"needle ".to_vec();
    content.resize(MAX_SEARCHED_LINE_BYTES + 4096, b'x');
    content.extend_from_slice(b" beyond\nneedle\n");
    tree.add("long", content);
    let found = tree.grep("needle", None).await.expect("finds").matches;
    let lines: Vec<_> = found.iter().map(|found| (found.line_number, found.line.len())).collect();
    assert_eq!(lines, [(1, MAX_KEPT_LINE_BYTES), (2, "needle".len())]);
    assert_eq!(tree.rows("beyond", None, None).await, Vec::<String>::new());
}

#[tokio::test]
async fn malformed_rules_do_not_fail_a_search() {
    let mut tree = Tree::new(&["a/b/file", "a/b/other"]);
    fs::create_dir(tree.path().join(".git")).expect("a folder");
    tree.add(".gitignore", "{x\nother\n");
    assert_eq!(tree.rows("needle", Some("a/b"), None).await, ["a/b/file:1:needle"]);
    assert_eq!(tree.rows("absent", Some("a/b"), None).await, Vec::<String>::new());
}
