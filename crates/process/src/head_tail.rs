//! What is kept of a stream that may be endless: its first bytes and its last bytes.
//!
//! What must hold, whatever the stream contains and however it is cut into chunks:
//!
//! * memory never exceeds the two caps;
//! * nothing is omitted while the stream fits in the two caps together;
//! * kept bytes and omitted bytes add up to the bytes pushed;
//! * a cut never goes through a character: text that was UTF-8 renders without U+FFFD.

use std::collections::VecDeque;

/// The longest UTF-8 sequence has this many bytes after its first one.
const MAX_CONTINUATION_BYTES: usize = 3;

/// Keeps the first and the last bytes of a stream.
#[derive(Debug, Clone)]
pub struct HeadTail {
    head_cap_bytes: usize,
    tail_cap_bytes: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
}

/// The bytes that a [`HeadTail`] kept, cut at character borders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The first bytes of the stream; all of them when nothing was omitted.
    pub head: Vec<u8>,
    /// How many bytes lie between `head` and `tail`.
    pub omitted_bytes: u64,
    /// The last bytes of the stream; empty when nothing was omitted.
    pub tail: Vec<u8>,
}

impl HeadTail {
    /// Keeps up to `head_cap_bytes` from the start and up to `tail_cap_bytes` from the end.
    #[must_use]
    pub fn new(head_cap_bytes: usize, tail_cap_bytes: usize) -> Self {
        Self { head_cap_bytes, tail_cap_bytes, head: Vec::new(), tail: VecDeque::new(), total_bytes: 0 }
    }

    /// Appends the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(self.head_cap_bytes - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_cap_bytes)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_cap_bytes);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// How many bytes were pushed.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Whether `more_bytes` could be pushed without losing any byte.
    #[must_use]
    pub fn has_room_for(&self, more_bytes: usize) -> bool {
        let cap_bytes = self.head_cap_bytes as u64 + self.tail_cap_bytes as u64;
        self.total_bytes.saturating_add(more_bytes as u64) <= cap_bytes
    }

    /// Every byte held, in three slices: the whole stream as long as nothing was lost.
    #[must_use]
    pub fn held(&self) -> [&[u8]; 3] {
        let (older, newer) = self.tail.as_slices();
        [&self.head, older, newer]
    }

    /// What is kept, with both cuts moved to character borders.
    #[must_use]
    pub fn kept(&self) -> Kept {
        if self.has_room_for(0) {
            return Kept { head: self.held().concat(), omitted_bytes: 0, tail: Vec::new() };
        }
        let head = self.head[..complete_prefix_len(&self.head)].to_vec();
        let mut tail: Vec<u8> = self.tail.iter().copied().collect();
        tail.drain(..broken_start_len(&tail));
        let omitted_bytes = self.total_bytes - (head.len() + tail.len()) as u64;
        Kept { head, omitted_bytes, tail }
    }
}

impl Kept {
    /// The kept bytes as text, with a line of our own in place of what was omitted.
    ///
    /// Bytes that are not UTF-8 show as U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.omitted_bytes > 0 {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[… {} bytes omitted …]\n", self.omitted_bytes));
            text.push_str(&String::from_utf8_lossy(&self.tail));
        }
        text
    }
}

/// The length of `bytes` without a character that its end cuts off.
fn complete_prefix_len(bytes: &[u8]) -> usize {
    let window = bytes.len().saturating_sub(MAX_CONTINUATION_BYTES);
    for at in (window..bytes.len()).rev() {
        let needed = match bytes[at] {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        return if at + needed > bytes.len() { at } else { bytes.len() };
    }
    bytes.len()
}

/// How many bytes at the start of `bytes` belong to a character that began before it.
fn broken_start_len(bytes: &[u8]) -> usize {
    bytes.iter().take(MAX_CONTINUATION_BYTES).take_while(|byte| (0x80..=0xBF).contains(*byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fed(bytes: &[u8], cuts: &[usize], head: usize, tail: usize) -> HeadTail {
        let mut kept = HeadTail::new(head, tail);
        let mut rest = bytes;
        for cut in cuts {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            kept.push(now);
            rest = later;
        }
        kept.push(rest);
        kept
    }

    proptest! {
        #[test]
        fn chunking_does_not_matter(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            cuts in proptest::collection::vec(0usize..40, 0..20),
            head in 0usize..60,
            tail in 0usize..60,
        ) {
            let whole = fed(&bytes, &[], head, tail);
            let pieces = fed(&bytes, &cuts, head, tail);
            prop_assert_eq!(whole.kept(), pieces.kept());
        }

        #[test]
        fn kept_and_omitted_are_all_there_is(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            head in 0usize..60,
            tail in 0usize..60,
        ) {
            let kept = fed(&bytes, &[7, 1, 30], head, tail).kept();
            let sum = kept.head.len() as u64 + kept.omitted_bytes + kept.tail.len() as u64;
            prop_assert_eq!(sum, bytes.len() as u64);
            prop_assert!(bytes.starts_with(&kept.head));
            prop_assert!(bytes.ends_with(&kept.tail));
            if bytes.len() <= head + tail {
                prop_assert_eq!(kept.omitted_bytes, 0);
            } else {
                prop_assert!(kept.head.len() + MAX_CONTINUATION_BYTES >= head && kept.head.len() <= head);
                prop_assert!(kept.tail.len() + MAX_CONTINUATION_BYTES >= tail && kept.tail.len() <= tail);
            }
        }

        #[test]
        fn characters_stay_whole(
            text in "[aé€😀\n]{0,200}",
            cuts in proptest::collection::vec(0usize..40, 0..20),
            head in 0usize..60,
            tail in 0usize..60,
        ) {
            let kept = fed(text.as_bytes(), &cuts, head, tail).kept();
            prop_assert!(std::str::from_utf8(&kept.head).is_ok());
            prop_assert!(std::str::from_utf8(&kept.tail).is_ok());
            prop_assert!(!kept.to_text().contains(char::REPLACEMENT_CHARACTER));
        }

        #[test]
        fn memory_stays_within_the_caps(
            chunk in 0usize..300,
            times in 0usize..20,
            head in 0usize..60,
            tail in 0usize..60,
        ) {
            let mut kept = HeadTail::new(head, tail);
            for _ in 0..times {
                kept.push(&vec![b'x'; chunk]);
            }
            prop_assert!(kept.held().iter().map(|part| part.len()).sum::<usize>() <= head + tail);
        }
    }

    #[test]
    fn a_stream_that_fits_is_shown_as_it_is() {
        let kept = fed("añb".as_bytes(), &[2], 2, 2).kept();
        assert_eq!(kept.to_text(), "añb");
    }

    #[test]
    fn the_omission_has_a_line_of_its_own() {
        let kept = fed(b"abcdefgh", &[], 2, 2).kept();
        assert_eq!(kept.to_text(), "ab\n[… 4 bytes omitted …]\ngh");
        let kept = fed(b"a\ncdefgh", &[], 2, 0).kept();
        assert_eq!(kept.to_text(), "a\n[… 6 bytes omitted …]\n");
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced_only_when_shown() {
        let kept = fed(b"a\xFFb\xE2\x82", &[], 10, 10).kept();
        assert_eq!(kept.head, b"a\xFFb\xE2\x82");
        assert_eq!(kept.to_text(), "a\u{FFFD}b\u{FFFD}");
    }
}
