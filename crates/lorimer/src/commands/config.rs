//! `lorimer config`: show and change settings.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use serde_json::{Map, Value as Json, json};
use toml_edit::{DocumentMut, Item, Value};

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
        None => list(&effective(args, &home)?, &out),
        Some(ConfigCommand::Get { key }) => {
            let settings = effective(args, &home)?;
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

fn effective(args: &ConfigArgs, home: &Path) -> Result<Settings, CommandError> {
    let workspace = home::workspace(args.directory.as_deref())?;
    let file = match workspace_config(home, &workspace, false) {
        WorkspaceConfig::Trusted(file) => Some(file),
        WorkspaceConfig::Absent | WorkspaceConfig::Untrusted(_) => None,
    };
    Ok(settings::load(home, file.as_deref(), &args.config)?)
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
    let path = home.join(FILE_NAME);
    let unusable = |source| CommandError::from(SettingsError::Read { path: path.clone(), source });
    let before = match std::fs::read_to_string(&path) {
        Ok(before) => before,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unusable(error)),
    };
    let mut document: DocumentMut = before
        .parse()
        .map_err(|error: toml_edit::TomlError| CommandError::usage(format!("{}: {error}", path.display())))?;
    put(&mut document, key, probe.get(key).flatten());
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(home)
        .and_then(|()| replace_file(&path, &document.to_string()))
        .map_err(|error| CommandError::failed(format!("cannot write {}: {error}", path.display())))
}

/// The old file or the new one, never half of either.
fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    let staged = path.with_extension(format!("toml.{}.tmp", std::process::id()));
    std::fs::write(&staged, text)?;
    std::fs::rename(&staged, path)
}

fn put(document: &mut DocumentMut, key: &str, value: Option<Value>) {
    let mut parts: Vec<&str> = key.split('.').collect();
    let Some(last) = parts.pop() else {
        return;
    };
    let mut table = document.as_table_mut();
    for part in parts {
        let entry = table.entry(part).or_insert_with(toml_edit::table);
        match entry.as_table_mut() {
            Some(inner) => table = inner,
            None => return,
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
