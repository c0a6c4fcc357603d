//! The generated files of the clients in `clients/` follow the Rust types.
//!
//! `LORIMER_UPDATE_CLIENTS=1 cargo test -p lorimer-rpc --test clients` writes them anew.

mod layout;
mod python;
mod shapes;
mod typescript;

use std::path::{Path, PathBuf};

use crate::shapes::Protocol;

/// What the first lines of generated files say.
const NOTICE: [&str; 2] = [
    "Generated from the Rust types of crates/rpc; do not edit. To write it anew:",
    "LORIMER_UPDATE_CLIENTS=1 cargo test -p lorimer-rpc --test clients",
];

/// Every generated file with its text.
fn generate() -> Vec<(&'static str, String)> {
    let mut description = lorimer_rpc::describe();
    description["$comment"] = NOTICE.join(" ").into();
    let protocol = Protocol::read(&description);
    vec![
        ("protocol.schema.json", format!("{description:#}\n")),
        ("python/lorimer_client/protocol.py", python::module(&protocol)),
        ("typescript/src/protocol.ts", typescript::module(&protocol)),
    ]
}

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients")
}

#[test]
fn generated_files_are_up_to_date() {
    for (name, text) in generate() {
        let path = clients().join(name);
        if std::env::var_os("LORIMER_UPDATE_CLIENTS").is_some() {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            std::fs::write(&path, &text).expect("a file");
        }
        let stands = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(stands == text, "clients/{name} is out of date: {}", NOTICE[1]);
    }
}

#[test]
fn the_clients_have_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    for (file, line) in [
        ("python/pyproject.toml", format!("version = \"{version}\"")),
        ("typescript/package.json", format!("\"version\": \"{version}\"")),
    ] {
        let text = std::fs::read_to_string(clients().join(file)).expect("a file");
        assert!(text.contains(&line), "clients/{file} has no line {line}");
    }
}

#[test]
fn no_name_is_given_twice() {
    for (file, text) in generate() {
        let keywords = ["class ", "export interface ", "export type "];
        let declared = text.lines().filter_map(|line| {
            let rest = keywords.iter().find_map(|keyword| line.strip_prefix(keyword))?;
            rest.split(|letter: char| !letter.is_ascii_alphanumeric()).next()
        });
        let mut seen = std::collections::HashSet::new();
        declared.for_each(|name| assert!(seen.insert(name), "{file}: {name}"));
    }
}

#[test]
fn the_same_types_give_the_same_files() {
    assert_eq!(generate(), generate());
}

/// The examples of the clients' pages are run by tests, so the same ones stand in the README.
#[test]
fn the_readme_shows_the_examples_that_are_tested() {
    let readme = std::fs::read_to_string(clients().join("../README.md")).expect("a file");
    for (page, language) in [("python/README.md", "python"), ("typescript/README.md", "ts")] {
        let page = std::fs::read_to_string(clients().join(page)).expect("a file");
        let begin = page.find(&format!("```{language}\n")).expect("an example");
        let length = page[begin + 3..].find("```").expect("its end");
        assert!(readme.contains(&page[begin..begin + 3 + length]), "{language}");
    }
}
