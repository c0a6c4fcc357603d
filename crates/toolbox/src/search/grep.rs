//! The tool `grep`.

use std::path::PathBuf;
use std::sync::Arc;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::{DirEntry, WalkBuilder};
use lorimer_protocol::{CallView, ContentBlock, ResultView};
use lorimer_tools::{DurableResult, Meta, PromptSection, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::{self, FoundLine};
use super::options::SearchOptions;
use super::place::Place;
use super::scan::{self, Scan, Stop};
use super::{card, failure, grep_text, ignore_files, runner, store};

const NAME: &str = "grep";

/// Finds lines by a regular expression.
#[derive(Clone, Debug, Default)]
pub struct GrepTool {
    options: SearchOptions,
}

impl GrepTool {
    /// A tool with these limits.
    pub fn new(options: SearchOptions) -> Self {
        Self { options }
    }
}

/// The arguments of `grep`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct GrepArgs {
    /// Regular expression in Rust's syntax, applied to each line. Escape literal `( ) [ ] { } . * + ? | ^ $ \`.
    pub pattern: String,
    /// File or directory to search; the workspace when left out.
    pub path: Option<String>,
    /// Glob of the files to search, such as `*.rs` or `*.{ts,tsx}`.
    pub include: Option<String>,
}

/// What `grep` found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GrepOutput {
    /// All matching lines, by path.
    pub matches: Vec<GrepMatch>,
    /// The file with the complete list, when there are more matches than are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<String>,
    /// How many paths deny rules kept out of the result.
    #[serde(default, skip_serializing_if = "scan::is_zero")]
    pub left_out: u64,
}

/// One matching line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GrepMatch {
    /// The file.
    pub path: String,
    /// 1-based.
    pub line_number: u64,
    /// The line without its line end.
    pub line: String,
}

impl Tool for GrepTool {
    type Args = GrepArgs;
    type Output = GrepOutput;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> String {
        format!(
            "Finds the lines that match a regular expression, by file and with line numbers. Hidden, ignored and \
             binary files are left out. At most {} matches are shown.",
            self.options.grep_max_matches
        )
    }

    fn prompt(&self) -> Option<PromptSection> {
        let text = "Use grep to find lines by a regular expression, rather than a shell command. It leaves out \
                    hidden, ignored and binary files; name a file as the path to search it all the same.";
        Some(PromptSection { name: "tool:grep".to_owned(), order: 104, text: text.to_owned() })
    }

    async fn execute(&self, args: &GrepArgs, context: &ToolContext) -> Result<GrepOutput, ToolError> {
        check(args)?;
        let search = Search {
            options: self.options.clone(),
            args: args.clone(),
            cwd: context.cwd.clone(),
            folder: store::folder(context),
        };
        runner::run(NAME, &context.cancel, self.options.timeout_ms, move |stop| search.run(stop)).await
    }

    fn render(&self, _args: &GrepArgs, output: &GrepOutput) -> Vec<ContentBlock> {
        vec![ContentBlock::text(grep_text::text(output, &self.options))]
    }

    fn presentation_meta(&self, _args: &GrepArgs, output: &GrepOutput) -> Option<Meta> {
        let files = grep_text::files(grep_text::page(output, &self.options), &self.options);
        let meta = card::matches_meta(&files, output.matches.len(), self.options.search_meta_max_bytes);
        Some(meta.into())
    }

    fn present_call(&self, args: &GrepArgs) -> Option<CallView> {
        Some(card::call("Grep", &args.pattern, args.path.as_deref(), args.include.as_deref()))
    }

    fn present_result(&self, _args: &GrepArgs, result: DurableResult<'_>) -> Option<ResultView> {
        card::matches_view(result)
    }
}

fn check(args: &GrepArgs) -> Result<(), ToolError> {
    if args.pattern.is_empty() {
        return Err(ToolError::plain("pattern must be a non-empty string"));
    }
    if args.path.as_deref().is_some_and(|path| path.trim().is_empty()) {
        return Err(ToolError::plain("path must be a non-empty string when given"));
    }
    match args.include.as_deref() {
        Some(include) => check_include(include),
        None => Ok(()),
    }
}

fn check_include(include: &str) -> Result<(), ToolError> {
    if include.trim().is_empty() {
        return Err(ToolError::plain("include must be a non-empty glob when given"));
    }
    if include.trim_start().starts_with('!') {
        return Err(ToolError::plain(
            "include must be a positive glob filter; negated patterns (\"!…\") are not supported",
        ));
    }
    if has_comma_outside_braces(include) {
        return Err(ToolError::plain(
            "include must be one glob, not a comma-separated list (use {a,b} alternation instead)",
        ));
    }
    Ok(())
}

fn has_comma_outside_braces(glob: &str) -> bool {
    let mut depth = 0_usize;
    let mut escaped = false;
    for letter in glob.chars() {
        match letter {
            _ if escaped => {
                escaped = false;
                continue;
            }
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => return true,
            _ => {}
        }
    }
    false
}

