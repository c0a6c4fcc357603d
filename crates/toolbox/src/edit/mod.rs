//! The `edit` tool (core spec 5.4): a literal replacement in a file. Everything outside of the match keeps its bytes,
//! so a file with mixed line ends or a byte order mark stays what it is.

mod splice;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use lorimer_protocol::{CallView, ContentBlock, FileDiff, FileLocation, FsObservation, ResultView};
use lorimer_session::Session;
use lorimer_tools::{DurableResult, Meta, PromptSection, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::deny::DenyRules;
use crate::escalation::WiderMode;
use crate::files::{
    FileFacts, FsCode, FsError, FsTarget, ModeFence, Place, Publication, Published, WriteFence, WriteRequest,
    check_path, describe_binary, describe_invalid, diffs_from_meta, hunks, io_text, is_off_the_way,
    last_observation, lock_target, meta_of_diffs, publish, read_to_cap, record, resolve, run_blocking, to_lf,
};
use splice::{SpliceError, splice};

/// The limits and the fence of `edit`.
#[derive(Clone)]
pub struct EditOptions {
    /// From this size of either side on, in bytes, a change is not shown as a diff.
    pub diff_basis_max_bytes: u64,
    /// Longest file that is edited, in bytes. It is held in memory.
    pub edit_max_bytes: u64,
    /// Decides where may be written.
    pub fence: Arc<dyn WriteFence>,
    /// What must not be changed.
    pub deny: Arc<DenyRules>,
}

impl Default for EditOptions {
    fn default() -> Self {
        Self {
            diff_basis_max_bytes: 10 * 1024 * 1024,
            edit_max_bytes: 32 * 1024 * 1024,
            fence: ModeFence::shared(),
            deny: Arc::default(),
        }
    }
}

/// Replaces text in a file that was read.
#[derive(Clone, Default)]
pub struct EditTool {
    options: EditOptions,
}

/// Arguments of `edit`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct EditArgs {
    /// Path of the file, absolute or relative to the workspace.
    file_path: String,
    /// The text to replace, exactly as it is in the file, without line numbers. It must be there once, unless
    /// `replace_all` is set.
    old_string: String,
    /// The text to put there.
    new_string: String,
    /// Replace every occurrence. Default: false.
    replace_all: Option<bool>,
    /// Only after a result said that access was denied: the narrowest mode that suffices. The user is asked, and the
    /// answer holds for this one operation. Needs `justification`.
    #[serde(default)]
    #[expect(dead_code, reason = "`Escalation` reads it from the call's arguments")]
    sandbox_permissions: Option<WiderMode>,
    /// Why the operation needs wider access, in one sentence for the user.
    #[serde(default)]
    #[expect(dead_code, reason = "`Escalation` reads it from the call's arguments")]
    justification: Option<String>,
}

/// What an edit did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EditValue {
    /// The absolute path.
    pub path: String,
    /// The content before with LF line ends.
    pub before: String,
    /// The content after with LF line ends.
    pub after: String,
    /// The hunks of the change, made off the async threads.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) diffs: Option<Vec<FileDiff>>,
}

impl EditTool {
    /// An `edit` with these limits.
    pub fn new(options: EditOptions) -> Self {
        Self { options }
    }
}

impl Tool for EditTool {
    type Args = EditArgs;
    type Output = EditValue;

    fn name(&self) -> &str {
        "edit"
    }

    fn description(&self) -> String {
        "Replaces text in a file that was read before. `old_string` is matched literally; it must occur exactly \
         once unless `replace_all` is set."
            .to_owned()
    }

    fn prompt(&self) -> Option<PromptSection> {
        Some(PromptSection {
            name: "tool:edit".to_owned(),
            order: 102,
            text: "Use `edit` to change files that you have read. Copy `old_string` from the file with its \
                   indentation, without the `N: ` of `read`, and with enough lines around it to be unique. \
                   Line ends are kept as they are in the file."
                .to_owned(),
        })
    }

