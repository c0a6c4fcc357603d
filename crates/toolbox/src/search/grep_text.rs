//! What the model reads of a `grep`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use lorimer_protocol::{SearchFile, SearchMatch};

use super::grep::{GrepMatch, GrepOutput};
use super::options::SearchOptions;
use super::{scan, store};

/// The text of a result.
pub(super) fn text(output: &GrepOutput, options: &SearchOptions) -> String {
    found_text(output, options) + &scan::left_out_line(output.left_out)
}

fn found_text(output: &GrepOutput, options: &SearchOptions) -> String {
    let (page, total) = (page(output, options), output.matches.len());
    if total == 0 {
        return "No matches found".to_owned();
    }
    if page.len() == total {
        return complete_text(output, options);
    }
    let recovery = match &output.stored {
        Some(locator) => store::pointer("Full grep result", locator),
        None => {
            "The complete result could not be saved; narrow pattern, path, or include to see more.".to_owned()
        }
    };
    let header = format!("Found {} of {total} matches", page.len());
    format!("{header}\n\n{}\n\n({recovery})", rows(page, options))
}

/// The text that lists every match.
pub(super) fn complete_text(output: &GrepOutput, options: &SearchOptions) -> String {
    let total = output.matches.len();
    let noun = if total == 1 { "match" } else { "matches" };
    format!("Found {total} {noun}\n\n{}", rows(&output.matches, options))
}

/// The matches that are shown.
pub(super) fn page<'a>(output: &'a GrepOutput, options: &SearchOptions) -> &'a [GrepMatch] {
    &output.matches[..output.matches.len().min(options.grep_max_matches)]
}

/// Matches by file in the order in which the files come first, lines as they are shown.
pub(super) fn files(matches: &[GrepMatch], options: &SearchOptions) -> Vec<SearchFile> {
    let shown = |found: &&GrepMatch| SearchMatch {
        line_number: found.line_number,
        line: preview(&found.line, options.grep_max_line_bytes).into_owned(),
    };
    by_file(matches)
        .into_iter()
        .map(|(path, matches)| SearchFile {
            path: path.to_owned(),
            matches: matches.iter().map(shown).collect(),
        })
        .collect()
}

fn rows(matches: &[GrepMatch], options: &SearchOptions) -> String {
    let mut text = String::new();
    for (index, (path, matches)) in by_file(matches).into_iter().enumerate() {
        text.push_str(if index == 0 { "" } else { "\n\n" });
        text.push_str(path);
        for found in matches {
            let line = preview(&found.line, options.grep_max_line_bytes);
            // Writing to a string does not fail.
            let _ = write!(text, "\nLine {}: {line}", found.line_number);
        }
    }
    text
}

fn by_file(matches: &[GrepMatch]) -> Vec<(&str, Vec<&GrepMatch>)> {
    let mut files: Vec<(&str, Vec<&GrepMatch>)> = Vec::new();
    let mut index_of: HashMap<&str, usize> = HashMap::new();
    for found in matches {
        let index = *index_of.entry(&found.path).or_insert(files.len());
        if index == files.len() {
            files.push((&found.path, Vec::new()));
        }
        files[index].1.push(found);
    }
    files
}

/// A line cut to so many bytes.
fn preview(line: &str, max_bytes: usize) -> Cow<'_, str> {
    if line.len() <= max_bytes {
        return Cow::Borrowed(line);
    }
    Cow::Owned(format!("{} (line truncated)", &line[..line.floor_char_boundary(max_bytes)]))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn output(rows: &[(&str, u64, &str)], stored: Option<&str>) -> GrepOutput {
        let matches = rows
            .iter()
            .map(|(path, line_number, line)| GrepMatch {
                path: (*path).to_owned(),
                line_number: *line_number,
                line: (*line).to_owned(),
            })
            .collect();
        GrepOutput { matches, stored: stored.map(str::to_owned), left_out: 0 }
    }

    fn limits(matches: usize, line_bytes: usize) -> SearchOptions {
        SearchOptions {
            grep_max_matches: matches,
            grep_max_line_bytes: line_bytes,
            ..SearchOptions::default()
        }
    }

    #[test]
    fn nothing_is_said() {
        assert_eq!(text(&output(&[], None), &limits(2, 9)), "No matches found");
    }

    #[test]
    fn one_match_is_singular() {
        assert_snapshot!(text(&output(&[("a", 3, "foo")], None), &limits(2, 9)), @r"
        Found 1 match

        a
        Line 3: foo
        ");
    }

    #[test]
    fn matches_are_grouped_by_file() {
        let output = output(&[("src/a.ts", 3, "foo"), ("b", 1, "x"), ("src/a.ts", 9, "foo()")], None);
        assert_snapshot!(text(&output, &limits(3, 9)), @r"
        Found 3 matches

        src/a.ts
        Line 3: foo
        Line 9: foo()

        b
        Line 1: x
        ");
    }

    #[test]
    fn a_capped_result_says_so() {
        let rows = [("a", 1, "ééé"), ("b", 1, "x"), ("c", 1, "x")];
        assert_snapshot!(text(&output(&rows, None), &limits(2, 5)), @r"
        Found 2 of 3 matches

        a
        Line 1: éé (line truncated)

        b
        Line 1: x

        (The complete result could not be saved; narrow pattern, path, or include to see more.)
        ");
        assert_snapshot!(text(&output(&rows, Some("/s/x")), &limits(1, 6)), @r"
        Found 1 of 3 matches

        a
        Line 1: ééé

        (Full grep result stored at: /s/x. Use read with offset/limit, or grep this path to search within it.)
        ");
    }

    proptest! {
        #[test]
        fn a_preview_is_the_longest_prefix_that_fits(line in "\\PC{0,40}", max_bytes in 0_usize..60) {
            let shown = preview(&line, max_bytes);
            if line.len() <= max_bytes {
                prop_assert_eq!(&*shown, &line);
            } else {
                let kept = shown.strip_suffix(" (line truncated)").expect("says that it is cut");
                prop_assert!(line.starts_with(kept) && kept.len() <= max_bytes);
                let next = line[kept.len()..].chars().next().expect("something was cut");
                prop_assert!(kept.len() + next.len_utf8() > max_bytes);
            }
        }
    }
}
