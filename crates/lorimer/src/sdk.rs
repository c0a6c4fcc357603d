//! Serving SDK clients over standard input and output.

use std::path::Path;

use crate::exit::{CommandError, Exit};
use crate::settings::Settings;

/// Serves one client until it leaves.
///
/// # Errors
/// When it cannot begin.
pub fn serve(_home: &Path, _settings: Settings, _cwd: &Path) -> Result<Exit, CommandError> {
    Err(CommandError::failed("this version does not serve SDK clients yet"))
}
