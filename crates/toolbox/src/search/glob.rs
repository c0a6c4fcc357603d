//! The tool `glob`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ignore::WalkBuilder;
use lorimer_protocol::{CallView, ContentBlock, ResultView};
use lorimer_tools::{DurableResult, Meta, PromptSection, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::options::SearchOptions;
use super::place::Place;
use super::scan::{self, Scan, Stop};
use super::{card, glob_text, runner, store};

const NAME: &str = "glob";
/// What version control systems keep for themselves.
const VCS_FOLDERS: [&str; 6] = [".git", ".svn", ".hg", ".bzr", ".jj", ".sl"];

/// Finds files by name.
#[derive(Clone, Debug, Default)]
pub struct GlobTool {
    options: SearchOptions,
}

impl GlobTool {
    /// A tool with these limits.
    pub fn new(options: SearchOptions) -> Self {
        Self { options }
    }
}

/// The arguments of `glob`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct GlobArgs {
    /// Glob of the files to find, such as `*.rs` or `src/**/*.ts`. Without a slash it applies at any depth.
    pub pattern: String,
    /// Directory to look in; the workspace when left out.
    pub path: Option<String>,
}

/// What `glob` found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GlobOutput {
    /// Where the search started.
    pub root: String,
    /// All files that match, the one changed longest ago first.
    pub paths: Vec<String>,
    /// The file with the complete list, when there are more paths than are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<String>,
    /// How many paths deny rules kept out of the result.
    #[serde(default, skip_serializing_if = "scan::is_zero")]
    pub left_out: u64,
}

impl Tool for GlobTool {
    type Args = GlobArgs;
    type Output = GlobOutput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        format!(
            "Finds files whose path matches a glob. Hidden and ignored files are included, the folders of version \
             control are not. Paths come oldest change first; at most {} are shown.",
            self.options.glob_max_results
        )
    }

    fn prompt(&self) -> Option<PromptSection> {
        let text = "Use glob to find files by name or path. It also lists hidden and ignored files, so give a \
                    directory or a narrow pattern when a tree holds build output or dependencies.";
        Some(PromptSection { name: "tool:glob".to_owned(), order: 103, text: text.to_owned() })
    }

    async fn execute(&self, args: &GlobArgs, context: &ToolContext) -> Result<GlobOutput, ToolError> {
        check(args)?;
        let search = Search {
            options: self.options.clone(),
            args: args.clone(),
            cwd: context.cwd.clone(),
            folder: store::folder(context),
        };
        runner::run(NAME, &context.cancel, self.options.timeout_ms, move |stop| search.run(stop)).await
    }

    fn render(&self, _args: &GlobArgs, output: &GlobOutput) -> Vec<ContentBlock> {
        vec![ContentBlock::text(glob_text::text(output, &self.options))]
    }

    fn presentation_meta(&self, _args: &GlobArgs, output: &GlobOutput) -> Option<Meta> {
        let page = glob_text::page(output, &self.options);
        let meta = card::paths_meta(&page.paths, output.paths.len(), self.options.search_meta_max_bytes);
        Some(meta.into())
    }

    fn present_call(&self, args: &GlobArgs) -> Option<CallView> {
        Some(card::call("Glob", &args.pattern, args.path.as_deref(), None))
    }

    fn present_result(&self, _args: &GlobArgs, result: DurableResult<'_>) -> Option<ResultView> {
        card::paths_view(result)
    }
}

fn check(args: &GlobArgs) -> Result<(), ToolError> {
    if args.pattern.trim().is_empty() {
        return Err(ToolError::plain("pattern must be a non-empty string"));
    }
    if args.path.as_deref().is_some_and(|path| path.trim().is_empty()) {
        return Err(ToolError::plain("path must be a non-empty string when given"));
    }
    Ok(())
}

/// One call, ready for its thread.
struct Search {
    options: SearchOptions,
    args: GlobArgs,
    cwd: PathBuf,
    folder: Option<PathBuf>,
}

impl Search {
    fn run(&self, stop: &Stop) -> Result<GlobOutput, ToolError> {
        let place = Place::resolve(NAME, &self.cwd, self.args.path.as_deref())?;
        let mut walker = walker(&self.args.pattern, &place)?;
        let scan = Arc::new(Scan::new(NAME, place, stop.clone(), &self.options)?);
        let watched = Arc::clone(&scan);
        walker.filter_entry(move |entry| !watched.is_over() && !watched.leaves_out(entry.path()));
        let mut found = scan.run(&mut walker, || {
            |entry: &ignore::DirEntry| {
                let name = scan.place().name_of(entry.path());
                scan.count(name.len() + 1).then(|| Found { modified: modified(entry.path()), name })
            }
        });
        scan.outcome(found.is_empty())?;
        found.sort_unstable_by(Found::compare);
        let paths = found.into_iter().map(|found| found.name).collect();
        let root = scan.place().root_name();
        let mut output = GlobOutput { root, paths, stored: None, left_out: scan.left_out() };
        if output.paths.len() > self.options.glob_max_results && !stop.is_set() {
            output.stored = store::save(self.folder.as_deref(), "glob-results.txt", &output.paths.join("\n"));
        }
        Ok(output)
    }
}

/// Everything but links and the folders of version control.
fn walker(pattern: &str, place: &Place) -> Result<WalkBuilder, ToolError> {
    let excluded = VCS_FOLDERS.map(|folder| [format!("!**/{folder}"), format!("!**/{folder}/**")]);
    let globs = std::iter::once(pattern).chain(excluded.iter().flatten().map(String::as_str));
    let overrides = scan::overrides(NAME, place, globs)?;
    let mut walker = WalkBuilder::new(place.root());
    walker.standard_filters(false).overrides(overrides).current_dir(place.cwd());
    Ok(walker)
}

/// When a file was changed; `None` when it has gone meanwhile.
fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

/// A file and what it is sorted by.
struct Found {
    modified: Option<SystemTime>,
    name: String,
}

impl Found {
    /// Oldest first, those without a time last, then by path.
    fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let key = |found: &Self| (found.modified.is_none(), found.modified);
        key(self).cmp(&key(other)).then_with(|| Path::new(&self.name).cmp(Path::new(&other.name)))
    }
}
