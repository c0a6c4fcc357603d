//! Large results are stored and replaced by their ends and a pointer (core spec 7.2).

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use lorimer_protocol::ContentBlock;

use crate::context::ToolContext;
use crate::outcome::Outcome;
use crate::policy::{Policy, Review};

const RETRIEVAL_HINT: &str = "Use read with offset/limit, or grep this path to search within it.";

/// Replaces plain-text results above a size. Register it last, so that it sees what other policies left.
pub struct SpillPolicy {
    max_inline_bytes: usize,
    /// Tools that bound their results themselves, with their own limits.
    own_limits: Vec<(String, usize)>,
}

impl SpillPolicy {
    /// A policy that lets results of up to `max_inline_bytes` bytes stand.
    pub fn new(max_inline_bytes: usize) -> Self {
        Self { max_inline_bytes, own_limits: Vec::new() }
    }

    /// Lets results of one tool stand up to another size: it cuts them itself and names where the rest is.
    #[must_use]
    pub fn with_limit_of(mut self, tool: &str, max_inline_bytes: usize) -> Self {
        self.own_limits.push((tool.to_owned(), max_inline_bytes));
        self
    }

    fn limit_of(&self, tool: &str) -> usize {
        let own = self.own_limits.iter().find(|(name, _)| name == tool);
        own.map_or(self.max_inline_bytes, |(_, limit)| *limit)
    }
}

impl Policy for SpillPolicy {
    fn after<'a>(&'a self, call: &'a ToolContext, outcome: &'a Outcome) -> BoxFuture<'a, Review> {
        Box::pin(async move {
            // A read names its own continuation; a nested result stays with its program.
            if call.name == "read" || call.parent.is_some() {
                return Review::accept();
            }
            match outcome.plain_text() {
                Some(text) if text.len() > self.limit_of(&call.name) => self.replace(call, &text),
                _ => Review::accept(),
            }
        })
    }
}

impl SpillPolicy {
    fn replace(&self, call: &ToolContext, text: &str) -> Review {
        let Some(directory) = call.session.directory() else {
            return Review::accept();
        };
        // A result that cannot be stored stays inline.
        let Ok(path) = store(&directory.join("files"), &format!("{}.txt", file_stem(&call.name)), text)
        else {
            return Review::accept();
        };
        match preview(text, self.limit_of(&call.name), &path) {
            Some(replacement) => Review::ReplaceContent(vec![ContentBlock::text(replacement)]),
            None => Review::accept(),
        }
    }
}

fn file_stem(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
        .collect()
}

/// Writes a private file with an unguessable name.
fn store(directory: &Path, name: &str, text: &str) -> std::io::Result<PathBuf> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let unique = uuid::Uuid::new_v4().simple().to_string();
    let path = directory.join(format!("{}-{name}", &unique[..12]));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes())?;
    Ok(path)
}

fn notice(omitted: usize, path: &Path) -> String {
    format!(
        "(Omitted {omitted} bytes. Full formatted result stored at: {}. {RETRIEVAL_HINT})",
        path.display()
    )
}

/// Head and tail within the limit, then the pointer; `None` when the pointer alone does not fit.
fn preview(text: &str, max_bytes: usize, path: &Path) -> Option<String> {
    let reserve = notice(text.len(), path).len() + 2;
    let budget = max_bytes.saturating_sub(reserve);
    let head = &text[..text.floor_char_boundary(budget.div_ceil(2))];
    let tail = &text[text.ceil_char_boundary(text.len() - budget / 2)..];
    let notice = notice(text.len() - head.len() - tail.len(), path);
    let replacement =
        if head.is_empty() && tail.is_empty() { notice } else { format!("{head}{tail}\n\n{notice}") };
    (replacement.len() <= max_bytes).then_some(replacement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_fits_and_counts_what_it_leaves_out() {
        let text = format!("START-{}-END", "é".repeat(2000));
        let shown = preview(&text, 800, Path::new("/s/x.txt")).expect("fits");
        assert!(shown.len() <= 800);
        assert!(shown.starts_with("START-é") && shown.contains("é-END\n\n(Omitted "));
        let kept = shown.split("\n\n(Omitted").next().expect("has a pointer").len();
        assert!(shown.contains(&format!("(Omitted {} bytes. ", text.len() - kept)));
    }

    #[test]
    fn a_pointer_that_does_not_fit_leaves_the_result_alone() {
        assert_eq!(preview(&"x".repeat(100), 20, Path::new("/s/x.txt")), None);
    }
}
