//! The `read` tool (core spec 5.2): a window of the lines of a text file.
//!
//! A read neither hangs nor swells: only regular files are opened, a file is taken in pieces, and what is kept is
//! bound by the limits of the window. Lines are counted to the end of the file.

mod card;
mod source;
mod window;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use lorimer_protocol::{CallView, ContentBlock, FsObservation, ResultView};
use lorimer_session::Session;
use lorimer_tools::{Concurrency, DurableResult, Meta, PromptSection, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub use card::{ReadMeta, read_meta_from_meta};

use crate::deny::DenyRules;
use crate::files::{
    FileFacts, FsCode, FsError, FsTarget, Nearby, check_path, io_text, is_of_this_process, is_off_the_way,
    open_regular, record, resolve, run_blocking,
};
use source::{SourceLimits, each_piece};
use window::{WindowLimits, WindowScan};

/// The limits of `read`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Lines of a window: the default and the most.
    pub read_limit: usize,
    /// Longest line that is shown whole, in UTF-16 units.
    pub read_max_line_length: usize,
    /// Most bytes of a window.
    pub read_max_bytes: usize,
    /// How far beyond the size that it says a file is read, in bytes. Files of `/proc` say 0, and a file may grow
    /// while it is read; one that goes on longer is refused.
    pub read_max_unsized_bytes: u64,
    /// Longest read in milliseconds; a file that takes longer to count is refused.
    pub read_timeout_ms: u64,
    /// What must not be read.
    pub deny: Arc<DenyRules>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            read_limit: 2000,
            read_max_line_length: 2000,
            read_max_bytes: 51_200,
            read_max_unsized_bytes: 16 * 1024 * 1024,
            read_timeout_ms: 120_000,
            deny: Arc::default(),
        }
    }
}

/// Shows a model a window of the lines of a text file.
#[derive(Clone, Debug, Default)]
pub struct ReadTool {
    options: ReadOptions,
    nearby: Arc<Nearby>,
}

/// Arguments of `read`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct ReadArgs {
    /// Path of the file, absolute or relative to the workspace.
    file_path: String,
    /// First line to show, counted from 1. Default: 1.
    offset: Option<f64>,
    /// How many lines to show. Default: as many as one result holds.
    limit: Option<f64>,
}

/// One line of a file, with the file's own number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadLine {
    /// 1-based.
    pub number: u64,
    /// Without its line end.
    pub text: String,
}

/// What a read found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadValue {
    /// The absolute path.
    pub path: String,
    /// First requested line, 1-based.
    pub offset: u64,
    /// The lines of the window.
    pub lines: Vec<ReadLine>,
    /// Lines in the whole file.
    pub total_lines: u64,
}

impl ReadTool {
    /// A `read` with these limits.
    pub fn new(options: ReadOptions) -> Self {
        Self { options, nearby: Arc::default() }
    }

    fn window(&self, args: &ReadArgs) -> Result<WindowLimits, ToolError> {
        let offset = positive("offset", args.offset)?.unwrap_or(1);
        let most = self.options.read_limit;
        let limit = positive("limit", args.limit)?.unwrap_or(most as u64);
        if limit > most as u64 {
            return Err(ToolError::plain(format!("limit must be less than or equal to {most}")));
        }
        Ok(WindowLimits {
            offset,
            lines: limit as usize,
            line_units: self.options.read_max_line_length,
            bytes: self.options.read_max_bytes,
        })
    }
}

/// A JSON number that must be a positive integer.
fn positive(name: &str, number: Option<f64>) -> Result<Option<u64>, ToolError> {
    match number {
        Some(number) if number < 1.0 || number.fract() != 0.0 => {
            Err(ToolError::plain(format!("{name} must be a positive integer")))
        }
        other => Ok(other.map(|number| number as u64)),
    }
}

impl Tool for ReadTool {
    type Args = ReadArgs;
    type Output = ReadValue;

    fn name(&self) -> &str {
        "read"
    }

    fn description(&self) -> String {
        format!(
            "Reads a UTF-8 text file and shows its lines, each after its number. Shows up to {} lines from the \
             first or from `offset`; the last line of the result says whether there is more.",
            self.options.read_limit
        )
    }

