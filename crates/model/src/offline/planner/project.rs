//! What the project says about itself: the heads of its README and of its build files.

use serde_json::Value;

use super::places::{is_readme, naming_rank};
use super::results::Extract;
use super::survey::Survey;

/// Tables of a TOML build file that name the project.
const NAMING_TABLES: &[&str] = &["[package]", "[project]", "[tool.poetry]"];

/// What the project says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Project {
    /// Its name, from a build file.
    pub(super) name: Option<String>,
    /// Its description, from the same build file.
    pub(super) description: Option<String>,
    /// The README and its first heading.
    pub(super) heading: Option<(String, String)>,
}

impl Project {
    /// Reads the heads that the survey has.
    pub(super) fn of(survey: &Survey) -> Self {
        let read =
            |(path, extract): (&String, &Extract)| heading(&extract.lines).map(|text| (path.clone(), text));
        let heads =
            || survey.extracts.iter().filter_map(|(path, extract)| Some((path, extract.as_ref().ok()?)));
        let heading = heads().filter(|(path, _)| is_readme(path)).find_map(read);
        let mut builds: Vec<_> =
            heads().filter_map(|(path, extract)| Some((naming_rank(path)?, path, extract))).collect();
        builds.sort_by_key(|&(rank, ..)| rank);
        let named = builds
            .into_iter()
            .map(|(_, path, extract)| fields(path, extract))
            .find(|(name, _)| name.is_some());
        let (name, description) = named.unwrap_or_default();
        Self { name, description, heading }
    }

    /// How the project is called.
    pub(super) fn title(&self) -> Option<&str> {
        self.name.as_deref().or(self.heading.as_ref().map(|(_, text)| text.as_str()))
    }
}

/// The first Markdown heading.
fn heading(lines: &[String]) -> Option<String> {
    let texts = lines.iter().filter_map(|line| line.trim_start().strip_prefix('#'));
    let mut texts = texts.map(|text| text.trim_matches(['#', ' ']));
    texts.find(|text| !text.is_empty()).map(str::to_owned)
}

/// Name and description in the build file at `path`.
fn fields(path: &str, extract: &Extract) -> (Option<String>, Option<String>) {
    let lines = &extract.lines;
    let (name, description) = match path {
        "package.json" => (json_field(lines, "name"), json_field(lines, "description")),
        "go.mod" => (lines.iter().find_map(|line| line.strip_prefix("module ")).map(str::to_owned), None),
        _ => (toml_field(lines, "name"), toml_field(lines, "description")),
    };
    let worded = |text: &String| !text.trim().is_empty();
    (name.filter(worded), description.filter(worded))
}

/// A text of the outermost JSON object: by the parser when the lines are the whole file, by line otherwise.
fn json_field(lines: &[String], key: &str) -> Option<String> {
    if let Ok(value) = serde_json::from_str::<Value>(&lines.join("\n")) {
        return value.get(key).and_then(Value::as_str).map(str::to_owned);
    }
    let start = format!("\"{key}\":");
    let mut depth = 0_usize;
    for line in lines {
        let line = line.trim();
        if let Some(value) = line.strip_prefix(&start).filter(|_| depth == 1) {
            return serde_json::from_str(value.trim().trim_end_matches(',')).ok();
        }
        depth = depth.saturating_add(line.matches(['{', '[']).count());
        depth = depth.saturating_sub(line.matches(['}', ']']).count());
    }
    None
}

/// A text in one of the tables that name a project.
fn toml_field(lines: &[String], key: &str) -> Option<String> {
    let mut naming = false;
    for line in lines {
        let line = line.trim();
        if line.starts_with('[') {
            naming = NAMING_TABLES.contains(&line);
            continue;
        }
        let value = line.strip_prefix(key).and_then(|rest| rest.trim_start().strip_prefix('='));
        if let Some(value) = value.filter(|_| naming) {
            return quoted(value.trim());
        }
    }
    None
}

/// The text between the quotes at the start of `value`.
fn quoted(value: &str) -> Option<String> {
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (text, _) = value.strip_prefix(quote)?.split_once(quote)?;
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn toml_names_come_from_the_naming_tables_only() {
        let text = lines(
            "[workspace]\nname = \"no\"\n[package]\nname = 'yes' # really\ndescription.workspace = true",
        );
        assert_eq!(toml_field(&text, "name").as_deref(), Some("yes"));
        assert_eq!(toml_field(&text, "description"), None);
    }

    #[test]
    fn json_names_come_from_the_outermost_object() {
        let whole = lines("{\"author\":{\"name\":\"x\"},\"name\":\"app\"}");
        assert_eq!(json_field(&whole, "name").as_deref(), Some("app"));
        let part = lines("{\n  \"author\": {\n    \"name\": \"x\"\n  },\n  \"name\": \"app\",");
        assert_eq!(json_field(&part, "name").as_deref(), Some("app"));
    }

    #[test]
    fn the_first_heading_with_words_counts() {
        assert_eq!(heading(&lines("<p>\n#\n## Tool ##\n# Other")).as_deref(), Some("Tool"));
        assert_eq!(heading(&lines("plain")), None);
    }
}
