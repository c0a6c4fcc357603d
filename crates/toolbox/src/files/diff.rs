//! Hunks of a change, for its card.

use std::ops::Range;
use std::time::{Duration, Instant};

use lorimer_protocol::FileDiff;
use serde_json::{Value, json};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// How long a diff may look for the smallest set of changes; after it, coarser hunks do.
const SEARCH_TIME: Duration = Duration::from_millis(500);

/// The hunks between two texts with LF line ends. `path` is the path as the call gave it.
pub(crate) fn hunks(path: &str, before: &str, after: &str) -> Vec<FileDiff> {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(Instant::now() + SEARCH_TIME));
    group_diff_ops(ops, CONTEXT_LINES)
        .iter()
        .filter(|group| group.iter().any(|op| !matches!(op, DiffOp::Equal { .. })))
        .map(|group| hunk(path, &old, &new, group))
        .collect()
}

fn hunk(path: &str, old: &[&str], new: &[&str], group: &[DiffOp]) -> FileDiff {
    let old_range = span(group, DiffOp::old_range);
    let new_range = span(group, DiffOp::new_range);
    FileDiff {
        path: path.to_owned(),
        old_start: first_line(&old_range),
        new_start: first_line(&new_range),
        old_text: (!old_range.is_empty()).then(|| joined(&old[old_range])),
        new_text: joined(&new[new_range]),
    }
}

fn span(group: &[DiffOp], range: impl Fn(&DiffOp) -> Range<usize>) -> Range<usize> {
    let start = group.first().map_or(0, |op| range(op).start);
    let end = group.last().map_or(start, |op| range(op).end);
    start..end
}

fn first_line(range: &Range<usize>) -> Option<u64> {
    (!range.is_empty()).then_some(range.start as u64 + 1)
}

fn joined(lines: &[&str]) -> String {
    let bare: Vec<&str> = lines.iter().map(|line| line.strip_suffix('\n').unwrap_or(line)).collect();
    bare.join("\n")
}

/// What is stored beside the result of a change.
pub(crate) fn meta_of_diffs(diffs: &[FileDiff]) -> Value {
    json!({ "diffs": diffs })
}

/// The stored hunks, when there are any and all are well formed.
pub(crate) fn diffs_from_meta(meta: Option<&Value>) -> Option<Vec<FileDiff>> {
    let diffs: Vec<FileDiff> = serde::Deserialize::deserialize(meta?.get("diffs")?).ok()?;
    (!diffs.is_empty()).then_some(diffs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> Value {
        Value::Array(
            hunks("f", before, after)
                .into_iter()
                .map(|d| json!([d.old_start, d.old_text, d.new_start, d.new_text]))
                .collect(),
        )
    }

    #[test]
    fn recorded_examples() {
        assert_eq!(
            shown("mode=DEBUG\nlevel=info\n", "mode=RELEASE\nlevel=info\n"),
            json!([[1, "mode=DEBUG\nlevel=info", 1, "mode=RELEASE\nlevel=info"]])
        );
        assert_eq!(
            shown("original contents\n", "replaced"),
            json!([[1, "original contents", 1, "replaced"]])
        );
    }

    #[test]
    fn ends_of_a_text() {
        assert_eq!(shown("same\n", "same\n"), json!([]));
        assert_eq!(shown("", "x\n"), json!([[null, null, 1, "x"]]));
        assert_eq!(shown("x\n", ""), json!([[1, "x", null, ""]]));
        assert_eq!(shown("a", "a\n"), json!([[1, "a", 1, "a"]]));
        assert_eq!(shown("\n", "\nb"), json!([[1, "", 1, "\nb"]]));
        assert_eq!(shown("a\rb\n", "a\rc\n"), json!([[1, "a\rb", 1, "a\rc"]]));
    }

    #[test]
    fn far_changes_are_two_hunks_and_near_ones_one() {
        let lines = |changed: &[usize], count: usize| -> String {
            (1..=count)
                .map(|n| if changed.contains(&n) { format!("{n}!\n") } else { format!("{n}\n") })
                .collect()
        };
        let near = hunks("f", &lines(&[], 20), &lines(&[4, 11], 20));
        assert_eq!(near.len(), 1);
        let far = hunks("f", &lines(&[], 20), &lines(&[4, 12], 20));
        assert_eq!(
            far.iter().map(|d| (d.old_start, d.new_start)).collect::<Vec<_>>(),
            [(Some(1), Some(1)), (Some(9), Some(9))]
        );
        assert_eq!(far[1].new_text, "9\n10\n11\n12!\n13\n14\n15");
    }

    #[test]
    fn stored_hunks_are_checked() {
        let good = hunks("f", "a\n", "b\n");
        assert_eq!(diffs_from_meta(Some(&meta_of_diffs(&good))), Some(good));
        for bad in [
            json!(null),
            json!([]),
            json!({}),
            json!({"diffs": []}),
            json!({"diffs": "x"}),
            json!({"diffs": [{"path": 3, "oldText": null, "newText": "x"}]}),
            json!({"diffs": [{"path": "f", "oldText": null}]}),
            json!({"diffs": [{"path": "f", "oldText": 1, "newText": "x"}]}),
        ] {
            assert_eq!(diffs_from_meta(Some(&bad)), None, "{bad}");
        }
        assert_eq!(diffs_from_meta(None), None);
    }
}
