//! The Anthropic API.

use super::{MessagesConfig, MessagesModel, MessagesOverrides, MessagesProvider};

/// Route id of the Anthropic API.
pub const ANTHROPIC_ROUTE: &str = "anthropic";

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";
const BASE_URL_VARIABLE: &str = "ANTHROPIC_BASE_URL";
const KEY_VARIABLE: &str = "ANTHROPIC_API_KEY";
const CONTEXT_WINDOW_TOKENS: u64 = 200_000;
/// What every current model takes.
const MAX_TOKENS: u64 = 32_000;
/// What the models of the catalog take.
const CATALOG_MAX_TOKENS: u64 = 64_000;
const EFFORTS: [&str; 4] = ["off", "low", "medium", "high"];
/// The first one is the default.
const MODELS: [(&str, &str); 3] = [
    ("claude-sonnet-4-5", "Claude Sonnet 4.5"),
    ("claude-opus-4-5", "Claude Opus 4.5"),
    ("claude-haiku-4-5", "Claude Haiku 4.5"),
];

/// The Anthropic provider. `env` looks up an environment variable; it is asked for `ANTHROPIC_BASE_URL` and for the
/// variable of the key (`ANTHROPIC_API_KEY` unless overridden), and empty values count as unset.
pub fn anthropic(env: impl Fn(&str) -> Option<String>, overrides: MessagesOverrides) -> MessagesProvider {
    let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    let mut config = MessagesConfig::new(ANTHROPIC_ROUTE, "Anthropic", DEFAULT_BASE_URL);
    if let Some(base_url) = env(BASE_URL_VARIABLE) {
        base_url.trim().clone_into(&mut config.base_url);
    }
    config.key_variable = Some(KEY_VARIABLE.to_owned());
    config.models = MODELS.map(model).to_vec();
    config.default_context_window = Some(CONTEXT_WINDOW_TOKENS);
    config.max_tokens = Some(MAX_TOKENS);
    config.efforts = EFFORTS.map(str::to_owned).to_vec();
    config.apply(overrides);
    config.take_key(env);
    MessagesProvider::new(config)
}

fn model((id, name): (&str, &str)) -> MessagesModel {
    MessagesModel {
        id: id.to_owned(),
        name: Some(name.to_owned()),
        max_tokens: Some(CATALOG_MAX_TOKENS),
        accepts_images: true,
        ..MessagesModel::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApiKey, Provider};

    #[test]
    fn works_from_the_environment_alone() {
        let env = |name: &str| match name {
            "ANTHROPIC_API_KEY" => Some("k".to_owned()),
            "ANTHROPIC_BASE_URL" => Some(" http://127.0.0.1:1/x ".to_owned()),
            other => panic!("{other} is none of its business"),
        };
        let provider = anthropic(env, MessagesOverrides::default());
        assert_eq!(provider.missing(), None);
        assert_eq!(provider.config().base_url, "http://127.0.0.1:1/x");
        assert_eq!(provider.config().api_key, ApiKey::new("k"));
    }

    #[test]
    fn knows_its_models_and_takes_others() {
        let provider = anthropic(|_| None, MessagesOverrides::default());
        assert!(provider.missing().is_some());
        let known = provider.resolve("claude-haiku-4-5").unwrap();
        assert_eq!((known.context_window, known.default_max_tokens), (Some(200_000), Some(64_000)));
        assert!(known.accepts_images && known.default_effort.is_none());
        let other = provider.resolve("claude-next").unwrap();
        assert_eq!((other.default_max_tokens, other.accepts_images), (Some(32_000), false));
    }
}
