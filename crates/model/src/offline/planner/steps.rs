//! The steps of the survey. Each puts the questions it still has, or lets the next one go on.

use crate::offline::PlannedTurn;

use super::inventory::{IGNORE_FILE, Inventory};
use super::limits::{
    BUILD_FILE_LINES, COUNT_LINES, IGNORE_FILE_LINES, LISTINGS_PER_REPLY, MAX_BUILD_FILES_READ, MAX_LISTINGS,
    MEASURED_PER_REPLY, README_LINES,
};
use super::places::{is_readme, naming_rank};
use super::question::{Mark, Question};
use super::survey::Survey;
use super::wording::{count, count_of, names, number};

/// The README that is tried when nothing can be listed.
const LIKELY_README: &str = "README.md";

/// The first step that still has something to ask; `None` when all is known that will be.
pub(super) fn next(survey: &Survey, inventory: &Inventory) -> Option<PlannedTurn> {
    if survey.root().is_some_and(|root| root.total == 0) {
        return None;
    }
    open(survey)
        .or_else(|| orient(survey))
        .or_else(|| descend(survey, inventory))
        .or_else(|| measure(survey, inventory))
}

/// Lists the workspace.
fn open(survey: &Survey) -> Option<PlannedTurn> {
    let due = survey.tools.list && !survey.listings.contains_key("");
    due.then(|| {
        let text = "I start with a list of the paths in this workspace.".to_owned();
        asking(text, &[Question::List { folder: String::new() }])
    })
}

/// Reads the files of the root that say what the project is and what to pass over.
fn orient(survey: &Survey) -> Option<PlannedTurn> {
    if !survey.tools.read {
        return None;
    }
    let wanted = introductions(survey);
    let asked = |(path, lines): &(&str, u64)| {
        let new = !survey.extracts.contains_key(*path);
        new.then(|| Question::Read { path: (*path).to_owned(), lines: *lines })
    };
    let questions: Vec<Question> = wanted.iter().filter_map(asked).collect();
    if questions.is_empty() {
        return None;
    }
    let files = names(wanted.iter().map(|&(path, _)| path));
    let text = match survey.root() {
        Some(root) if root.cut => format!(
            "There are {}, more than one listing shows. Before I look into the folders I read {files}.",
            count(root.total, "path")
        ),
        Some(root) => format!("There {} here. I read {files} to learn what it is.", are(root.total, "path")),
        None => format!("I cannot see the folder as a whole, so I try {files}."),
    };
    Some(asking(text, &questions))
}

/// The files of the root that [`orient`] reads, and how many lines of each.
fn introductions(survey: &Survey) -> Vec<(&str, u64)> {
    let Some(root) = survey.root() else {
        return vec![(LIKELY_README, README_LINES)];
    };
    let mut top: Vec<&str> =
        root.paths.iter().map(String::as_str).filter(|path| !path.contains('/')).collect();
    top.sort_unstable();
    let ignore = top.iter().find(|path| **path == IGNORE_FILE).map(|path| (*path, IGNORE_FILE_LINES));
    let readme = top.iter().find(|path| is_readme(path)).map(|path| (*path, README_LINES));
    let mut builds: Vec<_> = top.iter().filter_map(|path| Some((naming_rank(path)?, *path))).collect();
    builds.sort_unstable();
    let builds = builds.into_iter().take(MAX_BUILD_FILES_READ).map(|(_, path)| (path, BUILD_FILE_LINES));
    ignore.into_iter().chain(readme).chain(builds).collect()
}

/// Lists the folders of which a listing showed only a part.
fn descend(survey: &Survey, inventory: &Inventory) -> Option<PlannedTurn> {
    let left = MAX_LISTINGS.saturating_sub(survey.listings.len());
    let due = &inventory.unlisted_folders;
    let batch: Vec<&str> = due.iter().map(String::as_str).take(left.min(LISTINGS_PER_REPLY)).collect();
    if !survey.tools.list || batch.is_empty() {
        return None;
    }
    let questions: Vec<_> =
        batch.iter().map(|folder| Question::List { folder: (*folder).to_owned() }).collect();
    let text = format!(
        "{} known so far, and the list was cut short. I look into {}.",
        count_of(inventory.files.len(), "file"),
        names(batch)
    );
    Some(asking(text, &questions))
}

/// Looks for marks and counts the lines of the next batch of text files.
fn measure(survey: &Survey, inventory: &Inventory) -> Option<PlannedTurn> {
    let unasked = |mark: &Mark| survey.tools.search && !survey.marks.contains_key(mark);
    let mut questions: Vec<Question> = Mark::ALL.into_iter().filter(unasked).map(Question::Find).collect();
    let searching = !questions.is_empty();
    let all = if survey.tools.read { inventory.to_measure() } else { Vec::new() };
    let open: Vec<&str> = all.iter().copied().filter(|path| !survey.extracts.contains_key(*path)).collect();
    let batch = open.iter().take(MEASURED_PER_REPLY);
    questions.extend(batch.map(|path| Question::Read { path: (*path).to_owned(), lines: COUNT_LINES }));
    if questions.is_empty() {
        return None;
    }
    let counting = counting(all.len() - open.len(), open.len());
    let text = match (searching, counting) {
        (true, Some(counting)) => format!("I look for TODO and FIXME marks, and I {counting}."),
        (true, None) => "I look for TODO and FIXME marks.".to_owned(),
        (false, counting) => format!("Next I {}.", counting.unwrap_or_default()),
    };
    Some(asking(text, &questions))
}

/// What the next batch counts, when `done` files are counted and `open` ones are not.
fn counting(done: usize, open: usize) -> Option<String> {
    let [first, last, all] = [done + 1, done + open.min(MEASURED_PER_REPLY), done + open].map(|n| n as u64);
    match open {
        0 => None,
        1 => Some(format!("count the lines of the last of {}", count(all, "text file"))),
        _ => Some(format!("count lines: text files {first} to {last} of {}", number(all))),
    }
}

/// `is 1 path`, `are 2 paths`.
fn are(n: u64, noun: &str) -> String {
    format!("{} {}", if n == 1 { "is" } else { "are" }, count(n, noun))
}

/// A reply that puts questions.
fn asking(text: String, questions: &[Question]) -> PlannedTurn {
    let calls = questions.iter().map(Question::to_call).collect();
    PlannedTurn { text, calls, ..PlannedTurn::default() }
}
