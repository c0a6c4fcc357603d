//! One headless run: the agent, its events, signals, and the way out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lorimer_agent::{Agent, TurnReport};
use lorimer_model::Difference;
use lorimer_protocol::{AbortCause, ContentBlock, Event, SessionId, TurnEndReason};
use lorimer_session::Session;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::answer_schema::AnswerSchema;
use crate::compose;
use crate::exit::{CommandError, Exit};
use crate::images::Image;
use crate::settings::Settings;
use crate::signals::{Ending, Signals};
use crate::surface::{Progress, StdoutWriter, safe_for_stdout, short_id};

/// How long a turn may take to end after a signal before the log is closed without it, in milliseconds.
const ENDING_GRACE_MS: u64 = 5000;

/// What is to be run and how it is shown.
pub struct Job {
    /// The home directory.
    pub home: PathBuf,
    /// The settings, flags applied.
    pub settings: Settings,
    /// The workspace.
    pub cwd: PathBuf,
    /// The session to go on with.
    pub resume: Option<SessionId>,
    /// The task.
    pub task: String,
    /// The model as the command line named it, for the next step that is told.
    pub model_flag: Option<String>,
    /// Events on standard output instead of the answer alone.
    pub json: bool,
    /// A file for the answer.
    pub output: Option<PathBuf>,
    /// What the answer has to fit.
    pub schema: Option<AnswerSchema>,
    /// Images that go with the task.
    pub images: Vec<Image>,
    /// Progress even when nobody seems to watch.
    pub show_progress: bool,
}

/// Runs a job to its end.
///
/// # Errors
/// When it cannot begin. What goes wrong later is an exit code.
pub fn drive(job: Job) -> Result<Exit, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::failed(format!("cannot start: {error}")))?;
    let exit = runtime.block_on(run(job));
    // Whatever a tool still does in the background ends with the process.
    runtime.shutdown_background();
    exit
}

async fn run(job: Job) -> Result<Exit, CommandError> {
    let started = Instant::now();
    let (session, appended) = open_session(&job)?;
    let progress = Progress::new(job.show_progress);
    // A run that nobody watches only ends.
    let events = (job.json || progress.is_shown()).then(|| session.subscribe());
    let compose::Composed { agent, differences } =
        compose::agent(&job.settings, &job.home, &job.cwd, Arc::clone(&session))?;
    let stdout = StdoutWriter::start().map_err(|error| CommandError::failed(error.to_string()))?;
    queue_task(&agent, &job.task, job.images)?;
    let mut run = Run {
        agent: &agent,
        events,
        stdout: &stdout,
        progress,
        json: job.json,
        steps_before: session.with_log(|log| log.turn().total_steps()),
    };
    appended.iter().for_each(|event| run.show(event));
    let mut signals = Signals::listen().map_err(|error| CommandError::failed(error.to_string()))?;
    let (report, ending) = run.until_end(&mut signals).await?;
    let mut result = RunResult::new(&session, report, ending, run.steps_before, job.model_flag);
    result.check(job.schema.as_ref());
    if let Some(path) = &job.output {
        result.save_answer(path);
    }
    if job.json {
        stdout.line(result.to_json(started.elapsed()).to_string());
    } else if !result.text.is_empty() {
        stdout.line(safe_for_stdout(result.text.trim_end_matches('\n')).into_owned());
    }
    let written = match finish_stdout(stdout, ending, &mut signals).await {
        Finished::Written(written) => written,
        Finished::Signal(ending) => return Ok(ending.exit()),
    };
    if let Err(error) = written {
        result.problems.clear();
        result
            .problems
            .push(format!("cannot write to standard output: {error}; the answer is in the session's log"));
        result.exit = if result.exit == Exit::Completed { Exit::Unsaved } else { result.exit };
    }
    result.problems.iter().for_each(|problem| Progress::note(problem));
    if let Some(differences) = differences {
        tell_differences(&differences.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
    Ok(result.exit)
}

/// The session of a job, and what opening it has appended already.
fn open_session(job: &Job) -> Result<(Arc<Session>, Vec<Arc<Event>>), CommandError> {
    let store = compose::store(&job.settings, &job.home);
    let Some(id) = &job.resume else {
        return Ok((store.create(&job.cwd)?, Vec::new()));
    };
    let opened = store.open(id)?;
    if let Some(copy) = opened.torn_copy {
        Progress::note(&format!("the log ended in a torn line, which was copied to {}", copy.display()));
    }
    Ok((opened.session, opened.appended))
}

/// Where today's tool results are not the recorded ones.
fn tell_differences(differences: &[Difference]) {
    for one in differences {
        let line = one.recorded.lines().zip(one.now.lines()).position(|(before, now)| before != now);
        let at = line.unwrap_or_else(|| one.recorded.lines().count().min(one.now.lines().count()));
        let shown =
            |text: &str| text.lines().nth(at).unwrap_or("(nothing)").chars().take(80).collect::<String>();
        Progress::note(&format!(
            "the result of {} differs from the recorded one at line {}: \"{}\" was \"{}\"",
            one.call_id,
            at + 1,
            shown(&one.now),
            shown(&one.recorded)
        ));
    }
}

fn queue_task(agent: &Agent, task: &str, images: Vec<Image>) -> Result<(), CommandError> {
    if images.is_empty() {
        return Ok(agent.follow_up(task)?);
    }
    let mut content = vec![ContentBlock::text(task)];
    for image in images {
        content.push(image.into_block(agent.session())?);
    }
    Ok(agent.follow_up_with(content)?)
}

enum Finished {
    Written(std::io::Result<()>),
    /// A signal came while the rest was waiting for its reader.
    Signal(Ending),
}

/// Waits until standard output has everything. After a signal nobody may be reading any more, and a reader that has
/// stopped must not keep the program from ending.
async fn finish_stdout(stdout: StdoutWriter, ending: Option<Ending>, signals: &mut Signals) -> Finished {
    let (done, written) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || done.send(stdout.finish()));
    let patience = match ending {
        None => Duration::MAX,
        Some(_) => Duration::from_millis(500),
    };
    tokio::select! {
        written = written => Finished::Written(written.unwrap_or(Ok(()))),
        signal = signals.next() => Finished::Signal(signal),
        () = tokio::time::sleep(patience) => Finished::Written(Ok(())),
    }
}

struct Run<'a> {
    agent: &'a Agent,
    /// What is appended, when it is shown.
    events: Option<UnboundedReceiver<Arc<Event>>>,
    stdout: &'a StdoutWriter,
    progress: Progress,
    json: bool,
    steps_before: u64,
}

