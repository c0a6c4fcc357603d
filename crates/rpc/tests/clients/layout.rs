//! What both languages share: words in lines, and names made of other names.

/// Breaks text into lines of at most `width` characters, paragraphs apart by an empty line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split("\n\n") {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// `tool-call` and `agent/inbox/spliced` as `ToolCall` and `AgentInboxSpliced`.
pub fn pascal(name: &str) -> String {
    name.split(|letter: char| !letter.is_ascii_alphanumeric())
        .flat_map(|word| {
            let (first, rest) = word.split_at(usize::from(!word.is_empty()));
            [first.to_ascii_uppercase(), rest.to_owned()]
        })
        .collect()
}

/// Text as a literal of either language.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