    async fn execute(&self, args: &EditArgs, context: &ToolContext) -> Result<EditValue, ToolError> {
        check_path(&args.file_path)?;
        if args.old_string.is_empty() {
            return Err(ToolError::plain("old_string must be a non-empty string"));
        }
        if args.old_string == args.new_string {
            return Err(ToolError::plain("old_string and new_string must differ"));
        }
        let (cwd, file_path) = (context.cwd.clone(), args.file_path.clone());
        let target = run_blocking("edit", &context.cancel, move || resolve(&cwd, &file_path)).await?;
        let line = lock_target("edit", &target, &context.cancel).await?;
        let job = EditJob {
            options: self.options.clone(),
            request: WriteRequest::new(context, &target),
            args: args.clone(),
            target,
            session: Arc::clone(&context.session),
            cancel: context.cancel.clone(),
        };
        let edited = run_blocking("edit", &context.cancel, move || {
            let _line = line;
            job.run()
        });
        Ok(edited.await.map_err(FsError::with_remedy)?)
    }

    fn render(&self, args: &EditArgs, output: &EditValue) -> Vec<ContentBlock> {
        let path = &output.path;
        vec![ContentBlock::text(if args.replace_all == Some(true) {
            format!("The file {path} has been updated. All occurrences were successfully replaced.")
        } else {
            format!("The file {path} has been updated successfully.")
        })]
    }

    fn presentation_meta(&self, args: &EditArgs, output: &EditValue) -> Option<Meta> {
        let meta = match &output.diffs {
            Some(diffs) => meta_of_diffs(diffs),
            None => meta_of_diffs(&self.diffs(&args.file_path, &output.before, &output.after)),
        };
        Some(meta.into())
    }

    fn present_call(&self, args: &EditArgs) -> Option<CallView> {
        let asked = FileDiff {
            path: args.file_path.clone(),
            old_text: (!args.old_string.is_empty()).then(|| args.old_string.clone()),
            new_text: args.new_string.clone(),
            old_start: None,
            new_start: None,
        };
        Some(CallView::Diff {
            title: title(args),
            diffs: vec![asked],
            locations: Some(vec![FileLocation { path: args.file_path.clone(), line: None }]),
        })
    }

    fn present_result(&self, args: &EditArgs, result: DurableResult<'_>) -> Option<ResultView> {
        if result.is_error {
            return None;
        }
        let diffs = diffs_from_meta(result.meta)?;
        Some(ResultView::Diff { title: Some(title(args)), diffs })
    }
}

impl EditTool {
    fn diffs(&self, file_path: &str, before: &str, after: &str) -> Vec<FileDiff> {
        diffs_below(self.options.diff_basis_max_bytes, file_path, before, after)
    }
}

fn diffs_below(max_bytes: u64, file_path: &str, before: &str, after: &str) -> Vec<FileDiff> {
    if before.len().max(after.len()) as u64 >= max_bytes {
        return Vec::new();
    }
    hunks(file_path, before, after)
}

fn title(args: &EditArgs) -> String {
    format!("Edit {}", args.file_path)
}

/// One edit, off the async threads and with the right to change the file.
struct EditJob {
    options: EditOptions,
    request: WriteRequest,
    target: FsTarget,
    args: EditArgs,
    session: Arc<Session>,
    cancel: CancellationToken,
}

impl EditJob {
    fn run(self) -> Result<EditValue, FsError> {
        self.options.deny.check("edit", &self.target)?;
        let seen = self.seen_version()?;
        self.options.fence.check(&self.request)?;
        let mut place = Place::of(&self.target.real_path).map_err(|error| self.failed(&error))?;
        let (bytes, facts) = self.content(&place, &seen)?;
        let before = self.text(&bytes)?;
        let after = self.spliced(before)?;
        let publication = Publication {
            place: &mut place,
            content: after.as_bytes(),
            replaces: Some(&facts),
            cancel: &self.cancel,
        };
        let version = match publish(publication) {
            Ok(Published::Done(facts)) => facts.version,
            Ok(Published::Changed | Published::Exists) => return Err(self.changed()),
            Ok(Published::Aborted) => return Err(FsError::aborted("edit")),
            Err(error) => return Err(self.failed(&error)),
        };
        record(&self.session, &self.target, FsObservation::Present { version })?;
        let (before, after) = (shown(before), shown(&after));
        let diffs = diffs_below(self.options.diff_basis_max_bytes, &self.args.file_path, &before, &after);
        Ok(EditValue { path: self.target.display_path, before, after, diffs: Some(diffs) })
    }

