//! The TypeScript client in `clients/typescript` on the program: its own tests, and the example of its README.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const LORIMER: &str = env!("CARGO_BIN_EXE_lorimer");

/// A copy of the client beside the packages that its compiler needs.
struct Built {
    root: TempDir,
}

impl Built {
    /// Compiles the client with its tests and the example.
    fn new() -> Self {
        let packages = std::env::var_os("LORIMER_TEST_NODE_MODULES")
            .expect("LORIMER_TEST_NODE_MODULES: a folder whose node_modules has typescript and @types/node");
        let built = Self { root: tempfile::tempdir().expect("a temporary folder") };
        let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/typescript");
        for name in ["package.json", "tsconfig.json", "README.md", "src", "tests"] {
            copy(&client.join(name), &built.client().join(name));
        }
        let packages = fs::canonicalize(packages).expect("the folder").join("node_modules");
        std::os::unix::fs::symlink(packages, built.client().join("node_modules")).expect("a link");
        let [example, streaming] = built.examples();
        fs::write(built.client().join("tests/example.ts"), example).expect("the example");
        let context = "import type { Session } from \"lorimer-client\";\ndeclare const session: Session;\n";
        fs::write(built.client().join("tests/streaming.ts"), format!("{context}{streaming}"))
            .expect("the other");
        for project in [".", "tests"] {
            let compiler = "node_modules/typescript/bin/tsc";
            let mut compile = Command::new("node");
            succeeded(&compile.args([compiler, "-p", project]).current_dir(built.client()).output());
        }
        built
    }

    fn client(&self) -> PathBuf {
        self.root.path().join("client")
    }

    /// The two blocks of code of the README: a program, and a piece of one.
    fn examples(&self) -> [String; 2] {
        let readme = fs::read_to_string(self.client().join("README.md")).expect("a README");
        let blocks: Vec<String> = readme
            .split("```ts\n")
            .skip(1)
            .map(|rest| rest.split_once("```").expect("its end").0.to_owned())
            .collect();
        blocks.try_into().expect("two blocks of code")
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a folder")).expect("folders");
    if from.is_dir() {
        for entry in fs::read_dir(from).expect("a folder").flatten() {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).expect("a file");
    }
}

#[track_caller]
fn succeeded(ran: &std::io::Result<Output>) -> String {
    let ran = ran.as_ref().expect("node starts");
    let said = [&ran.stdout[..], &ran.stderr[..]].map(String::from_utf8_lossy).concat();
    assert!(ran.status.success(), "{said}");
    said
}

#[test]
#[ignore = "needs Node 20 and npm packages; run scripts/test"]
fn the_typescript_client_passes_its_tests_and_its_example_runs() {
    let built = Built::new();
    let mut tests = Command::new("node");
    tests.args(["--test", "dist/tests/tests/client.test.js"]).current_dir(built.client());
    succeeded(&tests.env("LORIMER_TEST_BINARY", LORIMER).output());
    run_example(&built);
}

/// Runs the example as it stands, on a model that the settings name.
fn run_example(built: &Built) {
    assert!(built.examples()[0].lines().count() <= 10);
    let root = built.root.path();
    for folder in ["home", "ws", "bin"] {
        fs::create_dir(root.join(folder)).expect("a folder");
    }
    let command = r#"{"command": "echo ran > proof", "description": "Leaves a proof",
        "sandbox_permissions": "danger-full-access", "justification": "It has to."}"#;
    let script = format!(
        r#"{{"turns": [{{"calls": [{{"name": "bash", "arguments": {command}}}]}}, {{"text": "All tests pass."}}]}}"#
    );
    fs::write(root.join("script.json"), script).expect("a script");
    let model = format!("model = \"offline/{}\"\n", root.join("script.json").display());
    fs::write(root.join("home/config.toml"), model).expect("settings");
    std::os::unix::fs::symlink(LORIMER, root.join("bin/lorimer")).expect("a link");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut example = Command::new("node");
    example
        .arg(built.client().join("dist/tests/tests/example.js"))
        .current_dir(root.join("ws"))
        .env("PATH", format!("{}:{path}", root.join("bin").display()))
        .env("LORIMER_HOME", root.join("home"))
        .env_remove("LORIMER_TEST_NODE_MODULES");
    let said = answer_yes(&mut example);
    assert!(said.contains("May bash run") && said.contains("All tests pass."), "{said}");
    assert!(root.join("ws/proof").exists());
}

/// Runs a program that asks one question, and answers that. Gives what it printed.
fn answer_yes(program: &mut Command) -> String {
    let mut running =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = running.stdin.take().expect("a pipe");
    let mut stdout = running.stdout.take().expect("a pipe");
    let (mut said, mut piece) = (Vec::new(), [0; 1024]);
    let mut answered = false;
    while let Ok(length @ 1..) = stdout.read(&mut piece) {
        said.extend_from_slice(&piece[..length]);
        if !answered && said.ends_with(b"[y/n] ") {
            stdin.write_all(b"y\n").expect("an answer");
            answered = true;
        }
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(running.wait().expect("its end").success(), "{said}");
    said
}
