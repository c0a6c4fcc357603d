//! Runs of the program.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Problem;
use super::relay::{Relay, Wire};
use super::server::WINDOW_TOKENS;

/// Longest silence of a run; a slow machine needs a while for the system prompt alone.
const LONGEST_SILENCE: Duration = Duration::from_secs(300);

/// The program in a workspace and a home of its own, which end with this value.
pub struct Lorimer {
    binary: PathBuf,
    folder: PathBuf,
    relay: Relay,
    settings: Vec<String>,
    /// What it says of its version.
    pub version: String,
    /// Provider and model.
    pub route: String,
    /// The model's id.
    pub model: String,
}

/// One run with `--json`.
pub struct Trial {
    /// The events it printed.
    pub events: Vec<Value>,
    /// The line after them.
    pub result: Value,
    /// Its exit code; none when it was killed.
    pub code: Option<i32>,
    /// What it said to people.
    pub said: String,
    /// What it and the server said to each other.
    pub wire: Wire,
}

impl Drop for Lorimer {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Lorimer {
    /// Makes a workspace; the program is told of the server by settings of its `llamacpp` preset.
    ///
    /// # Errors
    /// When the program does not run, or there is no place for its files.
    pub fn new(binary: PathBuf, cache: &Path, relay: Relay, model: &str) -> Result<Self, Problem> {
        let folder = cache.join(format!("trial-{}", std::process::id()));
        fs::create_dir_all(folder.join("workspace"))
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let url = format!("http://127.0.0.1:{}/v1", relay.port);
        let settings = vec![
            format!("providers.llamacpp.base_url={url}"),
            format!("providers.llamacpp.context_window_tokens={WINDOW_TOKENS}"),
        ];
        let route = format!("llamacpp/{model}");
        let (version, model) = (String::new(), model.to_owned());
        let mut lorimer = Self { binary, folder, relay, settings, version, route, model };
        lorimer.version = lorimer.says(&["--version"])?.trim().to_owned();
        Ok(lorimer)
    }

    /// What `lorimer models` prints with the settings of the runs.
    pub fn models(&self) -> Result<String, Problem> {
        let mut arguments = vec!["models"];
        arguments.extend(self.settings.iter().flat_map(|setting| ["-c", setting]));
        self.says(&arguments)
    }

    /// The standard output of a command that succeeds.
    pub fn says(&self, arguments: &[&str]) -> Result<String, Problem> {
        let output = self.command().args(arguments).output();
        let output = output.map_err(|error| format!("{}: {error}", self.binary.display()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("`lorimer {}`: {}", arguments.join(" "), said.trim()))
    }

    /// Runs a task to its end.
    pub fn run(&self, task: &str, more: &[&str]) -> Result<Trial, Problem> {
        self.trial(task, more, |_, _| {})
    }

    /// Runs a task and interrupts it at the first piece of text.
    pub fn run_and_interrupt(&self, task: &str, more: &[&str]) -> Result<Trial, Problem> {
        let mut interrupted = false;
        self.trial(task, more, |child, event| {
            if !interrupted && event["data"]["chunk"]["type"] == "text-delta" {
                interrupted = true;
                // The standard library can only kill.
                let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            }
        })
    }

    fn trial(&self, task: &str, more: &[&str], seen: impl FnMut(&Child, &Value)) -> Result<Trial, Problem> {
        self.relay.take();
        let mut command = self.command();
        command.args(["run", "--json", "-m", &self.route, "-c", "temperature=0"]);
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting])).args(more).arg(task);
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("{}: {error}", self.binary.display()))?;
        let said = child.stderr.take().map(|errors| thread::spawn(move || text_of(errors)));
        let mut events = lines_of(&mut child, seen)?;
        let code = super::wait(&mut child, Duration::from_secs(10)).and_then(|status| status.code());
        let said = said.and_then(|reader| reader.join().ok()).unwrap_or_default();
        let result = events.pop_if(|event| event["type"] == "result").unwrap_or_default();
        Ok(Trial { events, result, code, said, wire: self.relay.take() })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.current_dir(self.folder.join("workspace"));
        command.env("LORIMER_HOME", self.folder.join("home")).env("DEEPSEEK_API_KEY", "none");
        command.env("NO_PROXY", "127.0.0.1").env_remove("DEEPSEEK_BASE_URL");
        command
    }
}

/// Every line of a run's standard output. A run that is silent for too long is killed.
fn lines_of(child: &mut Child, mut seen: impl FnMut(&Child, &Value)) -> Result<Vec<Value>, Problem> {
    let (tell, heard) = channel();
    let lines = child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
    thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| tell.send(line)));
    let mut events = Vec::new();
    loop {
        match heard.recv_timeout(LONGEST_SILENCE) {
            Ok(line) => {
                let event = serde_json::from_str(&line).map_err(|error| format!("{error} in {line}"))?;
                seen(child, &event);
                events.push(event);
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(events),
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
            }
        }
    }
}

fn text_of(mut stream: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Trial {
    /// The pieces of text, in the order they came.
    pub fn pieces(&self) -> Vec<&str> {
        let chunks = self.events.iter().map(|event| &event["data"]["chunk"]);
        chunks
            .filter(|chunk| chunk["type"] == "text-delta")
            .filter_map(|chunk| chunk["text"].as_str())
            .collect()
    }

    /// The last reason the server gave for ending.
    pub fn finish_reason(&self) -> Option<&str> {
        self.wire.frames.iter().rev().find_map(|frame| frame["choices"][0]["finish_reason"].as_str())
    }

    /// Prompt and output tokens that the server reported, over all requests; none when it reported none.
    pub fn reported_usage(&self) -> Option<(u64, u64)> {
        let usages = self.wire.frames.iter().map(|frame| &frame["usage"]).filter(|usage| usage.is_object());
        let count = |usage: &Value, name: &str| usage[name].as_u64().unwrap_or(0);
        usages
            .map(|usage| (count(usage, "prompt_tokens"), count(usage, "completion_tokens")))
            .reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Prompt and output tokens of the result.
    pub fn counted_usage(&self) -> (u64, u64) {
        let count = |name: &str| self.result["usage"][name].as_u64().unwrap_or(0);
        let prompt = ["inputTokens", "cacheReadTokens", "cacheWriteTokens"].map(count);
        (prompt.iter().sum(), count("outputTokens"))
    }

    /// The run in one line, for a check that failed.
    pub fn summary(&self) -> String {
        format!(
            "exit {:?}, stop reason {}, {} pieces, server said {:?} {:?}; {}",
            self.code,
            self.result["stopReason"],
            self.pieces().len(),
            self.wire.statuses,
            self.finish_reason(),
            self.said.trim()
        )
    }
}
