//! The report: what the survey found, as Markdown.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::inventory::Inventory;
use super::kinds::{Kind, Language, Rank, kind_of};
use super::limits::{MAX_QUOTE_CHARS, SHOWN_BUILD_FILES, SHOWN_ENTRY_POINTS, SHOWN_LARGEST, SHOWN_MARKS};
use super::places::{LIBRARY, build_tool, depth, entry_point};
use super::project::Project;
use super::question::Mark;
use super::results::Row;
use super::survey::Survey;
use super::unmeasured;
use super::wording::{count, count_of, names_up_to, number, path, plain, quote};

/// How every report begins.
pub(super) const TITLE_START: &str = "# Survey of ";

/// Says who wrote the report.
const BYLINE: &str = "> Offline planner: no model was called. Every figure below comes from the `glob`, `grep` and `read` \
    results of this conversation.";

/// The report on what is known.
pub(super) fn write(survey: &Survey, inventory: &Inventory) -> String {
    let mut parts = introduction(survey);
    if survey.root().is_some_and(|root| root.total == 0) {
        parts.push("The workspace is empty: the listing found no files.".to_owned());
    } else {
        if survey.root().is_some() {
            parts.push(section("Languages", &languages(survey, inventory)));
            parts.push(section("Entry points", &entry_points(survey, inventory)));
            parts.push(section("Build files", &build_files(inventory)));
        }
        parts.push(section("TODO and FIXME", &marks(survey, inventory)));
        parts.extend(largest(survey, inventory).map(|list| section("Largest files", &list)));
        parts.extend(unmeasured::list(survey, inventory).map(|list| section("Not measured", &list)));
    }
    parts.push(next_step(survey, inventory));
    parts.join("\n\n")
}

/// A section with its heading.
fn section(heading: &str, body: &str) -> String {
    format!("## {heading}\n\n{body}")
}

/// Title, byline, what was asked instead, and what the project says about itself.
fn introduction(survey: &Survey) -> Vec<String> {
    let project = Project::of(survey);
    let title =
        project.title().map_or_else(|| "this workspace".to_owned(), |name| plain(name, MAX_QUOTE_CHARS));
    let mut parts = vec![format!("{TITLE_START}{title}"), BYLINE.to_owned()];
    if !asks_for_survey(&survey.task) {
        parts.push(format!(
            "The offline planner cannot do the task {}: it only surveys a folder, so that is what it did instead.",
            quote(&survey.task)
        ));
    }
    let mut about: Vec<String> =
        project.description.iter().map(|text| format!("It says of itself: {}.", quote(text))).collect();
    about.extend(
        project.heading.iter().map(|(file, text)| format!("{} begins with {}.", path(file), quote(text))),
    );
    if !about.is_empty() {
        parts.push(about.join(" "));
    }
    parts
}

/// Whether the task is one the planner can do.
fn asks_for_survey(task: &str) -> bool {
    let task = task.to_lowercase();
    let words: Vec<&str> =
        task.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let about =
        ["workspace", "folder", "directory", "project", "repo", "repository", "codebase", "code", "here"];
    words.is_empty() || (has(&["survey", "overview", "inventory"]) && (words.len() <= 3 || has(&about)))
}

/// Files and lines of one language.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    files: u64,
    measured: u64,
    lines: u64,
}

impl Tally {
    fn add(&mut self, lines: Option<u64>) {
        self.files += 1;
        self.measured += u64::from(lines.is_some());
        self.lines = self.lines.saturating_add(lines.unwrap_or(0));
    }

    /// The lines, and of how many files they are when not of all.
    fn lines_cell(&self) -> String {
        match self.measured {
            0 => "—".to_owned(),
            all if all == self.files => number(self.lines),
            some => format!("{} (in {} of {})", number(self.lines), number(some), number(self.files)),
        }
    }
}

/// The table of languages, most lines first.
fn languages(survey: &Survey, inventory: &Inventory) -> String {
    let mut tallies: BTreeMap<Language, Tally> = BTreeMap::new();
    let mut all = Tally::default();
    for (path, language) in inventory.texts() {
        let lines = survey.lines_of(path);
        tallies.entry(language).or_default().add(lines);
        all.add(lines);
    }
    if tallies.is_empty() {
        return "No text files of a known language.".to_owned();
    }
    let mut rows: Vec<(&str, Tally)> = Vec::new();
    for (language, tally) in tallies {
        rows.push((language.name, tally));
    }
    rows.sort_by_key(|&(name, tally)| (Reverse(tally.lines), Reverse(tally.files), name));
    let row =
        |name: &str, tally: &Tally| format!("| {name} | {} | {} |", number(tally.files), tally.lines_cell());
    let mut table = vec!["| Language | Files | Lines |".to_owned(), "| --- | ---: | ---: |".to_owned()];
    table.extend(rows.iter().map(|(name, tally)| row(name, tally)));
    table.push(row("**Total**", &all));
    table.join("\n")
}

/// The paths that start something, the shallow ones first and programs before libraries.
fn starters(inventory: &Inventory) -> Vec<(&str, &'static str)> {
    let found = inventory.files.keys().filter_map(|path| Some((path.as_str(), entry_point(path)?)));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|&(path, what)| (depth(path), what.ends_with(LIBRARY), path));
    found
}

