//! A session's first title (llm spec 16).

/// Most words of a fallback title.
const MAX_WORDS: usize = 5;
/// Most bytes of a fallback title.
const MAX_BYTES: usize = 40;

/// The first words of a message, cleaned; `None` when it has none.
///
/// ```
/// # use lorimer_agent::fallback_title;
/// assert_eq!(fallback_title("Use the  read\ttool (NOT bash)").as_deref(), Some("Use the read tool (NOT"));
/// assert_eq!(fallback_title(" \u{1b} "), None);
/// ```
pub fn fallback_title(text: &str) -> Option<String> {
    let cleaned: String = text.chars().map(|c| if is_unprintable(c) { ' ' } else { c }).collect();
    let mut title = String::new();
    for word in cleaned.split_whitespace().take(MAX_WORDS) {
        let separator = usize::from(!title.is_empty());
        if !title.is_empty() && title.len() + separator + word.len() > MAX_BYTES {
            break;
        }
        if separator == 1 {
            title.push(' ');
        }
        title.push_str(word);
    }
    title.truncate(title.floor_char_boundary(MAX_BYTES));
    (!title.is_empty()).then_some(title)
}

/// Control characters and those that change the direction of text.
fn is_unprintable(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
