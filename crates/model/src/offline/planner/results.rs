//! Reads the texts of tool results. Nothing in them is trusted.

use super::limits::{MAX_LINES_PER_READ, MAX_PATH_BYTES, MAX_PATHS_PER_LISTING, MAX_ROWS_PER_SEARCH};

/// Stands between the shown part of a long result and the note on the rest.
const SHOWN_NOTE: &str = "\n\n(Showing ";
/// Stands before the note on a result that was shortened in the middle.
const OMITTED_NOTE: &str = "\n\n(Omitted ";

/// What `glob` found below a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// The paths that were shown, relative to the workspace.
    pub(super) paths: Vec<String>,
    /// How many there are.
    pub(super) total: u64,
    /// Whether some were not shown.
    pub(super) cut: bool,
}

impl Listing {
    /// Reads the text of a `glob` result.
    pub(super) fn parse(text: &str) -> Self {
        if text.trim() == "No files found" {
            return Self::default();
        }
        let (text, omitted) = match text.rfind(OMITTED_NOTE) {
            Some(at) => (split_at(text, at).0, true),
            None => (text, false),
        };
        let (page, note) = text.rfind(SHOWN_NOTE).map_or((text, ""), |at| split_at(text, at));
        let mut seen: u64 = 0;
        let mut paths = Vec::new();
        for line in page.lines().filter(|line| !line.is_empty()) {
            seen = seen.saturating_add(1);
            if paths.len() < MAX_PATHS_PER_LISTING {
                paths.extend(clean_path(line));
            }
        }
        let total = shown_of(note).map_or(seen, |total| total.max(seen));
        let cut = omitted || total > paths.len() as u64;
        Self { paths, total, cut }
    }
}

/// What `read` showed of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extract {
    /// The lines that were shown, without their numbers.
    pub(super) lines: Vec<String>,
    /// How many lines the file has; `None` when the result does not say.
    pub(super) total: Option<u64>,
}

impl Extract {
    /// Reads the text of a `read` result; `None` when it does not look like one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (_, body) = text.split_once("<content>\n")?;
        let (body, _) = body.rsplit_once("\n</content>")?;
        let (shown, footer) = body.rsplit_once('\n').unwrap_or(("", body));
        let numbered = shown.lines().filter_map(|line| {
            let (_, rest) = number(line)?;
            rest.strip_prefix(": ").map(str::to_owned)
        });
        Some(Self { lines: numbered.take(MAX_LINES_PER_READ).collect(), total: total_lines(footer) })
    }
}

/// The line count in the last line of a `read` result.
fn total_lines(footer: &str) -> Option<u64> {
    if let Some(rest) = footer.strip_prefix("(End of file - total ") {
        return number(rest).map(|(total, _)| total);
    }
    let rest = footer.strip_prefix("(Showing lines ")?;
    let (_, rest) = rest.split_once(" of ")?;
    number(rest).map(|(total, _)| total)
}

/// One line that `grep` found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    /// Relative to the workspace.
    pub(super) path: String,
    /// Counted from 1.
    pub(super) line: u64,
    /// What stands there.
    pub(super) text: String,
}

/// What `grep` found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matches {
    /// How many lines match.
    pub(super) total: u64,
    /// The ones that were shown.
    pub(super) rows: Vec<Row>,
}

impl Matches {
    /// Reads the text of a `grep` result; `None` when it does not look like one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.trim() == "No matches found" {
            return Some(Self::default());
        }
        let mut lines = text.lines();
        let total = found(lines.next()?)?;
        let mut rows = Vec::new();
        let mut path = None;
        for line in lines {
            if line.is_empty() {
                path = None;
            } else if path.is_none() {
                path = Some(clean_path(line));
            } else if let Some(Some(path)) = &path {
                rows.extend(row(path, line));
            }
            if rows.len() == MAX_ROWS_PER_SEARCH {
                break;
            }
        }
        Some(Self { total, rows })
    }
}

/// `Line <n>: <text>` as a row of `path`.
fn row(path: &str, line: &str) -> Option<Row> {
    let (number, rest) = number(line.strip_prefix("Line ")?)?;
    let text = rest.strip_prefix(": ")?.to_owned();
    Some(Row { path: path.to_owned(), line: number, text })
}

