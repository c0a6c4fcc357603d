//! What a caller says about a command, and what it gets back.

use std::ffi::OsString;
use std::path::PathBuf;

/// One command to run.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// The program and its arguments; no shell is involved unless the program is one.
    pub argv: Vec<OsString>,
    /// The directory the command starts in. A relative path counts from Lorimer's own directory.
    pub cwd: PathBuf,
    /// The whole environment of the command, already scrubbed (see [`crate::scrubbed_env`]).
    pub env: Vec<(OsString, OsString)>,
    /// After this time the command and everything it started is ended; `None` means never.
    pub timeout_ms: Option<u64>,
    /// How long a command may take to end after SIGTERM before it gets SIGKILL.
    pub grace_ms: u64,
    /// What is kept of its output.
    pub capture: CaptureSpec,
}

impl CommandSpec {
    /// The default of [`CommandSpec::grace_ms`].
    pub const DEFAULT_GRACE_MS: u64 = 3000;

    /// A command without a time limit, with the default grace and the default caps.
    #[must_use]
    pub fn new(argv: Vec<OsString>, cwd: PathBuf, env: Vec<(OsString, OsString)>) -> Self {
        let capture = CaptureSpec::default();
        Self { argv, cwd, env, timeout_ms: None, grace_ms: Self::DEFAULT_GRACE_MS, capture }
    }
}

/// What is kept of each of the two output streams.
#[derive(Debug, Clone)]
pub struct CaptureSpec {
    /// How many bytes are kept from the start of a stream.
    pub head_bytes: usize,
    /// How many bytes are kept from the end of a stream.
    pub tail_bytes: usize,
    /// Where the whole stream is written when it does not fit in memory; `None` means nowhere. The directory is
    /// created for this user alone when it does not exist. Nothing here is ever removed by this crate.
    pub spill_dir: Option<PathBuf>,
    /// How many bytes of a stream are written to its file at most, from the first byte on.
    pub spill_max_bytes: u64,
}

impl Default for CaptureSpec {
    fn default() -> Self {
        Self { head_bytes: 16_000, tail_bytes: 48_000, spill_dir: None, spill_max_bytes: 64 * 1024 * 1024 }
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The exit code, when the command ended by itself.
    pub exit_code: Option<i32>,
    /// The name of the signal that ended the command (`SIGKILL`), when one did.
    pub signal: Option<String>,
    /// Whether the command was ended because its time was up.
    pub timed_out: bool,
    /// Whether the command was ended because the caller asked for it.
    pub cancelled: bool,
    /// From the start of the command until all of it was gone.
    pub duration_ms: u64,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// How many of its processes could not be killed, for example because they run as another user. Always 0
    /// unless the command had rights that Lorimer does not have.
    pub survivors: u32,
}

/// What was kept of one output stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The stream, or its start and its end joined by a line that says how many bytes are omitted.
    pub text: String,
    /// Whether bytes are omitted from `text`.
    pub truncated: bool,
    /// How many bytes the command wrote.
    pub total_bytes: u64,
    /// How many of them are not in `text`.
    pub omitted_bytes: u64,
    /// The file that has the whole stream (up to its own cap), when the stream did not fit.
    pub spill_path: Option<PathBuf>,
}
