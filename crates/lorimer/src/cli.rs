//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};
use lorimer_protocol::PermissionMode;

/// An agent harness: turns a language model into a working agent on your files.
#[derive(Debug, Parser)]
#[command(name = "lorimer", version, arg_required_else_help = true, after_help = ROOT_EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const ROOT_EXAMPLES: &str = "Examples:
  lorimer demo                          survey this folder without a key or a network
  lorimer run \"fix the failing test\"    let the configured model do it";

const RUN_EXAMPLES: &str = "Examples:
  lorimer run \"explain src/main.rs\"
  git diff | lorimer run \"review this change\"
  lorimer run --continue \"now add a test for it\"
  lorimer run --json -m deepseek/deepseek-v4-pro \"update the changelog\" | jq .type

Exit codes: 0 completed, 1 failed, 2 usage or configuration, 3 limit reached, 4 answered but not saved,
130, 143, 129 after SIGINT, SIGTERM, SIGHUP.";

const HEADLESS_NOTES: &str = "Before these come, in any order:
  --patch <FILE>         Lay a file of row patches over the settings; may be repeated, later ones win
  --dump-config          Print the rows that a run would have, and run nothing
  --dump-default-config  Print the rows before anybody changed one

`lorimer --profile headless` is the same. DSH_PERMISSION_MODE and DSH_TOOLS_MODE count as well.

Examples:
  lorimer headless \"run the tests\"
  echo \"run the tests\" | lorimer headless
  lorimer headless --patch ci.yml --json \"run the tests\"

Exit codes: 0 completed, 1 anything else, 0 after SIGTERM, 130 after SIGINT.";

const SDK_NOTES: &str =
    "`lorimer --profile sdk` is the same, and --patch, --dump-config and --dump-default-config are as in
`lorimer headless --help`.

Examples:
  lorimer sdk --patch no-shell.yml
  lorimer sdk --describe > protocol.schema.json";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run an agent on a task until it is done
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Survey a folder with the offline planner: no key, no network, nothing is changed
    #[command(after_help = "Example:\n  lorimer demo ~/src/project")]
    Demo(DemoArgs),
    /// Answer one task and end, with the command line of the DeepSeek Harness
    #[command(after_help = HEADLESS_NOTES)]
    Headless(HeadlessArgs),
    /// Serve SDK clients of the DeepSeek Harness over standard input and output
    #[command(after_help = SDK_NOTES)]
    Sdk(SdkArgs),
    /// List, show and manage stored sessions
    #[command(subcommand, after_help = "Example:\n  lorimer sessions list")]
    Sessions(SessionsCommand),
    /// Show which models are configured and what each provider needs
    #[command(after_help = "Example:\n  lorimer models")]
    Models(ModelsArgs),
    /// Start a session that goes on from a point of another one; prints its id
    #[command(
        after_help = "Example:\n  lorimer run --session \"$(lorimer fork 3f2a --turn 2)\" \"try the other way\""
    )]
    Fork(ForkArgs),
    /// Show and change settings
    #[command(subcommand_negates_reqs = true, after_help = CONFIG_EXAMPLES)]
    Config(ConfigArgs),
    /// Store a provider's key in a file that only you can read
    #[command(after_help = "Example:\n  lorimer login deepseek")]
    Login(LoginArgs),
    /// Let a folder's own configuration count
    #[command(after_help = "Example:\n  lorimer trust ~/src/project")]
    Trust(TrustArgs),
    /// Say what works here, what does not, and what to do about it
    #[command(after_help = "Example:\n  lorimer doctor")]
    Doctor,
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  lorimer completions bash > ~/.local/share/bash-completion/completions/lorimer"
    )]
    Completions {
        /// bash, elvish, fish, powershell or zsh
        shell: clap_complete::Shell,
    },
}

const CONFIG_EXAMPLES: &str = "Examples:
  lorimer config                            every setting, its value and where it came from
  lorimer config get bash.timeout_ms
  lorimer config set model ollama/llama3.2
  lorimer config schema > settings.schema.json";

/// `lorimer sdk`
#[derive(Debug, Args)]
pub struct SdkArgs {
    /// Print a description of the whole protocol (JSON Schema), and serve nobody
    #[arg(long)]
    pub describe: bool,
}

/// `lorimer fork`
#[derive(Debug, Args)]
pub struct ForkArgs {
    /// The session's id or its beginning
    pub id: String,
    /// Go on after this turn [default: the last one]
    #[arg(long, value_name = "N")]
    pub turn: Option<u64>,
}

/// `lorimer config`
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// What to do; without it, everything is shown
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
    /// The workspace [default: the current folder]
    #[arg(short = 'C', long = "cd", value_name = "DIR", global = true, value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
    /// Override a setting; may be repeated
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE", global = true)]
    pub config: Vec<String>,
}

/// `lorimer config …`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print one setting's value
    #[command(after_help = "Example:\n  lorimer config get model")]
    Get {
        /// The setting
        key: String,
    },
    /// Write one setting to the home's file; comments stay
    #[command(after_help = "Example:\n  lorimer config set max_steps 50")]
    Set {
        /// The setting
        key: String,
        /// Its value: TOML, or plain text
        value: String,
    },
    /// Print the path of the home's file
    #[command(after_help = "Example:\n  $EDITOR \"$(lorimer config path)\"")]
    Path,
    /// Print a JSON Schema of the file, for editors
    #[command(after_help = "Example:\n  lorimer config schema > settings.schema.json")]
    Schema,
}

