//! Settings: defaults, then `config.toml` of the home, then that of a trusted workspace, then the environment, then the
//! command line.

mod added_up;
mod layers;
mod nearest;
mod origin;
mod providers;
mod table;

use std::path::{Path, PathBuf};

use lorimer_sandbox::Choice;
use lorimer_toolbox::{BadDenyRule, DenyRules};
use thiserror::Error;

pub use layers::variable_of;
pub use nearest::nearest;
pub use origin::Origin;
pub use providers::{ModelTable, Protocol, ProviderTable};
pub use table::Settings;

/// The file's name, in the home and in a workspace's `.lorimer` folder.
pub const FILE_NAME: &str = "config.toml";

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
    /// A variable that looks like a setting's.
    #[error("unknown setting in the variable {name}; did you mean {nearest}?")]
    UnknownVariable {
        /// As it was written.
        name: String,
        /// The nearest variable.
        nearest: String,
    },
    /// A value of another type.
    #[error("setting \"{key}\" {place} must be {wanted}")]
    WrongType {
        /// The key.
        key: String,
        /// Where it was written.
        place: String,
        /// What it takes.
        wanted: String,
    },
    /// A provider's table that cannot be used.
    #[error("provider \"{name}\" {place}: {message}")]
    Provider {
        /// The provider.
        name: String,
        /// Where it was written.
        place: String,
        /// What is wrong.
        message: String,
    },
    /// A rule that cannot be used.
    #[error("setting \"deny\" {place}: {why}")]
    Rule {
        /// Where the list was written.
        place: String,
        /// Which rule, and why.
        why: BadDenyRule,
    },
    /// `-c` without `=`.
    #[error("-c {0} has no value; write it as -c KEY=VALUE")]
    NoValue(String),
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|key| format!("; did you mean \"{key}\"?")).unwrap_or_default()
}

/// The settings of one run. `workspace_file` is the configuration of a trusted workspace.
///
/// # Errors
/// When a file, a variable or an override cannot be used. Nothing is guessed.
pub fn load(
    home: &Path,
    workspace_file: Option<&Path>,
    overrides: &[String],
) -> Result<Settings, SettingsError> {
    let mut settings = Settings::default();
    layers::apply_file(&mut settings, &home.join(FILE_NAME))?;
    if let Some(file) = workspace_file {
        layers::apply_file(&mut settings, file)?;
    }
    // Names and values that are not text may be other programs', and a setting's is told by its misfit.
    let variables = std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()));
    layers::apply_environment(&mut settings, variables)?;
    for text in overrides {
        layers::apply_override(&mut settings, text)?;
    }
    check_ranges(&settings)?;
    Ok(settings)
}

/// Values of the right type that would make no sense.
///
/// # Errors
/// For the first such value.
pub fn check_ranges(settings: &Settings) -> Result<(), SettingsError> {
    check_prices(settings)?;
    check_rules(settings)?;
    let ratio = settings.context_prune_threshold_ratio;
    let checks = [
        ("max_steps", settings.max_steps != Some(0), "1 or more"),
        ("max_parallel_tool_calls", settings.max_parallel_tool_calls > 0, "1 or more"),
        ("context.prune_threshold_ratio", (0.0..=1.0).contains(&ratio), "a number from 0 to 1"),
        ("session.write_delay_ms", settings.session_write_delay_ms <= 1000, "at most 1000"),
        (
            "max_cost_usd",
            settings.max_cost_usd.is_none_or(|cost| cost.is_finite() && cost > 0.0),
            "more than 0",
        ),
        (
            "sandbox.backend",
            settings.sandbox_backend.parse::<Choice>().is_ok(),
            "auto, landlock, bubblewrap or seatbelt",
        ),
        (
            "session.compression",
            matches!(settings.session_compression.as_str(), "none" | "zstd"),
            "none or zstd",
        ),
    ];
    match checks.into_iter().find(|(_, fits, _)| !fits) {
        None => Ok(()),
        Some((key, _, wanted)) => {
            let place = settings.origins.get(key).map(ToString::to_string).unwrap_or_default();
            Err(SettingsError::WrongType { key: key.to_owned(), place, wanted: wanted.to_owned() })
        }
    }
}

