//! The DeepSeek API.

use super::{ChatConfig, ChatModel, ChatOverrides, ChatProvider};

/// Route id of the DeepSeek API.
pub const DEEPSEEK_ROUTE: &str = "deepseek-official";

const DEFAULT_BASE_URL: &str = "https://api.deepseek.com";
const BASE_URL_VARIABLE: &str = "DEEPSEEK_BASE_URL";
const KEY_VARIABLE: &str = "DEEPSEEK_API_KEY";
const CONTEXT_WINDOW_TOKENS: u64 = 1_000_000;
const MAX_TOKENS: u64 = 256_000;
const EFFORTS: [&str; 4] = ["off", "low", "high", "max"];
const DEFAULT_EFFORT: &str = "high";
/// Id, name, and whether images may be sent. The first one is the default.
const MODELS: [(&str, &str, bool); 3] = [
    ("deepseek-v4-flash", "DeepSeek-V4-Flash", false),
    ("deepseek-v4-pro", "DeepSeek-V4-Pro", false),
    ("deepseek-v4-flash-vision-exp", "DeepSeek-V4-Flash-Vision-Exp", true),
];

/// The DeepSeek provider. `env` looks up an environment variable; it is asked for `DEEPSEEK_BASE_URL` and for the
/// variable of the key (`DEEPSEEK_API_KEY` unless overridden), and empty values count as unset.
pub fn deepseek(env: impl Fn(&str) -> Option<String>, overrides: ChatOverrides) -> ChatProvider {
    let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    let mut config = ChatConfig::new(DEEPSEEK_ROUTE, "DeepSeek", DEFAULT_BASE_URL);
    if let Some(base_url) = env(BASE_URL_VARIABLE) {
        base_url.trim().clone_into(&mut config.base_url);
    }
    config.key_variable = Some(KEY_VARIABLE.to_owned());
    config.models = MODELS.map(model).to_vec();
    config.default_context_window = Some(CONTEXT_WINDOW_TOKENS);
    config.max_tokens = Some(MAX_TOKENS);
    config.efforts = EFFORTS.map(str::to_owned).to_vec();
    config.effort = Some(DEFAULT_EFFORT.to_owned());
    config.apply(overrides);
    config.take_key(env);
    ChatProvider::new(config)
}

fn model((id, name, accepts_images): (&str, &str, bool)) -> ChatModel {
    ChatModel { id: id.to_owned(), name: Some(name.to_owned()), accepts_images, ..ChatModel::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApiKey, ModelError, Provider};

    fn env(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn works_from_the_environment_alone() {
        let pairs = [("DEEPSEEK_API_KEY", "k"), ("DEEPSEEK_BASE_URL", "http://127.0.0.1:1/")];
        let provider = deepseek(env(&pairs), ChatOverrides::default());
        assert_eq!(provider.missing(), None);
        assert_eq!(provider.config().base_url, "http://127.0.0.1:1/");
        assert!(!format!("{provider:?}").contains("\"k\""));
    }

    #[test]
    fn configuration_goes_before_the_environment() {
        let overrides = ChatOverrides {
            base_url: Some("http://mine".into()),
            key_variable: Some("MINE".into()),
            ..Default::default()
        };
        let pairs = [("DEEPSEEK_BASE_URL", "http://theirs"), ("MINE", "m"), ("DEEPSEEK_API_KEY", "d")];
        let provider = deepseek(env(&pairs), overrides);
        assert_eq!(provider.config().base_url, "http://mine");
        assert_eq!(provider.config().api_key, ApiKey::new("m"));
    }

    #[test]
    fn says_what_is_missing() {
        let provider = deepseek(env(&[("DEEPSEEK_BASE_URL", " ")]), ChatOverrides::default());
        assert_eq!(provider.config().base_url, DEFAULT_BASE_URL);
        let missing = provider.missing();
        assert!(
            matches!(missing, Some(ModelError::MissingCredential { variable, .. }) if variable == KEY_VARIABLE)
        );
        let spaced = deepseek(env(&[(KEY_VARIABLE, "a b")]), ChatOverrides::default());
        assert!(matches!(spaced.missing(), Some(ModelError::InvalidCredential { .. })));
    }

    #[test]
    fn knows_its_models_and_takes_others() {
        let provider = deepseek(env(&[]), ChatOverrides::default());
        let known = provider.resolve("deepseek-v4-pro").unwrap();
        assert_eq!((known.name.as_str(), known.context_window), ("DeepSeek-V4-Pro", Some(1_000_000)));
        assert_eq!(known.default_max_tokens, Some(256_000));
        assert_eq!(known.default_effort.as_deref(), Some("high"));
        let other = provider.resolve("deepseek-next").unwrap();
        assert_eq!((other.name.as_str(), other.context_window), ("deepseek-next", Some(1_000_000)));
        assert!(!other.accepts_images);
        assert_eq!(provider.models()[0].id, "deepseek-v4-flash");
    }
}
