//! Laying patches over the settings, row by row.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml_edit::Value as Toml;

use super::patches::{Entry, Patch};
use super::rows::{self, DISABLED_KEY, Field, MODEL_KEY, Meaning, PERMISSION_KEY, ROWS, Row};
use super::yaml::{Node, Value};
use crate::exit::CommandError;
use crate::settings::{self, Origin, Settings, nearest};
use crate::surface::Progress;

/// Settings with the patches over them.
#[derive(Debug)]
pub struct Layered {
    /// The settings.
    pub settings: Settings,
    /// The files that have changed a row, by its id.
    pub patched: BTreeMap<&'static str, Vec<PathBuf>>,
}

/// Lays patches over settings, in order.
///
/// # Errors
/// At the first entry that would not have the effect that it asks for.
pub fn lay(settings: Settings, patches: &[Patch], cwd: &Path) -> Result<Layered, CommandError> {
    let mut layered = Layered { settings, patched: BTreeMap::new() };
    for patch in patches {
        for entry in &patch.entries {
            Step { layered: &mut layered, path: &patch.path, cwd, entry }.apply()?;
        }
    }
    settings::check_ranges(&layered.settings)?;
    Ok(layered)
}

/// One entry that is being applied.
struct Step<'a> {
    layered: &'a mut Layered,
    path: &'a Path,
    cwd: &'a Path,
    entry: &'a Entry,
}