/// What is wrong with a rule does not depend on where it is used.
fn check_rules(settings: &Settings) -> Result<(), SettingsError> {
    let root = Path::new("/");
    match DenyRules::parse(&settings.deny.0, root, Some(root)) {
        Ok(_) => Ok(()),
        Err(why) => {
            let place = settings.origins.get("deny").map(ToString::to_string).unwrap_or_default();
            Err(SettingsError::Rule { place, why })
        }
    }
}

/// Half a price would count as none, and a limit in dollars would be refused for a reason nobody sees.
fn check_prices(settings: &Settings) -> Result<(), SettingsError> {
    let half = settings.providers.iter().find_map(|(name, table)| {
        let half = |model: &&ModelTable| model.price_input.is_some() != model.price_output.is_some();
        table.models.iter().find(half).map(|model| (name, model))
    });
    let Some((name, model)) = half else {
        return Ok(());
    };
    let place = settings.origins.get(&format!("providers.{name}")).map(ToString::to_string);
    Err(SettingsError::Provider {
        name: name.clone(),
        place: place.unwrap_or_default(),
        message: format!("model \"{}\" needs both price_input and price_output", model.id),
    })
}

#[cfg(test)]
mod tests {
    use super::layers::{apply_environment, apply_override, apply_text};
    use super::*;

    /// The page in `docs/` is made from the table. `LORIMER_UPDATE_DOCS=1` writes it anew.
    #[test]
    fn the_settings_page_is_up_to_date() {
        let mut page = String::from(
            "# Settings\n\nWritten from the table in `crates/lorimer/src/settings/table.rs`; do not edit by hand.\n\n\
             A setting comes from its default, then `config.toml` in the home folder (`$LORIMER_HOME`, else\n\
             `$DSH_HOME/lorimer`, else `~/.lorimer`), then `.lorimer/config.toml` of a trusted workspace, then the\n\
             environment, then `-c KEY=VALUE`. A dot in a key is a table of the file: `bash.timeout_ms` is `timeout_ms` under\n\
             `[bash]`; its variable is `LORIMER_BASH__TIMEOUT_MS`. An unknown key or a wrong type is an error.\n\n\
             | Key | Takes | Default | Meaning |\n| --- | --- | --- | --- |\n",
        );
        for one in Settings::described() {
            let default =
                one.default.map_or_else(|| "unset".to_owned(), |value| value.to_string().trim().to_owned());
            page.push_str(&format!("| `{}` | {} | `{default}` | {} |\n", one.key, one.wanted, one.meaning));
        }
        page.push_str(PROVIDERS_PAGE);
        assert_is_page("settings.md", &page);
    }

    const PROVIDERS_PAGE: &str = r#"
## Providers

A server that speaks chat completions or Messages is a table. Presets (`openai`, `openrouter`, `ollama`, `lmstudio`,
`llamacpp`, `vllm`) need only what differs from them, and so do the built-in `deepseek` and
`anthropic`, which keep their name and protocol. A list of models replaces the built-in one. Prices are in US dollars for a million tokens.

```toml
[providers.mine]
name = "My server"                # shown to people
protocol = "chat"                 # or "messages"
base_url = "https://llm.example/v1"
key_variable = "MY_KEY"           # "" for a server without a key
context_window_tokens = 131072    # of models that name none
max_tokens = 32768                # output limit, likewise
efforts = ["low", "high"]         # efforts on offer; the first level of detail is the server's
effort = "high"

[[providers.mine.models]]
id = "big-model"
context_window_tokens = 262144
max_tokens = 65536
images = true
price_input = 1.0
price_output = 4.0
price_cache_read = 0.1
price_cache_write = 1.25
```
"#;

