//! Replacing text in a file without touching any byte around it.
//!
//! Texts are compared with LF line ends, so a model need not know a file's own. What is replaced is found in the
//! compared text and cut out of the real one; of what is replaced, the common start and end of old and new text are
//! left as they are too. New line ends are those of the place.

use std::borrow::Cow;

use memchr::memmem;

use crate::files::to_lf;

/// Why nothing was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpliceError {
    /// No match.
    NotFound,
    /// This many matches where one is allowed.
    Ambiguous(usize),
}

/// `text` with `old` replaced by `new`, at its only place or at all.
///
/// # Errors
/// When there is no match, or more than one and not all are meant.
pub(crate) fn splice(text: &str, old: &str, new: &str, all: bool) -> Result<String, SpliceError> {
    let (old, new) = (to_lf(old), to_lf(new));
    let plain = PlainText::of(text);
    let starts: Vec<usize> = memmem::find_iter(plain.text.as_bytes(), old.as_bytes()).collect();
    match starts.len() {
        0 => return Err(SpliceError::NotFound),
        1 => {}
        count if !all => return Err(SpliceError::Ambiguous(count)),
        _ => {}
    }
    let (head, tail) = common_ends(&old, &new);
    let fresh = &new[head..new.len() - tail];
    let ends = LineEnds::of(text);
    let mut result = String::with_capacity(text.len() + starts.len() * fresh.len());
    let mut copied = 0;
    for start in starts {
        let end = start + old.len();
        let cut = plain.real(start + head)..plain.real(end - tail);
        result.push_str(&text[copied..cut.start]);
        if fresh.contains('\n') && ends.is_crlf_at(plain.real(start), plain.real(end)) {
            result.push_str(&fresh.replace('\n', "\r\n"));
        } else {
            result.push_str(fresh);
        }
        copied = cut.end;
    }
    result.push_str(&text[copied..]);
    Ok(result)
}

/// How many bytes two texts have in common at their start and at their end, in whole characters and without overlap.
fn common_ends(old: &str, new: &str) -> (usize, usize) {
    let same = |(a, b): &(char, char)| a == b;
    let length = |(character, _): (char, char)| character.len_utf8();
    let head = old.chars().zip(new.chars()).take_while(same).map(length).sum();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.chars().rev().zip(new.chars().rev()).take_while(same).map(length).sum();
    (head, tail)
}

/// A text with LF line ends that knows where its places are in the real one.
struct PlainText<'a> {
    text: Cow<'a, str>,
    /// Where the line ends are that are CRLF in the real text, ascending.
    crlf: Vec<usize>,
}

impl<'a> PlainText<'a> {
    fn of(text: &'a str) -> Self {
        let crlf =
            memmem::find_iter(text.as_bytes(), b"\r\n").enumerate().map(|(before, at)| at - before).collect();
        Self { text: to_lf(text), crlf }
    }

    /// The place in the real text. The place before a CRLF is before its CR.
    fn real(&self, at: usize) -> usize {
        at + self.crlf.partition_point(|end| *end < at)
    }
}

/// The line ends of a text.
struct LineEnds<'a> {
    text: &'a [u8],
    /// Where the LFs are, ascending.
    feeds: Vec<usize>,
}

impl<'a> LineEnds<'a> {
    fn of(text: &'a str) -> Self {
        Self { text: text.as_bytes(), feeds: memchr::memchr_iter(b'\n', text.as_bytes()).collect() }
    }

    /// Whether lines end with CRLF in `start..end`: most of those inside (the first decides a tie), else the nearest
    /// outside (the line's own decides a tie). A text without line ends has LF.
    fn is_crlf_at(&self, start: usize, end: usize) -> bool {
        let first = self.feeds.partition_point(|feed| *feed < start);
        let after = self.feeds.partition_point(|feed| *feed < end);
        let inside = &self.feeds[first..after];
        if let Some(feed) = inside.first() {
            let crlf = inside.iter().filter(|feed| self.is_crlf(**feed)).count();
            let lf = inside.len() - crlf;
            return crlf > lf || (crlf == lf && self.is_crlf(*feed));
        }
        let before = first.checked_sub(1).map(|at| self.feeds[at]);
        let next = self.feeds.get(after).copied();
        match (before, next) {
            (Some(before), Some(next)) => {
                let is_crlf = self.is_crlf(next);
                let gap_before = start - before - 1;
                let gap_after = next - usize::from(is_crlf) - end;
                if gap_before < gap_after { self.is_crlf(before) } else { is_crlf }
            }
            (Some(only), None) | (None, Some(only)) => self.is_crlf(only),
            (None, None) => false,
        }
    }

