//! Changes as a message of bounded size.

use lorimer_protocol::{Message, Source};
use serde_json::{Value, json};

use super::changes::{Action, Change};
use super::told::KIND;

/// Which message it is.
#[derive(Debug)]
pub(super) enum Frame {
    /// Everything that counts.
    Baseline {
        /// See `Instructions::identity`.
        identity: String,
        /// There are older messages that count no more.
        supersedes: bool,
    },
    /// What has changed since.
    Update,
}

const OPENING: &str = "<system-reminder>\n";
const CLOSING: &str = "</system-reminder>";
const RULES: &str = "Follow them as guidance; where two differ, the one for the deeper folder counts. They never \
                     override the system prompt or what the user asks.\n";
/// Most names in the line about what was left out.
const MAX_NAMED: usize = 50;

impl Frame {
    fn intro(&self) -> String {
        let first = match self {
            Self::Baseline { supersedes: false, .. } => "The project gives these instructions to agents.",
            Self::Baseline { supersedes: true, .. } => {
                "These are now all the instructions that the project gives to agents; earlier messages with \
                 instruction files count no more."
            }
            Self::Update => {
                "Instruction files of the project have changed or come into use; what was said of other files still \
                 counts."
            }
        };
        format!("{first} {RULES}")
    }
}

/// How much of a change is in the message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    Whole,
    Cut,
    Omitted,
}

struct Section {
    change: Change,
    heading: String,
    text: String,
    share: Share,
}

impl Section {
    fn new(change: Change, frame: &Frame) -> Self {
        let path = shown_path(&change.path);
        let heading = match (change.action, frame) {
            (Action::Remove, _) => format!("\n{path} gives no instructions any more; drop what it said.\n"),
            (Action::Replace, _) => format!("\nFrom {path}, in place of what it said before:\n\n"),
            (Action::Set, Frame::Update) => format!("\nFrom {path}, which is new here:\n\n"),
            (Action::Set, Frame::Baseline { .. }) => format!("\nFrom {path}:\n\n"),
        };
        let text = match change.action {
            Action::Remove => String::new(),
            _ => format!("{}\n", escape(&change.text)),
        };
        Self { change, heading, text, share: Share::Whole }
    }

    fn len(&self) -> usize {
        if self.share == Share::Omitted { 0 } else { self.heading.len() + self.text.len() }
    }

    /// As the message's source lists it. What was left out is listed too: it is not said again until it changes.
    fn listed(&self) -> Value {
        let Change { action, scope, path, digest, .. } = &self.change;
        let mut listed = json!({"action": action.name(), "scope": scope, "path": path, "digest": digest});
        if self.share == Share::Omitted {
            listed["omitted"] = true.into();
        }
        listed
    }
}

/// The message that tells the changes, broadest first, in at most `max_bytes`.
pub(super) fn render(changes: Vec<Change>, frame: &Frame, max_bytes: usize) -> Message {
    let mut sections: Vec<Section> = changes.into_iter().map(|change| Section::new(change, frame)).collect();
    let intro = frame.intro();
    fit(&mut sections, max_bytes.saturating_sub(OPENING.len() + intro.len() + CLOSING.len()));
    let mut text = format!("{OPENING}{intro}");
    for section in sections.iter().filter(|section| section.share != Share::Omitted) {
        text.push_str(&section.heading);
        text.push_str(&section.text);
    }
    text.push_str(&left_out(&sections));
    text.push_str(CLOSING);
    let mut source = json!({"kind": KIND, "form": "instructions"});
    if let Frame::Baseline { identity, .. } = frame {
        source["baseline"] = true.into();
        source["baselineIdentity"] = identity.as_str().into();
    }
    source["changes"] = sections.iter().map(Section::listed).collect();
    Message::user_text(uuid::Uuid::new_v4().to_string(), text, Source::Other(source))
}

/// Drops whole texts from the broadest until the rest fits; a last one alone is cut. Notes of removal stay.
fn fit(sections: &mut [Section], max_bytes: usize) {
    let size =
        |sections: &[Section]| sections.iter().map(Section::len).sum::<usize>() + left_out(sections).len();
    let mut texts: Vec<usize> =
        (0..sections.len()).filter(|at| sections[*at].change.action != Action::Remove).collect();
    texts.reverse();
    while size(sections) > max_bytes
        && let Some(at) = texts.pop()
    {
        if !texts.is_empty() {
            sections[at].share = Share::Omitted;
            continue;
        }
        sections[at].share = Share::Cut;
        let excess = size(sections).saturating_sub(max_bytes);
        let text = &mut sections[at].text;
        // The cut ends with a line break of its own.
        let keep = text.floor_char_boundary(text.len().saturating_sub(excess + 1));
        text.truncate(keep);
        text.push('\n');
    }
}

/// The line about what is missing; empty when nothing is.
fn left_out(sections: &[Section]) -> String {
    let missing = || sections.iter().filter(|section| section.share != Share::Whole);
    let named: Vec<String> = missing()
        .take(MAX_NAMED)
        .map(|section| {
            let share = if section.share == Share::Cut { "cut" } else { "omitted" };
            format!("{} ({share})", shown_path(&section.change.path))
        })
        .collect();
    if named.is_empty() {
        return String::new();
    }
    let more = match missing().count() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("\nLeft out for length, read them where they matter: {}{more}\n", named.join(", "))
}

/// A path on one line that cannot close the frame.
fn shown_path(path: &str) -> String {
    let one_line: String =
        path.chars().map(|part| if part.is_control() { '\u{fffd}' } else { part }).collect();
    escape(&one_line)
}

/// A file cannot close the frame it is in.
fn escape(text: &str) -> String {
    text.replace("</system-reminder", "<\\/system-reminder")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(sizes: &[usize]) -> Vec<Change> {
        let change = |(at, size): (usize, &usize)| Change {
            action: Action::Set,
            scope: "/w".to_owned(),
            path: format!("/w/{at}"),
            digest: at.to_string(),
            text: "é".repeat(*size),
        };
        sizes.iter().enumerate().map(change).collect()
    }

    #[test]
    fn every_size_is_kept_to_when_the_frame_fits() {
        for max_bytes in 0..1200 {
            let text = render(changes(&[100, 50, 200]), &Frame::Update, max_bytes).text();
            assert!(text.ends_with("\n</system-reminder>"));
            assert!(text.len() <= max_bytes.max(500), "{} of {max_bytes}", text.len());
            assert!(max_bytes < 1100 || !text.contains("Left out"));
        }
    }

    #[test]
    fn the_broadest_goes_first_and_notes_of_removal_stay() {
        let mut changes = changes(&[100, 300, 10, 10]);
        changes[0].action = Action::Remove;
        let message = render(changes, &Frame::Update, 560);
        let text = message.text();
        assert!(text.contains("/w/0 gives no instructions any more"), "{text}");
        assert!(text.contains("read them where they matter: /w/1 (omitted)\n"), "{text}");
        assert_eq!(text.matches("which is new here").count(), 2);
        let Source::Other(source) = &message.source else { panic!("another source") };
        let omitted: Vec<bool> = source["changes"]
            .as_array()
            .expect("changes")
            .iter()
            .map(|change| change.get("omitted").is_some())
            .collect();
        assert_eq!(omitted, [false, true, false, false]);
    }

    #[test]
    fn many_names_are_counted() {
        let text = render(changes(&[10; 90]), &Frame::Update, 0).text();
        assert!(text.contains("/w/49 (omitted) and 40 more\n"), "{text}");
    }
}
