//! The `bash` tool: one command in a fresh shell, its output, and how it ended.
//!
//! What must hold:
//! - How a command ends is a result and never an error; an error means that it did not run, that its end is not
//!   known, or that the caller cancelled.
//! - When a call has ended, however it ended, nothing that the command started is left.
//! - No command runs with more rights than its session's mode gives it ([`Confinement`]).
//! - What a deny rule forbids, no command sees, in no mode and whoever approved it.
//! - A command sees the environment without what looks like a secret.

mod approval;
mod card;
mod command;
mod confinement;
mod output;

use std::sync::Arc;

use lorimer_process::{ProcessError, Runner};
use lorimer_protocol::{CallView, ContentBlock, ResultView};
use lorimer_tools::{Concurrency, DurableResult, PromptSection, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::escalation::WiderMode;

pub use approval::AskAboutCommands;
pub use confinement::{Confinement, ConfinementOptions};
pub use output::{BashOutput, ForegroundKind, StreamOutput};

const NAME: &str = "bash";

/// The place of the tool's paragraph in the system prompt.
const PROMPT_ORDER: i32 = 105;

const PROMPT: &str = "\
Check how every bash command ended before you build on its output: a result whose last line is `[exit code: N]`, \
`[killed by signal: X]` or `[timed out after Nms]` did not go well, and one without such a line ended with exit code 0. \
Each command is a new shell that starts in the working directory, so a `cd` or a variable does not reach the next \
one. There is no input and no terminal: choose flags that keep a program from asking. What a command leaves running \
in the background is ended together with it. Long output is cut in its middle, and the full output is saved in the \
file that the result names.";

/// How commands are run. All sizes are for each of the two output streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BashOptions {
    /// The shell: a name that is looked up in `PATH`, or a path. It has to take `-c` as bash does. Default `bash`.
    pub shell: String,
    /// Longest run of a command that asks for no other, in milliseconds. Default 60 000.
    pub timeout_ms: u64,
    /// Longest run that a command may ask for, in milliseconds; a higher wish is cut to it. Default 600 000.
    pub max_timeout_ms: u64,
    /// How long a command may take to end after SIGTERM before it is killed, in milliseconds. Default 3000.
    pub grace_ms: u64,
    /// What is shown of the start of a long stream, in bytes. Default 16 000.
    pub head_bytes: usize,
    /// What is shown of the end of a long stream, in bytes. Default 48 000.
    pub tail_bytes: usize,
    /// What is saved of a long stream, from its first byte, in bytes. Default 64 MiB.
    pub spill_max_bytes: u64,
    /// Names of variables that commands get although they look like secrets. Default none.
    pub allowed_variables: Vec<String>,
    /// Variables that hold keys of the harness and never reach commands, unless they are allowed by name.
    pub secret_variables: Vec<String>,
}

impl Default for BashOptions {
    fn default() -> Self {
        Self {
            shell: "bash".to_owned(),
            timeout_ms: 60_000,
            max_timeout_ms: 600_000,
            grace_ms: 3000,
            head_bytes: 16_000,
            tail_bytes: 48_000,
            spill_max_bytes: 64 * 1024 * 1024,
            allowed_variables: Vec::new(),
            secret_variables: Vec::new(),
        }
    }
}

/// The arguments of `bash`. Others are ignored.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BashArgs {
    /// The command line, in the language of bash.
    pub command: String,
    /// What the command does, in five to ten words that begin with a verb. The person sees it.
    pub description: String,
    /// Longest run in milliseconds.
    pub timeout_ms: Option<f64>,
    /// The directory to start in, absolute or relative to the working directory. The working directory if left out.
    pub workdir: Option<String>,
    /// Only after a result said that access was denied: the narrowest mode that suffices. The user is asked, and the
    /// answer holds for this one command. Needs `justification`.
    #[serde(rename = "sandbox_permissions")]
    pub sandbox_permissions: Option<WiderMode>,
    /// Why the command needs wider access, in one sentence for the user.
    pub justification: Option<String>,
}

