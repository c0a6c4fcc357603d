//! Where Lorimer keeps its own files.

use std::path::{Path, PathBuf};

use crate::exit::CommandError;

/// `$LORIMER_HOME`, else `$DSH_HOME/lorimer`, else `~/.lorimer`. Nothing is created. As DSH reads it, a blank
/// `DSH_HOME` is none, and a leading `~` in it is the home directory.
///
/// # Errors
/// When none of the three can be worked out.
pub fn home() -> Result<PathBuf, CommandError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("LORIMER_HOME")
        .or_else(|| variable("DSH_HOME").and_then(dsh_home).map(|home| home.join("lorimer")))
        .or_else(|| variable("HOME").map(|home| home.join(".lorimer")))
        .ok_or_else(|| CommandError::usage("there is no home directory; set LORIMER_HOME"))?;
    std::path::absolute(&home)
        .map_err(|error| CommandError::usage(format!("cannot use {} as home: {error}", home.display())))
}

fn dsh_home(named: PathBuf) -> Option<PathBuf> {
    if named.to_str().is_some_and(|text| text.trim().is_empty()) {
        return None;
    }
    match (named.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => Some(PathBuf::from(home).join(rest)),
        _ => Some(named),
    }
}

/// The real path of a workspace.
///
/// # Errors
/// When it is not a folder that can be read.
pub fn workspace(directory: Option<&Path>) -> Result<PathBuf, CommandError> {
    let directory = directory.unwrap_or(Path::new("."));
    let unusable = |error: std::io::Error| {
        CommandError::usage(format!(
            "cannot work in {}: {error}; choose a folder with -C",
            directory.display()
        ))
    };
    let real = std::fs::canonicalize(directory).map_err(unusable)?;
    std::fs::read_dir(&real).map_err(unusable)?;
    Ok(real)
}
