//! Which seq of the new log an old one became.

use serde_json::Value;

/// Old seqs and the new ones they became, kept where the distance between them changes.
#[derive(Default)]
pub(super) struct Renumber {
    breaks: Vec<(u64, u64)>,
}

impl Renumber {
    /// Says what became of the next old seq; they come in ascending order.
    pub fn set(&mut self, old: u64, new: u64) {
        if self.get(old) != Some(new) {
            self.breaks.push((old, new));
        }
    }

    /// The new seq of an old one that was set.
    pub fn get(&self, old: u64) -> Option<u64> {
        let after = self.breaks.partition_point(|(start, _)| *start <= old);
        let (start, new) = self.breaks.get(after.checked_sub(1)?)?;
        new.checked_add(old - start)
    }

    /// Rewrites the seqs that a payload cites under `keys`.
    pub fn payload(&self, keys: &[&str], data: &mut Value) {
        for key in keys {
            if let Some(value) = data.get_mut(*key) {
                self.value(value);
            }
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.value(member)),
            _ => {
                if let Some(new) = value.as_u64().and_then(|old| self.get(old)) {
                    *value = new.into();
                }
            }
        }
    }
}

/// Where the payload of an event type cites seqs.
pub(super) fn citing_members(kind: &str) -> &'static [&'static str] {
    match kind {
        "session/title" | "session/title-llm-request" => &["messageSeqs"],
        "compaction/summary" | "compaction/prune" => &["shadowedSeqs", "shadowedRange"],
        "command/done" => &["sourceEventSeq"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_change_where_events_were_added() {
        let mut seqs = Renumber::default();
        assert_eq!(seqs.get(0), None);
        for (old, new) in [(0, 0), (1, 1), (2, 7), (3, 8), (4, 9), (5, 20)] {
            seqs.set(old, new);
        }
        assert_eq!([0, 1, 2, 3, 4, 5].map(|old| seqs.get(old)), [0, 1, 7, 8, 9, 20].map(Some));
        assert_eq!(seqs.breaks.len(), 3);
        let mut data = serde_json::json!({"shadowedSeqs": [1, 2], "shadowedRange": {"start": 1, "end": 5}});
        seqs.payload(citing_members("compaction/prune"), &mut data);
        assert_eq!(
            data,
            serde_json::json!({"shadowedSeqs": [1, 7], "shadowedRange": {"start": 1, "end": 20}})
        );
    }
}