impl Run<'_> {
    /// The last turn's report, or none when the log had to be closed without it.
    async fn until_end(
        &mut self,
        signals: &mut Signals,
    ) -> Result<(Option<TurnReport>, Option<Ending>), CommandError> {
        let agent = self.agent;
        let turns = agent.run_until_idle();
        tokio::pin!(turns);
        let mut ending: Option<Ending> = None;
        let mut deadline: Option<tokio::time::Instant> = None;
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        let report = loop {
            tokio::select! {
                biased;
                signal = signals.next() => {
                    let forced = ending.is_some();
                    ending = ending.or(Some(signal));
                    if forced {
                        break None;
                    }
                    agent.cancel(signal.cause());
                    deadline = Some(tokio::time::Instant::now() + Duration::from_millis(ENDING_GRACE_MS));
                }
                Some(event) = next_event(&mut self.events) => self.show(&event),
                report = &mut turns => break Some(report?),
                () = expired(deadline) => break None,
                _ = tick.tick() => {
                    self.progress.tick();
                    if self.stdout.is_broken() {
                        agent.cancel(AbortCause::Disposed);
                    }
                }
            }
        };
        if report.is_none() {
            close_log(agent, ending.map_or(AbortCause::Disposed, Ending::cause)).await;
        }
        while let Some(event) = self.events.as_mut().and_then(|events| events.try_recv().ok()) {
            self.show(&event);
        }
        Ok((report, ending))
    }

    fn show(&mut self, event: &Event) {
        if self.json {
            self.stdout.line(event.to_json());
        }
        self.progress.event(self.agent, event);
    }
}

async fn next_event(events: &mut Option<UnboundedReceiver<Arc<Event>>>) -> Option<Arc<Event>> {
    match events {
        Some(events) => events.recv().await,
        None => std::future::pending().await,
    }
}

