//! `@path` in an instruction file takes in another file.

use std::path::{Path, PathBuf};

use super::probe::{NoText, Prober, Sight};

/// How deep an import may be inside imports.
const MAX_DEPTH: usize = 5;
/// How many paths one instruction file may name: every one is looked at in every step.
const MAX_IMPORTS: usize = 100;

/// Takes in what one instruction file names.
pub(super) struct Imports<'a> {
    pub prober: &'a mut Prober,
    /// What is taken in has its real place inside this folder.
    pub boundary: &'a Path,
    /// Most bytes of all texts together.
    pub room: u64,
    /// What was looked at, with what was seen.
    pub looked_at: Vec<(PathBuf, Sight)>,
    /// Something could not be looked at.
    pub uncertain: bool,
    /// The files that are being read, outermost first.
    open: Vec<PathBuf>,
}

impl<'a> Imports<'a> {
    pub fn new(prober: &'a mut Prober, boundary: &'a Path, room: u64) -> Self {
        Self { prober, boundary, room, looked_at: Vec::new(), uncertain: false, open: Vec::new() }
    }

    /// The text of the file at `real` with its imports: a line that is nothing but an import is replaced, other lines
    /// are followed by what they name. What cannot be taken stays as it is written.
    pub fn expand(&mut self, text: &str, real: &Path) -> String {
        self.room = self.room.saturating_sub(text.len() as u64);
        self.open.push(real.to_owned());
        let mut fence = None;
        let mut lines = Vec::new();
        for line in text.split('\n') {
            if in_fence(&mut fence, line) {
                lines.push(line.to_owned());
            } else {
                self.line(line, real, &mut lines);
            }
        }
        self.open.pop();
        lines.join("\n")
    }

    fn line(&mut self, line: &str, real: &Path, lines: &mut Vec<String>) {
        let names = import_names(line);
        if let [name] = names.as_slice()
            && line.trim().strip_prefix('@') == Some(name)
        {
            lines.push(self.take(name, real).unwrap_or_else(|| line.to_owned()));
            return;
        }
        lines.push(line.to_owned());
        for name in names {
            if let Some(text) = self.take(name, real) {
                lines.push(format!("({name} says:)\n{text}"));
            }
        }
    }

    fn take(&mut self, name: &str, importing: &Path) -> Option<String> {
        if Path::new(name).is_absolute() || self.open.len() > MAX_DEPTH || self.looked_at.len() >= MAX_IMPORTS
        {
            return None;
        }
        let path = importing.parent()?.join(name);
        let sight = self.prober.look(&path);
        self.looked_at.push((path.clone(), sight));
        match sight {
            Sight::File(_) => {}
            Sight::Hidden => {
                self.uncertain = true;
                return None;
            }
            Sight::Missing | Sight::Other => return None,
        }
        match self.prober.read(&path, self.boundary, self.room) {
            Ok((real, _)) if self.open.contains(&real) => None,
            Ok((real, text)) => Some(self.expand(text.trim_end(), &real)),
            Err(no_text) => {
                self.uncertain |= no_text == NoText::Hidden;
                None
            }
        }
    }
}

/// Whether a line belongs to a fenced block, its fences included.
fn in_fence(fence: &mut Option<(char, usize)>, line: &str) -> bool {
    let line = line.trim();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'));
    let length = mark.map_or(0, |mark| line.chars().take_while(|other| *other == mark).count());
    match (*fence, mark) {
        (None, Some(mark)) if length >= 3 && !(mark == '`' && line[length..].contains('`')) => {
            *fence = Some((mark, length));
            true
        }
        (None, _) => false,
        (Some((open, least)), Some(mark)) if mark == open && length >= least && line.len() == length => {
            *fence = None;
            true
        }
        (Some(_), _) => true,
    }
}

/// The paths that a line names: `@` at the start of a word, outside backticks.
fn import_names(line: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut at = 0;
    let mut starts_word = true;
    while let Some(next) = line[at..].chars().next() {
        if next == '`' {
            at = after_span(line, at);
            starts_word = false;
            continue;
        }
        let after = at + next.len_utf8();
        if next == '@' && starts_word {
            let word = line[after..].split(|end: char| end.is_whitespace() || end == '`').next();
            let word = word.unwrap_or_default();
            let name =
                word.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '>', '*']);
            if !name.is_empty() {
                names.push(name);
            }
            at = after + word.len();
        } else {
            at = after;
        }
        starts_word = next.is_whitespace() || matches!(next, '(' | '[' | '"' | '\'');
    }
    names
}

/// Where a code span that starts here ends; without an end, where its backticks do.
fn after_span(line: &str, start: usize) -> usize {
    let run = |from: usize| line[from..].bytes().take_while(|byte| *byte == b'`').count();
    let length = run(start);
    let mut at = start + length;
    while let Some(found) = line[at..].find('`') {
        let close = run(at + found);
        at += found + close;
        if close == length {
            return at;
        }
    }
    start + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_start_with_an_at_sign_name_paths() {
        let cases: [(&str, &[&str]); 9] = [
            ("@a.md", &["a.md"]),
            ("see @docs/a.md, and (@b.md).", &["docs/a.md", "b.md"]),
            ("mail me@example.org", &[]),
            ("`@a.md` @b.md", &["b.md"]),
            ("``x ` @a.md`` @b.md", &["b.md"]),
            ("a lone ` and @a.md", &["a.md"]),
            ("@ alone, @", &[]),
            ("é@a.md é @b.md", &["b.md"]),
            ("@../up.md", &["../up.md"]),
        ];
        for (line, names) in cases {
            assert_eq!(import_names(line), names, "{line}");
        }
    }

    #[test]
    fn fences_close_with_what_opened_them() {
        let mut fence = None;
        let lines = ["```md", "@a", "~~~", "``", "```", "@b", "~~~~", "~~~", "~~~~", "``` x ``` y", "end"];
        let inside: Vec<bool> = lines.iter().map(|line| in_fence(&mut fence, line)).collect();
        let expected = [true, true, true, true, true, false, true, true, true, false, false];
        assert_eq!(inside, expected);
    }
}
