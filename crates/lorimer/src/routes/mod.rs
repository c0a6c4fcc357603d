//! The providers of a run: built in, presets, and tables of the settings.

mod local;
mod presets;
mod recorded;

use std::path::Path;
use std::sync::Arc;

use lorimer_model::{
    ANTHROPIC_ROUTE, ApiKey, ChatDialect, ChatProvider, DEEPSEEK_ROUTE, MessagesProvider, ModelError,
    OfflineProvider, Prices, Provider, ProviderConfig, ProviderModel, ProviderOverrides, Registry,
    split_route,
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
        built_in(settings, DEEPSEEK_ROUTE)?,
    )));
    registry.add(Arc::new(lorimer_model::anthropic(
        |name| std::env::var(name).ok().filter(|value| !value.is_empty()).or_else(|| credentials.get(name)),
        built_in(settings, ANTHROPIC_ROUTE)?,
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

/// Presets and tables, presets first, each with what the other leaves out. Tables of built-in providers are not among
/// them.
pub fn tables(settings: &Settings) -> Vec<(String, ProviderTable)> {
    let mut all: Vec<(String, ProviderTable)> = PRESETS
        .iter()
        .map(|preset| {
            let own = settings.providers.get(preset.id).cloned().unwrap_or_default();
            (preset.id.to_owned(), own.or(preset.table()))
        })
        .collect();
    let is_preset = |id: &str| PRESETS.iter().any(|preset| preset.id == id);
    let others = settings.providers.iter().filter(|(id, _)| !is_preset(id) && built_in_route(id).is_none());
    all.extend(others.map(|(id, table)| (id.clone(), table.clone())));
    all
}

/// The presets that are servers on this machine.
pub fn local_servers(settings: &Settings) -> Vec<(String, ProviderTable)> {
    let is_local = |id: &str| PRESETS.iter().any(|preset| preset.id == id && preset.key_variable.is_none());
    tables(settings).into_iter().filter(|(id, _)| is_local(id)).collect()
}

/// The route of the first model of a server on this machine that is named without one and lists none in the settings.
pub fn first_local_model(settings: &Settings, route: &str) -> Option<String> {
    let (id, None) = split_route(route) else {
        return None;
    };
    let server =
        local_servers(settings).into_iter().find(|(known, table)| known == id && table.models.is_empty())?;
    let model = probe(&[server]).into_iter().next()?.models.into_iter().next()?;
    Some(format!("{id}/{model}"))
}

/// The variable that holds a provider's key; `None` for one that needs none.
pub fn key_variable_of(settings: &Settings, provider: &str) -> Option<String> {
    let usual = match built_in_route(provider) {
        Some(DEEPSEEK_ROUTE) => Some("DEEPSEEK_API_KEY"),
        Some(_) => Some("ANTHROPIC_API_KEY"),
        None => None,
    };
    if let Some(usual) = usual {
        let own = built_in(settings, provider).ok().and_then(|overrides| overrides.key_variable);
        return Some(own.unwrap_or_else(|| usual.to_owned()));
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

/// The route of a built-in provider that a table changes instead of adding another.
fn built_in_route(id: &str) -> Option<&'static str> {
    match id {
        "deepseek" | DEEPSEEK_ROUTE => Some(DEEPSEEK_ROUTE),
        ANTHROPIC_ROUTE => Some(ANTHROPIC_ROUTE),
        _ => None,
    }
}

/// What the settings change about a built-in provider.
fn built_in(settings: &Settings, id: &str) -> Result<ProviderOverrides, CommandError> {
    let route = built_in_route(id);
    let mut table = ProviderTable::default();
    for (name, own) in settings.providers.iter().filter(|(name, _)| built_in_route(name) == route) {
        if own.name.is_some() || own.protocol.is_some() {
            return Err(CommandError::usage(format!(
                "provider \"{name}\" is built in and keeps its name and protocol; give the table another name"
            )));
        }
        table = own.clone().or(table);
    }
    if route == Some(DEEPSEEK_ROUTE) {
        table.base_url = settings.deepseek_base_url.clone().or(table.base_url);
        table.key_variable = settings.deepseek_key_variable.clone().or(table.key_variable);
    }
    let window = table.context_window_tokens.or(settings.request_context_window_tokens);
    Ok(ProviderOverrides {
        base_url: table.base_url,
        key_variable: table.key_variable,
        default_context_window: window,
        max_tokens: table.max_tokens,
        efforts: table.efforts,
        effort: table.effort,
        models: (!table.models.is_empty()).then(|| table.models.iter().map(provider_model).collect()),
        ..waits(settings)
    })
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
    config.chat_dialect = dialect(id, &config.base_url);
    config.efforts = table.efforts.unwrap_or_default();
    config.effort = table.effort;
    config.idle_timeout_ms = settings.request_idle_timeout_ms;
    config.content_timeout_ms = settings.request_content_timeout_ms;
    config.connect_timeout_ms = settings.request_connect_timeout_ms;
    Ok(config)
}

/// DeepSeek's own endpoint under another name is still DeepSeek's.
fn dialect(id: &str, base_url: &str) -> ChatDialect {
    let host = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default();
    match (id, host) {
        (_, "api.deepseek.com") => ChatDialect::DeepSeek,
        ("openai", _) | (_, "api.openai.com") => ChatDialect::OpenAi,
        _ => ChatDialect::Common,
    }
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
