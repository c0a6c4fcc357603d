//! Whole surveys against fake tools.

mod fake;
mod hostile;

use std::collections::BTreeSet;

use fake::{Outcome, Workspace, request, say, survey};

use super::limits::{MAX_LISTINGS, MAX_MEASURED_FILES, MEASURED_PER_REPLY};
use super::{NOTHING_TO_ADD, next_turn};

const ALL_TOOLS: &[&str] = &["bash", "glob", "grep", "read"];
const DEMO: &str = "Survey this workspace and report what is in it.";

fn run(workspace: &Workspace) -> Outcome {
    survey(workspace, request(ALL_TOOLS, DEMO))
}

fn lines(n: usize) -> String {
    "x\n".repeat(n)
}

fn small() -> Workspace {
    Workspace::of(&[
        (".gitignore", "/target\n*.log\n"),
        ("README.md", "# Teapot\n\nMakes tea.\n"),
        ("Cargo.toml", "[package]\nname = \"teapot\"\ndescription = \"Boils water\"\n"),
        ("Cargo.lock", "version = 4\n"),
        ("src/main.rs", "fn main() {\n    // TODO: boil\n    pour(); // FIXME: too `hot`\n}\n"),
        ("src/lib.rs", &lines(120)),
        ("web/index.html", "<p>\n"),
        ("debug.log", "TODO\n"),
        ("target/debug/teapot.d", "x\n"),
    ])
    .with_binary("logo.png")
    .with_binary("src/odd.rs")
    .ignoring(&["target", "debug.log"])
}