impl Step<'_> {
    fn apply(&mut self) -> Result<(), CommandError> {
        if self.entry.field("insert").is_some() {
            return self.insert();
        }
        let Some(id) = self.entry.text("id") else {
            return Err(self.refuse("has no id"));
        };
        let row = rows::find(Some(id), None);
        let package = row.map(|row| row.package).or_else(|| rows::package_of_absent(id));
        let Some(package) = package else {
            return Err(self.refuse(&format!("is of no row that is understood{}", understood(id))));
        };
        if let Some(name) = self.entry.field("name")
            && name.value != Value::Text(package.to_owned())
        {
            Progress::note(&format!("{}: skipped, because its name is not \"{package}\"", self.place()));
            return Ok(());
        }
        match row {
            Some(row) => self.change(row),
            None if self.disabled()? == Some(true) => Ok(()),
            None => Err(self.refuse("is of a tool that there is not here; it can only be disabled: true")),
        }
    }

    /// Rows that are to be added. All that can be are there already, so it is a switching on.
    fn insert(&mut self) -> Result<(), CommandError> {
        if let Some((name, _)) = self.entry.fields.iter().find(|(name, _)| name != "insert") {
            return Err(self.refuse(&format!("inserts rows, and has \"{name}\" beside them")));
        }
        let Some(Node { value: Value::List(inserted), .. }) = self.entry.field("insert") else {
            return Err(self.refuse("must have a list of rows under \"insert\""));
        };
        for node in inserted {
            let Value::Map(fields) = &node.value else {
                return Err(self.refuse("inserts a row that is no mapping"));
            };
            let (number, line) = (self.entry.number, node.line);
            let entry = Entry { number, line, fields: fields.clone() };
            Step { layered: self.layered, path: self.path, cwd: self.cwd, entry: &entry }.insert_row()?;
        }
        Ok(())
    }

    fn insert_row(&mut self) -> Result<(), CommandError> {
        let (id, package) = (self.entry.text("id"), self.entry.text("name"));
        let row = rows::find(id, package).filter(|row| !row.tools.is_empty());
        let row = row.filter(|row| package.is_none_or(|package| package == row.package));
        let Some(row) = row else {
            let what = package.or(id).unwrap_or("a row without a name");
            return Err(self.refuse(&format!("inserts {what}, and only rows of tools that are here can be")));
        };
        if !is_disabled(&self.layered.settings, row) {
            return Err(self.refuse(&format!("inserts {}, which is there already", row.id)));
        }
        self.switch(row, true);
        self.change(row)
    }

    /// Replaces fields of a row.
    fn change(&mut self, row: &'static Row) -> Result<(), CommandError> {
        let known = ["id", "name", "disabled", "config"];
        if let Some((name, _)) = self.entry.fields.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            return Err(self.refuse(&format!(
                "has the field \"{name}\", which is not understood; understood are name, disabled, config"
            )));
        }
        match self.disabled()? {
            Some(true) if row.tools.is_empty() => {
                return Err(self.refuse("cannot be switched off in this version"));
            }
            Some(disabled) if !row.tools.is_empty() => self.switch(row, !disabled),
            _ => {}
        }
        match self.entry.field("config").map(|node| &node.value) {
            None => {}
            Some(Value::Map(members)) => self.configure(row, members)?,
            Some(_) => return Err(self.refuse("must have a mapping under \"config\"")),
        }
        let files = self.layered.patched.entry(row.id).or_default();
        if files.last().is_none_or(|last| last != self.path) {
            files.push(self.path.to_owned());
        }
        Ok(())
    }

    fn disabled(&self) -> Result<Option<bool>, CommandError> {
        match self.entry.field("disabled").map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Bool(disabled)) => Ok(Some(*disabled)),
            Some(_) => Err(self.refuse("must have true or false under \"disabled\"")),
        }
    }

    fn switch(&mut self, row: &Row, on: bool) {
        let origin = self.origin(self.entry.line);
        let settings = &mut self.layered.settings;
        settings.tools_disabled.retain(|name| !row.tools.contains(&name.as_str()));
        if !on {
            settings.tools_disabled.extend(row.tools.iter().map(|name| (*name).to_owned()));
        }
        settings.origins.entry(DISABLED_KEY.to_owned()).or_insert(origin);
    }

    /// Replaces the whole `config` of a row.
    fn configure(&mut self, row: &Row, members: &[(String, Node)]) -> Result<(), CommandError> {
        for (name, _) in members {
            if !row.fields.iter().any(|field| field.name == name) {
                let names: Vec<&str> = row.fields.iter().map(|field| field.name).collect();
                let names = if names.is_empty() { "no field".to_owned() } else { names.join(", ") };
                return Err(self
                    .refuse(&format!("has config.{name}, which is not understood; understood is {names}")));
            }
        }
        for field in row.fields {
            match members.iter().find(|(name, _)| field.name == name) {
                Some((_, node)) => self.put(field, node)?,
                None => self.reset(field.meaning),
            }
        }
        Ok(())
    }

    /// Brings back what a field is when nobody sets it.
    fn reset(&mut self, meaning: Meaning) {
        let (settings, defaults) = (&mut self.layered.settings, Settings::default());
        match meaning {
            Meaning::Setting(key) => settings.reset(key),
            Meaning::Provider => {
                settings.model = joined(halves(&defaults.model).0, halves(&settings.model).1);
            }
            Meaning::Model => {
                settings.model = joined(halves(&settings.model).0, halves(&defaults.model).1);
            }
            Meaning::Permission | Meaning::Workspace | Meaning::Presets | Meaning::Always(_) => {}
        }
    }

    fn put(&mut self, field: &Field, node: &Node) -> Result<(), CommandError> {
        let name = field.name;
        let must_be = |wanted: &str| format!("must have {wanted} under config.{name}");
        match field.meaning {
            Meaning::Setting(key) => self.set(key, node, name),
            Meaning::Permission => self.set(PERMISSION_KEY, node, name),
            Meaning::Provider | Meaning::Model => {
                let Value::Text(text) = &node.value else {
                    return Err(self.refuse(&must_be("text")));
                };
                let model = self.layered.settings.model.clone();
                let (provider, id) = halves(&model);
                let is_provider = field.meaning == Meaning::Provider;
                if text.is_empty() || (is_provider && text.contains('/')) {
                    return Err(self.refuse(&must_be("a name")));
                }
                let model = if is_provider { joined(text, id) } else { joined(provider, text) };
                self.layered.settings.model = model;
                let origin = self.origin(node.line);
                self.layered.settings.origins.insert(MODEL_KEY.to_owned(), origin);
                Ok(())
            }
            Meaning::Workspace => match &node.value {
                Value::Text(text) if std::fs::canonicalize(text).is_ok_and(|path| path == self.cwd) => Ok(()),
                _ => Err(self.refuse(&must_be("the folder that it is started in, or nothing,"))),
            },
            Meaning::Presets if is_shipped(&node.value) => Ok(()),
            Meaning::Presets => Err(self.refuse(&must_be("the presets as they are shipped, or nothing,"))),
            Meaning::Always(wanted) if toml(&node.value).is_some_and(|value| written(&value) == wanted) => {
                Ok(())
            }
            Meaning::Always(wanted) => Err(self.refuse(&must_be(wanted))),
        }
    }

    fn set(&mut self, key: &str, node: &Node, name: &str) -> Result<(), CommandError> {
        let origin = self.origin(node.line);
        let value = toml(&node.value)
            .ok_or_else(|| self.refuse(&format!("must have one value under config.{name}")))?;
        match self.layered.settings.set(key, &value, origin) {
            Some(Err(misfit)) => {
                Err(self.refuse(&format!("must have {} under config.{name}", misfit.wanted)))
            }
            // Every key of a row is a setting's.
            Some(Ok(())) | None => Ok(()),
        }
    }

    fn origin(&self, line: usize) -> Origin {
        Origin::Patch { path: self.path.to_owned(), line }
    }

    /// `[FILE] entry N "ID"`
    fn place(&self) -> String {
        let id = self.entry.text("id").map(|id| format!(" \"{id}\"")).unwrap_or_default();
        format!("[{}] entry {}{id}", self.path.display(), self.entry.number)
    }

    fn refuse(&self, what: &str) -> CommandError {
        CommandError::usage(format!("{} {what}", self.place()))
    }
}