/// The tool `bash`.
///
/// The paragraph in the prompt, the marker lines of the result and the card agree on how a command's end is told; see
/// [`BashOutput::text`].
#[derive(Clone, Debug)]
pub struct BashTool {
    options: BashOptions,
    runner: Runner,
    confinement: Arc<Confinement>,
}

impl BashTool {
    /// A `bash` whose commands are run by `runner`.
    #[must_use]
    pub fn new(options: BashOptions, runner: Runner, confinement: Arc<Confinement>) -> Self {
        Self { options, runner, confinement }
    }
}

impl Tool for BashTool {
    type Args = BashArgs;
    type Output = BashOutput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        format!(
            "Runs a command line with bash and returns what it printed, standard error after standard output, and how \
             it ended. It is stopped after {} ms; timeoutMs changes that, up to {} ms.",
            command::timeout_ms(&self.options, None).unwrap_or(self.options.timeout_ms),
            self.options.max_timeout_ms,
        )
    }

    fn prompt(&self) -> Option<PromptSection> {
        Some(PromptSection { name: "tool:bash".to_owned(), order: PROMPT_ORDER, text: PROMPT.to_owned() })
    }

    /// None: the time limit of a command is the runner's, which reports it as a result with the output so far.
    fn timeout_ms(&self) -> Option<u64> {
        None
    }

    fn concurrency(&self, _args: &BashArgs) -> Concurrency {
        Concurrency::Exclusive
    }

    async fn execute(&self, args: &BashArgs, context: &ToolContext) -> Result<BashOutput, ToolError> {
        let denied = self.confinement.denied().await?;
        let (spec, held) = command::spec(&self.options, &self.confinement, args, context, &denied)?;
        let timeout_ms = spec.timeout_ms.unwrap_or(self.options.max_timeout_ms);
        let finished = self
            .runner
            .run(spec, context.cancel.clone())
            .await
            .map_err(|error| not_run(&error, args, context))?;
        if finished.cancelled {
            return Err(ToolError::aborted());
        }
        let output = BashOutput::new(finished, timeout_ms);
        match held {
            Some(held) => command::judged(output, held, self.confinement.can_escalate()),
            None => Ok(output),
        }
    }

    fn render(&self, _args: &BashArgs, output: &BashOutput) -> Vec<ContentBlock> {
        vec![ContentBlock::text(output.text())]
    }

    fn present_call(&self, args: &BashArgs) -> Option<CallView> {
        Some(card::of_call(args))
    }

    fn present_result(&self, _args: &BashArgs, result: DurableResult<'_>) -> Option<ResultView> {
        card::of_result(result)
    }
}