/// The list of entry points.
fn entry_points(survey: &Survey, inventory: &Inventory) -> String {
    let found = starters(inventory);
    if found.is_empty() {
        return "None that a file name gives away.".to_owned();
    }
    let line = |&(file, what): &(&str, &str)| match survey.lines_of(file) {
        Some(lines) => format!("- {} — {what}, {}", path(file), count(lines, "line")),
        None => format!("- {} — {what}", path(file)),
    };
    let mut list: Vec<String> = found.iter().take(SHOWN_ENTRY_POINTS).map(line).collect();
    let more = found.len().saturating_sub(SHOWN_ENTRY_POINTS);
    if more > 0 {
        list.push(format!("- and {} more", number(more as u64)));
    }
    list.join("\n")
}

/// The build files by tool, the shallow ones first.
fn build_files(inventory: &Inventory) -> String {
    let mut tools: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for path in inventory.files.keys() {
        if let Some(tool) = build_tool(path) {
            tools.entry(tool).or_default().push(path);
        }
    }
    if tools.is_empty() {
        return "None that a file name gives away.".to_owned();
    }
    let line = |(tool, mut paths): (&str, Vec<&str>)| {
        paths.sort_by_key(|path| (depth(path), *path));
        format!("- {tool}: {}", names_up_to(SHOWN_BUILD_FILES, paths))
    };
    tools.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// How many lines carry a mark, and the first of them.
fn marks(survey: &Survey, inventory: &Inventory) -> String {
    let total = |mark: Mark| Some((mark, survey.marks.get(&mark)?.as_ref().ok()?.total));
    let totals: Vec<(Mark, u64)> = Mark::ALL.into_iter().filter_map(total).collect();
    if totals.is_empty() {
        return "Not searched.".to_owned();
    }
    let counts = totals.iter().map(|(mark, n)| format!("{} with {}", count(*n, "line"), mark.word()));
    let counts = format!(
        "{}, as far as `grep` looks (it leaves out hidden and ignored files).",
        counts.collect::<Vec<_>>().join(", ")
    );
    let shown = first_marks(survey, inventory);
    if shown.is_empty() {
        return counts;
    }
    let lines = shown
        .iter()
        .map(|row| format!("- {} {}", path(&format!("{}:{}", row.path, row.line)), quote(&row.text)));
    format!("{counts} The first:\n\n{}", lines.collect::<Vec<_>>().join("\n"))
}

/// The first marks: those in programs before those in prose, then by place.
fn first_marks<'a>(survey: &'a Survey, inventory: &Inventory) -> Vec<&'a Row> {
    let found = survey.marks.values().filter_map(|matches| matches.as_ref().ok());
    let outside = |row: &&Row| !inventory.skipped_folders.iter().any(|folder| lies_in(&row.path, folder));
    let rank = |row: &Row| match kind_of(&row.path) {
        Kind::Text(language) => Some(language.rank),
        _ => None,
    };
    let rows: BTreeSet<&Row> = found.flat_map(|matches| &matches.rows).filter(outside).collect();
    let mut rows: Vec<&Row> = rows.into_iter().collect();
    rows.sort_by_key(|row| rank(row).unwrap_or(Rank::LAST));
    rows.truncate(SHOWN_MARKS);
    rows
}

/// Whether `path` lies below `folder`.
fn lies_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The files with the most lines; `None` when no file was measured.
fn largest(survey: &Survey, inventory: &Inventory) -> Option<String> {
    let measured = inventory.texts().filter_map(|(path, _)| Some((path, survey.lines_of(path)?)));
    let mut measured: Vec<(&str, u64)> = measured.collect();
    measured.sort_by_key(|&(path, lines)| (Reverse(lines), path));
    let shown = measured.iter().take(SHOWN_LARGEST).enumerate();
    let list =
        shown.map(|(at, (file, lines))| format!("{}. {} — {}", at + 1, path(file), count(*lines, "line")));
    let list: Vec<String> = list.collect();
    let all = measured.len() == inventory.texts().count();
    let scope =
        if all { String::new() } else { format!("Of the {} counted:\n\n", count_of(measured.len(), "file")) };
    (!list.is_empty()).then(|| scope + &list.join("\n"))
}

/// What to do to have a model work on it.
fn next_step(survey: &Survey, inventory: &Inventory) -> String {
    let task = plain(&survey.task, MAX_QUOTE_CHARS);
    let file = starters(inventory).first().map(|(path, _)| format!("Explain {path}"));
    let prompt = match file {
        _ if !asks_for_survey(&survey.task) && is_plain_prompt(&task) => task,
        Some(prompt) if is_plain_prompt(&prompt) => prompt,
        _ => "Explain this project".to_owned(),
    };
    format!("Next: `export DEEPSEEK_API_KEY=…`, then `lorimer run \"{prompt}\"` has a model work here.")
}

/// Whether a prompt can stand between double quotes in any shell.
fn is_plain_prompt(prompt: &str) -> bool {
    prompt.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '.' | ',' | '/' | '-' | '_' | '?'))
}