/// Whether all tools of a row are switched off.
pub fn is_disabled(settings: &Settings, row: &Row) -> bool {
    let off = |name: &&str| settings.tools_disabled.iter().any(|disabled| disabled == name);
    !row.tools.is_empty() && row.tools.iter().all(|name| off(&name))
}

/// Provider and model of a route.
pub fn halves(model: &str) -> (&str, &str) {
    model.split_once('/').unwrap_or((model, ""))
}

fn joined(provider: &str, model: &str) -> String {
    if model.is_empty() { provider.to_owned() } else { format!("{provider}/{model}") }
}

/// The nearest id, and all of them.
fn understood(id: &str) -> String {
    let ids = ROWS.map(|row| row.id);
    let near = nearest(id, ids).map(|near| format!(" (did you mean \"{near}\"?)")).unwrap_or_default();
    format!("{near}; understood are {}, and disabled: true of other tools", ids.join(", "))
}

fn toml(value: &Value) -> Option<Toml> {
    match value {
        Value::Bool(flag) => Some(Toml::from(*flag)),
        Value::Integer(number) => Some(Toml::from(*number)),
        Value::Float(number) => Some(Toml::from(*number)),
        Value::Text(text) => Some(Toml::from(text.as_str())),
        Value::Null | Value::List(_) | Value::Map(_) => None,
    }
}

fn written(value: &Toml) -> String {
    value.as_str().map_or_else(|| value.to_string().trim().to_owned(), str::to_owned)
}

/// What each permission mode asks about where the DeepSeek Harness ships it.
const PRESETS: [(&str, &str); 3] =
    [("read-only", "ask"), ("workspace-write", "ask"), ("danger-full-access", "never")];

fn is_shipped(presets: &Value) -> bool {
    let Value::Map(presets) = presets else {
        return false;
    };
    let is = |value: Option<&Node>, text: &str| {
        value.is_some_and(|node| node.value == Value::Text(text.to_owned()))
    };
    presets.len() == PRESETS.len()
        && PRESETS.iter().all(|(mode, approval)| {
            presets.iter().any(|(name, preset)| match &preset.value {
                Value::Map(members) if name == mode && members.len() == 2 => {
                    let member =
                        |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, node)| node);
                    is(member("sandbox"), mode) && is(member("approval"), approval)
                }
                _ => false,
            })
        })
}
