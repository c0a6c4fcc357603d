//! `lorimer config`: show and change settings.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use serde_json::{Map, Value as Json, json};
use toml_edit::{DocumentMut, Item, TableLike, Value};

use crate::cli::{ConfigArgs, ConfigCommand};
use crate::exit::{CommandError, Exit};
use crate::settings::{FILE_NAME, Settings, SettingsError, nearest, variable_of};
use crate::surface::StdoutWriter;
use crate::trust::{WorkspaceConfig, workspace_config};
use crate::{home, settings};

/// Runs one of the configuration commands.
///
/// # Errors
/// When a setting cannot be used, or the file cannot be written.
pub fn config(args: &ConfigArgs) -> Result<Exit, CommandError> {
    let home = home::home()?;
    let out = StdoutWriter::start().map_err(|error| CommandError::failed(error.to_string()))?;
    match &args.command {
        None => list(&effective(&home, args.directory.as_deref(), &args.config)?, &out),
        Some(ConfigCommand::Get { key }) => {
            let settings = effective(&home, args.directory.as_deref(), &args.config)?;
            let value = settings.get(key).ok_or_else(|| unknown(key))?;
            out.line(value.map_or_else(|| "unset".to_owned(), |value| plain(&value)));
        }
        Some(ConfigCommand::Set { key, value }) => set(&home, key, value)?,
        Some(ConfigCommand::Path) => out.line(home.join(FILE_NAME).display().to_string()),
        Some(ConfigCommand::Schema) => {
            out.line(serde_json::to_string_pretty(&schema()).unwrap_or_default());
        }
    }
    out.finish_listing()
}

/// The settings that a run in a folder would have.
///
/// # Errors
/// When the folder or a setting cannot be used.
pub(super) fn effective(
    home: &Path,
    directory: Option<&Path>,
    overrides: &[String],
) -> Result<Settings, CommandError> {
    let workspace = home::workspace(directory)?;
    let file = match workspace_config(home, &workspace, false) {
        WorkspaceConfig::Trusted(file) => Some(file),
        WorkspaceConfig::Absent | WorkspaceConfig::Untrusted(_) => None,
    };
    Ok(settings::load(home, file.as_deref(), overrides)?)
}

fn list(settings: &Settings, out: &StdoutWriter) {
    for key in Settings::KEYS {
        let value = settings.get(key).flatten().map_or_else(|| "unset".to_owned(), |value| value.to_string());
        let origin = settings.origins.get(*key).map_or_else(|| "default".to_owned(), ToString::to_string);
        out.line(format!("{key} = {}  # {origin}", value.trim()));
    }
    for (name, provider) in &settings.providers {
        let origin = settings.origins.get(&format!("providers.{name}"));
        let origin = origin.map_or_else(|| "on the command line".to_owned(), ToString::to_string);
        let url = provider.base_url.as_deref().unwrap_or("of the preset");
        out.line(format!("providers.{name}: base_url {url}, {} models  # {origin}", provider.models.len()));
    }
}

/// Text without its quotes, anything else as TOML.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string().trim().to_owned(), str::to_owned)
}

fn unknown(key: &str) -> CommandError {
    let hint = nearest(key, Settings::KEYS.iter().copied());
    let hint = hint.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
    CommandError::usage(format!("there is no setting \"{key}\"{hint}"))
}

/// Writes one key where it belongs and leaves everything else of the file as it is.
fn set(home: &Path, key: &str, text: &str) -> Result<(), CommandError> {
    let mut probe = Settings::default();
    match probe.set_text(key, text, settings::Origin::CommandLine) {
        Some(Ok(())) => {}
        Some(Err(misfit)) => return Err(CommandError::usage(format!("\"{key}\" must be {}", misfit.wanted))),
        None => return Err(unknown(key)),
    }
    settings::check_ranges(&probe)?;
    let path = home.join(FILE_NAME);
    let unusable = |source| CommandError::from(SettingsError::Read { path: path.clone(), source });
    let before = match std::fs::read_to_string(&path) {
        Ok(before) => before,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unusable(error)),
    };
    let mut document: DocumentMut =
        before.parse().map_err(|error| SettingsError::syntax(&path, &before, &error))?;
    if !put(&mut document, key, probe.get(key).flatten()) {
        let message =
            format!("{}: what holds \"{key}\" there is not a table; correct it first", path.display());
        return Err(CommandError::usage(message));
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home)
        .and_then(|()| replace_file(&path, &document.to_string()))
        .map_err(|error| CommandError::failed(format!("cannot write {}: {error}", path.display())))
}

/// The old file or the new one, never half of either. A link stays one, and permissions stay as they are.
fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    let target = std::fs::canonicalize(path);
    let path = target.as_deref().unwrap_or(path);
    let staged = path.with_extension(format!("toml.{}.tmp", std::process::id()));
    std::fs::write(&staged, text)?;
    if let Ok(before) = std::fs::metadata(path) {
        std::fs::set_permissions(&staged, before.permissions())?;
    }
    std::fs::rename(&staged, path)
}

/// `false` when what should hold the key is something else than a table.
fn put(document: &mut DocumentMut, key: &str, value: Option<Value>) -> bool {
    let mut parts: Vec<&str> = key.split('.').collect();
    let Some(last) = parts.pop() else {
        return false;
    };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in parts {
        let entry = table.entry(part).or_insert_with(toml_edit::table);
        match entry.as_table_like_mut() {
            Some(inner) => table = inner,
            None => return false,
        }
    }
    match (table.get_mut(last), value) {
        // The decoration of the old value holds the comment behind it.
        (Some(Item::Value(old)), Some(mut value)) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        (_, Some(value)) => {
            table.insert(last, Item::Value(value));
        }
        (_, None) => {
            table.remove(last);
        }
    }
    true
}

/// A JSON Schema of `config.toml`.
fn schema() -> Json {
    let mut root = Map::new();
    for one in Settings::described() {
        let mut property = one.schema.as_object().cloned().unwrap_or_default();
        property.insert(
            "description".to_owned(),
            format!("{} Variable: {}.", one.meaning, variable_of(one.key)).into(),
        );
        if let Some(default) = one.default {
            property.insert("default".to_owned(), json_of(&default));
        }
        place(&mut root, one.key, Json::Object(property));
    }
    root.insert(
        "providers".to_owned(),
        json!({"type": "object", "additionalProperties": {"type": "object"}}),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lorimer settings",
        "type": "object",
        "properties": root,
        "additionalProperties": false,
    })
}

fn place(properties: &mut Map<String, Json>, key: &str, property: Json) {
    match key.split_once('.') {
        None => {
            properties.insert(key.to_owned(), property);
        }
        Some((section, rest)) => {
            let entry = properties.entry(section).or_insert_with(
                || json!({"type": "object", "properties": {}, "additionalProperties": false}),
            );
            if let Some(inner) = entry.get_mut("properties").and_then(Json::as_object_mut) {
                place(inner, rest, property);
            }
        }
    }
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::String(text) => text.value().as_str().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(flag) => (*flag.value()).into(),
        Value::Array(items) => items.iter().map(json_of).collect(),
        other => other.to_string().into(),
    }
}
