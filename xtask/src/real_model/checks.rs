//! What has to be true whatever the model says.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;

use serde_json::Value;

use super::Problem;
use super::server::Server;
use super::trial::{Lorimer, Trial};

/// Output limit of the plain question, in tokens; a small model may never stop by itself.
const QUESTION_TOKENS: &str = "max_tokens=256";

/// Tasks to be interrupted. A model may have done with one before the signal reaches the program.
const LONG_TASKS: [&str; 3] = [
    "Write a long story about a ship.",
    "Count from one to one hundred in words.",
    "Explain how bread is made, step by step.",
];

/// The checks and what came of them.
#[derive(Default)]
pub struct Table {
    rows: Vec<(&'static str, Result<String, Problem>)>,
}

impl Table {
    /// Prints every check; true when all are ok.
    pub fn print(&self) -> bool {
        let mut out = std::io::stdout().lock();
        let width = self.rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, outcome) in &self.rows {
            let (word, detail) = match outcome {
                Ok(detail) => ("ok", detail),
                Err(problem) => ("FAILED", problem),
            };
            let _ = writeln!(out, "{name:width$}  {word:6}  {detail}");
        }
        self.rows.iter().all(|(_, outcome)| outcome.is_ok())
    }

    fn add(&mut self, name: &'static str, outcome: Result<String, Problem>) {
        self.rows.push((name, outcome));
    }

    /// Checks one trial; one that could not be made fails once and is not looked at further.
    fn trial(&mut self, name: &'static str, trial: Result<Trial, Problem>) -> Option<Trial> {
        match trial {
            Ok(trial) => Some(trial),
            Err(problem) => {
                self.add(name, Err(problem));
                None
            }
        }
    }
}

/// Makes every run and checks it.
pub fn all(lorimer: &Lorimer, server: &mut Server) -> Table {
    let mut table = Table::default();
    table.add("models: lists the server's model", lists_the_model(lorimer));
    question(lorimer, &mut table);
    output_limit(lorimer, &mut table);
    cancel_and_go_on(lorimer, &mut table);
    overflow(lorimer, &mut table);
    table.add("server: still runs", server.still_runs());
    table
}

fn ensure(holds: bool, detail: impl Into<String>, trial: &Trial) -> Result<String, Problem> {
    if holds { Ok(detail.into()) } else { Err(format!("{}: {}", detail.into(), trial.summary())) }
}

fn lists_the_model(lorimer: &Lorimer) -> Result<String, Problem> {
    let listed = lorimer.models()?;
    match listed.lines().find(|line| line.contains(&lorimer.model)) {
        Some(line) => Ok(line.trim().to_owned()),
        None => Err(format!("{} is not in: {listed}", lorimer.model)),
    }
}

fn question(lorimer: &Lorimer, table: &mut Table) {
    let trial = lorimer.run("What is the capital of France?", &["-c", QUESTION_TOKENS]);
    let Some(trial) = table.trial("question", trial) else { return };
    let pieces = trial.pieces().len();
    table.add("question: streams", ensure(pieces > 1, format!("{pieces} pieces"), &trial));
    table.add("question: ends as the server said", ends_as_told(&trial));
    let text = trial.result["text"].as_str().unwrap_or_default();
    table.add(
        "question: has an answer",
        ensure(!text.trim().is_empty(), format!("{} bytes", text.len()), &trial),
    );
    table.add("question: usage is the server's", usage_is_the_servers(&trial));
}

/// Stop reason and exit code belong to the finish reason on the wire.
fn ends_as_told(trial: &Trial) -> Result<String, Problem> {
    let told = trial.finish_reason().unwrap_or("(nothing)");
    let (stop_reason, code) = match told {
        "stop" => ("completed", 0),
        "length" => ("max-tokens", 3),
        _ => return Err(format!("the server ended with {told}: {}", trial.summary())),
    };
    let holds = trial.result["stopReason"] == stop_reason && trial.code == Some(code);
    ensure(holds, format!("{told} is {stop_reason}, exit {code}"), trial)
}

fn usage_is_the_servers(trial: &Trial) -> Result<String, Problem> {
    let (prompt, output) = trial.counted_usage();
    match trial.reported_usage() {
        Some(reported) => {
            let holds = prompt > 0 && output > 0 && reported == (prompt, output);
            ensure(holds, format!("{prompt} prompt, {output} output; server: {reported:?}"), trial)
        }
        None => {
            let holds = !trial.wire.frames.is_empty() && (prompt, output) == (0, 0);
            ensure(holds, "the server streams no usage, and none is made up", trial)
        }
    }
}

