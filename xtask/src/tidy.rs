//! Which crate may use which, how long a module may be, and words that do not belong here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use toml_edit::DocumentMut;

use crate::report;

/// What each room may use of the other rooms. Arrows point down only.
const ALLOWED: [(&str, &[&str]); 10] = [
    ("protocol", &[]),
    ("process", &[]),
    ("sandbox", &["protocol", "process"]),
    ("session", &["protocol"]),
    ("tools", &["protocol", "session"]),
    ("model", &["protocol"]),
    ("toolbox", &["protocol", "session", "tools", "process", "sandbox"]),
    ("agent", &["protocol", "session", "tools", "model"]),
    ("rpc", &["protocol", "session", "tools", "toolbox", "agent"]),
    ("lorimer", &["protocol", "session", "tools", "process", "toolbox", "model", "agent", "rpc", "sandbox"]),
];

/// Most lines of a module without its tests.
const MAX_MODULE_LINES: usize = 700;

/// Module names that say nothing.
const EMPTY_NAMES: [&str; 4] = ["util", "utils", "common", "helpers"];

/// Runs every check.
pub fn tidy() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let mut problems = Vec::new();
    for (room, allowed) in ALLOWED {
        check_edges(root, room, allowed, &mut problems);
    }
    check_rooms_are_listed(root, &mut problems);
    for file in rust_files(&root.join("crates")) {
        check_module(&file, &mut problems);
    }
    problems.iter().for_each(|problem| report(problem));
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check_edges(root: &Path, room: &str, allowed: &[&str], problems: &mut Vec<String>) {
    let path = root.join("crates").join(room).join("Cargo.toml");
    let Some(manifest) = fs::read_to_string(&path).ok().and_then(|text| text.parse::<DocumentMut>().ok())
    else {
        problems.push(format!("{}: cannot be read", path.display()));
        return;
    };
    let dependencies = manifest.get("dependencies").and_then(|item| item.as_table_like());
    for (name, _) in dependencies.into_iter().flat_map(|table| table.iter()) {
        if let Some(used) = name.strip_prefix("lorimer-")
            && !allowed.contains(&used)
        {
            problems.push(format!("crates/{room} may not use crates/{used}"));
        }
    }
}

fn check_rooms_are_listed(root: &Path, problems: &mut Vec<String>) {
    for entry in fs::read_dir(root.join("crates")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !ALLOWED.iter().any(|(room, _)| *room == name) {
            problems.push(format!("crates/{name} is not in the list of rooms in xtask/src/tidy.rs"));
        }
    }
}

fn check_module(file: &Path, problems: &mut Vec<String>) {
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if EMPTY_NAMES.contains(&stem.as_str()) {
        problems.push(format!("{}: a module's name says what is in it", file.display()));
    }
    let text = fs::read_to_string(file).unwrap_or_default();
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().count();
    if lines > MAX_MODULE_LINES {
        problems.push(format!("{}: {lines} lines without tests, at most {MAX_MODULE_LINES}", file.display()));
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
