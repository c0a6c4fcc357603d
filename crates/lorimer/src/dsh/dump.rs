//! `--dump-config`: the rows that are understood, as YAML that a patch file could hold.

use super::layering::{Layered, halves, is_disabled, switched_off};
use super::rows::{DISABLED_KEY, MODEL_KEY, Meaning, PERMISSION_KEY, ROWS, Row};
use crate::settings::{Origin, Settings};

/// The lines of a dump.
pub fn lines(layered: &Layered) -> Vec<String> {
    let mut lines = Vec::new();
    let mut last = String::new();
    for row in &ROWS {
        let label = label(layered, row);
        if label != last {
            lines.push(format!("# == {label}"));
            last = label;
        }
        row_lines(&layered.settings, row, &mut lines);
    }
    lines
}

/// `lorimer`, and what has changed a row since.
fn label(layered: &Layered, row: &'static Row) -> String {
    let mut by: Vec<String> = Vec::new();
    for key in keys(layered, row) {
        let origin = match layered.settings.origins.get(key) {
            Some(Origin::File { path, .. }) => path.display().to_string(),
            Some(Origin::Environment(name)) => name.clone(),
            Some(Origin::Patch { .. } | Origin::CommandLine) | None => continue,
        };
        if !by.contains(&origin) {
            by.push(origin);
        }
    }
    let files = layered.patched.get(row.id).into_iter().flatten();
    by.extend(files.map(|path| path.display().to_string()));
    if by.is_empty() {
        return "lorimer".to_owned();
    }
    // A name must not end the comment.
    format!("lorimer, patched by {}", by.join(", ")).replace(char::is_control, "\u{fffd}")
}

/// The settings that a row is about.
fn keys(layered: &Layered, row: &'static Row) -> impl Iterator<Item = &'static str> {
    let fields = row.fields.iter().filter_map(|field| match field.meaning {
        Meaning::Setting(key) => Some(key),
        Meaning::Permission => Some(PERMISSION_KEY),
        Meaning::Provider | Meaning::Model => Some(MODEL_KEY),
        Meaning::Workspace | Meaning::Presets | Meaning::Always(_) => None,
    });
    // Whoever switched tools off may have meant those of other rows; a patch is told by itself.
    let is_off = !switched_off(&layered.settings, row).is_empty() && !layered.patched.contains_key(row.id);
    fields.chain(is_off.then_some(DISABLED_KEY))
}

fn row_lines(settings: &Settings, row: &Row, lines: &mut Vec<String>) {
    lines.push(format!("- id: {}", row.id));
    lines.push(format!("  name: {}", text(row.package)));
    if is_disabled(settings, row) {
        lines.push("  disabled: true".to_owned());
    } else {
        let without = switched_off(settings, row);
        if !without.is_empty() {
            lines.push(format!("  # without {}", without.join(", ")));
        }
    }
    let fields: Vec<String> = row
        .fields
        .iter()
        .filter_map(|field| Some(format!("    {}: {}", field.name, value(settings, field.meaning)?)))
        .collect();
    if !fields.is_empty() {
        lines.push("  config:".to_owned());
        lines.extend(fields);
    }
}

fn value(settings: &Settings, meaning: Meaning) -> Option<String> {
    let (provider, model) = halves(&settings.model);
    let key = match meaning {
        Meaning::Provider => return Some(text(provider)),
        Meaning::Model => return (!model.is_empty()).then(|| text(model)),
        Meaning::Always(value) => return Some(value.to_owned()),
        Meaning::Workspace | Meaning::Presets => return None,
        Meaning::Permission => PERMISSION_KEY,
        Meaning::Setting(key) => key,
    };
    let value = settings.get(key).flatten()?;
    Some(value.as_str().map_or_else(|| value.to_string().trim().to_owned(), text))
}

/// A text as it has to be written to be that text again.
fn text(text: &str) -> String {
    let is_word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
    };
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if text.chars().any(char::is_control) {
        // A JSON string is a YAML string.
        serde_json::Value::from(text).to_string()
    } else if is_word(text) && !reserved.contains(&text.to_lowercase().as_str()) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::super::layering::lay;
    use super::super::patches::Patch;
    use super::*;

    fn comes_back(one: &str) {
        let written = format!("- key: {}\n", text(one));
        let patch = Patch::parse(Path::new("p.yml"), &written).expect("a patch");
        assert_eq!(patch.entries[0].text("key"), Some(one), "{written}");
    }

    #[test]
    fn texts_come_back_as_they_were() {
        for one in ["a", "a/b.c", "true", "No", "1", "", "it's", "a: b", "@x", "a\nb\u{7}", "#", "null"] {
            comes_back(one);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_comes_back_as_it_was(one in ".*|[ -~\\n\\r\\t\u{0}-\u{1f}\u{7f}-\u{a0}\u{2028}\u{feff}]*") {
            comes_back(&one);
        }
    }

    #[test]
    fn a_dump_is_a_patch_that_changes_nothing() {
        let settings = Settings {
            model: "a/b/c: 'd'".to_owned(),
            effort: Some("off".to_owned()),
            context_prune_tail_chars: 7,
            tools_disabled: vec!["bash".to_owned()],
            ..Settings::default()
        };
        let dump = |settings| lines(&Layered { settings, patched: BTreeMap::new() }).join("\n");
        let first = dump(settings.clone());
        let patch = Patch::parse(Path::new("p.yml"), &first).expect("a patch");
        let again = lay(settings, &[patch], Path::new("/")).expect("valid").settings;
        let again = Settings { origins: BTreeMap::new(), ..again };
        assert_eq!(dump(again), first);
    }
}
