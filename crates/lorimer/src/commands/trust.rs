//! `lorimer trust`: let a folder's own configuration count.

use crate::cli::TrustArgs;
use crate::exit::{CommandError, Exit};
use crate::{home, trust};

/// Stores or takes back the trust in a folder's configuration.
///
/// # Errors
/// When there is nothing to trust, or it cannot be stored.
pub fn trust(args: &TrustArgs) -> Result<Exit, CommandError> {
    let workspace = home::workspace(args.directory.as_deref())?;
    trust::set_trust(&home::home()?, &workspace, !args.forget)?;
    Ok(Exit::Completed)
}
