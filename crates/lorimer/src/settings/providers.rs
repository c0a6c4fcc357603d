//! `[providers.NAME]`: servers that a person adds, or presets that a person changes.

use serde::{Deserialize, Serialize};

/// Which protocol a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// OpenAI's chat completions.
    #[default]
    Chat,
    /// Anthropic's Messages.
    Messages,
}

/// One provider. Everything but the base URL may be left out, and a preset of the same name fills in the rest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderTable {
    /// Name for people.
    pub name: Option<String>,
    /// `chat` or `messages`.
    pub protocol: Option<Protocol>,
    /// Everything of the URL before `/chat/completions` or `/v1/messages`.
    pub base_url: Option<String>,
    /// The environment variable that holds the key; empty for a server without one.
    pub key_variable: Option<String>,
    /// Window of models that name none, in tokens.
    pub context_window_tokens: Option<u64>,
    /// Output limit when neither caller nor model names one, in tokens.
    pub max_tokens: Option<u64>,
    /// Efforts on offer; empty sends none.
    pub efforts: Option<Vec<String>>,
    /// The effort when the caller names none.
    pub effort: Option<String>,
    /// The models that are listed. Others pass through.
    #[serde(default)]
    pub models: Vec<ModelTable>,
}

/// One model of a provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelTable {
    /// The id that is sent.
    pub id: String,
    /// Name for people.
    pub name: Option<String>,
    /// Window in tokens.
    pub context_window_tokens: Option<u64>,
    /// Output limit in tokens.
    pub max_tokens: Option<u64>,
    /// Whether images may be sent.
    #[serde(default)]
    pub images: bool,
    /// US dollars for a million prompt tokens.
    pub price_input: Option<f64>,
    /// US dollars for a million generated tokens.
    pub price_output: Option<f64>,
    /// US dollars for a million prompt tokens read from a cache.
    pub price_cache_read: Option<f64>,
    /// US dollars for a million prompt tokens written to a cache.
    pub price_cache_write: Option<f64>,
}

impl ProviderTable {
    /// This table with what it leaves out taken from another.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            name: self.name.or(other.name),
            protocol: self.protocol.or(other.protocol),
            base_url: self.base_url.or(other.base_url),
            key_variable: self.key_variable.or(other.key_variable),
            context_window_tokens: self.context_window_tokens.or(other.context_window_tokens),
            max_tokens: self.max_tokens.or(other.max_tokens),
            efforts: self.efforts.or(other.efforts),
            effort: self.effort.or(other.effort),
            models: if self.models.is_empty() { other.models } else { self.models },
        }
    }
}
