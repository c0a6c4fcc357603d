//! Both tools on real trees.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lorimer_protocol::{CallId, SessionHeader, SessionId};
use lorimer_session::{Session, Store, StoreOptions};
use lorimer_tools::{Tool, ToolContext, ToolError};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::file::{MAX_KEPT_LINE_BYTES, MAX_SEARCHED_LINE_BYTES};
use super::{GlobArgs, GlobOutput, GlobTool, GrepArgs, GrepOutput, GrepTool, SearchOptions};

/// A folder with files in it. Every file is a second younger than the one before.
struct Tree {
    folder: TempDir,
    files: u64,
}

impl Tree {
    fn new(files: &[&str]) -> Self {
        let mut tree = Self { folder: TempDir::new().expect("a folder"), files: 0 };
        for file in files {
            tree.add(file, "needle\n");
        }
        tree
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn add(&mut self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
        let mut file = File::create(&path).expect("a file");
        file.write_all(content.as_ref()).expect("writes");
        self.files += 1;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + self.files))
            .expect("a time");
        path
    }

    fn add_pipe(&self, path: &str) {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, self.path().join(path), rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
    }

    fn context(&self) -> ToolContext {
        let header = SessionHeader::new(SessionId("s".to_owned()), 0, None);
        context_in(Arc::new(Session::in_memory(header)), self.path())
    }

    async fn glob(&self, pattern: &str, path: Option<&str>) -> Result<GlobOutput, ToolError> {
        let args = GlobArgs { pattern: pattern.to_owned(), path: path.map(str::to_owned) };
        GlobTool::default().execute(&args, &self.context()).await
    }

    async fn paths(&self, pattern: &str, path: Option<&str>) -> Vec<String> {
        self.glob(pattern, path).await.expect("finds").paths
    }

    async fn grep(&self, pattern: &str, path: Option<&str>) -> Result<GrepOutput, ToolError> {
        GrepTool::default().execute(&grep_args(pattern, path, None), &self.context()).await
    }

    async fn rows(&self, pattern: &str, path: Option<&str>, include: Option<&str>) -> Vec<String> {
        let found = GrepTool::default().execute(&grep_args(pattern, path, include), &self.context()).await;
        let row = |found: super::GrepMatch| format!("{}:{}:{}", found.path, found.line_number, found.line);
        found.expect("finds").matches.into_iter().map(row).collect()
    }
}

fn context_in(session: Arc<Session>, cwd: &Path) -> ToolContext {
    ToolContext::new(CallId::from("c"), "search", Value::Null, session, cwd, CancellationToken::new())
}

fn grep_args(pattern: &str, path: Option<&str>, include: Option<&str>) -> GrepArgs {
    GrepArgs {
        pattern: pattern.to_owned(),
        path: path.map(str::to_owned),
        include: include.map(str::to_owned),
    }
}

fn failure<T: std::fmt::Debug>(ended: Result<T, ToolError>) -> (String, String) {
    let error = ended.expect_err("fails");
    (error.code().unwrap_or_default().to_owned(), error.message)
}

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
async fn what_is_missing_is_named() {
    let tree = Tree::new(&["a"]);
    let (code, message) = failure(tree.glob("*", Some("nope")).await);
    assert_eq!(code, "SEARCH_FAILED");
    assert_eq!(message, "glob search failed (exit 2): nope: No such file or directory (os error 2)");
    let (_, message) = failure(tree.grep("x", Some("a/b")).await);
    assert_eq!(message, "grep search failed (exit 2): a/b: Not a directory (os error 20)");
}

#[tokio::test]
async fn what_cannot_be_read_fails_only_an_empty_search() {
    let mut tree = Tree::new(&["a"]);
    let locked = tree.add("locked", "needle\n");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).expect("a mode");
    if File::open(&locked).is_ok() {
        // The superuser reads everything.
        return;
    }
    assert_eq!(tree.rows("needle", None, None).await, ["a:1:needle"]);
    let (_, message) = failure(tree.grep("absent", None).await);
    assert_eq!(message, "grep search failed (exit 2): locked: Permission denied (os error 13)");
}

