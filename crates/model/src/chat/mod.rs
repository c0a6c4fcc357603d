//! Chat completions in the style of OpenAI, streamed as server-sent events.

mod content;
mod decode;
mod deepseek;
mod request;
mod wire;

use std::sync::Arc;

use lorimer_protocol::{Message, ToolSpec};
use reqwest::header::{self, HeaderMap, HeaderValue, InvalidHeaderValue};

use self::decode::ChatDecoder;
use crate::http::{ApiKey, HttpProvider, Protocol, ProviderConfig, ProviderModel, ProviderOverrides};
use crate::images::Images;
use crate::{ModelError, ModelRequest};

pub use deepseek::{DEEPSEEK_ROUTE, deepseek};
pub(crate) use wire::{finish_reason, usage_from_wire};

/// Settings of a provider of chat completions.
pub type ChatConfig = ProviderConfig;
/// A model of such a provider.
pub type ChatModel = ProviderModel;
/// What may be configured of such a provider.
pub type ChatOverrides = ProviderOverrides;
/// Any server that speaks chat completions.
pub type ChatProvider = HttpProvider<Chat>;

/// The protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chat;

impl Protocol for Chat {
    type Decoder = ChatDecoder;

    const NAME: &'static str = "chat completions";

    fn path(_: &str) -> &'static str {
        "/chat/completions"
    }

    fn add_headers(headers: &mut HeaderMap, key: Option<&ApiKey>) -> Result<(), InvalidHeaderValue> {
        if let Some(key) = key {
            let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key.expose()))?;
            bearer.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, bearer);
        }
        Ok(())
    }

    fn push_system(json: &mut Vec<u8>, system: Option<&str>) -> serde_json::Result<()> {
        content::push_system(json, system)
    }

    fn group(messages: &[Arc<Message>]) -> usize {
        content::group(messages)
    }

    fn push_group(
        json: &mut Vec<u8>,
        group: &[Arc<Message>],
        request: &ModelRequest,
        config: &ProviderConfig,
    ) -> serde_json::Result<()> {
        content::push_group(json, group, Images::of(request, config))
    }

    fn tools(tools: &[ToolSpec]) -> serde_json::Result<Vec<u8>> {
        content::tools_json(tools)
    }

    fn settings(request: &ModelRequest, config: &ProviderConfig) -> Result<Vec<u8>, ModelError> {
        request::settings(request, config)
    }
}
