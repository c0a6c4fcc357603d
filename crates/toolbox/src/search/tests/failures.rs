//! Searches that fail.

use super::*;

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
    let late = super::super::runner::run("glob", &cancel, 60_000, move |stop| {
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
    let late = super::super::runner::run("glob", &cancel, 1, move |stop| {
        while !stop.is_set() {
            std::thread::yield_now();
        }
        let _ = ended.send(());
        Ok(())
    });
    assert_eq!(failure(late.await).0, "SEARCH_ABORTED");
    wait.await.expect("the thread ends");
}
