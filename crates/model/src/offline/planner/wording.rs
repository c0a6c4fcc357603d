//! How numbers, paths and foreign texts are written.

use super::limits::{MAX_QUOTE_CHARS, MAX_SHOWN_PATH_CHARS, SHOWN_NAMES};

/// A number with commas between thousands.
pub(super) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 file`, `1,200 files`. The plural is the singular with an `s`.
pub(super) fn count(n: u64, noun: &str) -> String {
    let ending = if n == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", number(n))
}

/// [`count`] for the length of something.
pub(super) fn count_of(n: usize, noun: &str) -> String {
    count(n as u64, noun)
}

/// A path as code.
pub(super) fn path(path: &str) -> String {
    code(path, MAX_SHOWN_PATH_CHARS)
}

/// A piece of foreign text as code.
pub(super) fn quote(text: &str) -> String {
    code(text, MAX_QUOTE_CHARS)
}

/// Foreign text on one line within a code span.
fn code(text: &str, max_chars: usize) -> String {
    let text = plain(text, max_chars).replace('`', "'");
    if text.is_empty() { "``".to_owned() } else { format!("`{text}`") }
}

/// Foreign text on one line: no control or direction characters, runs of blanks as one, at most `max_chars`.
pub(super) fn plain(text: &str, max_chars: usize) -> String {
    let visible = |c: char| !c.is_control() && !is_direction(c);
    let scan = text.chars().filter(|c| visible(*c) || c.is_whitespace()).take(max_chars.saturating_mul(4));
    let scanned: String = scan.collect();
    let words: Vec<&str> = scanned.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default().trim_end()),
        None => line,
    }
}

/// Invisible characters that change the direction of text.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Paths as a phrase: `a`, `b` and 3 more.
pub(super) fn names<'a>(paths: impl IntoIterator<Item = &'a str>) -> String {
    names_up_to(SHOWN_NAMES, paths)
}

/// [`names`] with at most `shown` of them spelled out.
pub(super) fn names_up_to<'a>(shown: usize, paths: impl IntoIterator<Item = &'a str>) -> String {
    let mut paths = paths.into_iter();
    let mut parts: Vec<String> = paths.by_ref().take(shown).map(path).collect();
    let more = paths.count();
    if more > 0 {
        parts.push(format!("{} more", number(more as u64)));
    }
    match parts.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_234_567), "1,234,567");
        assert_eq!((count(1, "file"), count(2, "file")), ("1 file".to_owned(), "2 files".to_owned()));
    }

    #[test]
    fn names_are_a_phrase() {
        assert_eq!(names(["a"]), "`a`");
        assert_eq!(names(["a", "b"]), "`a` and `b`");
        assert_eq!(names(["a", "b", "c", "d", "e", "f"]), "`a`, `b`, `c`, `d` and 2 more");
    }

    #[test]
    fn foreign_text_stays_on_one_line_and_in_its_span() {
        assert_eq!(quote("  // `a`\n\u{202E}\tb\u{7}  "), "`// 'a' b`");
        assert_eq!(plain("äöü", 2), "äö…");
    }
}
