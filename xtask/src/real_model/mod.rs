//! `cargo xtask real-model`: the program against a server and a model that nobody here wrote.
//!
//! It installs llama.cpp's Python server and a model of 135 million parameters from the package index, starts the
//! server on a free port, and runs the program against it. Nothing is expected of what the model says. What was seen
//! is in `docs/real-model.md`. It is no part of CI: it needs a network, a C++ compiler and minutes.

mod checks;
mod environment;
mod relay;
mod server;
mod trial;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::report;

/// Why the trial could not be made, as one line.
type Problem = String;

struct Options {
    lorimer: Option<PathBuf>,
    python: String,
}

/// Makes the trial and prints its checks.
pub fn real_model(arguments: &[String]) -> ExitCode {
    match options(arguments).and_then(|options| run(&options)) {
        Ok(table) if table.print() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(problem) => {
            report(&format!("real-model: {problem}"));
            ExitCode::from(2)
        }
    }
}

fn options(arguments: &[String]) -> Result<Options, Problem> {
    let mut options = Options { lorimer: None, python: "python3".to_owned() };
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let mut value = || rest.next().cloned().ok_or_else(|| format!("{name} needs a value"));
        match name.as_str() {
            "--lorimer" => options.lorimer = Some(PathBuf::from(value()?)),
            "--python" => options.python = value()?,
            _ => return Err(format!("there is no option {name}; there are --lorimer and --python")),
        }
    }
    Ok(options)
}

fn run(options: &Options) -> Result<checks::Table, Problem> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let cache = root.join("target/real-model");
    let environment = environment::prepare(&cache, &options.python)?;
    let binary = match &options.lorimer {
        Some(binary) => binary.canonicalize().map_err(|error| format!("{}: {error}", binary.display()))?,
        None => build(root)?,
    };
    report(&format!("server: {}", environment.versions));
    let mut server = server::start(&environment, &cache)?;
    let relay = relay::start(server.port).map_err(|error| format!("cannot relay: {error}"))?;
    let lorimer = trial::Lorimer::new(binary, &cache, relay, &server.model)?;
    report(&format!("program: {}, as {}", lorimer.version, lorimer.route));
    Ok(checks::all(&lorimer, &mut server))
}

/// The release build of this tree.
fn build(root: &Path) -> Result<PathBuf, Problem> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--release", "--package", "lorimer"]).current_dir(root);
    let built = command.status().is_ok_and(|status| status.success());
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let binary = root.join(folder).join("release/lorimer");
    if built { Ok(binary) } else { Err("the release build has failed".to_owned()) }
}

/// Waits for a child; one that takes too long is killed.
fn wait(child: &mut std::process::Child, longest: Duration) -> Option<std::process::ExitStatus> {
    let started = std::time::Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if started.elapsed() < longest => std::thread::sleep(Duration::from_millis(50)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}
