//! The `write` tool (core spec 5.3): a whole file in one step.

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
    check_path, diffs_from_meta, hunks, io_text, is_off_the_way, last_observation, lock_target,
    meta_of_diffs, publish, read_to_cap, record, resolve, run_blocking, to_lf,
};

/// The limits and the fence of `write`.
#[derive(Clone)]
pub struct WriteOptions {
    /// From this size of either side on, in bytes, a change is not shown as a diff.
    pub diff_basis_max_bytes: u64,
    /// Decides where may be written.
    pub fence: Arc<dyn WriteFence>,
    /// What must not be changed.
    pub deny: Arc<DenyRules>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { diff_basis_max_bytes: 10 * 1024 * 1024, fence: ModeFence::shared(), deny: Arc::default() }
    }
}

/// Creates a file or replaces the whole content of one that was read.
#[derive(Clone, Default)]
pub struct WriteTool {
    options: WriteOptions,
}

/// Arguments of `write`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct WriteArgs {
    /// Path of the file, absolute or relative to the workspace. Missing folders are made.
    file_path: String,
    /// The whole new content.
    content: String,
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

/// Whether a file was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteOperation {
    /// It was not.
    Create,
    /// It was.
    Update,
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteValue {
    /// The absolute path.
    pub path: String,
    /// Whether a file was there before.
    pub operation: WriteOperation,
    /// The content before with LF line ends; `None` when there was none, or none that a diff could be made of.
    pub before: Option<String>,
    /// The content after with LF line ends.
    pub after: String,
    /// The hunks of the change, made off the async threads.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) diffs: Option<Vec<FileDiff>>,
}

impl WriteTool {
    /// A `write` with these limits.
    pub fn new(options: WriteOptions) -> Self {
        Self { options }
    }
}

impl Tool for WriteTool {
    type Args = WriteArgs;
    type Output = WriteValue;

    fn name(&self) -> &str {
        "write"
    }

    fn description(&self) -> String {
        "Creates a file with the given content, or replaces the whole content of a file. A file that exists must \
         have been read before."
            .to_owned()
    }

    fn prompt(&self) -> Option<PromptSection> {
        Some(PromptSection {
            name: "tool:write".to_owned(),
            order: 101,
            text:
                "Use `write` for new files and for full rewrites; read a file before you replace it. For a \
                   change within a file use `edit`."
                    .to_owned(),
        })
    }

    async fn execute(&self, args: &WriteArgs, context: &ToolContext) -> Result<WriteValue, ToolError> {
        check_path(&args.file_path)?;
        let (cwd, file_path) = (context.cwd.clone(), args.file_path.clone());
        let target = run_blocking("write", &context.cancel, move || resolve(&cwd, &file_path)).await?;
        let line = lock_target("write", &target, &context.cancel).await?;
        let job = WriteJob {
            options: self.options.clone(),
            request: WriteRequest::new(context, &target),
            file_path: args.file_path.clone(),
            content: args.content.clone(),
            target,
            session: Arc::clone(&context.session),
            cancel: context.cancel.clone(),
        };
        let written = run_blocking("write", &context.cancel, move || {
            let _line = line;
            job.run()
        });
        Ok(written.await.map_err(FsError::with_remedy)?)
    }

    fn render(&self, _args: &WriteArgs, output: &WriteValue) -> Vec<ContentBlock> {
        let done = match output.operation {
            WriteOperation::Create => "Created file",
            WriteOperation::Update => "Updated file",
        };
        let path = &output.path;
        vec![ContentBlock::text(format!(
            "<path>{path}</path>\n<type>file</type>\n<content>\n{done}\n</content>"
        ))]
    }

    fn presentation_meta(&self, args: &WriteArgs, output: &WriteValue) -> Option<Meta> {
        let diffs = match (&output.diffs, &output.before) {
            (Some(diffs), _) => diffs.clone(),
            (None, Some(before)) => hunks(&args.file_path, before, &output.after),
            (None, None) => Vec::new(),
        };
        Some(meta_of_diffs(&diffs).into())
    }

    fn present_call(&self, args: &WriteArgs) -> Option<CallView> {
        Some(CallView::Diff {
            title: title(args),
            diffs: vec![whole_file(args)],
            locations: Some(vec![FileLocation { path: args.file_path.clone(), line: None }]),
        })
    }

    fn present_result(&self, args: &WriteArgs, result: DurableResult<'_>) -> Option<ResultView> {
        if result.is_error {
            return None;
        }
        let diffs = diffs_from_meta(result.meta).unwrap_or_else(|| vec![whole_file(args)]);
        Some(ResultView::Diff { title: Some(title(args)), diffs })
    }
}

