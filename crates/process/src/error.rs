//! What can go wrong when a command is run. How a command itself ends is never an error.

use std::io;
use std::path::PathBuf;

/// Why a command could not be run, or why nothing is known about its end.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The specification cannot be turned into a process.
    #[error("cannot run the command: {problem}")]
    InvalidSpec {
        /// What is wrong, and with what.
        problem: String,
    },
    /// The working directory cannot be entered.
    #[error("cannot start `{program}` in {}: {source}; name an existing directory that you may enter", cwd.display())]
    WorkingDirectory {
        /// The program that was to run.
        program: String,
        /// The directory it was to run in.
        cwd: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program cannot be started.
    #[error(
        "cannot start `{program}`: {source}; check that it exists, is executable, and can be found through PATH"
    )]
    Spawn {
        /// The program that was to run.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The supervisor, which stands between Lorimer and the command, cannot be started.
    #[error(
        "cannot start the process supervisor {} for `{command}`: {source}; the command was not run",
        supervisor.display()
    )]
    Supervisor {
        /// The command that was to run.
        command: String,
        /// The program of the supervisor.
        supervisor: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The supervisor is gone without a word. What could be found of the command was killed.
    #[error(
        "lost the supervisor of `{command}` ({reason}); what was found of the command was killed, and how it ended is not known: check what it left behind before you run it again"
    )]
    SupervisorLost {
        /// The command that was running.
        command: String,
        /// What is known about the end of the supervisor.
        reason: String,
    },
    /// The thread that watches the command cannot be started, or a pipe cannot be made.
    #[error("cannot watch `{command}`: {source}; too many commands or open files at once?")]
    Resources {
        /// The command that was to run.
        command: String,
        /// What the system said.
        source: io::Error,
    },
}
