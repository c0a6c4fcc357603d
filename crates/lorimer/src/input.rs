//! Piped input.

use std::io::{IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};

use crate::exit::CommandError;
use crate::settings::Settings;
use crate::surface::Progress;

/// What standard input had.
pub enum PipedInput {
    /// Nothing is piped in.
    None,
    /// All of it.
    Text(String),
}

/// Reads all of standard input, however long it takes; a terminal has nothing piped in.
///
/// # Errors
/// When it is longer than allowed or cannot be read.
pub fn read_all(settings: &Settings) -> Result<PipedInput, CommandError> {
    if std::io::stdin().is_terminal() {
        return Ok(PipedInput::None);
    }
    read_to_end(settings)
}

/// Reads standard input beside a task. A pipe that stays silent is left out after a while: programs that start this
/// one often leave their own standard input open.
///
/// # Errors
/// When it is longer than allowed or cannot be read.
pub fn read_beside_a_task(settings: &Settings) -> Result<PipedInput, CommandError> {
    let stdin = std::io::stdin();
    let Ok(status) = fstat(stdin.as_fd()) else {
        // Standard input is closed.
        return Ok(PipedInput::None);
    };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => read_to_end(settings),
        FileType::Fifo | FileType::Socket if speaks_within(settings.run_stdin_wait_ms) => {
            read_to_end(settings)
        }
        FileType::Fifo | FileType::Socket => {
            Progress::note(&format!(
                "nothing came on standard input within {} ms; going on without it (redirect it from /dev/null to \
                 say so at once)",
                settings.run_stdin_wait_ms
            ));
            Ok(PipedInput::None)
        }
        _ => Ok(PipedInput::None),
    }
}

/// Whether there is data, or the end, within the time.
fn speaks_within(wait_ms: u64) -> bool {
    let stdin = std::io::stdin();
    let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
    let timeout = rustix::event::Timespec::try_from(Duration::from_millis(wait_ms)).ok();
    poll(&mut watched, timeout.as_ref()).is_ok_and(|ready| ready > 0)
}

fn read_to_end(settings: &Settings) -> Result<PipedInput, CommandError> {
    let mut bytes = Vec::new();
    let limit = settings.run_stdin_max_bytes;
    std::io::stdin()
        .lock()
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::failed(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > limit {
        return Err(CommandError::usage(format!(
            "standard input is longer than {limit} bytes; save it to a file in the workspace and name the file, or \
             raise run.stdin_max_bytes"
        )));
    }
    Ok(PipedInput::Text(String::from_utf8(bytes).unwrap_or_else(|error| {
        Progress::note(
            "standard input is not UTF-8; bytes that are not text are shown to the model as \u{fffd}",
        );
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })))
}