fn title(args: &WriteArgs) -> String {
    format!("Write {}", args.file_path)
}

fn whole_file(args: &WriteArgs) -> FileDiff {
    FileDiff {
        path: args.file_path.clone(),
        old_text: None,
        new_text: args.content.clone(),
        old_start: None,
        new_start: None,
    }
}

/// One write, off the async threads and with the right to change the file.
struct WriteJob {
    options: WriteOptions,
    request: WriteRequest,
    target: FsTarget,
    file_path: String,
    content: String,
    session: Arc<Session>,
    cancel: CancellationToken,
}

impl WriteJob {
    fn run(self) -> Result<WriteValue, FsError> {
        self.options.deny.check("write", &self.target)?;
        self.options.fence.check(&self.request)?;
        let mut place = Place::of(&self.target.real_path).map_err(|error| self.failed(&error))?;
        let existing = self.guarded(&place)?;
        let before = existing.as_ref().and_then(|facts| self.text_before(&place, facts));
        let publication = Publication {
            place: &mut place,
            content: self.content.as_bytes(),
            replaces: existing.as_ref(),
            cancel: &self.cancel,
        };
        let facts = match publish(publication) {
            Ok(Published::Done(facts)) => facts,
            Ok(Published::Changed) => return Err(self.changed()),
            Ok(Published::Exists) => return Err(self.unread()),
            Ok(Published::Aborted) => return Err(FsError::aborted("write")),
            Err(error) => return Err(self.failed(&error)),
        };
        record(&self.session, &self.target, FsObservation::Present { version: facts.version })?;
        Ok(self.value(existing.is_some(), before))
    }

    /// The file that is to be replaced, `None` when there is to be none. What the model has seen of it must still hold.
    fn guarded(&self, place: &Place) -> Result<Option<FileFacts>, FsError> {
        let existing = place.facts().map_err(|error| self.failed(&error))?;
        if existing.as_ref().is_some_and(|facts| !facts.is_regular) {
            return Err(self.cannot(FsCode::NotRegularFile, "not a regular file"));
        }
        match (last_observation(&self.session, &self.target), existing) {
            (Some(FsObservation::Present { .. }), None) => {
                Err(self.cannot(FsCode::StaleVersion, "file no longer exists"))
            }
            (Some(FsObservation::Present { version }), Some(facts)) if facts.version != version => {
                Err(self.changed())
            }
            (Some(FsObservation::Present { .. }), Some(facts)) => Ok(Some(facts)),
            (None | Some(FsObservation::Absent), Some(_)) => Err(self.unread()),
            (None | Some(FsObservation::Absent), None) => Ok(None),
        }
    }

    /// The content before, when a diff can be made of it.
    fn text_before(&self, place: &Place, facts: &FileFacts) -> Option<String> {
        let cap = self.options.diff_basis_max_bytes.checked_sub(1)?;
        if self.content.len() as u64 > cap {
            return None;
        }
        let (file, _) = place.open_regular().ok()?;
        let bytes = read_to_cap(&mut file?, facts.size, cap).ok()??;
        let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.contains('\0'))?;
        Some(to_lf(text.strip_prefix('\u{feff}').unwrap_or(text)).into_owned())
    }

    fn value(self, existed: bool, before: Option<String>) -> WriteValue {
        let after = to_lf(&self.content).into_owned();
        let diffs = before.as_deref().map(|before| hunks(&self.file_path, before, &after));
        WriteValue {
            path: self.target.display_path,
            operation: if existed { WriteOperation::Update } else { WriteOperation::Create },
            before,
            after,
            diffs,
        }
    }

    fn cannot(&self, code: FsCode, why: &str) -> FsError {
        FsError::cannot("write", &self.target.display_path, code, why)
    }

    fn failed(&self, error: &std::io::Error) -> FsError {
        if is_off_the_way(error) {
            return self.cannot(FsCode::StaleVersion, "a folder on its path changed meanwhile");
        }
        self.cannot(FsCode::IoError, &io_text(error))
    }

    fn changed(&self) -> FsError {
        self.cannot(FsCode::StaleVersion, "file changed since it was read")
    }

    fn unread(&self) -> FsError {
        let path = &self.target.display_path;
        FsError::new(
            FsCode::NotObserved,
            format!("cannot overwrite existing \"{path}\" without reading it first"),
        )
    }
}