    fn assert_is_page(name: &str, page: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        if std::env::var_os("LORIMER_UPDATE_DOCS").is_some() {
            std::fs::write(&path, page).expect("written");
        }
        assert_eq!(std::fs::read_to_string(path).expect("the page is there"), page);
    }

    fn from_file(text: &str) -> Result<Settings, SettingsError> {
        let mut settings = Settings::default();
        apply_text(&mut settings, Path::new("config.toml"), text).map(|()| settings)
    }

    #[test]
    fn files_and_overrides_set_values_of_every_type() {
        let mut settings =
            from_file("model = 'a/b/c'\n[bash]\ntimeout_ms = 5\nallowed_variables = ['X']\n").expect("valid");
        assert_eq!((settings.model.as_str(), settings.bash_timeout_ms), ("a/b/c", 5));
        for text in
            ["model=x/y", "max_steps = 3", "context.prune_threshold_ratio=0.5", "permission_mode=read-only"]
        {
            apply_override(&mut settings, text).expect(text);
        }
        assert_eq!((settings.model.as_str(), settings.max_steps), ("x/y", Some(3)));
        assert_eq!(settings.origins["model"], Origin::CommandLine);
        assert_eq!(settings.origins["bash.timeout_ms"].to_string(), "in config.toml, line 3");
    }

    #[test]
    fn no_place_takes_away_a_deny_rule_of_another() {
        let mut settings = from_file("deny = ['.env']\n").expect("valid");
        apply_text(&mut settings, Path::new("other.toml"), "deny = ['*.pem', '.env']\n").expect("valid");
        apply_override(&mut settings, "deny=[]").expect("valid");
        apply_override(&mut settings, "deny=read:~/.ssh/**").expect("valid");
        assert_eq!(settings.deny.0, [".env", "*.pem", "read:~/.ssh/**"]);
        check_ranges(&settings).expect("valid");
        apply_override(&mut settings, "deny=reed:x").expect("a list");
        let error = check_ranges(&settings).expect_err("no such tool").to_string();
        assert_eq!(
            error,
            "setting \"deny\" on the command line: the rule \"reed:x\" cannot be used: \"reed\" is none of the tools \
             read, write, edit, glob, grep, bash"
        );
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
        let error = from_file("model = \n").expect_err("syntax").to_string();
        assert!(error.starts_with("config.toml is not valid TOML: line 1"), "{error}");
    }

    #[test]
    fn variables_set_values_and_misspelled_ones_are_told() {
        let mut settings = Settings::default();
        let variables = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let set =
            variables(&[("LORIMER_BASH__TIMEOUT_MS", "7"), ("LORIMER_HOME", "/h"), ("LORIMER_OTHER", "x")]);
        apply_environment(&mut settings, set.into_iter()).expect("valid");
        assert_eq!(settings.bash_timeout_ms, 7);
        let wrong = variables(&[("LORIMER_MAX_STEP", "7")]);
        let error = apply_environment(&mut settings, wrong.into_iter()).expect_err("unknown").to_string();
        assert_eq!(
            error,
            "unknown setting in the variable LORIMER_MAX_STEP; did you mean LORIMER_MAX_STEPS?"
        );
    }

    #[test]
    fn providers_are_tables_and_their_mistakes_are_named() {
        let text = "[providers.mine]\nbase_url = 'http://h/v1'\n\n[[providers.mine.models]]\nid = 'm'\nprice_input = 2\n";
        let mut settings = from_file(text).expect("valid");
        assert_eq!(settings.providers["mine"].models[0].price_input, Some(2.0));
        apply_override(&mut settings, "providers.mine.base_url=http://other/v1").expect("valid");
        let mine = &settings.providers["mine"];
        assert_eq!((mine.base_url.as_deref(), mine.models.len()), (Some("http://other/v1"), 1));
        let error = from_file("[providers.mine]\nbase_uri = 'x'\n").expect_err("unknown").to_string();
        assert!(error.starts_with("provider \"mine\" in config.toml, line"), "{error}");
        assert!(error.contains("base_uri") && error.contains("base_url"), "{error}");
    }
}