    fn is_crlf(&self, feed: usize) -> bool {
        feed > 0 && self.text[feed - 1] == b'\r'
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(text: &str, old: &str, new: &str) -> String {
        splice(text, old, new, false).unwrap()
    }

    #[test]
    fn bytes_around_stay() {
        let text = "\u{feff}a\r\nb\nprog\r10%\r20%\nc\r\n";
        assert_eq!(one(text, "b", "B"), "\u{feff}a\r\nB\nprog\r10%\r20%\nc\r\n");
        assert_eq!(one(text, "10%\r", "30%\r"), "\u{feff}a\r\nb\nprog\r30%\r20%\nc\r\n");
        assert_eq!(one(text, "a\nb\nprog", "a\nB\nprog"), "\u{feff}a\r\nB\nprog\r10%\r20%\nc\r\n");
    }

    #[test]
    fn either_line_end_matches_the_other() {
        assert_eq!(one("one\r\ntwo\r\n", "one\ntwo\n", "1\n2\n3\n"), "1\r\n2\r\n3\r\n");
        assert_eq!(one("one\ntwo\n", "one\r\ntwo", "1\r\n2\r\n3"), "1\n2\n3\n");
    }

    #[test]
    fn new_line_ends_are_the_places_own() {
        assert_eq!(one("a\r\nb\r\nc\nd\n", "b", "b1\nb2"), "a\r\nb1\r\nb2\r\nc\nd\n");
        assert_eq!(one("a\r\nb\r\nc\nd\n", "d", "d1\nd2"), "a\r\nb\r\nc\nd1\nd2\n");
        assert_eq!(one("a", "a", "a\nb"), "a\nb");
        assert_eq!(one("a\r\nb", "b", "b\nc"), "a\r\nb\r\nc");
        assert_eq!(one("a\r\nb\r\nc\nd", "a\nb\nc\nd", "x\ny\nz"), "x\r\ny\r\nz");
    }

    #[test]
    fn a_line_end_can_go_whole() {
        assert_eq!(one("a\r\nb\r\n", "a\n", "a"), "ab\r\n");
        assert_eq!(one("a\r\nb\r\n", "\nb", ""), "a\r\n");
        assert_eq!(one("a\r\r\nb", "a\r\r\nb", "c"), "c");
    }

    #[test]
    fn matches_are_counted_and_all_replaced() {
        assert_eq!(splice("aaaa", "aa", "b", false), Err(SpliceError::Ambiguous(2)));
        assert_eq!(splice("aaaa", "aa", "b", true).unwrap(), "bb");
        assert_eq!(splice("a", "b", "c", true), Err(SpliceError::NotFound));
        assert_eq!(splice("x\r\nx\n", "x", "x\ny", true).unwrap(), "x\r\ny\r\nx\ny\n");
    }

    #[test]
    fn dollars_are_text() {
        assert_eq!(one("echo \"start\"", "start", "$& $1 $$ \\1"), "echo \"$& $1 $$ \\1\"");
    }

    proptest! {
        /// The compared result is that of a plain replacement, and what is around the match keeps its bytes.
        #[test]
        fn a_splice_is_a_replacement(
            before in "[ab\r\n]{0,12}",
            matched in "[x\r\n]{0,3}m[y\r\n]{0,3}",
            after in "[ab\r\n]{0,12}",
            new in "[xyz\n]{0,6}",
        ) {
            let text = format!("{before}{matched}{after}");
            let old = to_lf(&matched).into_owned();
            let plain = to_lf(&text).into_owned();
            // A CR at an edge may belong to a line end of the whole text.
            prop_assume!(plain.matches(&old).count() == 1 && old != new);
            let result = splice(&text, &matched, &new, false).unwrap();
            if !text.contains('\r') {
                prop_assert_eq!(&result, &text.replacen(&old, &new, 1));
            }
            if !matched.starts_with('\n') && !matched.ends_with('\r') {
                prop_assert!(result.starts_with(&before));
                prop_assert!(result.ends_with(&after));
                let middle = &result[before.len()..result.len() - after.len()];
                let expected = to_lf(&new).into_owned();
                prop_assert_eq!(to_lf(middle).into_owned(), expected);
            }
        }

        #[test]
        fn all_is_all_on_plain_text(text in "[ab\n😀]{0,20}", old in "[ab\n😀]{1,3}", new in "[abc\n😀]{0,4}") {
            prop_assume!(old != new);
            let count = text.matches(&old).count();
            let result = splice(&text, &old, &new, true);
            if count == 0 {
                prop_assert_eq!(result, Err(SpliceError::NotFound));
            } else {
                prop_assert_eq!(result.unwrap(), text.replace(&old, &new));
            }
        }
    }
}
