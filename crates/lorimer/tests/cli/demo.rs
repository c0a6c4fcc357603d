//! `lorimer demo`: every figure is measured, nothing is changed, nothing is needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::lab::Lab;

/// A small project.
fn project() -> Lab {
    let lab = Lab::new();
    lab.put("Cargo.toml", "[package]\nname = \"sample\"\n");
    lab.put("README.md", "# Sample\n\nA sample.\n");
    lab.put("src/main.rs", "fn main() {\n    // TODO: greet\n    run();\n}\n");
    lab.put("src/deep/more.rs", "// FIXME later\n".repeat(2));
    lab.put("tools/count.py", "print(1)\n".repeat(7));
    lab
}

fn survey(lab: &Lab) -> String {
    let ended = lab.lorimer(&["demo"]).end();
    assert_eq!(ended.code, 0, "{ended:?}");
    ended.stdout
}

/// The figures of a report's table: files and lines by language.
fn languages(report: &str) -> BTreeMap<String, (u64, u64)> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, files, lines, _] = cells[..] else { return None };
        let figure = |cell: &str| cell.replace(',', "").parse().ok();
        Some((name.trim_matches('*').to_owned(), (figure(files)?, figure(lines)?)))
    };
    report.lines().filter_map(row).collect()
}

/// The lines of a section.
fn section<'a>(report: &'a str, heading: &str) -> Vec<&'a str> {
    let start = format!("## {heading}");
    let lines = report.lines().skip_while(|line| *line != start).skip(1);
    lines.take_while(|line| !line.starts_with("## ")).filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_report() {
    let lab = project();
    let ended = lab.lorimer(&["demo"]).end();
    insta::assert_snapshot!(ended.stdout, @r#"
    # Survey of sample

    > Offline planner: no model was called. Every figure below comes from the `glob`, `grep` and `read` results of this conversation.

    `README.md` begins with `Sample`.

    ## Languages

    | Language | Files | Lines |
    | --- | ---: | ---: |
    | Python | 1 | 7 |
    | Rust | 2 | 6 |
    | Markdown | 1 | 3 |
    | TOML | 1 | 2 |
    | **Total** | 5 | 18 |

    ## Entry points

    - `src/main.rs` — Rust program, 4 lines

    ## Build files

    - Cargo: `Cargo.toml`

    ## TODO and FIXME

    1 line with TODO, 2 lines with FIXME, as far as `grep` looks (it leaves out hidden and ignored files). The first:

    - `src/deep/more.rs:1` `// FIXME later`
    - `src/deep/more.rs:2` `// FIXME later`
    - `src/main.rs:2` `// TODO: greet`

    ## Largest files

    1. `tools/count.py` — 7 lines
    2. `src/main.rs` — 4 lines
    3. `README.md` — 3 lines
    4. `Cargo.toml` — 2 lines
    5. `src/deep/more.rs` — 2 lines

    Next: `export DEEPSEEK_API_KEY=…`, then `lorimer run "Explain src/main.rs"` has a model work here.
    "#);
    insta::assert_snapshot!(ended.said, @r#"
    I start with a list of the paths in this workspace.
    • Glob **/*
    There are 5 paths here. I read `README.md` and `Cargo.toml` to learn what it is.
    • Read README.md (1 - 12)
    • Read Cargo.toml (1 - 40)
    I look for TODO and FIXME marks, and I count lines: text files 3 to 5 of 5.
    • Grep \bTODO\b
    • Grep \bFIXME\b
    • Read src/deep/more.rs (1 - 1)
    • Read src/main.rs (1 - 1)
    • Read tools/count.py (1 - 1)
    "#);
}

#[test]
fn figures_follow_the_files() {
    let lab = project();
    let before = languages(&survey(&lab));
    assert_eq!((before["Rust"], before["Python"], before["Total"]), ((2, 6), (1, 7), (5, 18)));
    lab.put("src/deep/more.rs", "// TODO now\n".repeat(5));
    lab.put("src/new.rs", "fn new() {}\n");
    lab.put("tools/count.py", "print(1)\n".repeat(11) + "print(2)");
    let report = survey(&lab);
    let after = languages(&report);
    assert_eq!((after["Rust"], after["Python"], after["Total"]), ((3, 10), (1, 12), (6, 27)));
    let marks = section(&report, "TODO and FIXME");
    assert!(marks[0].starts_with("6 lines with TODO, 0 lines with FIXME"), "{marks:?}");
    assert_eq!(section(&report, "Largest files")[0], "1. `tools/count.py` — 12 lines");
    std::fs::remove_file(lab.workspace().join("tools/count.py")).expect("a file");
    let report = survey(&lab);
    assert_eq!(languages(&report)["Total"], (5, 15));
    assert_eq!(section(&report, "Largest files")[0], "1. `src/deep/more.rs` — 5 lines");
}

#[test]
fn two_runs_say_the_same() {
    let lab = project();
    assert_eq!(survey(&lab), survey(&lab));
}

/// Every file of a folder with what a change would change.
fn state(folder: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let changed = entry.metadata().and_then(|metadata| metadata.modified()).expect("a time");
        let content = std::fs::read(entry.path()).unwrap_or_default();
        all.push((entry.path(), content, changed));
        if entry.path().is_dir() {
            all.extend(state(&entry.path()));
        }
    }
    all.sort();
    all
}

#[test]
fn nothing_is_changed() {
    let lab = project();
    let before = state(&lab.workspace());
    survey(&lab);
    assert_eq!(state(&lab.workspace()), before);
    let log = lab.log();
    assert_eq!(log.of("sandbox/mode")[0]["mode"], "read-only");
    let tools: Vec<_> =
        log.of("tool/call").iter().filter_map(|data| data["name"].as_str().map(str::to_owned)).collect();
    assert!(tools.iter().all(|name| ["glob", "grep", "read"].contains(&name.as_str())), "{tools:?}");
}

#[test]
fn a_fresh_machine_is_enough() {
    let lab = project();
    let ended = lab.lorimer(&["demo"]).without("LORIMER_HOME").end();
    assert_eq!((ended.code, ended.stdout), (0, survey(&lab)));
    assert!(lab.root().join(".lorimer/sessions").is_dir());
}

#[test]
fn settings_for_a_model_do_not_matter() {
    let lab = project();
    let plain = survey(&lab);
    let settings = "model = 'deepseek/deepseek-v4-pro'\npermission_mode = 'danger-full-access'\n";
    std::fs::write(lab.home().join("config.toml"), settings).expect("a file");
    assert_eq!(survey(&lab), plain);
    assert_eq!(lab.logs().pop().expect("a log").of("sandbox/mode")[0]["mode"], "read-only");
}

#[test]
fn a_folder_can_be_named() {
    let lab = project();
    let report = lab.lorimer(&["demo", "tools"]).end();
    assert_eq!(languages(&report.stdout)["Total"], (1, 7));
    let missing = lab.lorimer(&["demo", "nowhere"]).end();
    assert!(missing.complaint(2).contains("nowhere"));
}

#[test]
fn an_empty_folder_is_said_so() {
    let report = survey(&Lab::new());
    assert!(report.contains("The workspace is empty: the listing found no files."), "{report}");
    assert!(languages(&report).is_empty());
}

#[test]
fn a_large_folder_is_surveyed() {
    let lab = Lab::new();
    for number in 0..250 {
        lab.put(&format!("pkg{}/file{number}.rs", number % 9), format!("// {number}\nfn f() {{}}\n"));
    }
    lab.put("pkg3/big.rs", "//\n".repeat(3000));
    let report = survey(&lab);
    assert_eq!(languages(&report)["Rust"], (251, 3500), "{report}");
    assert_eq!(section(&report, "Largest files")[0], "1. `pkg3/big.rs` — 3,000 lines");
}
