//! The providers of a run: built in, presets, and tables of the settings.

mod local;
mod presets;
mod recorded;

use std::path::Path;
use std::sync::Arc;

use lorimer_model::{
    ANTHROPIC_ROUTE, ApiKey, ChatProvider, DEEPSEEK_ROUTE, MessagesProvider, ModelError, OfflineProvider,
    Prices, Provider, ProviderConfig, ProviderModel, ProviderOverrides, Registry, split_route,
};

pub use local::probe;
pub use presets::PRESETS;
pub use recorded::replay;

use crate::credentials::Credentials;
use crate::exit::CommandError;
use crate::settings::{ModelTable, Protocol, ProviderTable, Settings};

/// Every provider there is, ready or not.
///
/// # Errors
/// When stored keys or a provider's table cannot be used.
pub fn providers(settings: &Settings, home: &Path) -> Result<Registry, CommandError> {
    let credentials = Credentials::load(home)?;
    let key = |variable: &str| {
        let set = std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
        set.or_else(|| credentials.get(variable))
    };
    let mut registry = Registry::new();
    registry.add(Arc::new(lorimer_model::deepseek(
        |name| std::env::var(name).ok().filter(|value| !value.is_empty()).or_else(|| credentials.get(name)),
        deepseek_overrides(settings),
    )));
    registry.add(Arc::new(lorimer_model::anthropic(
        |name| std::env::var(name).ok().filter(|value| !value.is_empty()).or_else(|| credentials.get(name)),
        waits(settings),
    )));
    for (id, table) in tables(settings) {
        let messages = table.protocol == Some(Protocol::Messages);
        let config = provider_config(settings, &id, table, &key)?;
        let provider: Arc<dyn Provider> = if messages {
            Arc::new(MessagesProvider::new(config))
        } else {
            Arc::new(ChatProvider::new(config))
        };
        registry.add(provider);
    }
    registry.add(Arc::new(OfflineProvider::new()));
    Ok(registry)
}

/// Presets and tables, presets first, each with what the other leaves out.
pub fn tables(settings: &Settings) -> Vec<(String, ProviderTable)> {
    let mut all: Vec<(String, ProviderTable)> = PRESETS
        .iter()
        .map(|preset| {
            let own = settings.providers.get(preset.id).cloned().unwrap_or_default();
            (preset.id.to_owned(), own.or(preset.table()))
        })
        .collect();
    let others = settings.providers.iter().filter(|(id, _)| !PRESETS.iter().any(|preset| preset.id == *id));
    all.extend(others.map(|(id, table)| (id.clone(), table.clone())));
    all
}

/// The presets that are servers on this machine.
pub fn local_servers(settings: &Settings) -> Vec<(String, ProviderTable)> {
    let is_local = |id: &str| PRESETS.iter().any(|preset| preset.id == id && preset.key_variable.is_none());
    tables(settings).into_iter().filter(|(id, _)| is_local(id)).collect()
}

/// The variable that holds a provider's key; `None` for one that needs none.
pub fn key_variable_of(settings: &Settings, provider: &str) -> Option<String> {
    if provider == DEEPSEEK_ROUTE {
        let own = settings.deepseek_key_variable.clone();
        return Some(own.unwrap_or_else(|| "DEEPSEEK_API_KEY".to_owned()));
    }
    if provider == ANTHROPIC_ROUTE {
        return Some("ANTHROPIC_API_KEY".to_owned());
    }
    let table = tables(settings).into_iter().find(|(id, _)| id == provider)?.1;
    table.key_variable.filter(|variable| !variable.is_empty())
}

/// The provider and model id of a route; a route without a model takes the provider's first.
///
/// # Errors
/// When there is no such provider, or it lists no model.
pub fn route(registry: &Registry, route: &str) -> Result<(Arc<dyn Provider>, String), ModelError> {
    let (name, model) = split_route(route);
    let provider = registry.get(name)?;
    let model = match model {
        Some(model) => model.to_owned(),
        None => provider.models().into_iter().next().map(|model| model.id).ok_or_else(|| {
            ModelError::Unusable {
                provider: provider.id().to_owned(),
                reason: format!("it lists no model; name one: -m {name}/MODEL"),
            }
        })?,
    };
    Ok((provider, model))
}

fn deepseek_overrides(settings: &Settings) -> ProviderOverrides {
    ProviderOverrides {
        base_url: settings.deepseek_base_url.clone(),
        key_variable: settings.deepseek_key_variable.clone(),
        default_context_window: settings.request_context_window_tokens,
        ..waits(settings)
    }
}

/// How long a server may take, for every provider.
fn waits(settings: &Settings) -> ProviderOverrides {
    ProviderOverrides {
        idle_timeout_ms: Some(settings.request_idle_timeout_ms),
        content_timeout_ms: Some(settings.request_content_timeout_ms),
        connect_timeout_ms: Some(settings.request_connect_timeout_ms),
        ..ProviderOverrides::default()
    }
}

fn provider_config(
    settings: &Settings,
    id: &str,
    table: ProviderTable,
    key: &dyn Fn(&str) -> Option<String>,
) -> Result<ProviderConfig, CommandError> {
    let Some(base_url) = table.base_url else {
        return Err(CommandError::usage(format!(
            "provider \"{id}\" has no base_url; write it under [providers.{id}]"
        )));
    };
    let mut config = ProviderConfig::new(id, table.name.unwrap_or_else(|| id.to_owned()), base_url);
    config.key_variable = table.key_variable.filter(|variable| !variable.is_empty());
    config.api_key = config.key_variable.as_deref().and_then(key).as_deref().and_then(ApiKey::new);
    config.models = table.models.iter().map(provider_model).collect();
    config.default_context_window = table.context_window_tokens.or(settings.request_context_window_tokens);
    config.max_tokens = table.max_tokens;
    config.efforts = table.efforts.unwrap_or_default();
    config.effort = table.effort;
    config.idle_timeout_ms = settings.request_idle_timeout_ms;
    config.content_timeout_ms = settings.request_content_timeout_ms;
    config.connect_timeout_ms = settings.request_connect_timeout_ms;
    Ok(config)
}

fn provider_model(table: &ModelTable) -> ProviderModel {
    let prices = match (table.price_input, table.price_output) {
        (Some(input), Some(output)) => Some(Prices {
            input,
            output,
            cache_read: table.price_cache_read,
            cache_write: table.price_cache_write,
        }),
        _ => None,
    };
    ProviderModel {
        id: table.id.clone(),
        name: table.name.clone(),
        context_window: table.context_window_tokens,
        max_tokens: table.max_tokens,
        accepts_images: table.images,
        prices,
    }
}
