//! `lorimer run`: an agent on a task.

use std::path::{Path, PathBuf};

use lorimer_protocol::SessionId;
use lorimer_session::Store;

use crate::answer_schema::AnswerSchema;
use crate::cli::RunArgs;
use crate::drive::{Job, drive};
use crate::exit::{CommandError, Exit};
use crate::images::Image;
use crate::input::{self, PipedInput};
use crate::outcome::Manner;
use crate::settings::Settings;
use crate::surface::Progress;
use crate::trust::{WorkspaceConfig, workspace_config};
use crate::{compose, home, settings};

/// Runs an agent on the task until it is done.
///
/// # Errors
/// When the command line, a setting, the workspace or the session cannot be used.
pub fn run(args: &RunArgs) -> Result<Exit, CommandError> {
    let home = home::home()?;
    let here = home::workspace(args.directory.as_deref())?;
    // Which workspace's own settings count is known only when the session is.
    let store = compose::store(&settings::load(&home, None, &args.config)?, &home);
    let resume = session_to_resume(args, &store, &here)?;
    let cwd = workspace_of(&store, here, args.directory.is_some(), resume.as_ref())?;
    let trusted = trusted_config(&home, &cwd, args.trust_workspace);
    let mut settings = settings::load(&home, trusted.as_deref(), &args.config)?;
    apply_flags(&mut settings, args);
    check_tools_mode(&settings.tools_mode)?;
    let task = task(args, &settings)?;
    let images = args.image.iter().map(|path| Image::read(path)).collect::<Result<Vec<_>, _>>()?;
    let schema = args.output_schema.as_deref().map(AnswerSchema::read).transpose()?;
    if let Some(schema) = &schema {
        let before =
            settings.append_system_prompt.take().map(|text| format!("{text}\n\n")).unwrap_or_default();
        settings.append_system_prompt = Some(format!("{before}{}", schema.instruction()));
    }
    drive(Job {
        home,
        settings,
        cwd,
        resume,
        task,
        json: args.json,
        output: args.output.clone(),
        schema,
        images,
        // A replay ends with what was recorded: going on with it leads nowhere.
        manner: Manner::Lorimer {
            model_flag: args.model.clone().filter(|model| !model.starts_with("replay/")),
        },
        show_progress: false,
    })
}

fn apply_flags(settings: &mut Settings, args: &RunArgs) {
    if let Some(model) = &args.model {
        settings.model.clone_from(model);
    }
    if let Some(mode) = args.permission_mode {
        settings.permission_mode = mode;
    }
    if let Some(mode) = &args.tools_mode {
        settings.tools_mode.clone_from(mode);
    }
    if args.max_steps.is_some() {
        settings.max_steps = args.max_steps;
    }
    if args.effort.is_some() {
        settings.effort.clone_from(&args.effort);
    }
    if args.append_system_prompt.is_some() {
        settings.append_system_prompt.clone_from(&args.append_system_prompt);
    }
    if args.max_cost.is_some() {
        settings.max_cost_usd = args.max_cost;
    }
}

/// The workspace's own configuration when it counts; one that does not is told.
pub fn trusted_config(home: &Path, workspace: &Path, for_this_run: bool) -> Option<PathBuf> {
    match workspace_config(home, workspace, for_this_run) {
        WorkspaceConfig::Trusted(file) => Some(file),
        WorkspaceConfig::Untrusted(file) => {
            Progress::note(&format!(
                "{} is left out, because it is not trusted; read it, then run `lorimer trust`",
                file.display()
            ));
            None
        }
        WorkspaceConfig::Absent => None,
    }
}

fn check_tools_mode(mode: &str) -> Result<(), CommandError> {
    match mode {
        "native" => Ok(()),
        "ptc" | "code" | "both" => Err(CommandError::usage(format!(
            "tools mode \"{mode}\" needs code mode, which this version does not have; use --tools-mode native"
        ))),
        _ => Err(CommandError::usage(format!("there is no tools mode \"{mode}\"; this version has: native"))),
    }
}

fn session_to_resume(args: &RunArgs, store: &Store, cwd: &Path) -> Result<Option<SessionId>, CommandError> {
    if let Some(id) = &args.session {
        return Ok(Some(store.resolve(id)?));
    }
    if !args.continue_last {
        return Ok(None);
    }
    let newest = store.list_of(cwd).into_iter().next();
    let since = newest.as_ref().map_or(0, |newest| newest.updated_at);
    if let Some((path, _)) = store.unreadable_of(cwd).into_iter().find(|(_, updated)| *updated >= since) {
        return Err(CommandError::usage(format!(
            "the newest session of {} cannot be read: {}; choose another with --session, or move it away",
            cwd.display(),
            path.display()
        )));
    }
    match newest {
        Some(newest) => Ok(Some(newest.header.id)),
        None => Err(CommandError::usage(format!(
            "there is no session of {} to continue; leave out --continue to start one",
            cwd.display()
        ))),
    }
}

/// A session goes on where it was: in its own workspace when none is named, and in no other.
///
/// # Errors
/// When another one is named, or its own is not there any more.
pub fn workspace_of(
    store: &Store,
    here: PathBuf,
    is_named: bool,
    resume: Option<&SessionId>,
) -> Result<PathBuf, CommandError> {
    let Some(id) = resume else {
        return Ok(here);
    };
    let events = store.events(id)?;
    let Some(own) = events.header().cwd.as_deref().map(Path::new) else {
        return Ok(here);
    };
    if own == here {
        return Ok(here);
    }
    if is_named {
        return Err(CommandError::usage(format!(
            "session {} belongs to {}, not to {}; leave out -C, or start a new session there",
            id,
            own.display(),
            here.display()
        )));
    }
    home::workspace(Some(own))
}

/// The task from the command line, from standard input, or from both.
fn task(args: &RunArgs, settings: &Settings) -> Result<String, CommandError> {
    let words = args.task.join(" ");
    let from_stdin = words.trim() == "-" || words.trim().is_empty();
    let piped = if from_stdin { input::read_all(settings)? } else { input::read_beside_a_task(settings)? };
    let text = match (from_stdin, piped) {
        (true, PipedInput::Text(text)) => text,
        (true, _) => String::new(),
        (false, PipedInput::Text(text)) if !text.trim().is_empty() => {
            format!("{words}\n\n<stdin>\n{}\n</stdin>", text.trim_end_matches('\n'))
        }
        (false, _) => words,
    };
    if text.trim().is_empty() {
        return Err(CommandError::usage(
            "there is no task; write one after `lorimer run`, or pipe it in and write `-`",
        ));
    }
    Ok(text)
}