fn output_limit(lorimer: &Lorimer, table: &mut Table) {
    let trial = lorimer.run("Tell me a long story.", &["-c", "max_tokens=8"]);
    let Some(trial) = table.trial("limit", trial) else { return };
    let sent = trial.wire.asked.contains("\"max_tokens\":8");
    let cut = trial.finish_reason() == Some("length");
    let ended = trial.result["stopReason"] == "max-tokens" && trial.code == Some(3);
    table.add("limit: ends as max-tokens", ensure(sent && cut && ended, "max_tokens=8, exit 3", &trial));
}

fn cancel_and_go_on(lorimer: &Lorimer, table: &mut Table) {
    let mut trial = None;
    for task in LONG_TASKS {
        let made = lorimer.run_and_interrupt(task, &["-c", "max_tokens=2048"]);
        let Some(made) = table.trial("cancel", made) else { return };
        let in_time = made.finish_reason().is_none();
        trial = Some(made);
        if in_time {
            break;
        }
    }
    let Some(trial) = trial else { return };
    let ended = trial.code == Some(130) && trial.result["stopReason"] == "aborted";
    table.add("cancel: exits 130", ensure(ended, format!("after {} pieces", trial.pieces().len()), &trial));
    let session = trial.result["sessionId"].as_str().unwrap_or_default();
    let log = match log_of(lorimer, session) {
        Ok(log) => log,
        Err(problem) => return table.add("cancel: the log can be read", Err(problem)),
    };
    table.add("cancel: the log is closed", is_closed(&log));
    let prefix = trial.pieces().concat();
    table.add("cancel: the log keeps the prefix", keeps(&log, &prefix));
    go_on(lorimer, table, session, &prefix);
}

/// The records of a session's log.
fn log_of(lorimer: &Lorimer, session: &str) -> Result<Vec<Value>, Problem> {
    let path = lorimer.says(&["sessions", "path", session])?;
    let text = fs::read_to_string(path.trim()).map_err(|error| format!("{}: {error}", path.trim()))?;
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{error} in {line}")))
        .collect()
}

/// The last record ends the turn, and every step and turn that began has ended.
fn is_closed(log: &[Value]) -> Result<String, Problem> {
    let count = |kind: &str| log.iter().filter(|record| record["type"] == kind).count();
    let last = log.last().map(|record| record["type"].to_string()).unwrap_or_default();
    let even = count("turn/start") == count("turn/end") && count("step/start") == count("step/end");
    if last.contains("turn/end") && even {
        return Ok(format!("{} records, the last is {last}", log.len()));
    }
    Err(format!("the last record is {last}"))
}

/// An answer in the log is exactly what was streamed before the signal.
fn keeps(log: &[Value], prefix: &str) -> Result<String, Problem> {
    let answers = log.iter().filter(|record| record["type"] == "assistant/message");
    let texts: BTreeSet<String> = answers.map(text_of_answer).collect();
    if !prefix.is_empty() && texts.contains(prefix) {
        return Ok(format!("{} bytes", prefix.len()));
    }
    Err(format!("{prefix:?} is none of {texts:?}"))
}

fn text_of_answer(record: &Value) -> String {
    let blocks = record["data"]["message"]["content"].as_array();
    blocks.into_iter().flatten().filter_map(|block| block["text"].as_str()).collect()
}

fn go_on(lorimer: &Lorimer, table: &mut Table, session: &str, prefix: &str) {
    let trial = lorimer.run("Go on, please.", &["--continue", "-c", QUESTION_TOKENS]);
    let Some(trial) = table.trial("continue", trial) else { return };
    let same = trial.result["sessionId"] == session;
    table.add("continue: is the same session", ensure(same, session, &trial));
    let written = Value::from(prefix).to_string();
    let shown = !prefix.is_empty() && trial.wire.asked.contains(written.trim_matches('"'));
    table.add("continue: the model is shown the prefix", ensure(shown, written, &trial));
    table.add("continue: ends as the server said", ends_as_told(&trial));
    table.add("continue: usage is the server's", usage_is_the_servers(&trial));
    table.add("continue: the log is closed", log_of(lorimer, session).and_then(|log| is_closed(&log)));
}

/// A task that is several times the window fails in an orderly way, whatever the server makes of it.
fn overflow(lorimer: &Lorimer, table: &mut Table) {
    let task = "One more word, and yet another. ".repeat(3000);
    let trial = lorimer.run(&task, &["-c", "retry.max_retries=1", "-c", QUESTION_TOKENS]);
    let Some(trial) = table.trial("overflow", trial) else { return };
    let code = trial.result["error"]["code"].as_str().unwrap_or("no error").to_owned();
    let failed = trial.code == Some(1) && trial.result["stopReason"] == "error";
    table.add("overflow: fails", ensure(failed, format!("{code}, exit 1"), &trial));
    let session = trial.result["sessionId"].as_str().unwrap_or_default();
    table.add("overflow: the log is closed", log_of(lorimer, session).and_then(|log| is_closed(&log)));
}
