//! What the report's figures leave out.

use super::inventory::Inventory;
use super::kinds::Kind;
use super::limits::{MAX_LISTINGS, MAX_MEASURED_FILES, SHOWN_FAILURES};
use super::question::{LIST_TOOL, READ_TOOL, SEARCH_TOOL};
use super::survey::{Gap, Survey};
use super::wording::{count, count_of, names, number, path, quote};

/// The list of what was left out; `None` when nothing was.
pub(super) fn list(survey: &Survey, inventory: &Inventory) -> Option<String> {
    let mut items = missing_tools(survey);
    items.extend(lost_answers(survey));
    items.extend(unseen_paths(survey, inventory));
    items.extend(unread_files(survey, inventory));
    let lines: Vec<String> = items.iter().map(|item| format!("- {item}")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Tools that are not there, and what that costs.
fn missing_tools(survey: &Survey) -> Vec<String> {
    let tools = [
        (survey.tools.list, LIST_TOOL, "files could not be listed"),
        (survey.tools.search, SEARCH_TOOL, "marks could not be searched"),
        (survey.tools.read, READ_TOOL, "lines could not be counted"),
    ];
    let missing = tools.into_iter().filter(|(there, ..)| !there);
    missing.map(|(_, tool, cost)| format!("There is no `{tool}` tool: {cost}.")).collect()
}

/// Listings and searches that failed.
fn lost_answers(survey: &Survey) -> Vec<String> {
    let listings = survey.listings.iter().filter_map(|(folder, listing)| {
        let place = if folder.is_empty() { "the workspace".to_owned() } else { path(folder) };
        Some(format!("Listing {place} failed: {}.", reason(listing.as_ref().err()?)))
    });
    let marks = survey.marks.iter().filter_map(|(mark, matches)| {
        Some(format!("Searching {} failed: {}.", mark.word(), reason(matches.as_ref().err()?)))
    });
    listings.chain(marks).take(SHOWN_FAILURES).collect()
}

/// Why a question has no answer, in words.
fn reason(gap: &Gap) -> String {
    match gap {
        Gap::Missing => "there is no result".to_owned(),
        Gap::Unreadable => "the result is not in the known form".to_owned(),
        Gap::Failed(message) => quote(message),
    }
}

/// Folders that were passed over or not listed, and the paths that are in neither list.
fn unseen_paths(survey: &Survey, inventory: &Inventory) -> Vec<String> {
    let mut items = Vec::new();
    let skipped = &inventory.skipped_folders;
    if !skipped.is_empty() {
        let names = names(skipped.iter().map(String::as_str));
        items.push(format!(
            "{} passed over as output or ignored: {names}.",
            count_of(skipped.len(), "folder")
        ));
    }
    if inventory.skipped_files > 0 {
        items.push(format!("{} passed over.", count_of(inventory.skipped_files, "ignored file")));
    }
    let unlisted = &inventory.unlisted_folders;
    if !unlisted.is_empty() {
        let names = names(unlisted.iter().map(String::as_str));
        let folders = count_of(unlisted.len(), "folder");
        items.push(format!("{folders} seen only in part (limit: {MAX_LISTINGS} listings): {names}."));
    }
    let total = survey.root().map_or(0, |root| root.total);
    let seen = inventory.files.len().saturating_add(inventory.skipped_files) as u64;
    let unseen = total.saturating_sub(seen);
    if unseen > 0 {
        let cut = survey.root().is_some_and(|root| root.cut);
        let place = if cut {
            "in folders passed over, or more than a listing shows"
        } else {
            "in folders passed over"
        };
        items.push(format!("{} of {} not looked at: {place}.", number(unseen), count(total, "path")));
    }
    items
}

/// Files without a line count, by cause.
fn unread_files(survey: &Survey, inventory: &Inventory) -> Vec<String> {
    let of_kind = |kind: Kind| inventory.files.values().filter(|found| **found == kind).count();
    let (mut over, mut uncounted) = (0, 0);
    let mut failed = Vec::new();
    for (file, _) in inventory.texts().filter(|_| survey.tools.read) {
        match survey.extracts.get(file) {
            None => over += 1,
            Some(Ok(extract)) => uncounted += usize::from(extract.total.is_none()),
            Some(Err(gap)) => failed.push(format!("{} ({})", path(file), reason(gap))),
        }
    }
    let mut items = Vec::new();
    let mut add = |n: usize, noun: &str, note: &str| {
        if n > 0 {
            items.push(format!("{}{note}.", count_of(n, noun)));
        }
    };
    add(over, "text file", &format!(" not counted (limit: {MAX_MEASURED_FILES} files)"));
    add(uncounted, "text file", " whose result tells no line count");
    add(of_kind(Kind::Binary) + inventory.not_text.len(), "binary file", "");
    add(of_kind(Kind::Generated), "generated file", " (lock files, minified sources, snapshots)");
    add(of_kind(Kind::Unknown), "file", " of unknown type");
    let shown = failed.get(..SHOWN_FAILURES).unwrap_or(&failed).join(", ");
    add(failed.len(), "file", &format!(" could not be read: {shown}"));
    items
}
