//! Settings: defaults, then `config.toml` of the home, then `-c KEY=VALUE`.

mod table;

use std::path::{Path, PathBuf};

use thiserror::Error;
use toml_edit::{Document, Item, TableLike};

pub use table::Settings;

/// A setting that cannot be used. One line each, with the next step.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}; make it a readable file, or move it away", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{} is not valid TOML: {message}; correct it, or move the file away", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        message: String,
    },
    /// No such key.
    #[error("unknown setting \"{key}\" {place}{}", hint(nearest.as_deref()))]
    UnknownKey {
        /// As it was written.
        key: String,
        /// Where it was written.
        place: String,
        /// The nearest key.
        nearest: Option<String>,
    },
    /// A value of another type.
    #[error("setting \"{key}\" {place} must be {wanted}")]
    WrongType {
        /// The key.
        key: String,
        /// Where it was written.
        place: String,
        /// What it takes.
        wanted: &'static str,
    },
    /// `-c` without `=`.
    #[error("-c {0} has no value; write it as -c KEY=VALUE")]
    NoValue(String),
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|key| format!("; did you mean \"{key}\"?")).unwrap_or_default()
}

/// The settings of one run.
///
/// # Errors
/// When a file or an override cannot be used. Nothing is guessed.
pub fn load(home: &Path, overrides: &[String]) -> Result<Settings, SettingsError> {
    let mut settings = Settings::default();
    let path = home.join("config.toml");
    match std::fs::read_to_string(&path) {
        Ok(text) => apply_file(&mut settings, &path, &text)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(source) => return Err(SettingsError::Read { path, source }),
    }
    for text in overrides {
        apply_override(&mut settings, text)?;
    }
    Ok(settings)
}

fn apply_override(settings: &mut Settings, text: &str) -> Result<(), SettingsError> {
    let (key, value) = text.split_once('=').ok_or_else(|| SettingsError::NoValue(text.to_owned()))?;
    let key = key.trim();
    let place = || "on the command line".to_owned();
    match settings.set_text(key, value.trim()) {
        Some(Ok(())) => Ok(()),
        Some(Err(misfit)) => {
            Err(SettingsError::WrongType { key: key.to_owned(), place: place(), wanted: misfit.wanted })
        }
        None => Err(unknown(key, place())),
    }
}

fn apply_file(settings: &mut Settings, path: &Path, text: &str) -> Result<(), SettingsError> {
    let document = Document::parse(text).map_err(|error| SettingsError::Syntax {
        path: path.to_owned(),
        message: syntax_message(text, &error),
    })?;
    let file = File { path, text };
    file.apply(settings, document.as_table(), "")
}

fn syntax_message(text: &str, error: &toml_edit::TomlError) -> String {
    let what = error.message().replace('\n', " ");
    match error.span() {
        Some(span) => format!("line {}: {what}", line_of(text, span.start)),
        None => what,
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn apply(
        &self,
        settings: &mut Settings,
        table: &dyn TableLike,
        prefix: &str,
    ) -> Result<(), SettingsError> {
        for (name, item) in table.iter() {
            let key = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
            let place = || self.place(table, name, item);
            if let Some(value) = item.as_value()
                && let Some(set) = settings.set(&key, value)
            {
                set.map_err(|misfit| SettingsError::WrongType {
                    key: key.clone(),
                    place: place(),
                    wanted: misfit.wanted,
                })?;
                continue;
            }
            let section = Settings::KEYS.iter().any(|known| known.starts_with(&format!("{key}.")));
            match item.as_table_like() {
                Some(inner) if section => self.apply(settings, inner, &key)?,
                _ => return Err(unknown(&key, place())),
            }
        }
        Ok(())
    }

    fn place(&self, table: &dyn TableLike, name: &str, item: &Item) -> String {
        let span = table.key(name).and_then(toml_edit::Key::span).or_else(|| item.span());
        match span {
            Some(span) => format!("in {}, line {}", self.path.display(), line_of(self.text, span.start)),
            None => format!("in {}", self.path.display()),
        }
    }
}

fn unknown(key: &str, place: String) -> SettingsError {
    let nearest = Settings::KEYS
        .iter()
        .map(|known| (strsim::damerau_levenshtein(key, known), *known))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, known)| *distance <= 3.max(known.len() / 3))
        .map(|(_, known)| known.to_owned());
    SettingsError::UnknownKey { key: key.to_owned(), place, nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page in `docs/` is made from the table. `LORIMER_UPDATE_DOCS=1` writes it anew.
    #[test]
    fn the_settings_page_is_up_to_date() {
        let mut page = String::from(
            "# Settings\n\nWritten from the table in `crates/lorimer/src/settings/table.rs`; do not edit by hand.\n\n\
             A setting comes from its default, then `config.toml` in the home folder (`$LORIMER_HOME`, else\n\
             `$DSH_HOME/lorimer`, else `~/.lorimer`), then `-c KEY=VALUE`. A dot in a key is a table of the file:\n\
             `bash.timeout_ms` is `timeout_ms` under `[bash]`. An unknown key or a wrong type is an error.\n\n\
             | Key | Takes | Default | Meaning |\n| --- | --- | --- | --- |\n",
        );
        for [key, kind, default, meaning] in Settings::reference() {
            page.push_str(&format!("| `{key}` | {kind} | `{default}` | {meaning} |\n"));
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
        if std::env::var_os("LORIMER_UPDATE_DOCS").is_some() {
            std::fs::write(&path, &page).expect("written");
        }
        assert_eq!(std::fs::read_to_string(path).expect("the page is there"), page);
    }

    fn from_file(text: &str) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        apply_file(&mut settings, Path::new("config.toml"), text).map(|()| settings)
    }

    #[test]
    fn files_and_overrides_set_values_of_every_type() {
        let settings =
            from_file("model = 'a/b/c'\n[bash]\ntimeout_ms = 5\nallowed_variables = ['X']\n").expect("valid");
        assert_eq!((settings.model.as_str(), settings.bash_timeout_ms), ("a/b/c", 5));
        let mut settings = settings;
        for text in
            ["model=x/y", "max_steps = 3", "context.prune_threshold_ratio=0.5", "permission_mode=read-only"]
        {
            apply_override(&mut settings, text).expect(text);
        }
        assert_eq!((settings.model.as_str(), settings.max_steps), ("x/y", Some(3)));
    }

    #[test]
    fn what_cannot_be_used_names_the_place_and_the_nearest_key() {
        let error =
            from_file("model = 'a'\n\n[spill]\nmax_inline_byte = 3\n").expect_err("unknown").to_string();
        assert_eq!(
            error,
            "unknown setting \"spill.max_inline_byte\" in config.toml, line 4; did you mean \"spill.max_inline_bytes\"?"
        );
        let error = from_file("max_steps = 'many'\n").expect_err("wrong type").to_string();
        assert_eq!(
            error,
            "setting \"max_steps\" in config.toml, line 1 must be a whole number, zero or more"
        );
        let error = apply_override(&mut Settings::default(), "max_steps").expect_err("no value").to_string();
        assert_eq!(error, "-c max_steps has no value; write it as -c KEY=VALUE");
        assert!(
            from_file("model = \n")
                .expect_err("syntax")
                .to_string()
                .starts_with("config.toml is not valid TOML")
        );
    }
}
