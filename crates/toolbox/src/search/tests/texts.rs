//! What the model is told, and what is kept for it.

use super::*;

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
