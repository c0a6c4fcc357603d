//! The process table of Linux: who descends from whom, and who leads which group.

use std::fs::{self, File};
use std::io::Read;

/// One process, as `/proc/<pid>/stat` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// Whether it has ended and only waits to be collected.
    pub(super) ended: bool,
}

/// The fields that matter are at the start of the line; its first two are short.
const STAT_BYTES: usize = 512;

/// Every process that can be seen now. Processes that come or go meanwhile may be in it or not.
pub(super) fn snapshot() -> Vec<Entry> {
    let Ok(dir) = fs::read_dir("/proc") else { return Vec::new() };
    dir.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| {
            let mut line = [0; STAT_BYTES];
            let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
            parse(pid, &line[..length])
        })
        .collect()
}

/// The processes of `all` below the processes that `is_root` selects; the roots themselves are not part of it,
/// unless one is below another.
pub(super) fn descendants(all: &[Entry], is_root: impl Fn(&Entry) -> bool, root: Option<i32>) -> Vec<Entry> {
    let mut parents: Vec<i32> = all.iter().filter(|entry| is_root(entry)).map(|entry| entry.pid).collect();
    parents.extend(root);
    let mut by_parent = all.to_vec();
    by_parent.sort_unstable_by_key(|entry| entry.parent);
    let mut found: Vec<Entry> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    while let Some(parent) = parents.pop() {
        if !seen.insert(parent) {
            continue;
        }
        let from = by_parent.partition_point(|entry| entry.parent < parent);
        for entry in by_parent[from..].iter().take_while(|entry| entry.parent == parent) {
            found.push(*entry);
            parents.push(entry.pid);
        }
    }
    found
}

/// The direct children of this process; empty where the kernel does not list them.
pub(super) fn own_children() -> Vec<i32> {
    let listed = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    listed.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Reads `pid (name) state parent group session …`; the name may contain anything, brackets and spaces too.
fn parse(pid: i32, line: &[u8]) -> Option<Entry> {
    let name_end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X" | "x");
    let mut number = || fields.next()?.parse::<i32>().ok();
    Some(Entry { pid, parent: number()?, group: number()?, session: number()?, ended })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pid: i32, parent: i32) -> Entry {
        Entry { pid, parent, group: pid, session: 1, ended: false }
    }

    #[test]
    fn a_hostile_name_does_not_hide_a_process() {
        let expected = Entry { pid: 7, parent: 3, group: 4, session: 5, ended: false };
        assert_eq!(parse(7, b"7 (a) Z 1 1 (b) S 3 4 5 0 -1"), Some(expected));
        assert_eq!(parse(7, b"7 (\xFF\n) S 3 4 5 0"), Some(expected));
        assert_eq!(parse(7, b"7 (a) S 3 4"), None);
        assert_eq!(parse(7, b""), None);
    }

    #[test]
    fn everything_below_is_found_once() {
        let all = [entry(5, 4), entry(2, 1), entry(4, 2), entry(3, 2), entry(9, 8)];
        let mut found: Vec<i32> =
            descendants(&all, |_| false, Some(1)).iter().map(|entry| entry.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [2, 3, 4, 5]);
    }

    #[test]
    fn a_loop_in_a_torn_snapshot_ends() {
        let all = [entry(2, 3), entry(3, 2)];
        assert_eq!(descendants(&all, |_| false, Some(2)).len(), 2);
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        assert!(snapshot().iter().any(|entry| entry.pid == own && !entry.ended));
    }
}