/// The count in `Found <n> matches` or `Found <k> of <n> matches`.
fn found(header: &str) -> Option<u64> {
    let (first, rest) = number(header.strip_prefix("Found ")?)?;
    match rest.strip_prefix(" of ") {
        Some(rest) => number(rest).map(|(total, _)| total),
        None => rest.starts_with(" match").then_some(first),
    }
}

/// The total in `(Showing <k> of <n> paths…`.
fn shown_of(note: &str) -> Option<u64> {
    let (_, rest) = number(note.strip_prefix(SHOWN_NOTE)?)?;
    let (total, rest) = number(rest.strip_prefix(" of ")?)?;
    rest.starts_with(" paths").then_some(total)
}

/// The digits at the start as a number, and what follows. `None` when there are none or too many.
fn number(text: &str) -> Option<(u64, &str)> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.strip_suffix(rest)?;
    digits.parse().ok().map(|number| (number, rest))
}

/// `text` split at a byte position that `rfind` gave.
fn split_at(text: &str, at: usize) -> (&str, &str) {
    text.split_at_checked(at).unwrap_or((text, ""))
}

/// A path that lies inside the workspace and is fit to be asked about, without a leading `./`.
fn clean_path(line: &str) -> Option<String> {
    let path = line.strip_prefix("./").unwrap_or(line);
    let plain = path.len() <= MAX_PATH_BYTES && !path.chars().any(char::is_control);
    let inside = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    (plain && inside).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_over_the_cap_tells_its_total() {
        let text =
            "src/a.rs\ndocs/x.md\n\n(Showing 2 of 340 paths, sampled across 2 of the 7 top-level entries)";
        let listing = Listing::parse(text);
        assert_eq!((listing.paths.len(), listing.total, listing.cut), (2, 340, true));
    }

    #[test]
    fn a_listing_that_was_shortened_in_the_middle_is_cut() {
        let listing =
            Listing::parse("a.rs\nb.rs\n\n(Omitted 90 bytes. Full formatted result stored at: /s.)");
        assert_eq!((listing.paths.len(), listing.cut), (2, true));
    }

    #[test]
    fn paths_outside_the_workspace_are_left_out() {
        let listing = Listing::parse("/etc/passwd\n../up\na/../b\n./ok.rs\na//b\nx\u{7}y");
        assert_eq!(listing.paths, ["ok.rs"]);
    }

    #[test]
    fn a_read_tells_lines_and_total() {
        let text = |footer: &str| {
            format!(
                "<path>/w/f</path>\n<type>file</type>\n<content>\n1: # (End of file - total 9 lines)\n\n{footer}\n</content>"
            )
        };
        let of = |footer: &str| Extract::parse(&text(footer)).and_then(|extract| extract.total);
        assert_eq!(of("(Showing lines 1-1 of 132. Use offset=2 to continue.)"), Some(132));
        assert_eq!(of("(End of file - total 1 lines)"), Some(1));
        assert_eq!(of("(Output capped. Showing lines 1-1. Use offset=2 to continue.)"), None);
        assert_eq!(Extract::parse("no envelope"), None);
        let empty =
            "<path>/w/f</path>\n<type>file</type>\n<content>\n(End of file - total 0 lines)\n</content>";
        assert_eq!(Extract::parse(empty), Some(Extract { lines: vec![], total: Some(0) }));
    }

    #[test]
    fn a_search_tells_rows_and_total() {
        let text = "Found 250 of 812 matches\n\nsrc/a.ts\nLine 3: x\nLine 9: y: z\n\nb.ts\nLine 1: \n\n(The complete…)";
        let matches = Matches::parse(text).unwrap();
        let rows: Vec<_> = matches.rows.iter().map(|row| (row.path.as_str(), row.line)).collect();
        assert_eq!((matches.total, rows), (812, vec![("src/a.ts", 3), ("src/a.ts", 9), ("b.ts", 1)]));
        assert_eq!(Matches::parse("Found 1 match\n\na\nLine 1: x").unwrap().total, 1);
        assert_eq!(Matches::parse("Found many"), None);
    }
}
