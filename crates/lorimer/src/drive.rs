//! One headless run: the agent, its events, signals, and the way out.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lorimer_agent::{Agent, TurnReport};
use lorimer_model::Difference;
use lorimer_protocol::{AbortCause, AssistantMessage, ContentBlock, Event, SessionId};
use lorimer_rpc::Channels;
use lorimer_session::Session;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::answer_schema::AnswerSchema;
use crate::compose;
use crate::exit::{CommandError, Exit};
use crate::images::Image;
use crate::outcome::{Manner, RunResult};
use crate::settings::Settings;
use crate::signals::{Ending, Signals};
use crate::surface::{Progress, StdoutWriter, safe_for_stdout};

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
    /// How the outcome is told.
    pub manner: Manner,
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
    // A run that nobody watches only ends. DSH's manner asks for the last text that was said.
    let watched = job.json || progress.is_shown() || job.manner == Manner::Dsh;
    let events = watched.then(|| session.subscribe());
    let chosen = compose::choose(&job.settings, &job.home)?;
    chosen.require_ready(&job.settings)?;
    let compose::Composed { agent, differences } = compose::agent(
        chosen,
        &job.settings,
        &job.home,
        &job.cwd,
        Arc::clone(&session),
        &Channels::default(),
    )?;
    let stdout = StdoutWriter::start().map_err(|error| CommandError::failed(error.to_string()))?;
    queue_task(&agent, &job.task, job.images)?;
    let mut run = Run {
        agent: &agent,
        events,
        stdout: &stdout,
        progress,
        json: job.json,
        steps_before: session.with_log(|log| log.turn().total_steps()),
        last_text: String::new(),
    };
    appended.iter().for_each(|event| run.show(event));
    // A reply that the repair closed is of the turn before.
    run.last_text.clear();
    let mut signals = Signals::listen().map_err(|error| CommandError::failed(error.to_string()))?;
    let (report, ending) = run.until_end(&mut signals).await?;
    let mut result = RunResult::new(&session, report, ending, run.steps_before, &job.manner, run.last_text);
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
        Finished::Signal(ending) => return Ok(job.manner.exit_after(ending, false)),
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
    agent.follow_up_with(content)?;
    Ok(())
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
    /// The last text of the model that was not empty.
    last_text: String,
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
        if let Ok(Some(reply)) = event.data_as::<AssistantMessage>() {
            let text = reply.message.text();
            if !text.trim().is_empty() {
                self.last_text = text;
            }
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
