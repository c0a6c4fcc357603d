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
            return Err(self.refuse(&format!(
                "inserts {what}, and nothing can be inserted but rows of tools that are here"
            )));
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
                "has the field \"{name}\", and what is understood is name, disabled, config"
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
                let names = if names.is_empty() { "nothing there".to_owned() } else { names.join(", ") };
                return Err(self.refuse(&format!("has config.{name}, and what is understood is {names}")));
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
            .ok_or_else(|| self.refuse(&format!("must have a plain value under config.{name}")))?;
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
    !row.tools.is_empty() && switched_off(settings, row).len() == row.tools.len()
}

/// The tools of a row that are switched off.
pub fn switched_off(settings: &Settings, row: &Row) -> Vec<&'static str> {
    let is_off = |name: &&&str| settings.tools_disabled.iter().any(|disabled| disabled == **name);
    row.tools.iter().filter(is_off).copied().collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_over(settings: Settings, texts: &[&str]) -> Result<Layered, String> {
        let patches: Result<Vec<Patch>, CommandError> =
            texts.iter().map(|text| Patch::parse(Path::new("p.yml"), text)).collect();
        patches.and_then(|patches| lay(settings, &patches, Path::new("/"))).map_err(|error| error.message)
    }

    fn laid(text: &str) -> Settings {
        laid_over(Settings::default(), &[text]).expect("valid").settings
    }

    #[test]
    fn tools_are_switched_and_the_last_word_counts() {
        let off = "- {id: tool-fs, disabled: true}\n- {id: tool-bash, disabled: true}\n";
        let settings = laid(off);
        assert_eq!(settings.tools_disabled, ["read", "write", "edit", "bash"]);
        assert_eq!(settings.origins[DISABLED_KEY].to_string(), "in the patch p.yml, line 1");
        let on = "- insert:\n    - {name: '@deepseek-ai/dsh-tool-bash'}\n- {id: tool-fs, disabled: false}\n";
        let both = laid_over(Settings::default(), &[off, on]).expect("valid").settings;
        assert!(both.tools_disabled.is_empty());
        assert!(
            laid("- {id: tool-web, disabled: true}\n- {id: tool-jobs, disabled: true}\n").origins.is_empty()
        );
        assert!(laid("- {id: tool-bash, name: other, disabled: true}\n").tools_disabled.is_empty());
    }

    #[test]
    fn a_config_is_replaced_as_a_whole() {
        let mut before = Settings { effort: Some("low".to_owned()), ..Settings::default() };
        before.model = "ollama/x".to_owned();
        before.context_prune_head_chars = 1;
        before.permission_mode = lorimer_protocol::PermissionMode::ReadOnly;
        let text = "- {id: agent-default-model, config: {model: a/b}}\n\
                    - {id: tool-result-pruner, config: {tailChars: 5}}\n\
                    - {id: sandbox-policy, config: {workspaceRoot: /}}\n\
                    - {id: tools, config: {mode: native}}\n\
                    - {id: llm-deepseek, config: {baseURL: 'http://h', apiKeyEnv: K}}\n";
        let after = laid_over(before, &[text]).expect("valid").settings;
        assert_eq!((after.model.as_str(), after.effort), ("deepseek-official/a/b", None));
        assert_eq!((after.context_prune_head_chars, after.context_prune_tail_chars), (4096, 5));
        assert_eq!(after.permission_mode.as_str(), "read-only");
        assert_eq!(after.deepseek_base_url.as_deref(), Some("http://h"));
        assert_eq!(after.origins["context.prune_tail_chars"].to_string(), "in the patch p.yml, line 2");
    }

    #[test]
    fn presets_are_known_only_as_they_are_shipped() {
        let presets = "- id: permission\n  config:\n    defaultPreset: read-only\n    presets:\n      \
                       read-only: {sandbox: read-only, approval: ask}\n      \
                       workspace-write: {sandbox: workspace-write, approval: ask}\n      \
                       danger-full-access: {sandbox: danger-full-access, approval: never}\n";
        assert_eq!(laid(presets).permission_mode.as_str(), "read-only");
        assert!(laid_over(Settings::default(), &[&presets.replace("never", "ask")]).is_err());
    }

    #[test]
    fn what_would_not_have_its_effect_is_refused() {
        let entries = [
            "{id: session-title, disabled: true}",
            "{id: tool-bsh, disabled: true}",
            "{disabled: true}",
            "{id: 5}",
            "{id: tool-web, disabled: false}",
            "{id: tool-web, config: {fetch: true}}",
            "{id: tool-bash, inject: [x]}",
            "{id: tool-bash, disabled: 'no'}",
            "{id: tool-bash, config: {timeoutMs: 5}}",
            "{id: tool-bash, config: [x]}",
            "{id: tools, disabled: true}",
            "{id: tool-result-pruner, config: {thresholdChars: many}}",
            "{id: tool-result-pruner, config: {thresholdChars: null}}",
            "{id: compaction-basic, config: {thresholdRatio: 0.8, retainRatio: 0.16}}",
            "{id: compaction-basic, config: {thresholdRatio: 2}}",
            "{id: sandbox-policy, config: {mode: full}}",
            "{id: sandbox-policy, config: {workspaceRoot: /nowhere}}",
            "{id: approval, config: {policy: never}}",
            "{id: permission, config: {defaultPreset: mine}}",
            "{id: permission, config: {presets: {}}}",
            "{id: agent-default-model, config: {provider: 5}}",
            "{id: agent-default-model, config: {provider: a/b}}",
            "{id: llm-deepseek, config: {maxTokens: 5}}",
            "{insert: [{id: tool-bash}]}",
            "{insert: [{id: mine, name: ./mine.js}]}",
            "{insert: [{id: tools}]}",
            "{insert: [x]}",
            "{insert: x}",
            "{id: group, insert: [{id: tool-bash}]}",
        ];
        let said = |entry: &str| {
            let said = laid_over(Settings::default(), &[&format!("- {entry}\n")]).expect_err(entry);
            said.split_once("; understood are agent").map_or(said.clone(), |(said, _)| format!("{said}; …"))
        };
        let all: Vec<String> = entries.iter().map(|entry| format!("{entry}\n  {}", said(entry))).collect();
        insta::assert_snapshot!(all.join("\n"), @r#"
        {id: session-title, disabled: true}
          [p.yml] entry 1 "session-title" is of no row that is understood; …
        {id: tool-bsh, disabled: true}
          [p.yml] entry 1 "tool-bsh" is of no row that is understood (did you mean "tool-bash"?); …
        {disabled: true}
          [p.yml] entry 1 has no id
        {id: 5}
          [p.yml] entry 1 has no id
        {id: tool-web, disabled: false}
          [p.yml] entry 1 "tool-web" is of a tool that there is not here; it can only be disabled: true
        {id: tool-web, config: {fetch: true}}
          [p.yml] entry 1 "tool-web" is of a tool that there is not here; it can only be disabled: true
        {id: tool-bash, inject: [x]}
          [p.yml] entry 1 "tool-bash" has the field "inject", and what is understood is name, disabled, config
        {id: tool-bash, disabled: 'no'}
          [p.yml] entry 1 "tool-bash" must have true or false under "disabled"
        {id: tool-bash, config: {timeoutMs: 5}}
          [p.yml] entry 1 "tool-bash" has config.timeoutMs, and what is understood is nothing there
        {id: tool-bash, config: [x]}
          [p.yml] entry 1 "tool-bash" must have a mapping under "config"
        {id: tools, disabled: true}
          [p.yml] entry 1 "tools" cannot be switched off in this version
        {id: tool-result-pruner, config: {thresholdChars: many}}
          [p.yml] entry 1 "tool-result-pruner" must have a whole number, zero or more under config.thresholdChars
        {id: tool-result-pruner, config: {thresholdChars: null}}
          [p.yml] entry 1 "tool-result-pruner" must have a plain value under config.thresholdChars
        {id: compaction-basic, config: {thresholdRatio: 0.8, retainRatio: 0.16}}
          [p.yml] entry 1 "compaction-basic" has config.retainRatio, and what is understood is thresholdRatio
        {id: compaction-basic, config: {thresholdRatio: 2}}
          setting "context.prune_threshold_ratio" in the patch p.yml, line 1 must be a number from 0 to 1
        {id: sandbox-policy, config: {mode: full}}
          [p.yml] entry 1 "sandbox-policy" must have read-only, workspace-write or danger-full-access under config.mode
        {id: sandbox-policy, config: {workspaceRoot: /nowhere}}
          [p.yml] entry 1 "sandbox-policy" must have the folder that it is started in, or nothing, under config.workspaceRoot
        {id: approval, config: {policy: never}}
          [p.yml] entry 1 "approval" must have ask under config.policy
        {id: permission, config: {defaultPreset: mine}}
          [p.yml] entry 1 "permission" must have read-only, workspace-write or danger-full-access under config.defaultPreset
        {id: permission, config: {presets: {}}}
          [p.yml] entry 1 "permission" must have the presets as they are shipped, or nothing, under config.presets
        {id: agent-default-model, config: {provider: 5}}
          [p.yml] entry 1 "agent-default-model" must have text under config.provider
        {id: agent-default-model, config: {provider: a/b}}
          [p.yml] entry 1 "agent-default-model" must have a name under config.provider
        {id: llm-deepseek, config: {maxTokens: 5}}
          [p.yml] entry 1 "llm-deepseek" has config.maxTokens, and what is understood is apiKeyEnv, baseURL
        {insert: [{id: tool-bash}]}
          [p.yml] entry 1 "tool-bash" inserts tool-bash, which is there already
        {insert: [{id: mine, name: ./mine.js}]}
          [p.yml] entry 1 "mine" inserts ./mine.js, and nothing can be inserted but rows of tools that are here
        {insert: [{id: tools}]}
          [p.yml] entry 1 "tools" inserts tools, and nothing can be inserted but rows of tools that are here
        {insert: [x]}
          [p.yml] entry 1 inserts a row that is no mapping
        {insert: x}
          [p.yml] entry 1 must have a list of rows under "insert"
        {id: group, insert: [{id: tool-bash}]}
          [p.yml] entry 1 "group" inserts rows, and has "id" beside them
        "#);
    }
}
