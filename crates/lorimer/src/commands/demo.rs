//! `lorimer demo`: the offline planner on a folder.

use lorimer_protocol::PermissionMode;

use crate::cli::DemoArgs;
use crate::drive::{Job, drive};
use crate::exit::{CommandError, Exit};
use crate::outcome::Manner;
use crate::{home, settings};

const TASK: &str = "Survey this workspace and report what is in it.";

/// Runs the planner, read-only, and prints its report.
///
/// # Errors
/// When the folder or a setting cannot be used.
pub fn demo(args: &DemoArgs) -> Result<Exit, CommandError> {
    let home = home::home()?;
    let mut settings = settings::load(&home, None, &args.config)?;
    "offline".clone_into(&mut settings.model);
    settings.permission_mode = PermissionMode::ReadOnly;
    let cwd = home::workspace(args.directory.as_deref())?;
    drive(Job {
        home,
        settings,
        cwd,
        resume: None,
        task: TASK.to_owned(),
        json: false,
        output: None,
        schema: None,
        images: Vec::new(),
        manner: Manner::Lorimer { model_flag: None },
        show_progress: true,
    })
}
