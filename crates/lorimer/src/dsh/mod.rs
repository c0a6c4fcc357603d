//! The command line of the DeepSeek Harness: `lorimer --profile NAME …` and its short forms.
//!
//! What must hold: standard output has the answer, the events or the rows that were asked for and nothing else; a
//! command line that cannot be used is `error: …`, anything else that goes wrong is `dsh: …`, and both end with 1; a
//! patch has the whole effect that it asks for, or nothing runs.

mod dump;
mod environment;
mod grammar;
mod headless;
mod layering;
mod patches;
mod rows;
mod yaml;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use clap::Parser;

pub use grammar::applies;

use self::grammar::{Dump, Launch, Profile, Request};
use self::layering::{Layered, lay};
use self::patches::Patch;
use crate::cli::{self, Cli, Command};
use crate::commands::run::trusted_config;
use crate::exit::{CommandError, Exit};
use crate::settings::{self, Settings};
use crate::surface::{Progress, StdoutWriter};
use crate::{home, sdk};

/// What lines on standard error begin with.
const SPEAKER: &str = "dsh";

/// How long a client that cannot be served may take to make its first request.
const CLIENT_WAIT_SECONDS: i64 = 2;

/// How long a client that has made its first request gets to read standard error, of which it may show what it has read
/// when standard output ends.
const CLIENT_READS_WITHIN: Duration = Duration::from_millis(50);

/// Does what the arguments (without the program's name) ask for, and says why when it cannot.
pub fn launch(arguments: &[OsString]) -> Exit {
    Progress::speak_as(SPEAKER);
    let exit = launched(arguments);
    if exit == Exit::Failed && serves(arguments) && !std::io::stdin().is_terminal() {
        let_client_see_why();
    }
    exit
}

/// Whether a client waits at the other end of the streams.
fn serves(arguments: &[OsString]) -> bool {
    matches!(grammar::parse(arguments), Ok(Request::Launch(launch)) if launch.profile == Profile::Sdk)
}

/// Waits for a client's first request before it is left alone, and takes none after it.
///
/// DSH's clients show what standard error says when their request is not answered, but not when they cannot write it;
/// then they ask for a shutdown, for whose answer they wait unless that cannot be written.
fn let_client_see_why() {
    let stdin = rustix::stdio::stdin();
    let limit = rustix::event::Timespec { tv_sec: CLIENT_WAIT_SECONDS, tv_nsec: 0 };
    let mut wanted = [rustix::event::PollFd::new(&stdin, rustix::event::PollFlags::IN)];
    // Without a client there is nothing to wait for, and nothing to do about that.
    let _ = rustix::event::poll(&mut wanted, Some(&limit));
    // It may be about to read what was said.
    std::thread::sleep(CLIENT_READS_WITHIN);
    if let Ok(nothing) = std::fs::File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(nothing);
    }
}

fn launched(arguments: &[OsString]) -> Exit {
    match run(arguments) {
        Ok(exit @ (Exit::Completed | Exit::Signal(_))) => exit,
        Ok(_) => Exit::Failed,
        Err(Refusal::CommandLine(message)) => {
            Progress::note_of("error", &message);
            Exit::Failed
        }
        Err(Refusal::Failed(CommandError { code, message, .. })) => {
            let code = code.map(|code| format!("{code}: ")).unwrap_or_default();
            Progress::note(&format!("{code}{message}"));
            Exit::Failed
        }
    }
}

/// Why nothing runs.
enum Refusal {
    /// The command line cannot be used.
    CommandLine(String),
    /// Anything else.
    Failed(CommandError),
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Self {
        Self::Failed(error)
    }
}

fn run(arguments: &[OsString]) -> Result<Exit, Refusal> {
    let launch = match grammar::parse(arguments).map_err(Refusal::CommandLine)? {
        Request::Launch(launch) => launch,
        Request::Program(flag) => return program(None, &[flag]).map(|_| Exit::Completed),
    };
    if launch.profile == Profile::Web {
        return Err(CommandError::failed("this version has no web page yet; use headless or sdk").into());
    }
    if let Some(dump) = launch.dump {
        return print_rows(&launch, dump).map_err(Refusal::Failed);
    }
    let word = if launch.profile == Profile::Sdk { "sdk" } else { "headless" };
    let Some(command) = program(Some(word), &launch.arguments)? else {
        return Ok(Exit::Completed);
    };
    if matches!(&command, Command::Sdk(args) if args.describe) {
        return print_description().map_err(Refusal::Failed);
    }
    let home = home::home()?;
    let here = home::workspace(None)?;
    let patches = read_patches(&launch)?;
    let settings_of = |cwd: &Path| {
        let settings = lay(below_patches(&home, cwd)?, &patches, cwd)?.settings;
        environment::check_tools_mode(&settings)?;
        Ok(settings)
    };
    Ok(match command {
        Command::Headless(args) => headless::answer(home.clone(), here, &args, settings_of)?,
        _ => sdk::serve(&home, settings_of(&here)?, &here)?,
    })
}

/// What a profile's arguments say; none when they ask for help or the version, which is printed then.
fn program(word: Option<&str>, arguments: &[OsString]) -> Result<Option<Command>, Refusal> {
    let line = [Some("lorimer"), word].into_iter().flatten().map(OsString::from);
    match Cli::try_parse_from(line.chain(arguments.iter().cloned())) {
        Ok(cli) => Ok(Some(cli.command)),
        Err(error) if !error.use_stderr() => {
            // With nobody left to read there is nothing more to say.
            let _ = error.print();
            Ok(None)
        }
        Err(error) => Err(Refusal::CommandLine(cli::complaint(&error))),
    }
}

fn read_patches(launch: &Launch) -> Result<Vec<Patch>, CommandError> {
    launch.patches.iter().map(|path| Patch::read(path)).collect()
}

/// The settings of a run before its patches.
fn below_patches(home: &Path, cwd: &Path) -> Result<Settings, CommandError> {
    let trusted = trusted_config(home, cwd, false);
    let mut settings = settings::load(home, trusted.as_deref(), &[])?;
    environment::apply(&mut settings, |name| std::env::var_os(name))?;
    Ok(settings)
}

fn print_rows(launch: &Launch, dump: Dump) -> Result<Exit, CommandError> {
    let cwd = home::workspace(None)?;
    let settings = match dump {
        Dump::Default => Settings::default(),
        Dump::Effective => below_patches(&home::home()?, &cwd)?,
    };
    let layered: Layered = lay(settings, &read_patches(launch)?, &cwd)?;
    print_lines(dump::lines(&layered))
}

fn print_description() -> Result<Exit, CommandError> {
    print_lines([format!("{:#}", lorimer_rpc::describe())])
}

fn print_lines(lines: impl IntoIterator<Item = String>) -> Result<Exit, CommandError> {
    let out = StdoutWriter::start().map_err(|error| CommandError::failed(error.to_string()))?;
    lines.into_iter().for_each(|line| out.line(line));
    out.finish_listing()
}
