//! Servers that are known by name.

use crate::settings::{Protocol, ProviderTable};

/// A server that is known by name.
pub struct Preset {
    /// Route id.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Where it is.
    pub base_url: &'static str,
    /// The variable that holds its key; `None` for a server on this machine.
    pub key_variable: Option<&'static str>,
}

/// The presets, in the order they are listed.
pub const PRESETS: [Preset; 6] = [
    Preset {
        id: "openai",
        name: "OpenAI",
        base_url: "https://api.openai.com/v1",
        key_variable: Some("OPENAI_API_KEY"),
    },
    Preset {
        id: "openrouter",
        name: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        key_variable: Some("OPENROUTER_API_KEY"),
    },
    Preset { id: "ollama", name: "Ollama", base_url: "http://127.0.0.1:11434/v1", key_variable: None },
    Preset { id: "lmstudio", name: "LM Studio", base_url: "http://127.0.0.1:1234/v1", key_variable: None },
    Preset { id: "llamacpp", name: "llama.cpp", base_url: "http://127.0.0.1:8080/v1", key_variable: None },
    Preset { id: "vllm", name: "vLLM", base_url: "http://127.0.0.1:8000/v1", key_variable: None },
];

impl Preset {
    /// What the preset says, as if it were written in a file.
    pub fn table(&self) -> ProviderTable {
        ProviderTable {
            name: Some(self.name.to_owned()),
            protocol: Some(Protocol::Chat),
            base_url: Some(self.base_url.to_owned()),
            key_variable: self.key_variable.map(str::to_owned),
            ..ProviderTable::default()
        }
    }
}