    fn prompt(&self) -> Option<PromptSection> {
        Some(PromptSection {
            name: "tool:read".to_owned(),
            order: 100,
            text: "Use `read` to look at files, not `cat` or `sed`. The `N: ` before a line is its number and no \
                   part of the file. For a long file, read the part you need with `offset` and `limit`."
                .to_owned(),
        })
    }

    fn timeout_ms(&self) -> Option<u64> {
        Some(self.options.read_timeout_ms)
    }

    fn concurrency(&self, _args: &ReadArgs) -> Concurrency {
        Concurrency::Parallel
    }

    async fn execute(&self, args: &ReadArgs, context: &ToolContext) -> Result<ReadValue, ToolError> {
        check_path(&args.file_path)?;
        let job = ReadJob {
            window: self.window(args)?,
            unsized_bytes: self.options.read_max_unsized_bytes,
            deny: Arc::clone(&self.options.deny),
            cwd: context.cwd.clone(),
            file_path: args.file_path.clone(),
            session: Arc::clone(&context.session),
            cancel: context.cancel.clone(),
        };
        if self.nearby.holds(&job.cwd, &job.file_path) {
            return Ok(job.run()?);
        }
        Ok(run_blocking("read", &context.cancel, move || job.run()).await?)
    }

    fn render(&self, args: &ReadArgs, output: &ReadValue) -> Vec<ContentBlock> {
        let limit = args.limit.map_or(self.options.read_limit, |limit| limit as usize);
        vec![ContentBlock::text(card::rendered(output, limit))]
    }

    fn presentation_meta(&self, _args: &ReadArgs, output: &ReadValue) -> Option<Meta> {
        card::meta(output)
    }

    fn present_call(&self, args: &ReadArgs) -> Option<CallView> {
        Some(card::call_view(args))
    }

    fn present_result(&self, _args: &ReadArgs, result: DurableResult<'_>) -> Option<ResultView> {
        card::result_view(result)
    }
}

/// One read, off the async threads.
struct ReadJob {
    window: WindowLimits,
    unsized_bytes: u64,
    deny: Arc<DenyRules>,
    cwd: PathBuf,
    file_path: String,
    session: Arc<Session>,
    cancel: CancellationToken,
}

impl ReadJob {
    fn run(self) -> Result<ReadValue, FsError> {
        let target = resolve(&self.cwd, &self.file_path)?;
        self.deny.check("read", &target)?;
        if is_of_this_process(&target.real_path) {
            let why = "it belongs to the harness itself";
            return Err(FsError::cannot("read", &target.display_path, FsCode::PermissionDenied, why));
        }
        let (mut file, facts) = self.open(&target)?;
        let limits = SourceLimits {
            display_path: &target.display_path,
            bytes: facts.size.saturating_add(self.unsized_bytes),
            cancel: &self.cancel,
        };
        let mut scan = WindowScan::new(self.window);
        each_piece(&mut file, &limits, |piece| scan.push(piece))?;
        let (window, offset) = (scan.finish(), self.window.offset);
        if offset > window.total_lines.max(1) {
            let message = format!(
                "offset {offset} is out of range for \"{}\" ({} lines)",
                target.display_path, window.total_lines
            );
            return Err(FsError::new(FsCode::NotFound, message));
        }
        record(&self.session, &target, FsObservation::Present { version: facts.version })?;
        Ok(ReadValue {
            path: target.display_path,
            offset,
            lines: window.lines,
            total_lines: window.total_lines,
        })
    }

    fn open(&self, target: &FsTarget) -> Result<(std::fs::File, FileFacts), FsError> {
        let cannot = |code, why: &str| FsError::cannot("read", &target.display_path, code, why);
        match open_regular(&target.real_path) {
            Ok((Some(file), facts)) => Ok((file, facts)),
            Ok((None, _)) => Err(cannot(FsCode::NotRegularFile, "not a regular file")),
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound => {
                    record(&self.session, target, FsObservation::Absent)?;
                    Err(cannot(FsCode::NotFound, "not found"))
                }
                std::io::ErrorKind::PermissionDenied => {
                    Err(cannot(FsCode::PermissionDenied, "permission denied"))
                }
                _ if is_off_the_way(&error) => {
                    Err(cannot(FsCode::IoError, "a folder on its path changed meanwhile; retry"))
                }
                _ => Err(cannot(FsCode::IoError, &io_text(&error))),
            },
        }
    }
}