/// What the model reads when a command did not run. A bad `workdir` is named as the model wrote it.
fn not_run(error: &ProcessError, args: &BashArgs, context: &ToolContext) -> ToolError {
    match (error, command::given_workdir(args)) {
        (ProcessError::WorkingDirectory { source, .. }, Some(workdir)) => ToolError::plain(format!(
            "cannot use \"{workdir}\" as workdir: {source}; name an existing directory, absolute or relative to {}",
            context.cwd.display()
        )),
        _ => ToolError::plain(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lorimer_process::Supervisor;

    fn tool() -> BashTool {
        let supervisor = Supervisor { program: "/nonexistent".into(), args: Vec::new() };
        BashTool::new(BashOptions::default(), Runner::new(supervisor), Arc::default())
    }

    #[test]
    fn the_model_is_told() {
        let mut registry = lorimer_tools::Registry::default();
        registry.register(tool()).expect("a free name");
        let spec = registry.visible("any")[0].spec();
        insta::assert_json_snapshot!(spec.parameters, @r#"
        {
          "type": "object",
          "properties": {
            "command": {
              "type": "string",
              "description": "The command line, in the language of bash."
            },
            "description": {
              "type": "string",
              "description": "What the command does, in five to ten words that begin with a verb. The person sees it."
            },
            "timeoutMs": {
              "type": "number",
              "description": "Longest run in milliseconds."
            },
            "workdir": {
              "type": "string",
              "description": "The directory to start in, absolute or relative to the working directory. The working directory if left out."
            },
            "sandbox_permissions": {
              "type": "string",
              "description": "Only after a result said that access was denied: the narrowest mode that suffices. The user is asked, and the\nanswer holds for this one command. Needs `justification`.",
              "enum": [
                "workspace-write",
                "danger-full-access"
              ]
            },
            "justification": {
              "type": "string",
              "description": "Why the command needs wider access, in one sentence for the user."
            }
          },
          "required": [
            "command",
            "description"
          ]
        }
        "#);
        insta::assert_snapshot!(spec.description, @"Runs a command line with bash and returns what it printed, standard error after standard output, and how it ended. It is stopped after 60000 ms; timeoutMs changes that, up to 600000 ms.");
    }

    #[test]
    fn the_value_of_a_result_is_described() {
        insta::assert_json_snapshot!(lorimer_tools::schema_of::<BashOutput>(), @r#"
        {
          "type": "object",
          "properties": {
            "kind": {
              "type": "string",
              "description": "How it was run.",
              "enum": [
                "foreground"
              ]
            },
            "exitCode": {
              "description": "Its exit code, or null when it did not end by itself.",
              "oneOf": [
                {
                  "type": "integer"
                },
                {
                  "type": "null"
                }
              ]
            },
            "signal": {
              "description": "The signal that ended it, or null.",
              "oneOf": [
                {
                  "type": "string"
                },
                {
                  "type": "null"
                }
              ]
            },
            "timedOut": {
              "type": "boolean",
              "description": "Whether it was ended because its time was up."
            },
            "aborted": {
              "type": "boolean",
              "description": "Whether it was ended because the caller cancelled; such a call fails, so a result has false."
            },
            "timeoutMs": {
              "type": "integer",
              "description": "The time limit it ran under, in milliseconds."
            },
            "stdout": {
              "type": "object",
              "description": "Standard output.",
              "properties": {
                "text": {
                  "type": "string",
                  "description": "The stream, or its start and end with a line between that tells how much is missing."
                },
                "truncated": {
                  "type": "boolean",
                  "description": "Whether anything is missing in the text."
                },
                "spillPath": {
                  "type": "string",
                  "description": "The file that has the full stream."
                }
              },
              "required": [
                "text",
                "truncated"
              ]
            },
            "stderr": {
              "type": "object",
              "description": "Standard error.",
              "properties": {
                "text": {
                  "type": "string",
                  "description": "The stream, or its start and end with a line between that tells how much is missing."
                },
                "truncated": {
                  "type": "boolean",
                  "description": "Whether anything is missing in the text."
                },
                "spillPath": {
                  "type": "string",
                  "description": "The file that has the full stream."
                }
              },
              "required": [
                "text",
                "truncated"
              ]
            },
            "survivors": {
              "type": "integer",
              "description": "How many of its processes could not be killed because they have rights that Lorimer lacks. Left out when 0."
            },
            "deniedUnder": {
              "type": "string",
              "description": "The mode under which something seems to have been refused to it. Left out when nothing was."
            }
          },
          "required": [
            "kind",
            "exitCode",
            "signal",
            "timedOut",
            "aborted",
            "timeoutMs",
            "stdout",
            "stderr"
          ]
        }
        "#);
    }

    #[test]
    fn the_prompt_has_its_place() {
        let section = tool().prompt().expect("a paragraph");
        assert_eq!((section.name.as_str(), section.order), ("tool:bash", 105));
        insta::assert_snapshot!(section.text, @"Check how every bash command ended before you build on its output: a result whose last line is `[exit code: N]`, `[killed by signal: X]` or `[timed out after Nms]` did not go well, and one without such a line ended with exit code 0. Each command is a new shell that starts in the working directory, so a `cd` or a variable does not reach the next one. There is no input and no terminal: choose flags that keep a program from asking. What a command leaves running in the background is ended together with it. Long output is cut in its middle, and the full output is saved in the file that the result names.");
    }

    #[test]
    fn a_command_runs_alone_and_keeps_its_own_time() {
        let args: BashArgs =
            serde_json::from_value(serde_json::json!({"command": "ls", "description": "List"}))
                .expect("arguments");
        assert_eq!(tool().concurrency(&args), Concurrency::Exclusive);
        assert_eq!(Tool::timeout_ms(&tool()), None);
    }
}