async fn expired(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Closes an open turn in the log without waiting for whatever runs.
async fn close_log(agent: &Agent, cause: AbortCause) {
    if agent.close_now(cause).is_ok() {
        let _ = tokio::time::timeout(Duration::from_secs(2), agent.session().flush()).await;
    }
}

/// What a run came to.
struct RunResult {
    session_id: SessionId,
    model_flag: Option<String>,
    stop_reason: &'static str,
    text: String,
    usage: Value,
    steps: u64,
    error: Option<Value>,
    exit: Exit,
    problems: Vec<String>,
}

impl RunResult {
    fn new(
        session: &Session,
        report: Option<TurnReport>,
        ending: Option<Ending>,
        steps_before: u64,
        model_flag: Option<String>,
    ) -> Self {
        let steps = session.with_log(|log| log.turn().total_steps()) - steps_before;
        let Some(report) = report else {
            return Self {
                session_id: session.id().clone(),
                model_flag,
                stop_reason: "aborted",
                text: String::new(),
                usage: json!({}),
                steps,
                error: None,
                exit: ending.map_or(Exit::Failed, Ending::exit),
                problems: vec![
                    "stopped before the turn could end; the log is closed and can be gone on with".to_owned(),
                ],
            };
        };
        let mut result = Self {
            session_id: session.id().clone(),
            model_flag,
            stop_reason: "completed",
            text: report.text,
            usage: serde_json::to_value(report.usage).unwrap_or_default(),
            steps,
            error: None,
            exit: Exit::Completed,
            problems: Vec::new(),
        };
        result.judge(&report.reason);
        if let Some(error) = report.unsaved {
            // A turn that ended because of it has said so.
            if result.problems.is_empty() {
                result.problems.push(format!("{error}; set LORIMER_HOME to a folder that can be written"));
            }
            if result.exit == Exit::Completed {
                result.exit = Exit::Unsaved;
            }
        }
        if let Some(ending) = ending {
            result.exit = ending.exit();
        }
        result
    }

    fn judge(&mut self, reason: &TurnEndReason) {
        let (stop_reason, exit, problem) = match reason {
            TurnEndReason::Completed if self.text.trim().is_empty() => (
                "completed",
                Exit::Failed,
                Some(
                    "the model ended without an answer; ask again, or look with `lorimer sessions show`"
                        .to_owned(),
                ),
            ),
            TurnEndReason::Completed => ("completed", Exit::Completed, None),
            TurnEndReason::MaxTokens => (
                "max-tokens",
                Exit::Limit,
                Some(format!(
                    "the answer was cut at the output limit; raise max_tokens, or {}",
                    self.go_on()
                )),
            ),
            TurnEndReason::Blocked => {
                ("blocked", Exit::Failed, Some(format!("the input was refused; {}", self.go_on())))
            }
            TurnEndReason::Aborted { .. } => {
                ("aborted", Exit::Failed, Some(format!("cancelled; {}", self.go_on())))
            }
            TurnEndReason::Error { error } => {
                self.error = Some(json!({"code": error.code, "message": error.message}));
                match error.code.as_str() {
                    "STEP_LIMIT" => ("step-limit", Exit::Limit, Some(error.message.clone())),
                    "COST_LIMIT" => ("error", Exit::Limit, Some(error.message.clone())),
                    // These say themselves what to do.
                    code @ ("CONTEXT_WINDOW_EXCEEDED" | "PERSISTENCE") => {
                        ("error", Exit::Failed, Some(format!("{} [{code}]", error.message)))
                    }
                    code => {
                        ("error", Exit::Failed, Some(format!("{} [{code}]; {}", error.message, self.go_on())))
                    }
                }
            }
            TurnEndReason::Interrupted | TurnEndReason::Other(_) => {
                ("error", Exit::Failed, Some(format!("the turn was interrupted; {}", self.go_on())))
            }
        };
        (self.stop_reason, self.exit) = (stop_reason, exit);
        self.problems.extend(problem);
    }

    /// The next step when a turn did not end well: the session is there to be gone on with.
    fn go_on(&self) -> String {
        let id = short_id(self.session_id.as_str());
        match &self.model_flag {
            Some(model) => format!("go on with `lorimer run --session {id} -m {model}`"),
            None => format!("go on with `lorimer run --session {id}`"),
        }
    }

    /// An answer that does not fit what was asked for is a failure.
    fn check(&mut self, schema: Option<&AnswerSchema>) {
        if self.exit == Exit::Completed
            && let Some(misfit) = schema.and_then(|schema| schema.misfit(&self.text))
        {
            self.problems.push(format!("{misfit}; {}", self.go_on()));
            self.exit = Exit::Failed;
        }
    }

    fn save_answer(&mut self, path: &Path) {
        if self.text.is_empty() {
            return;
        }
        if let Err(error) = std::fs::write(path, &self.text) {
            self.problems.push(format!(
                "cannot write the answer to {}: {error}; it is in the session's log",
                path.display()
            ));
            if self.exit == Exit::Completed {
                self.exit = Exit::Unsaved;
            }
        }
    }

    fn to_json(&self, took: Duration) -> Value {
        let mut line = json!({
            "type": "result",
            "sessionId": self.session_id,
            "stopReason": self.stop_reason,
            "text": self.text,
            "usage": self.usage,
            "steps": self.steps,
            "durationMs": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
        if let Some(error) = &self.error {
            line["error"] = error.clone();
        }
        line
    }
}