#[tokio::test]
async fn malformed_patterns_are_refused() {
    let tree = Tree::new(&["a"]);
    let mut texts = vec![failure(tree.grep("(", None).await), failure(tree.grep("a\nb", None).await)];
    texts.push(failure(tree.glob("{a", None).await));
    let include = GrepTool::default().execute(&grep_args("a", None, Some("[")), &tree.context()).await;
    texts.push(failure(include));
    assert!(texts.iter().all(|(code, _)| code == "SEARCH_INVALID_PATTERN"));
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    insta::assert_snapshot!(texts.join("\n--\n"), @r#"
    grep pattern rejected by ripgrep: regex parse error:
        (?:()
        ^
    error: unclosed group
    --
    grep pattern rejected by ripgrep: the literal "\n" is not allowed in a regex
    --
    glob pattern rejected by ripgrep: error parsing glob '{a': unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)
    --
    grep pattern rejected by ripgrep: error parsing glob '[': unclosed character class; missing ']'
    "#);
}

#[tokio::test]
async fn blank_arguments_are_refused() {
    let tree = Tree::new(&[]);
    let (code, message) = failure(tree.glob(" ", None).await);
    assert_eq!((code.as_str(), message.as_str()), ("", "pattern must be a non-empty string"));
    let (_, message) = failure(tree.glob("*", Some("")).await);
    assert_eq!(message, "path must be a non-empty string when given");
}

#[tokio::test]
async fn too_much_output_is_refused() {
    let tree = Tree::new(&["aaaa", "bbbb", "cccc"]);
    let options = SearchOptions { raw_output_max_bytes: 9, ..SearchOptions::default() };
    let args = GlobArgs { pattern: "*".to_owned(), path: None };
    let (code, message) = failure(GlobTool::new(options.clone()).execute(&args, &tree.context()).await);
    assert_eq!(code, "SEARCH_RAW_OUTPUT_OVERFLOW");
    assert!(
        message.ends_with("over the 9-byte cap; narrow pattern, path, or include and retry"),
        "{message}"
    );
    let grep = GrepTool::new(options).execute(&grep_args("needle", None, None), &tree.context()).await;
    assert_eq!(failure(grep).0, "SEARCH_RAW_OUTPUT_OVERFLOW");
}

#[tokio::test]
async fn a_cancel_or_a_late_end_aborts() {
    let tree = Tree::new(&["a"]);
    let context = tree.context();
    context.cancel.cancel();
    let cancelled = GrepTool::default().execute(&grep_args("a", None, None), &context).await;
    let expected = "grep was aborted before completion (tool timeout or caller cancellation)";
    assert_eq!(failure(cancelled), ("SEARCH_ABORTED".to_owned(), expected.to_owned()));
}

#[tokio::test]
async fn a_search_that_is_stopped_ends_by_itself() {
    let cancel = CancellationToken::new();
    let (ended, wait) = tokio::sync::oneshot::channel();
    let canceller = cancel.clone();
    let late = super::runner::run("glob", &cancel, 60_000, move |stop| {
        canceller.cancel();
        while !stop.is_set() {
            std::thread::yield_now();
        }
        let _ = ended.send(());
        Ok(())
    });
    assert_eq!(failure(late.await).0, "SEARCH_ABORTED");
    wait.await.expect("the thread ends");
    let (ended, wait) = tokio::sync::oneshot::channel();
    let cancel = CancellationToken::new();
    let late = super::runner::run("glob", &cancel, 1, move |stop| {
        while !stop.is_set() {
            std::thread::yield_now();
        }
        let _ = ended.send(());
        Ok(())
    });
    assert_eq!(failure(late.await).0, "SEARCH_ABORTED");
    wait.await.expect("the thread ends");
}

#[tokio::test]
async fn a_complete_result_is_stored() {
    let tree = Tree::new(&["a", "b", "c"]);
    let home = TempDir::new().expect("a folder");
    let session = Store::new(home.path(), StoreOptions::default()).create(tree.path()).expect("a session");
    let options = SearchOptions { glob_max_results: 2, grep_max_matches: 2, ..SearchOptions::default() };
    let context = context_in(Arc::clone(&session), tree.path());
    let glob = GlobTool::new(options.clone());
    let args = GlobArgs { pattern: "*".to_owned(), path: None };
    let output = glob.execute(&args, &context).await.expect("finds");
    let stored = output.stored.clone().expect("is stored");
    assert_eq!(fs::read_to_string(&stored).expect("reads"), "a\nb\nc");
    let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
    let folder = Path::new(&stored).parent().expect("a folder");
    assert_eq!((mode(Path::new(&stored)), mode(folder)), (0o600, 0o700));
    assert_eq!(folder, session.directory().expect("a folder").join("files"));
    let text = glob.render(&args, &output)[0].as_text().expect("text").replace(&stored, "<stored>");
    insta::assert_snapshot!(text, @r"
    a
    b

    (Showing 2 of 3 paths. Full sorted result stored at: <stored>. Use read with offset/limit, or grep this path to search within it.)
    ");

    let grep = GrepTool::new(options);
    let args = grep_args("needle", None, None);
    let output = grep.execute(&args, &context).await.expect("finds");
    let stored = output.stored.clone().expect("is stored");
    assert!(stored.ends_with("-grep-results.txt"));
    insta::assert_snapshot!(fs::read_to_string(&stored).expect("reads"), @r"
    Found 3 matches

    a
    Line 1: needle

    b
    Line 1: needle

    c
    Line 1: needle
    ");
    let text = grep.render(&args, &output)[0].as_text().expect("text").replace(&stored, "<stored>");
    insta::assert_snapshot!(text, @r"
    Found 2 of 3 matches

    a
    Line 1: needle

    b
    Line 1: needle

    (Full grep result stored at: <stored>. Use read with offset/limit, or grep this path to search within it.)
    ");

    let mut nested = context_in(session, tree.path());
    nested.parent = Some(CallId::from("p"));
    assert_eq!(grep.execute(&args, &nested).await.expect("finds").stored, None);
}

#[test]
fn the_model_is_told_what_the_arguments_mean() {
    let schemas = [lorimer_tools::schema_of::<GlobArgs>(), lorimer_tools::schema_of::<GrepArgs>()];
    insta::assert_json_snapshot!(schemas, @r#"
    [
      {
        "type": "object",
        "properties": {
          "pattern": {
            "type": "string",
            "description": "Glob of the files to find, such as `*.rs` or `src/**/*.ts`. Without a slash it applies at any depth."
          },
          "path": {
            "type": "string",
            "description": "Directory to look in; the workspace when left out."
          }
        },
        "required": [
          "pattern"
        ]
      },
      {
        "type": "object",
        "properties": {
          "pattern": {
            "type": "string",
            "description": "Regular expression in Rust's syntax, applied to each line. Escape literal `( ) [ ] { } . * + ? | ^ $ \\`."
          },
          "path": {
            "type": "string",
            "description": "File or directory to search; the workspace when left out."
          },
          "include": {
            "type": "string",
            "description": "Glob of the files to search, such as `*.rs` or `*.{ts,tsx}`."
          }
        },
        "required": [
          "pattern"
        ]
      }
    ]
    "#);
}

#[test]
fn the_prompt_has_a_place_for_both() {
    let sections = [GlobTool::default().prompt(), GrepTool::default().prompt()];
    let places: Vec<_> =
        sections.iter().flatten().map(|section| (section.name.as_str(), section.order)).collect();
    assert_eq!(places, [("tool:glob", 103), ("tool:grep", 104)]);
}
