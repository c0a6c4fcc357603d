//! What is found, and how it is named.

use super::*;

#[tokio::test]
async fn glob_lists_the_oldest_first() {
    let mut tree = Tree::new(&["z.rs", "b/c.rs", "a.rs", "a.txt"]);
    let one = tree.add("tie/b.rs", "");
    let other = tree.add("tie/a.rs", "");
    let time = fs::metadata(&one).and_then(|metadata| metadata.modified()).expect("a time");
    File::options().append(true).open(other).and_then(|file| file.set_modified(time)).expect("a time");
    assert_eq!(tree.paths("*.rs", None).await, ["z.rs", "b/c.rs", "a.rs", "tie/a.rs", "tie/b.rs"]);
}

#[tokio::test]
async fn glob_patterns_are_those_of_ignore_files() {
    let tree = Tree::new(&["a.rs", "src/a.rs", "src/deep/b.rs", "x/src/c.rs"]);
    assert_eq!(tree.paths("/a.rs", None).await, ["a.rs"]);
    assert_eq!(tree.paths("a.rs", None).await, ["a.rs", "src/a.rs"]);
    assert_eq!(tree.paths("src/*.rs", None).await, ["src/a.rs"]);
    assert_eq!(tree.paths("**/src/**/*.rs", None).await, ["src/a.rs", "src/deep/b.rs", "x/src/c.rs"]);
    assert_eq!(tree.paths("{a,c}.rs", None).await, ["a.rs", "src/a.rs", "x/src/c.rs"]);
    assert_eq!(tree.paths("!b.rs", Some("src")).await, ["src/a.rs"]);
    assert_eq!(tree.paths("*.md", None).await, Vec::<String>::new());
    // Globs are anchored to the workspace, wherever the search starts.
    assert_eq!(tree.paths("/src/*.rs", Some("src")).await, ["src/a.rs"]);
    assert_eq!(tree.paths("/a.rs", Some("src")).await, Vec::<String>::new());
}

#[tokio::test]
async fn glob_includes_hidden_and_ignored_files_but_no_version_control() {
    let mut tree =
        Tree::new(&[".hidden/a", "target/a", ".git/a", "sub/.git/a", ".hg/a", "sub/.jj/x/a", "sub/.sl"]);
    tree.add(".gitignore", "target\n");
    tree.add(".ignore", "*\n");
    assert_eq!(tree.paths("*", None).await, [".hidden/a", "target/a", ".gitignore", ".ignore"]);
}

#[tokio::test]
async fn glob_names_paths_as_the_argument_does() {
    let tree = Tree::new(&["src/a", "src/b/c"]);
    let absolute = tree.path().join("src").to_string_lossy().into_owned();
    let other = Tree::new(&[]);
    for (path, root, first) in [("src", "src", "src/a"), ("src/", "src/", "src/a"), (".", ".", "./src/a")] {
        let found = tree.glob("*", Some(path)).await.expect("finds");
        assert_eq!((found.root.as_str(), found.paths[0].as_str()), (root, first));
    }
    assert_eq!(tree.glob("*", Some(&absolute)).await.expect("finds").root, "src");
    let outside = other.glob("*", Some(&absolute)).await.expect("finds");
    assert_eq!((outside.root, outside.paths[1].clone()), (absolute.clone(), format!("{absolute}/b/c")));
    assert_eq!(tree.paths("*.zip", Some("src/a")).await, ["src/a"]);
}

#[tokio::test]
async fn the_value_has_the_declared_shape() {
    let tree = Tree::new(&["a"]);
    let globbed = tree.glob("*", None).await.expect("finds");
    assert_eq!(serde_json::to_value(globbed).expect("is JSON"), json!({ "root": ".", "paths": ["a"] }));
    let grepped = tree.grep("need", None).await.expect("finds");
    let expected = json!({ "matches": [{ "path": "a", "lineNumber": 1, "line": "needle" }] });
    assert_eq!(serde_json::to_value(grepped).expect("is JSON"), expected);
}

#[tokio::test]
async fn grep_reports_lines_by_path() {
    let mut tree = Tree::new(&[]);
    tree.add("b/z.txt", "one\r\ntwo needle\r\nthree");
    tree.add("b.txt", "needle");
    tree.add("a/x", "\n\nNeedle\nneedle needle\n");
    assert_eq!(tree.rows("needle$|^needle", None, None).await, ["a/x:4:needle needle", "b.txt:1:needle"]);
    assert_eq!(tree.rows("two", None, None).await, ["b/z.txt:2:two needle"]);
    assert_eq!(tree.rows("(?i)NEEDLE", Some("a"), None).await, ["a/x:3:Needle", "a/x:4:needle needle"]);
    assert_eq!(tree.rows("needle", Some("b.txt"), None).await, ["b.txt:1:needle"]);
    assert_eq!(tree.rows("needle", None, Some("*.txt")).await, ["b/z.txt:2:two needle", "b.txt:1:needle"]);
    assert_eq!(tree.rows("absent", None, None).await, Vec::<String>::new());
}

#[tokio::test]
async fn grep_respects_ignore_files() {
    let mut tree = Tree::new(&["a", ".hidden", "target/x", "other", "x.log"]);
    tree.add(".gitignore", "target\n*.log\n");
    tree.add(".ignore", "other\n");
    // Without a repository its rules do not apply.
    assert_eq!(tree.rows("needle", None, None).await.len(), 3);
    fs::create_dir(tree.path().join(".git")).expect("a folder");
    assert_eq!(tree.rows("needle", None, None).await, ["a:1:needle"]);
    assert_eq!(tree.rows("needle", Some("other"), None).await, ["other:1:needle"]);
    assert_eq!(tree.rows("needle", None, Some("*.log")).await, ["x.log:1:needle"]);
}

#[tokio::test]
async fn grep_leaves_binary_files_unless_they_are_named() {
    let mut tree = Tree::new(&["a"]);
    tree.add("b.bin", b"needle\n\0\nneedle\n");
    assert_eq!(tree.rows("needle", None, None).await, ["a:1:needle"]);
    assert_eq!(tree.rows("needle", Some("b.bin"), None).await, ["b.bin:1:needle", "b.bin:4:needle"]);
}

#[tokio::test]
async fn text_that_is_not_utf8_is_found() {
    let mut tree = Tree::new(&[]);
    tree.add("bytes", b"needle \xff\n");
    let utf16: Vec<u8> = "\u{feff}x\nneedle é\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    tree.add("utf16", utf16);
    let found = tree.rows("needle", None, None).await;
    assert_eq!(found, ["bytes:1:(line is not valid UTF-8)", "utf16:2:needle é"]);
}
