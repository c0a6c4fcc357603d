//! What the model reads of a `glob`.

use std::collections::HashMap;

use super::glob::GlobOutput;
use super::options::SearchOptions;
use super::{place, scan, store};

/// The paths that are shown.
pub(super) struct Page<'a> {
    pub(super) paths: Vec<&'a str>,
    /// How they were chosen, up to the full stop.
    basis: String,
}

/// The text of a result.
pub(super) fn text(output: &GlobOutput, options: &SearchOptions) -> String {
    found_text(output, options) + &scan::left_out_line(output.left_out)
}

fn found_text(output: &GlobOutput, options: &SearchOptions) -> String {
    let total = output.paths.len();
    if total == 0 {
        return "No files found".to_owned();
    }
    let page = page(output, options);
    let list = page.paths.join("\n");
    if total <= options.glob_max_results {
        return list;
    }
    let recovery = match &output.stored {
        Some(locator) => store::pointer("Full sorted result", locator),
        None => "The complete result could not be saved; narrow pattern or path to see more.".to_owned(),
    };
    format!("{list}\n\n(Showing {} of {total} paths{} {recovery})", page.paths.len(), page.basis)
}

/// The paths to show: all, or the first, or a sample of every top-level entry.
pub(super) fn page<'a>(output: &'a GlobOutput, options: &SearchOptions) -> Page<'a> {
    let cap = options.glob_max_results;
    if output.paths.len() > cap && options.sample_over_cap_glob_results {
        return sample(output, cap);
    }
    Page { paths: output.paths.iter().take(cap).map(String::as_str).collect(), basis: ".".to_owned() }
}

/// One path of each top-level entry in turn until the page is full; entries in the order in which they come first.
fn sample(output: &GlobOutput, cap: usize) -> Page<'_> {
    let groups = groups(output);
    let mut taken = vec![0; groups.len()];
    let mut left = cap;
    while left > 0 {
        let before = left;
        for (group, taken) in groups.iter().zip(&mut taken) {
            if left > 0 && *taken < group.len() {
                *taken += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    let shown = taken.iter().filter(|taken| **taken > 0).count();
    let paths = groups.iter().zip(&taken).flat_map(|(group, taken)| &group[..*taken]).copied().collect();
    Page { paths, basis: basis(shown, groups.len(), output.paths.len()) }
}

fn groups(output: &GlobOutput) -> Vec<Vec<&str>> {
    let mut groups: Vec<Vec<&str>> = Vec::new();
    let mut index_of: HashMap<&str, usize> = HashMap::new();
    for path in &output.paths {
        let index = *index_of.entry(place::top_level(&output.root, path)).or_insert(groups.len());
        if index == groups.len() {
            groups.push(Vec::new());
        }
        groups[index].push(path);
    }
    groups
}

fn basis(shown: usize, groups: usize, paths: usize) -> String {
    // Where every path is an entry of its own, the sample is the head of the list.
    if groups == paths {
        return ".".to_owned();
    }
    let narrow = if shown < groups { " Narrow path to inspect a specific subtree." } else { "" };
    format!(
        ", sampled across {shown} of the {groups} top-level entries this pattern matched instead of taken in \
         modification-time order.{narrow}"
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;

    fn output(paths: &str, stored: Option<&str>) -> GlobOutput {
        GlobOutput {
            root: ".".to_owned(),
            paths: paths.split_whitespace().map(str::to_owned).collect(),
            stored: stored.map(str::to_owned),
            left_out: 0,
        }
    }

    fn limits(cap: usize, sample: bool) -> SearchOptions {
        SearchOptions {
            glob_max_results: cap,
            sample_over_cap_glob_results: sample,
            ..SearchOptions::default()
        }
    }

    const TREE: &str = "archive/a archive/b archive/c docs/g src/i test/s top.txt notes.md";

    #[test]
    fn nothing_is_said() {
        assert_eq!(text(&output("", None), &limits(4, true)), "No files found");
    }

    #[test]
    fn up_to_the_cap_all_are_listed() {
        assert_eq!(text(&output("a b/c", None), &limits(2, true)), "a\nb/c");
    }

    #[test]
    fn a_sample_takes_one_of_each_entry() {
        assert_snapshot!(text(&output(TREE, None), &limits(4, true)), @r"
        archive/a
        docs/g
        src/i
        test/s

        (Showing 4 of 8 paths, sampled across 4 of the 6 top-level entries this pattern matched instead of taken in modification-time order. Narrow path to inspect a specific subtree. The complete result could not be saved; narrow pattern or path to see more.)
        ");
    }

    #[test]
    fn a_sample_of_all_entries_lists_them_together() {
        assert_snapshot!(text(&output(TREE, Some("/s/x")), &limits(7, true)), @r"
        archive/a
        archive/b
        docs/g
        src/i
        test/s
        top.txt
        notes.md

        (Showing 7 of 8 paths, sampled across 6 of the 6 top-level entries this pattern matched instead of taken in modification-time order. Full sorted result stored at: /s/x. Use read with offset/limit, or grep this path to search within it.)
        ");
    }

    #[test]
    fn without_sampling_the_head_is_listed() {
        assert_snapshot!(text(&output(TREE, None), &limits(2, false)), @r"
        archive/a
        archive/b

        (Showing 2 of 8 paths. The complete result could not be saved; narrow pattern or path to see more.)
        ");
    }

    #[test]
    fn flat_paths_are_not_called_a_sample() {
        assert_snapshot!(text(&output("a b c", Some("/s/x")), &limits(2, true)), @r"
        a
        b

        (Showing 2 of 3 paths. Full sorted result stored at: /s/x. Use read with offset/limit, or grep this path to search within it.)
        ");
    }

    proptest! {
        #[test]
        fn a_sample_is_full_fair_and_in_order(
            paths in proptest::collection::vec("[a-d](/[a-c]){0,2}", 1..40),
            cap in 0_usize..20,
        ) {
            let output = GlobOutput { root: ".".to_owned(), paths, stored: None, left_out: 0 };
            let page = page(&output, &limits(cap, true));
            prop_assert_eq!(page.paths.len(), cap.min(output.paths.len()));
            let of = |paths: &[&str], top: &str| -> Vec<String> {
                paths.iter().filter(|path| place::top_level(".", path) == top).map(|path| (*path).to_owned()).collect()
            };
            let all: Vec<&str> = output.paths.iter().map(String::as_str).collect();
            let most = ["a", "b", "c", "d"].iter().map(|top| of(&page.paths, top).len()).max().unwrap_or(0);
            for top in ["a", "b", "c", "d"] {
                let (shown, there) = (of(&page.paths, top), of(&all, top));
                prop_assert_eq!(&shown[..], &there[..shown.len()]);
                prop_assert!(shown.len() + 1 >= most || shown.len() == there.len());
            }
        }
    }
}