impl Workspace {
    fn ignoring(mut self, ignored: &[&'static str]) -> Self {
        self.ignored = ignored.to_vec();
        self
    }
}

#[test]
fn a_small_project_is_reported_in_full() {
    let outcome = run(&small());
    insta::assert_snapshot!(outcome.report, @r#"
    # Survey of teapot

    > Offline planner: no model was called. Every figure below comes from the `glob`, `grep` and `read` results of this conversation.

    It says of itself: `Boils water`. `README.md` begins with `Teapot`.

    ## Languages

    | Language | Files | Lines |
    | --- | ---: | ---: |
    | Rust | 2 | 124 |
    | Markdown | 1 | 3 |
    | TOML | 1 | 3 |
    | Ignore rules | 1 | 2 |
    | HTML | 1 | 1 |
    | **Total** | 6 | 133 |

    ## Entry points

    - `src/main.rs` — Rust program, 4 lines
    - `src/lib.rs` — Rust library, 120 lines

    ## Build files

    - Cargo: `Cargo.toml`

    ## TODO and FIXME

    1 line with TODO, 1 line with FIXME, as far as `grep` looks (it leaves out hidden and ignored files). The first:

    - `src/main.rs:2` `// TODO: boil`
    - `src/main.rs:3` `pour(); // FIXME: too 'hot'`

    ## Largest files

    1. `src/lib.rs` — 120 lines
    2. `src/main.rs` — 4 lines
    3. `Cargo.toml` — 3 lines
    4. `README.md` — 3 lines
    5. `.gitignore` — 2 lines

    ## Not measured

    - 1 folder passed over as output or ignored: `target`.
    - 1 ignored file passed over.
    - 1 of 11 paths not looked at: in folders passed over.
    - 2 binary files.
    - 1 generated file (lock files, minified sources, snapshots).

    Next: `export DEEPSEEK_API_KEY=…`, then `lorimer run "Explain src/main.rs"` has a model work here.
    "#);
}

#[test]
fn the_steps_say_what_they_do() {
    let outcome = run(&small());
    let texts: Vec<&str> = outcome.turns.iter().rev().skip(1).rev().map(|turn| turn.text.as_str()).collect();
    insta::assert_snapshot!(texts.join("\n"), @r#"
    I start with a list of the paths in this workspace.
    There are 11 paths here. I read `.gitignore`, `README.md` and `Cargo.toml` to learn what it is.
    I look for TODO and FIXME marks, and I count lines: text files 4 to 7 of 7.
    "#);
}

#[test]
fn a_longer_file_changes_its_own_figures_only() {
    let before = run(&small()).report;
    let after = run(&small().with("src/lib.rs", &lines(130))).report;
    let changed: Vec<_> = before.lines().zip(after.lines()).filter(|(old, new)| old != new).collect();
    assert_eq!(before.lines().count(), after.lines().count());
    let expected = [
        ("| Rust | 2 | 124 |", "| Rust | 2 | 134 |"),
        ("| **Total** | 6 | 133 |", "| **Total** | 6 | 143 |"),
        ("- `src/lib.rs` — Rust library, 120 lines", "- `src/lib.rs` — Rust library, 130 lines"),
        ("1. `src/lib.rs` — 120 lines", "1. `src/lib.rs` — 130 lines"),
    ];
    assert_eq!(changed, expected);
}

#[test]
fn another_mark_changes_the_marks_only() {
    let before = run(&small()).report;
    let after = run(&small().with("web/index.html", "<p> TODO: sugar\n")).report;
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let gone: Vec<_> = before.iter().filter(|line| !after.contains(line)).collect();
    let new: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
    assert!(
        matches!(gone[..], [line] if line.starts_with("1 line with TODO, 1 line with FIXME")),
        "{gone:?}"
    );
    assert!(
        matches!(new[..], [counts, place] if counts.starts_with("2 lines with TODO, 1 line with FIXME")
        && *place == "- `web/index.html:1` `<p> TODO: sugar`"),
        "{new:?}"
    );
}

#[test]
fn folders_of_a_long_listing_are_listed_one_by_one() {
    let mut workspace = Workspace::of(&[("package.json", "{\"name\":\"shop\"}\n")]);
    for n in 0..90 {
        workspace = workspace.with(&format!("src/a/f{n}.ts"), "1\n2\n");
        workspace = workspace.with(&format!("src/b/g{n}.ts"), "1\n");
        workspace = workspace.with(&format!("node_modules/p/i{n}.js"), "1\n");
    }
    let outcome = run(&workspace);
    assert!(outcome.report.starts_with("# Survey of shop\n"), "{}", outcome.report);
    assert!(outcome.report.contains("| TypeScript | 180 | 270 |"), "{}", outcome.report);
    assert!(outcome.report.contains("1 folder passed over as output or ignored: `node_modules`."));
    assert!(outcome.report.contains("90 of 271 paths not looked at"), "{}", outcome.report);
    assert!(!outcome.calls().any(|call| call.arguments.contains("node_modules")));
    let most = outcome.turns.iter().map(|turn| turn.calls.len()).max();
    assert_eq!(most, Some(MEASURED_PER_REPLY + 2));
}

#[test]
fn a_huge_workspace_stays_within_the_budgets() {
    let mut workspace = Workspace::default();
    for folder in 0..60 {
        for n in 0..30 {
            workspace = workspace.with(&format!("m{folder:02}/s/f{n:02}.go"), "1\n");
        }
    }
    let outcome = run(&workspace);
    let of = |name: &str| outcome.calls().filter(|call| call.name == name).count();
    assert_eq!((of("glob"), of("grep"), of("read")), (MAX_LISTINGS, 2, MAX_MEASURED_FILES));
    assert!(outcome.report.contains("(in 400 of "), "{}", outcome.report);
    assert!(
        outcome.report.contains("21 folders seen only in part (limit: 40 listings)"),
        "{}",
        outcome.report
    );
    assert!(outcome.report.contains(" of 1,800 paths not looked at"), "{}", outcome.report);
}

#[test]
fn a_flat_folder_beyond_the_cap_is_owned_up_to() {
    let workspace = (0..150).fold(Workspace::default(), |all, n| all.with(&format!("f{n:03}.py"), "1\n"));
    let outcome = run(&workspace);
    assert!(outcome.report.contains("| Python | 100 | 100 |"), "{}", outcome.report);
    assert!(outcome.report.contains("50 of 150 paths not looked at"), "{}", outcome.report);
}

#[test]
fn an_empty_workspace_is_called_empty() {
    let outcome = run(&Workspace::default());
    assert_eq!(outcome.turns.len(), 2);
    assert!(outcome.report.contains("The workspace is empty"), "{}", outcome.report);
    assert!(outcome.report.ends_with("has a model work here."));
}

#[test]
fn missing_tools_are_named() {
    let without = |tools: &[&str]| survey(&small(), request(tools, DEMO));
    let none = without(&["run_code"]);
    assert_eq!(none.turns.len(), 1);
    for tool in ["glob", "grep", "read"] {
        assert!(none.report.contains(&format!("There is no `{tool}` tool")), "{}", none.report);
    }
    let no_read = without(&["glob", "grep"]);
    assert!(no_read.report.contains("| Rust | 3 | — |"), "{}", no_read.report);
    let no_grep = without(&["glob", "read"]);
    assert!(no_grep.report.contains("## TODO and FIXME\n\nNot searched."), "{}", no_grep.report);
    let no_glob = without(&["grep", "read"]);
    assert!(no_glob.report.starts_with("# Survey of Teapot\n"), "{}", no_glob.report);
    assert!(!no_glob.report.contains("## Languages"), "{}", no_glob.report);
}

#[test]
fn another_task_is_declined_and_the_folder_surveyed() {
    let outcome = survey(&small(), request(ALL_TOOLS, "fix the login bug"));
    let expected = "The offline planner cannot do the task `fix the login bug`: it only surveys a folder";
    assert!(outcome.report.contains(expected), "{}", outcome.report);
    assert!(outcome.report.ends_with("then `lorimer run \"fix the login bug\"` has a model work here."));
    assert!(!run(&small()).report.contains("cannot do the task"));
    let quoting = survey(&small(), request(ALL_TOOLS, "run `rm -rf \"$HOME\"`"));
    assert!(quoting.report.ends_with("then `lorimer run \"Explain src/main.rs\"` has a model work here."));
}

#[test]
fn a_second_prompt_starts_a_new_survey() {
    let first = run(&small());
    let mut again = first.request.clone();
    assert_eq!(next_turn(&again).text, NOTHING_TO_ADD);
    say(&mut again, DEMO);
    let second = survey(&small().with("src/new.rs", "1\n"), again);
    assert_eq!(first.turns[0], second.turns[0]);
    assert!(second.report.contains("| Rust | 3 | 125 |"), "{}", second.report);
}

#[test]
fn no_question_is_put_twice() {
    let outcome = run(&small());
    let calls: Vec<_> = outcome.calls().map(|call| (&call.name, &call.arguments)).collect();
    let distinct: BTreeSet<_> = calls.iter().collect();
    assert_eq!(calls.len(), distinct.len());
}
