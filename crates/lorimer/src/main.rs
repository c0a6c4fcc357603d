//! `lorimer`: the command line and the composition root.
//!
//! What must hold: nothing but answers, events and listings reaches standard output; every failure is one line on
//! standard error with a next step, and an exit code of [`exit::Exit`].

mod answer_schema;
mod cli;
mod commands;
mod compose;
mod credentials;
mod drive;
mod dsh;
mod exit;
mod home;
mod images;
mod input;
mod outcome;
mod routes;
mod sdk;
mod settings;
mod signals;
mod surface;
mod trust;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};
use crate::exit::{CommandError, Exit};
use crate::surface::Progress;

fn main() -> ExitCode {
    lorimer_process::supervise_if_asked();
    lorimer_sandbox::confine_if_asked();
    hide_from_commands();
    // A panic of a tool is that call's error, and any other is told below: the hook would print over both.
    std::panic::set_hook(Box::new(|_| {}));
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if dsh::applies(&arguments) {
        return guarded(|| Ok(dsh::launch(&arguments)));
    }
    match Cli::try_parse() {
        Ok(cli) => guarded(|| dispatch(&cli)),
        Err(error) => say(&error),
    }
}

fn guarded(work: impl FnOnce() -> Result<Exit, CommandError> + std::panic::UnwindSafe) -> ExitCode {
    match std::panic::catch_unwind(work) {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(CommandError { exit, message, .. })) => {
            Progress::note(&message);
            exit.into()
        }
        Err(_) => {
            Progress::note("failed unexpectedly; the session's log is kept, see `lorimer sessions list`");
            Exit::Failed.into()
        }
    }
}

/// Keeps this process's memory and environment, which hold keys, from commands of the same user: the kernel then gives
/// its `/proc` files to root. It also means no core dumps.
fn hide_from_commands() {
    #[cfg(target_os = "linux")]
    {
        // Where the system refuses there is nothing better to do.
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    }
}

fn dispatch(cli: &Cli) -> Result<Exit, CommandError> {
    match &cli.command {
        Command::Run(args) => commands::run::run(args),
        Command::Demo(args) => commands::demo::demo(args),
        // Their words have been taken by `dsh::applies`.
        Command::Headless(_) | Command::Sdk(_) => Err(CommandError::usage("name the profile first")),
        Command::Sessions(command) => commands::sessions::sessions(command),
        Command::Models(args) => commands::models::models(args),
        Command::Fork(args) => commands::sessions::fork(args),
        Command::Config(args) => commands::config::config(args),
        Command::Login(args) => commands::login::login(args),
        Command::Trust(args) => commands::trust::trust(args),
        Command::Doctor => commands::doctor::doctor(),
        Command::Completions { shell } => Ok(completions(*shell)),
    }
}

fn completions(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lorimer", &mut script);
    // A reader that has seen enough is no failure.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), &script);
    Exit::Completed
}

/// Help and version go to standard output, complaints to standard error in one line with exit code 2.
fn say(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // With nobody left to read there is nothing more to say.
        let _ = error.print();
        return Exit::Completed.into();
    }
    if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return Exit::Usage.into();
    }
    Progress::note(&format!("{}; see `lorimer --help`", cli::complaint(error)));
    Exit::Usage.into()
}