    /// The version that the model has seen.
    fn seen_version(&self) -> Result<String, FsError> {
        match last_observation(&self.session, &self.target) {
            Some(FsObservation::Present { version }) => Ok(version),
            Some(FsObservation::Absent) => Err(self.cannot(FsCode::NotFound, "not found")),
            None => {
                let message = format!("edit requires reading \"{}\" first", self.target.display_path);
                Err(FsError::new(FsCode::NotObserved, message))
            }
        }
    }

    /// The file's bytes in the version that the model has seen.
    fn content(&self, place: &Place, seen: &str) -> Result<(Vec<u8>, FileFacts), FsError> {
        let (file, facts) = place.open_regular().map_err(|error| self.failed(&error))?;
        let Some(mut file) = file else {
            return Err(self.cannot(FsCode::NotRegularFile, "not a regular file"));
        };
        if facts.version != seen {
            return Err(self.changed());
        }
        let cap = self.options.edit_max_bytes;
        match read_to_cap(&mut file, facts.size, cap) {
            Ok(Some(bytes)) => Ok((bytes, facts)),
            Ok(None) if facts.size > cap => {
                let why = format!("{} bytes exceeds the {cap}-byte limit", facts.size);
                Err(self.cannot(FsCode::TooLarge, why))
            }
            Ok(None) => Err(self.cannot(FsCode::TooLarge, format!("content exceeds the {cap}-byte limit"))),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// The bytes as text. What is not UTF-8 is refused: writing it back would lose what could not be read.
    fn text<'a>(&self, bytes: &'a [u8]) -> Result<&'a str, FsError> {
        if memchr::memchr(0, bytes).is_some() {
            let why = format!("binary file ({})", describe_binary(bytes));
            return Err(self.cannot(FsCode::NotText, why));
        }
        std::str::from_utf8(bytes).map_err(|error| {
            let what = describe_invalid(bytes, error.valid_up_to());
            let detail = what.map_or_else(String::new, |what| format!(" ({what})"));
            self.cannot(FsCode::NotText, format!("invalid UTF-8 text{detail}"))
        })
    }

    fn spliced(&self, before: &str) -> Result<String, FsError> {
        let EditArgs { old_string, new_string, replace_all, .. } = &self.args;
        let path = &self.target.display_path;
        splice(before, old_string, new_string, *replace_all == Some(true)).map_err(|error| match error {
            SpliceError::NotFound => {
                FsError::new(FsCode::EditNotFound, format!("old_string was not found in \"{path}\""))
            }
            SpliceError::Ambiguous(count) => FsError::new(
                FsCode::AmbiguousEdit,
                format!(
                    "old_string matched {count} times in \"{path}\"; provide a more specific old_string or set \
                     replace_all to true"
                ),
            ),
        })
    }

    fn cannot(&self, code: FsCode, why: impl std::fmt::Display) -> FsError {
        FsError::cannot("edit", &self.target.display_path, code, why)
    }

    fn failed(&self, error: &std::io::Error) -> FsError {
        if is_off_the_way(error) || error.kind() == std::io::ErrorKind::NotFound {
            return self.changed();
        }
        self.cannot(FsCode::IoError, io_text(error))
    }

    fn changed(&self) -> FsError {
        self.cannot(FsCode::StaleVersion, "file changed since it was read")
    }
}

/// A text as values and cards show it: without byte order mark, with LF line ends.
fn shown(text: &str) -> String {
    to_lf(text.strip_prefix('\u{feff}').unwrap_or(text)).into_owned()
}