/// One call, ready for its thread.
struct Search {
    options: SearchOptions,
    args: GrepArgs,
    cwd: PathBuf,
    folder: Option<PathBuf>,
}

impl Search {
    fn run(&self, stop: &Stop) -> Result<GrepOutput, ToolError> {
        let matcher = matcher(&self.args.pattern)?;
        let place = Place::resolve(NAME, &self.cwd, self.args.path.as_deref())?;
        let mut walker = walker(self.args.include.as_deref(), &place)?;
        let scan = Arc::new(Scan::new(NAME, place, stop.clone(), &self.options)?);
        guard(&mut walker, &scan)?;
        let mut files = scan.run(&mut walker, || {
            let (scan, matcher) = (&*scan, matcher.clone());
            let named_by_caller = !scan.place().is_directory();
            let mut searcher = file::searcher(named_by_caller);
            move |entry: &DirEntry| {
                let lines = file::search(&mut searcher, &matcher, scan, entry.path(), named_by_caller);
                (!lines.is_empty()).then(|| (entry.path().to_owned(), lines))
            }
        });
        scan.outcome(files.is_empty())?;
        files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let matches = matches(files, scan.place());
        let mut output = GrepOutput { matches, stored: None, left_out: scan.left_out() };
        if output.matches.len() > self.options.grep_max_matches && !stop.is_set() {
            let text = grep_text::complete_text(&output, &self.options);
            output.stored = store::save(self.folder.as_deref(), "grep-results.txt", &text);
        }
        Ok(output)
    }
}

/// The line-oriented matcher that ripgrep builds for `--regexp`.
fn matcher(pattern: &str) -> Result<RegexMatcher, ToolError> {
    RegexMatcherBuilder::new()
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .ban_byte(Some(0))
        .build(pattern)
        .map_err(|why| failure::invalid_pattern(NAME, why))
}

/// What is neither hidden nor ignored; an `include` has precedence over both.
fn walker(include: Option<&str>, place: &Place) -> Result<WalkBuilder, ToolError> {
    let overrides = scan::overrides(NAME, place, include)?;
    let mut walker = WalkBuilder::new(place.root());
    walker
        .overrides(overrides)
        .add_custom_ignore_filename(ignore_files::CUSTOM_NAME)
        .current_dir(place.cwd());
    Ok(walker)
}

/// Keeps the walker from directories whose ignore rules cannot be read safely.
fn guard(walker: &mut WalkBuilder, scan: &Arc<Scan>) -> Result<(), ToolError> {
    let unsafe_rules = |path: PathBuf| format!("{}: not a regular file of ignore rules", path.display());
    if scan.place().is_directory()
        && let Some(path) = ignore_files::unsafe_file_at_or_above(scan.place().root())
    {
        return Err(failure::failed(NAME, unsafe_rules(path)));
    }
    let scan = Arc::clone(scan);
    walker.filter_entry(move |entry| {
        if scan.is_over() || scan.leaves_out(entry.path()) {
            return false;
        }
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        match is_directory.then(|| ignore_files::unsafe_file(entry.path())).flatten() {
            Some(path) => {
                scan.note_unreadable(unsafe_rules(path));
                false
            }
            None => true,
        }
    });
    Ok(())
}

fn matches(files: Vec<(PathBuf, Vec<FoundLine>)>, place: &Place) -> Vec<GrepMatch> {
    let mut matches = Vec::with_capacity(files.iter().map(|(_, lines)| lines.len()).sum());
    for (path, lines) in files {
        let path = place.name_of(&path);
        matches.extend(lines.into_iter().map(|line| GrepMatch {
            path: path.clone(),
            line_number: line.number,
            line: line.text,
        }));
    }
    matches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(pattern: &str, path: Option<&str>, include: Option<&str>) -> Option<String> {
        let args = GrepArgs {
            pattern: pattern.into(),
            path: path.map(Into::into),
            include: include.map(Into::into),
        };
        check(&args).err().map(|error| error.message)
    }

    #[test]
    fn arguments_are_checked() {
        insta::assert_snapshot!(
            [
                refusal("", None, None),
                refusal("a", Some(" "), None),
                refusal("a", None, Some(" ")),
                refusal("a", None, Some("!*.rs")),
                refusal("a", None, Some("*.ts,*.js")),
            ]
            .map(Option::unwrap)
            .join("\n"),
            @r#"
        pattern must be a non-empty string
        path must be a non-empty string when given
        include must be a non-empty glob when given
        include must be a positive glob filter; negated patterns ("!…") are not supported
        include must be one glob, not a comma-separated list (use {a,b} alternation instead)
        "#
        );
        assert_eq!(refusal(" ", Some("src"), Some("*.{ts,tsx}")), None);
    }
}