/// `lorimer login`
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// The provider [default: the configured model's]
    pub provider: Option<String>,
}

/// `lorimer trust`
#[derive(Debug, Args)]
pub struct TrustArgs {
    /// The folder [default: the current folder]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
    /// Take the trust back
    #[arg(long)]
    pub forget: bool,
}

/// `lorimer run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The workspace [default: the current folder]
    #[arg(short = 'C', long = "cd", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
    /// Provider and model, split at the first `/`
    #[arg(short, long, value_name = "PROVIDER/MODEL")]
    pub model: Option<String>,
    /// Override a setting; may be repeated
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub config: Vec<String>,
    /// Print the session's events as JSON lines, then one result line
    #[arg(long)]
    pub json: bool,
    /// Go on with this session (an id or its beginning)
    #[arg(long, value_name = "ID", conflicts_with = "continue_last")]
    pub session: Option<String>,
    /// Go on with the newest session of this folder
    #[arg(long = "continue")]
    pub continue_last: bool,
    /// How tools are shown to the model: native
    #[arg(long, value_name = "M")]
    pub tools_mode: Option<String>,
    /// What the agent may change: read-only, workspace-write or danger-full-access
    #[arg(long, value_name = "M")]
    pub permission_mode: Option<PermissionMode>,
    /// Most steps of this turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// How much the model is to think, where it offers that
    #[arg(long, value_name = "EFFORT")]
    pub effort: Option<String>,
    /// Text that is added to the end of the system prompt
    #[arg(long, value_name = "TEXT")]
    pub append_system_prompt: Option<String>,
    /// End the turn when its replies have cost this much, in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub max_cost: Option<f64>,
    /// Show this image to the model; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub image: Vec<PathBuf>,
    /// The last answer must be JSON that fits this JSON Schema
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output_schema: Option<PathBuf>,
    /// Let the workspace's own configuration count for this run
    #[arg(long)]
    pub trust_workspace: bool,
    /// Write the final answer to this file as well
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// The task; `-` reads it from standard input
    #[arg(value_name = "TASK")]
    pub task: Vec<String>,
}

/// `lorimer headless`
#[derive(Debug, Args)]
pub struct HeadlessArgs {
    /// Print the session's events as JSON lines, then one result line
    #[arg(long)]
    pub json: bool,
    /// Go on with the stored session of this very id
    #[arg(long, value_name = "ID")]
    pub session_id: Option<String>,
    /// The task; `-` or nothing reads it from standard input
    #[arg(value_name = "TASK")]
    pub task: Vec<String>,
}

/// `lorimer demo`
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The folder to survey [default: the current folder]
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,
    /// Override a setting; may be repeated
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub config: Vec<String>,
}

/// `lorimer sessions …`
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List sessions, the latest first
    #[command(after_help = "Example:\n  lorimer sessions list --all")]
    List {
        /// Sessions of every folder, not only of this one
        #[arg(long)]
        all: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Print what was said and done in a session
    #[command(after_help = "Example:\n  lorimer sessions show 3f2a")]
    Show {
        /// The session's id or its beginning
        id: String,
    },
    /// Print the path of a session's log
    #[command(after_help = "Example:\n  jq .type \"$(lorimer sessions path 3f2a)\"")]
    Path {
        /// The session's id or its beginning
        id: String,
    },
    /// Give a session another title
    #[command(after_help = "Example:\n  lorimer sessions rename 3f2a \"the parser bug\"")]
    Rename {
        /// The session's id or its beginning
        id: String,
        /// The new title
        title: String,
    },
    /// Keep what can be kept of a damaged session, as a new one; prints its id
    #[command(after_help = "Example:\n  lorimer sessions repair 3f2a")]
    Repair {
        /// The session's id or its beginning
        id: String,
    },
    /// Print a session's log as JSON lines
    #[command(after_help = "Example:\n  lorimer sessions export 3f2a > session.jsonl")]
    Export {
        /// The session's id or its beginning
        id: String,
        /// jsonl
        #[arg(long, default_value = "jsonl", value_parser = ["jsonl"])]
        format: String,
    },
    /// Take in a log of the DeepSeek Harness (format 0 or 4, plain or zstd); prints the new session's id
    #[command(
        after_help = "Example:\n  lorimer sessions import ~/.dsh/sessions/--src--/1234/session.v4.jsonl.zstd"
    )]
    Import {
        /// The log
        #[arg(value_hint = ValueHint::FilePath)]
        path: PathBuf,
        /// The workspace, for a log that names none
        #[arg(short = 'C', long = "cd", value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
    /// Delete a session with all its files
    #[command(after_help = "Example:\n  lorimer sessions delete 3f2a")]
    Delete {
        /// The session's id or its beginning
        id: String,
    },
}

/// `lorimer models`
#[derive(Debug, Args)]
pub struct ModelsArgs {
    /// Override a setting; may be repeated
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub config: Vec<String>,
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("must be a number of dollars above 0".to_owned()),
    }
}

/// What is wrong with a command line, in one line.
pub fn complaint(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text
        .lines()
        .map(|line| line.trim().trim_start_matches("error: ").trim_start_matches("tip: "))
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}
