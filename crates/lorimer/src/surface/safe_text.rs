//! Text that cannot drive a terminal.

use std::borrow::Cow;
use std::io::IsTerminal;

/// The text with control characters and changes of direction replaced.
pub(super) fn safe(text: &str) -> String {
    text.chars().map(|c| if drives_a_terminal(c) { '\u{fffd}' } else { c }).collect()
}

/// One line of it, safe to show.
pub fn safe_line(text: &str) -> String {
    safe(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text as it may go to standard output: as it is for files and programs, made safe for a terminal.
pub fn safe_for_stdout(text: &str) -> Cow<'_, str> {
    if std::io::stdout().is_terminal() && text.contains(drives_a_terminal) {
        Cow::Owned(safe(text))
    } else {
        Cow::Borrowed(text)
    }
}

fn drives_a_terminal(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// As much of a session's id as tells it from others: eight characters behind the word that some ids begin with.
pub fn short_id(id: &str) -> &str {
    const CHARS: usize = 8;
    const WORD: &str = "session-";
    let word = if id.starts_with(WORD) { WORD.len() } else { 0 };
    id.char_indices().nth(word + CHARS).map_or(id, |(end, _)| &id[..end])
}

#[cfg(test)]
mod tests {
    use super::safe;

    #[test]
    fn escapes_and_overrides_are_replaced() {
        assert_eq!(safe("ok \u{1b}[2J\u{9b}5A\u{202e}x\ty\n"), "ok \u{fffd}[2J\u{fffd}5A\u{fffd}x\ty\n");
    }
}
