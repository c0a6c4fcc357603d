//! Settings of a provider.

use std::borrow::Cow;
use std::fmt;

use lorimer_protocol::CallConfig;
use serde::{Deserialize, Serialize};

use crate::{ModelError, Prices};

/// Longest wait for any byte of an answer, in milliseconds.
const DEFAULT_IDLE_TIMEOUT_MS: u64 = 300_000;
/// Longest wait for content of an answer, in milliseconds.
const DEFAULT_CONTENT_TIMEOUT_MS: u64 = 300_000;
/// Longest wait for a connection, in milliseconds.
const DEFAULT_CONNECT_TIMEOUT_MS: u64 = 30_000;
/// How long counts are waited for after the finish reason, in milliseconds.
const DEFAULT_SETTLE_TIMEOUT_MS: u64 = 1_000;

/// A key. Neither `Debug` nor any error shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key without the white space around it; `None` when nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The key itself, for the one header it belongs in.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the key can stand in a header: printable ASCII without spaces.
    pub(crate) fn is_usable(&self) -> bool {
        self.0.bytes().all(|byte| byte.is_ascii_graphic())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(***)")
    }
}

/// Whether a deployment fixes thinking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingMode {
    /// Thinking is asked for when no effort says otherwise.
    Enabled,
    /// The model never thinks; the only effort it takes is `off`.
    Disabled,
}

/// How chat completions are asked for what servers name differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChatDialect {
    /// DeepSeek's: `thinking {type}` beside `reasoning_effort`, and `max_tokens`.
    #[default]
    DeepSeek,
    /// OpenAI's: `reasoning_effort` alone, and `max_completion_tokens`.
    OpenAi,
    /// What other servers share: `reasoning_effort` alone, and `max_tokens`.
    Common,
}

/// How the Messages protocol is told an effort. Chat completions have one way only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffortStyle {
    /// As a number of thinking tokens: `thinking {type: enabled, budget_tokens}`.
    #[default]
    Budget,
    /// By its name, as DeepSeek takes it: `thinking {type: enabled}` and `output_config {effort}`.
    OutputConfig,
}

/// A model of the catalog. The catalog is advisory: other ids pass through.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderModel {
    /// The id that is sent.
    pub id: String,
    /// The name that is shown; `None` shows the id.
    #[serde(default)]
    pub name: Option<String>,
    /// Window in tokens; `None` takes the provider's default.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// Output limit in tokens; `None` takes the provider's default.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// Whether images may be sent.
    #[serde(default)]
    pub accepts_images: bool,
    /// What its tokens cost; `None` when that is not known.
    #[serde(default)]
    pub prices: Option<Prices>,
}

/// Everything a [`HttpProvider`](super::HttpProvider) is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderConfig {
    /// Route id.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Taken as it is, but for slashes at its end; the protocol's path is appended.
    pub base_url: String,
    /// The key, when there is one.
    pub api_key: Option<ApiKey>,
    /// The variable the key comes from, for advice. `None` for servers that need no key.
    pub key_variable: Option<String>,
    /// The `user-agent` header.
    pub user_agent: String,
    /// The catalog, in the order it is listed.
    pub models: Vec<ProviderModel>,
    /// Window in tokens of models that name none.
    pub default_context_window: Option<u64>,
    /// Output limit in tokens when neither the caller nor the model names one.
    pub max_tokens: Option<u64>,
    /// Effort ids on offer (`off` and wire values); empty asks for none.
    pub efforts: Vec<String>,
    /// How an effort is asked for.
    pub effort_style: EffortStyle,
    /// What chat completions look like.
    pub chat_dialect: ChatDialect,
    /// The effort when the caller names none.
    pub effort: Option<String>,
    /// Whether thinking is fixed.
    pub thinking: Option<ThinkingMode>,
    /// Longest wait for any byte, in milliseconds; also bounds the wait for the status line.
    pub idle_timeout_ms: u64,
    /// Longest time of waiting without content (keep-alive comments do not count as any), in milliseconds.
    pub content_timeout_ms: u64,
    /// Longest wait for a connection, in milliseconds.
    pub connect_timeout_ms: u64,
    /// How long the rest of a stream is waited for once its finish reason is known, in milliseconds.
    pub settle_timeout_ms: u64,
}

