//! What a run came to: what is told of it, and the exit code.

use std::path::Path;
use std::time::Duration;

use lorimer_agent::TurnReport;
use lorimer_protocol::{SessionId, TurnEndReason};
use lorimer_session::Session;
use serde_json::{Value, json};

use crate::answer_schema::AnswerSchema;
use crate::exit::Exit;
use crate::signals::Ending;
use crate::surface::short_id;

/// How a run tells what it came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Problems come with the next step, and an exit code says which kind they are.
    Lorimer {
        /// The model as the command line named it, for the next step that is told.
        model_flag: Option<String>,
    },
    /// As the DeepSeek Harness does: a failed turn is `CODE: message`, an answer is the last text that there was, any
    /// turn that completed is a success, and SIGTERM asks for no more than an end.
    Dsh,
}

impl Manner {
    /// The exit code after a signal. `orderly` when the turn could end by itself.
    pub fn exit_after(&self, ending: Ending, orderly: bool) -> Exit {
        match (self, ending) {
            (Self::Dsh, Ending::Terminate) if orderly => Exit::Completed,
            _ => ending.exit(),
        }
    }
}

/// What a run came to.
pub struct RunResult {
    session_id: SessionId,
    manner: Manner,
    stop_reason: &'static str,
    /// The answer; empty when there is none.
    pub text: String,
    usage: Value,
    steps: u64,
    error: Option<Value>,
    /// How to end.
    pub exit: Exit,
    /// What went wrong, a line each.
    pub problems: Vec<String>,
}

impl RunResult {
    /// What the last turn's report comes to; none when the log had to be closed without it. `last_text` is the last
    /// text of the model that was not empty.
    pub fn new(
        session: &Session,
        report: Option<TurnReport>,
        ending: Option<Ending>,
        steps_before: u64,
        manner: &Manner,
        last_text: String,
    ) -> Self {
        let steps = session.with_log(|log| log.turn().total_steps()) - steps_before;
        let Some(report) = report else {
            return Self {
                session_id: session.id().clone(),
                manner: manner.clone(),
                stop_reason: "aborted",
                text: String::new(),
                usage: json!({}),
                steps,
                error: None,
                exit: ending.map_or(Exit::Failed, |ending| manner.exit_after(ending, false)),
                problems: vec![
                    "stopped before the turn could end; the log is closed and can be gone on with".to_owned(),
                ],
            };
        };
        let mut result = Self {
            session_id: session.id().clone(),
            manner: manner.clone(),
            stop_reason: "completed",
            text: report.text,
            usage: serde_json::to_value(report.usage).unwrap_or_default(),
            steps,
            error: None,
            exit: Exit::Completed,
            problems: Vec::new(),
        };
        result.judge(&report.reason);
        if matches!(manner, Manner::Dsh) {
            result.text = last_text;
            result.judge_as_dsh(&report.reason);
        }
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
            result.exit = manner.exit_after(ending, true);
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

    fn judge_as_dsh(&mut self, reason: &TurnEndReason) {
        let problem = match reason {
            TurnEndReason::Completed => None,
            TurnEndReason::MaxTokens => Some("the answer was cut at the output limit".to_owned()),
            TurnEndReason::Blocked => Some("the input was refused".to_owned()),
            TurnEndReason::Aborted { .. } => Some("cancelled".to_owned()),
            TurnEndReason::Error { error } => Some(format!("{}: {}", error.code, error.message)),
            TurnEndReason::Interrupted | TurnEndReason::Other(_) => {
                Some("the turn was interrupted".to_owned())
            }
        };
        self.exit = if problem.is_none() { Exit::Completed } else { Exit::Failed };
        self.problems = problem.into_iter().collect();
    }

    /// The next step when a turn did not end well: the session is there to be gone on with.
    fn go_on(&self) -> String {
        let id = short_id(self.session_id.as_str());
        match &self.manner {
            Manner::Lorimer { model_flag: Some(model) } => {
                format!("go on with `lorimer run --session {id} -m {model}`")
            }
            _ => format!("go on with `lorimer run --session {id}`"),
        }
    }

    /// An answer that does not fit what was asked for is a failure.
    pub fn check(&mut self, schema: Option<&AnswerSchema>) {
        if self.exit == Exit::Completed
            && let Some(misfit) = schema.and_then(|schema| schema.misfit(&self.text))
        {
            self.problems.push(format!("{misfit}; {}", self.go_on()));
            self.exit = Exit::Failed;
        }
    }

    /// Writes the answer to a file.
    pub fn save_answer(&mut self, path: &Path) {
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

    /// The line that ends `--json`.
    pub fn to_json(&self, took: Duration) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_was_asked_for_is_a_success_only_when_it_was_in_order() {
        assert_eq!(Manner::Dsh.exit_after(Ending::Terminate, true), Exit::Completed);
        assert_eq!(Manner::Dsh.exit_after(Ending::Terminate, false).code(), 143);
        assert_eq!(Manner::Dsh.exit_after(Ending::Interrupt, true).code(), 130);
        let usual = Manner::Lorimer { model_flag: None };
        assert_eq!(usual.exit_after(Ending::Terminate, true).code(), 143);
    }
}
