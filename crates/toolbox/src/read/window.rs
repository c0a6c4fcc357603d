//! The window of lines that a read shows (core spec 5.2, A.1).

use memchr::{memchr, memchr_iter};

use super::ReadLine;

/// Which lines are wanted and how much of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowLimits {
    /// First line, 1-based.
    pub offset: u64,
    /// Most lines.
    pub lines: usize,
    /// Most UTF-16 units of a line.
    pub line_units: usize,
    /// Most bytes of all lines with the line ends between them.
    pub bytes: usize,
}

/// The lines of a window and the number of lines of the whole text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub lines: Vec<ReadLine>,
    pub total_lines: u64,
}

/// Takes a text in pieces and keeps its window. Memory is bound by the limits, whatever the text is.
pub(crate) struct WindowScan {
    limits: WindowLimits,
    ended_lines: u64,
    /// Whether there is text after the last line end.
    is_open: bool,
    /// The start of the current line: no more than one character past the longest line.
    line: String,
    line_units: usize,
    lines: Vec<ReadLine>,
    bytes: usize,
    is_full: bool,
}

impl WindowScan {
    pub fn new(limits: WindowLimits) -> Self {
        Self {
            limits,
            ended_lines: 0,
            is_open: false,
            line: String::new(),
            line_units: 0,
            lines: Vec::new(),
            bytes: 0,
            is_full: false,
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: &str) {
        let mut rest = piece;
        while !rest.is_empty() {
            if self.is_full {
                self.ended_lines += memchr_iter(b'\n', rest.as_bytes()).count() as u64;
                self.is_open = !rest.ends_with('\n');
                return;
            }
            let end = memchr(b'\n', rest.as_bytes());
            let is_wanted = self.ended_lines + 1 >= self.limits.offset;
            if is_wanted {
                self.keep(&rest[..end.unwrap_or(rest.len())]);
            }
            self.is_open = end.is_none();
            let Some(end) = end else {
                return;
            };
            self.ended_lines += 1;
            if is_wanted {
                self.end_line(self.ended_lines);
            }
            rest = &rest[end + 1..];
        }
    }

    /// The window after the last piece.
    pub fn finish(mut self) -> Window {
        let total_lines = self.ended_lines + u64::from(self.is_open);
        if self.is_open && !self.is_full && total_lines >= self.limits.offset {
            self.end_line(total_lines);
        }
        Window { lines: self.lines, total_lines }
    }

    fn keep(&mut self, part: &str) {
        let most = self.limits.line_units;
        // A character has no more units than bytes.
        if part.len() <= (most + 1).saturating_sub(self.line_units) {
            self.line.push_str(part);
            self.line_units += utf16_units(part);
            return;
        }
        for character in part.chars() {
            if self.line_units > most {
                return;
            }
            self.line.push(character);
            self.line_units += character.len_utf16();
        }
    }

    fn end_line(&mut self, number: u64) {
        let mut text = std::mem::take(&mut self.line);
        let mut units = std::mem::take(&mut self.line_units);
        // The CR is taken off what was kept, so a longest line with a CR after it is not cut.
        if text.ends_with('\r') {
            text.pop();
            units -= 1;
        }
        let most = self.limits.line_units;
        if units > most {
            text.truncate(prefix_of_units(&text, most));
            text.push_str(&format!("... (line truncated to {most} chars)"));
        }
        let size = text.len() + usize::from(!self.lines.is_empty());
        if self.bytes + size > self.limits.bytes {
            self.is_full = true;
            return;
        }
        self.bytes += size;
        self.lines.push(ReadLine { number, text });
        self.is_full = self.lines.len() >= self.limits.lines;
    }
}

fn utf16_units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// The byte length of the longest prefix of whole characters with at most `most` UTF-16 units.
fn prefix_of_units(text: &str, most: usize) -> usize {
    let mut units = 0;
    text.char_indices()
        .find(|(_, character)| {
            units += character.len_utf16();
            units > most
        })
        .map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: WindowLimits = WindowLimits { offset: 1, lines: 2000, line_units: 2000, bytes: 51_200 };

    fn window(pieces: &[&str], limits: WindowLimits) -> Window {
        let mut scan = WindowScan::new(limits);
        pieces.iter().for_each(|piece| scan.push(piece));
        scan.finish()
    }

    fn texts(text: &str, limits: WindowLimits) -> Vec<String> {
        window(&[text], limits).lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn the_cr_is_taken_off_what_was_kept() {
        let limits = WindowLimits { line_units: 5, ..LIMITS };
        assert_eq!(texts("abcde\r\n", limits), ["abcde"]);
        assert_eq!(texts("abcdef\r\n", limits), ["abcde... (line truncated to 5 chars)"]);
        // The sixth kept character is a CR in the middle of the line.
        assert_eq!(texts("abcde\rfgh\n", limits), ["abcde"]);
    }

    #[test]
    fn a_character_is_never_split() {
        let limits = WindowLimits { line_units: 5, ..LIMITS };
        assert_eq!(texts("ab😀😀\n", limits), ["ab😀... (line truncated to 5 chars)"]);
        assert_eq!(texts("a😀😀\n", limits), ["a😀😀"]);
        assert_eq!(texts("中中中中中\n", limits), ["中中中中中"]);
        assert_eq!(texts("中中中中中中\n", limits), ["中中中中中... (line truncated to 5 chars)"]);
    }

    #[test]
    fn a_huge_line_is_kept_in_part_only() {
        let mut scan = WindowScan::new(LIMITS);
        let piece = "x".repeat(64 * 1024);
        (0..1000).for_each(|_| scan.push(&piece));
        assert!(scan.line.capacity() < 8 * 1024);
        let window = scan.finish();
        assert_eq!(window.total_lines, 1);
        assert_eq!(window.lines[0].text.len(), 2000 + "... (line truncated to 2000 chars)".len());
    }

    fn naive(text: &str, limits: WindowLimits) -> Window {
        let mut all: Vec<&str> = text.split('\n').collect();
        if all.last() == Some(&"") {
            all.pop();
        }
        let (mut lines, mut bytes) = (Vec::new(), 0);
        for (at, line) in all.iter().enumerate().skip(limits.offset as usize - 1).take(limits.lines) {
            let mut kept = String::new();
            for character in line.chars() {
                if kept.encode_utf16().count() > limits.line_units {
                    break;
                }
                kept.push(character);
            }
            let kept = kept.strip_suffix('\r').unwrap_or(&kept);
            let mut shown = kept.to_owned();
            if kept.encode_utf16().count() > limits.line_units {
                while shown.encode_utf16().count() > limits.line_units {
                    shown.pop();
                }
                shown.push_str(&format!("... (line truncated to {} chars)", limits.line_units));
            }
            bytes += shown.len() + usize::from(!lines.is_empty());
            if bytes > limits.bytes {
                break;
            }
            lines.push(ReadLine { number: at as u64 + 1, text: shown });
        }
        Window { lines, total_lines: all.len() as u64 }
    }

    proptest! {
        #[test]
        fn any_cutting_gives_the_same_window(
            pieces in prop::collection::vec("[a\r\n😀中]{0,6}", 0..12),
            offset in 1_u64..6,
            lines in 1_usize..6,
            line_units in 1_usize..8,
            bytes in 0_usize..120,
        ) {
            let limits = WindowLimits { offset, lines, line_units, bytes };
            let whole = pieces.concat();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let expected = naive(&whole, limits);
            prop_assert_eq!(&window(&pieces, limits), &expected);
            prop_assert_eq!(&window(&[&whole], limits), &expected);
        }
    }
}