impl ProviderConfig {
    /// A provider of the given id and name at a base URL: keyless, without catalog, with the usual limits.
    pub fn new(id: impl Into<String>, name: impl Into<String>, base_url: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            base_url: base_url.into(),
            api_key: None,
            key_variable: None,
            user_agent: format!("lorimer/{}", env!("CARGO_PKG_VERSION")),
            models: Vec::new(),
            default_context_window: None,
            max_tokens: None,
            efforts: Vec::new(),
            effort_style: EffortStyle::default(),
            chat_dialect: ChatDialect::default(),
            effort: None,
            thinking: None,
            idle_timeout_ms: DEFAULT_IDLE_TIMEOUT_MS,
            content_timeout_ms: DEFAULT_CONTENT_TIMEOUT_MS,
            connect_timeout_ms: DEFAULT_CONNECT_TIMEOUT_MS,
            settle_timeout_ms: DEFAULT_SETTLE_TIMEOUT_MS,
        }
    }

    /// Puts in what was configured; what was not stays.
    pub fn apply(&mut self, overrides: ProviderOverrides) {
        fn set<T>(field: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *field = value;
            }
        }
        set(&mut self.base_url, overrides.base_url);
        set(&mut self.user_agent, overrides.user_agent);
        set(&mut self.models, overrides.models);
        set(&mut self.efforts, overrides.efforts);
        set(&mut self.effort_style, overrides.effort_style);
        set(&mut self.idle_timeout_ms, overrides.idle_timeout_ms);
        set(&mut self.content_timeout_ms, overrides.content_timeout_ms);
        set(&mut self.connect_timeout_ms, overrides.connect_timeout_ms);
        set(&mut self.settle_timeout_ms, overrides.settle_timeout_ms);
        self.api_key = overrides.api_key.or(self.api_key.take());
        self.key_variable = overrides.key_variable.or(self.key_variable.take());
        self.default_context_window = overrides.default_context_window.or(self.default_context_window);
        self.max_tokens = overrides.max_tokens.or(self.max_tokens);
        self.effort = overrides.effort.or(self.effort.take());
        self.thinking = overrides.thinking.or(self.thinking);
    }

    /// The key in the variable that is named for it, unless there is one already.
    pub(crate) fn take_key(&mut self, env: impl Fn(&str) -> Option<String>) {
        if self.api_key.is_none() {
            let value = self.key_variable.as_deref().and_then(env);
            self.api_key = value.as_deref().and_then(ApiKey::new);
        }
    }

    /// Whether a model is shown images.
    pub(crate) fn accepts_images(&self, model: &str) -> bool {
        self.models.iter().any(|known| known.id == model && known.accepts_images)
    }

    /// The output limit of a call.
    pub(crate) fn max_tokens_for(&self, call: &CallConfig) -> Option<u64> {
        let catalog = self.models.iter().find(|model| model.id == call.model);
        call.max_tokens.or(catalog.and_then(|model| model.max_tokens)).or(self.max_tokens)
    }

    /// The effort of a call, when it has one.
    ///
    /// # Errors
    /// [`ModelError::UnsupportedEffort`] when it is not on offer.
    pub(crate) fn effort_for<'a>(&self, call: &'a CallConfig) -> Result<Option<Cow<'a, str>>, ModelError> {
        let asked = call.reasoning_effort.as_deref().map(Cow::Borrowed);
        let Some(effort) = asked.or_else(|| self.default_effort().map(Cow::Owned)) else { return Ok(None) };
        let offered = self.offered_efforts();
        if !offered.iter().any(|id| *id == effort) {
            let model = call.model.clone();
            return Err(ModelError::UnsupportedEffort { model, effort: effort.into_owned(), offered });
        }
        Ok(Some(effort))
    }

    /// That a request cannot be written.
    pub(crate) fn unwritable(&self, error: &serde_json::Error) -> ModelError {
        ModelError::Unusable {
            provider: self.id.clone(),
            reason: format!("the request cannot be written as JSON: {error}"),
        }
    }

    /// The effort ids that may be asked for.
    pub(crate) fn offered_efforts(&self) -> Vec<String> {
        match self.thinking {
            Some(ThinkingMode::Disabled) => self.efforts.iter().filter(|id| *id == "off").cloned().collect(),
            _ => self.efforts.clone(),
        }
    }

    /// The effort when the caller names none.
    pub(crate) fn default_effort(&self) -> Option<String> {
        match self.thinking {
            Some(ThinkingMode::Disabled) => self.offered_efforts().pop(),
            _ => self.effort.clone().filter(|_| !self.efforts.is_empty()),
        }
    }
}

/// What a person may configure of a provider; `None` keeps its default. See [`ProviderConfig`] for the meanings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderOverrides {
    /// Base URL.
    pub base_url: Option<String>,
    /// The key itself; goes before the variable.
    pub api_key: Option<ApiKey>,
    /// The variable that holds the key.
    pub key_variable: Option<String>,
    /// The `user-agent` header.
    pub user_agent: Option<String>,
    /// Replaces the catalog.
    pub models: Option<Vec<ProviderModel>>,
    /// Window in tokens of models that name none.
    pub default_context_window: Option<u64>,
    /// Output limit in tokens.
    pub max_tokens: Option<u64>,
    /// Effort ids on offer.
    pub efforts: Option<Vec<String>>,
    /// How an effort is asked for.
    pub effort_style: Option<EffortStyle>,
    /// The effort when the caller names none.
    pub effort: Option<String>,
    /// Whether thinking is fixed.
    pub thinking: Option<ThinkingMode>,
    /// Longest wait for any byte, in milliseconds.
    pub idle_timeout_ms: Option<u64>,
    /// Longest time of waiting without content, in milliseconds.
    pub content_timeout_ms: Option<u64>,
    /// Longest wait for a connection, in milliseconds.
    pub connect_timeout_ms: Option<u64>,
    /// How long the rest is waited for after the finish reason, in milliseconds.
    pub settle_timeout_ms: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_trimmed_and_hidden() {
        let key = ApiKey::new(" sk-secret\n").unwrap();
        assert_eq!(key.expose(), "sk-secret");
        assert!(!format!("{key:?}").contains("secret"));
        assert!(ApiKey::new("  ").is_none());
        assert!(!ApiKey::new("with space").unwrap().is_usable());
        assert!(!ApiKey::new("schlüssel").unwrap().is_usable());
    }

    #[test]
    fn fixed_thinking_leaves_one_effort() {
        let mut config = ProviderConfig::new("a", "A", "http://h");
        config.efforts = vec!["off".into(), "high".into()];
        config.effort = Some("high".into());
        assert_eq!(config.default_effort().as_deref(), Some("high"));
        config.thinking = Some(ThinkingMode::Disabled);
        assert_eq!(config.default_effort().as_deref(), Some("off"));
        assert_eq!(config.offered_efforts(), ["off"]);
    }
}
