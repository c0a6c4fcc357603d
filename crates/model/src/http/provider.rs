//! [`HttpProvider`]: any server that speaks one of the protocols.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::stream;
use lorimer_protocol::{FinishReason, StreamChunk};
use reqwest::Url;
use tokio_util::sync::CancellationToken;

use super::client::{LazyClient, endpoint};
use super::conversation::Conversation;
use super::exchange::Exchange;
use super::{Protocol, ProviderConfig, ProviderModel};
use crate::{ChunkStream, ModelError, ModelInfo, ModelRequest, Provider};

/// A provider that speaks the protocol `P`. Making one is cheap; the HTTP client is made by the first stream.
#[derive(Debug)]
pub struct HttpProvider<P> {
    config: Arc<ProviderConfig>,
    client: Arc<LazyClient>,
    /// Where requests go, or why nowhere; from the settings, which do not change.
    endpoint: OnceLock<Result<Url, String>>,
    conversation: Mutex<Conversation>,
    protocol: PhantomData<P>,
}

impl<P: Protocol> HttpProvider<P> {
    /// A provider with these settings.
    pub fn new(config: ProviderConfig) -> Self {
        Self {
            config: Arc::new(config),
            client: Arc::default(),
            endpoint: OnceLock::new(),
            conversation: Mutex::default(),
            protocol: PhantomData,
        }
    }

    /// The settings, as they came out of overrides, environment and defaults.
    pub fn config(&self) -> &ProviderConfig {
        &self.config
    }

    fn info(&self, model: &ProviderModel) -> ModelInfo {
        let config = &self.config;
        ModelInfo {
            id: model.id.clone(),
            name: model.name.clone().unwrap_or_else(|| model.id.clone()),
            context_window: model.context_window.or(config.default_context_window),
            default_max_tokens: model.max_tokens.or(config.max_tokens),
            efforts: config.offered_efforts(),
            default_effort: config.default_effort(),
            accepts_images: model.accepts_images,
            prices: model.prices,
        }
    }

    fn exchange(&self, request: &ModelRequest, cancel: CancellationToken) -> Result<Exchange<P>, ModelError> {
        if let Some(error) = self.missing() {
            return Err(error);
        }
        let mut conversation = self.conversation.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Exchange {
            config: Arc::clone(&self.config),
            client: Arc::clone(&self.client),
            url: self.endpoint().as_ref().map_err(|reason| self.unusable(reason.clone()))?.clone(),
            body: conversation.body::<P>(request, &self.config)?,
            cancel,
            protocol: PhantomData,
        })
    }

    fn endpoint(&self) -> &Result<Url, String> {
        self.endpoint.get_or_init(|| endpoint::<P>(&self.config.base_url))
    }

    fn unusable(&self, reason: String) -> ModelError {
        ModelError::Unusable { provider: self.config.id.clone(), reason }
    }
}

impl<P: Protocol> Provider for HttpProvider<P> {
    fn id(&self) -> &str {
        &self.config.id
    }

    fn name(&self) -> &str {
        &self.config.name
    }

    fn models(&self) -> Vec<ModelInfo> {
        self.config.models.iter().map(|model| self.info(model)).collect()
    }

    fn missing(&self) -> Option<ModelError> {
        let variable = self.config.key_variable.as_ref();
        match (&self.config.api_key, variable) {
            (None, Some(variable)) => Some(ModelError::MissingCredential {
                provider: self.config.id.clone(),
                variable: variable.clone(),
            }),
            (Some(key), _) if !key.is_usable() => Some(ModelError::InvalidCredential {
                variable: variable.cloned().unwrap_or_else(|| "the configuration".to_owned()),
            }),
            _ => self.endpoint().as_ref().err().map(|reason| self.unusable(reason.clone())),
        }
    }

    fn resolve(&self, model: &str) -> Result<ModelInfo, ModelError> {
        if model.is_empty() {
            let provider = self.config.id.clone();
            return Err(ModelError::UnknownModel { provider, model: String::new(), nearest: None });
        }
        let known = self.config.models.iter().find(|known| known.id == model);
        Ok(match known {
            Some(known) => self.info(known),
            None => self.info(&ProviderModel { id: model.to_owned(), ..ProviderModel::default() }),
        })
    }

    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> ChunkStream {
        match self.exchange(&request, cancel) {
            Ok(exchange) => exchange.into_stream(),
            Err(error) => {
                let reason = FinishReason::Error { failure: error.failure() };
                Box::pin(stream::iter([StreamChunk::Finish { reason, replay_state: None }]))
            }
        }
    }
}
