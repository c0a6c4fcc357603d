//! The headless profile: one task, one answer.

use std::path::{Path, PathBuf};

use lorimer_protocol::SessionId;
use lorimer_session::{Store, StoreError};

use crate::cli::HeadlessArgs;
use crate::commands::run::workspace_of;
use crate::compose;
use crate::drive::{Job, drive};
use crate::exit::{CommandError, Exit};
use crate::input::{self, PipedInput};
use crate::outcome::Manner;
use crate::routes;
use crate::settings::{self, Settings};

use super::layering;

/// Answers the task.
///
/// # Errors
/// When there is no task, no such session, or the run cannot begin.
pub fn answer(
    home: PathBuf,
    here: PathBuf,
    args: &HeadlessArgs,
    settings_of: impl FnOnce(&Path) -> Result<Settings, CommandError>,
) -> Result<Exit, CommandError> {
    // Which workspace's own settings count is known only when the session is.
    let store = compose::store(&settings::load(&home, None, &[])?, &home);
    let resume = args.session_id.as_deref().map(|id| stored(&store, id)).transpose()?;
    let cwd = workspace_of(&store, here, false, resume.as_ref())?;
    let settings = settings_of(&cwd)?;
    let task = task(args, &settings)?;
    let (provider, _) = layering::halves(&settings.model);
    let key = routes::key_variable_of(&settings, provider).unwrap_or_default();
    let missing = format!("{provider} needs a key: set {key}, or store it with `lorimer login {provider}`");
    let job = Job {
        home,
        settings,
        cwd,
        resume,
        task,
        manner: Manner::Dsh,
        json: args.json,
        output: None,
        schema: None,
        images: Vec::new(),
        show_progress: false,
    };
    drive(job).map_err(|error| match error.code {
        // The usual line names flags that this command line does not have.
        Some("MISSING_CREDENTIAL") => CommandError { message: missing, ..error },
        _ => error,
    })
}

/// The stored session of exactly this id.
fn stored(store: &Store, id: &str) -> Result<SessionId, CommandError> {
    let exact = SessionId(id.to_owned());
    match store.path(&exact) {
        Ok(_) => Ok(exact),
        Err(StoreError::NotFound(_) | StoreError::InvalidId(_)) => Err(CommandError::usage(format!(
            "there is no session \"{id}\"; leave out --session-id to start one, or see `lorimer sessions list`"
        ))),
        Err(error) => Err(error.into()),
    }
}

fn task(args: &HeadlessArgs, settings: &Settings) -> Result<String, CommandError> {
    let words = args.task.join(" ");
    let task = if words.trim().is_empty() || words.trim() == "-" {
        match input::read_all(settings)? {
            PipedInput::Text(text) => text,
            PipedInput::None => String::new(),
        }
    } else {
        words
    };
    if task.trim().is_empty() {
        return Err(CommandError::usage(
            "a task is required, for example: lorimer headless \"fix the failing test\"",
        ));
    }
    Ok(task)
}
