//! Reading settings from files, the environment and the command line.

use std::path::Path;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml_edit::{Document, Item, TableLike};

use super::nearest::nearest;
use super::origin::Origin;
use super::providers::ProviderTable;
use super::{Settings, SettingsError};

/// The table of providers.
const PROVIDERS: &str = "providers";
/// What every variable of a setting begins with. A dot of the key is two underscores.
const VARIABLE_PREFIX: &str = "LORIMER_";
/// Variables that are no settings.
const OTHER_VARIABLES: [&str; 2] = ["LORIMER_HOME", "LORIMER_UPDATE_DOCS"];

/// Applies a file; one that is not there changes nothing.
pub fn apply_file(settings: &mut Settings, path: &Path) -> Result<(), SettingsError> {
    match std::fs::read_to_string(path) {
        Ok(text) => apply_text(settings, path, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(SettingsError::Read { path: path.to_owned(), source }),
    }
}

/// Applies the text of a file.
pub fn apply_text(settings: &mut Settings, path: &Path, text: &str) -> Result<(), SettingsError> {
    let document = Document::parse(text).map_err(|error| SettingsError::syntax(path, text, &error))?;
    File { path, text }.apply(settings, document.as_table(), "")
}

/// `LORIMER_BASH__TIMEOUT_MS` sets `bash.timeout_ms`.
pub fn variable_of(key: &str) -> String {
    format!("{VARIABLE_PREFIX}{}", key.to_uppercase().replace('.', "__"))
}

/// Applies variables of the environment. A variable that is close to a setting's but is none is an error.
pub fn apply_environment(
    settings: &mut Settings,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<(), SettingsError> {
    for (name, value) in variables {
        if !name.starts_with(VARIABLE_PREFIX) || OTHER_VARIABLES.contains(&name.as_str()) {
            continue;
        }
        let origin = Origin::Environment(name.clone());
        match Settings::KEYS.iter().find(|key| variable_of(key) == name) {
            Some(key) => set_text(settings, key, &value, origin)?,
            None => {
                let names: Vec<String> = Settings::KEYS.iter().map(|key| variable_of(key)).collect();
                if let Some(near) = nearest(&name, names.iter().map(String::as_str))
                    && strsim::damerau_levenshtein(&name, near) <= 2
                {
                    return Err(SettingsError::UnknownVariable { name, nearest: near.to_owned() });
                }
            }
        }
    }
    Ok(())
}

/// Applies one `-c KEY=VALUE`.
pub fn apply_override(settings: &mut Settings, text: &str) -> Result<(), SettingsError> {
    let (key, value) = text.split_once('=').ok_or_else(|| SettingsError::NoValue(text.to_owned()))?;
    let (key, value) = (key.trim(), value.trim());
    if let Some(rest) = key.strip_prefix("providers.") {
        return override_provider(settings, key, rest, value);
    }
    set_text(settings, key, value, Origin::CommandLine)
}

fn set_text(settings: &mut Settings, key: &str, value: &str, origin: Origin) -> Result<(), SettingsError> {
    let place = origin.to_string();
    match settings.set_text(key, value, origin) {
        Some(Ok(())) => Ok(()),
        Some(Err(misfit)) => {
            Err(SettingsError::WrongType { key: key.to_owned(), place, wanted: misfit.wanted.into() })
        }
        None => Err(unknown(key, place)),
    }
}

/// `-c providers.NAME.KEY=VALUE` goes through the same reader as a file.
fn override_provider(
    settings: &mut Settings,
    key: &str,
    rest: &str,
    value: &str,
) -> Result<(), SettingsError> {
    let Some((name, member)) = rest.rsplit_once('.') else {
        return Err(unknown(key, Origin::CommandLine.to_string()));
    };
    let literal = if value.parse::<toml_edit::Value>().is_ok() {
        value.to_owned()
    } else {
        toml_edit::Value::from(value).to_string()
    };
    let text = format!("{} = {literal}\n", toml_edit::Key::new(member));
    let parsed: ProviderTable = toml_edit::de::from_str(&text).map_err(|error| SettingsError::Provider {
        name: name.to_owned(),
        place: Origin::CommandLine.to_string(),
        message: field_message(error.message()),
    })?;
    let known = settings.providers.remove(name).unwrap_or_default();
    settings.providers.insert(name.to_owned(), parsed.or(known));
    settings.origins.insert(key.to_owned(), Origin::CommandLine);
    Ok(())
}

impl SettingsError {
    /// What is wrong with a file's text, in one line.
    pub fn syntax(path: &Path, text: &str, error: &toml_edit::TomlError) -> Self {
        let what = error.message().replace('\n', " ");
        let message = match error.span() {
            Some(span) => format!("line {}: {what}", line_of(text, span.start)),
            None => what,
        };
        Self::Syntax { path: path.to_owned(), message }
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
            let origin = self.origin(table, name, item);
            let place = origin.to_string();
            if let Some(value) = item.as_value()
                && let Some(set) = settings.set(&key, value, origin)
            {
                set.map_err(|misfit| SettingsError::WrongType {
                    key: key.clone(),
                    place: place.clone(),
                    wanted: misfit.wanted.into(),
                })?;
                continue;
            }
            let section = Settings::KEYS.iter().any(|known| known.starts_with(&format!("{key}.")));
            match item.as_table_like() {
                Some(inner) if key == PROVIDERS => self.providers(settings, inner)?,
                Some(inner) if section => self.apply(settings, inner, &key)?,
                None if section || key == PROVIDERS => {
                    return Err(SettingsError::WrongType {
                        key,
                        place,
                        wanted: "a table of settings".to_owned(),
                    });
                }
                _ => return Err(unknown(&key, place)),
            }
        }
        Ok(())
    }

    fn providers(&self, settings: &mut Settings, tables: &dyn TableLike) -> Result<(), SettingsError> {
        for (name, item) in tables.iter() {
            let origin = self.origin(tables, name, item);
            let parsed = self.provider(item).map_err(|(at, message)| SettingsError::Provider {
                name: name.to_owned(),
                place: at.map_or_else(|| origin.clone(), |line| self.at_line(line)).to_string(),
                message,
            })?;
            let known = settings.providers.remove(name).unwrap_or_default();
            settings.providers.insert(name.to_owned(), parsed.or(known));
            settings.origins.insert(format!("{PROVIDERS}.{name}"), origin);
        }
        Ok(())
    }

    fn provider(&self, item: &Item) -> Result<ProviderTable, (Option<usize>, String)> {
        let span = item.span();
        if !item.is_table_like() {
            return Err((None, "must be a table".to_owned()));
        }
        let value = item.clone().into_value().map_err(|_| (None, "must be a table".to_owned()))?;
        ProviderTable::deserialize(value.into_deserializer()).map_err(|error: toml_edit::de::Error| {
            let at = error.span().or(span);
            (at.map(|span| line_of(self.text, span.start)), field_message(error.message()))
        })
    }

    fn at_line(&self, line: usize) -> Origin {
        Origin::File { path: self.path.to_owned(), line }
    }

    fn origin(&self, table: &dyn TableLike, name: &str, item: &Item) -> Origin {
        let span = table.key(name).and_then(toml_edit::Key::span).or_else(|| item.span());
        self.at_line(span.map_or(1, |span| line_of(self.text, span.start)))
    }
}

/// The reader's complaint about a field, with the nearest right one in place of a list of all.
fn field_message(message: &str) -> String {
    let mut names = message.split('`').skip(1).step_by(2);
    if message.starts_with("unknown field")
        && let Some(wrong) = names.next()
        && let Some(near) = nearest(wrong, names)
    {
        return format!("unknown field `{wrong}`; did you mean `{near}`?");
    }
    message.replace('\n', " ")
}

/// The complaint about a key that there is not.
pub fn unknown(key: &str, place: String) -> SettingsError {
    let sections = Settings::KEYS.iter().filter_map(|key| key.rsplit_once('.')).map(|(section, _)| section);
    let names = Settings::KEYS.iter().copied().chain(sections).chain([PROVIDERS]);
    let nearest = nearest(&key.to_lowercase(), names).map(str::to_owned);
    SettingsError::UnknownKey { key: key.to_owned(), place, nearest }
}
