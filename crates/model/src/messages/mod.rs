//! The Messages protocol of Anthropic, which DeepSeek serves too, streamed as server-sent events.

mod anthropic;
mod content;
mod decode;
mod replay;
mod settings;
mod wire;

use std::sync::Arc;

use lorimer_protocol::{Message, ToolSpec};
use reqwest::header::{HeaderMap, HeaderValue, InvalidHeaderValue};

use self::content::Writer;
use self::decode::MessagesDecoder;
use crate::http::{
    ApiKey, CacheMark, HttpProvider, Protocol, ProviderConfig, ProviderModel, ProviderOverrides,
};
use crate::images::Images;
use crate::{ModelError, ModelRequest};

pub use anthropic::{ANTHROPIC_ROUTE, anthropic};

/// The version of the protocol that is spoken.
const VERSION: &str = "2023-06-01";
/// How many messages are marked for the cache: what the last request wrote is read by this one, which writes more.
const CACHED_MESSAGES: usize = 2;

/// Settings of a provider of the Messages protocol.
pub type MessagesConfig = ProviderConfig;
/// A model of such a provider.
pub type MessagesModel = ProviderModel;
/// What may be configured of such a provider.
pub type MessagesOverrides = ProviderOverrides;
/// Any server that speaks the Messages protocol.
pub type MessagesProvider = HttpProvider<Messages>;

/// The protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Messages;

impl Protocol for Messages {
    type Decoder = MessagesDecoder;

    const NAME: &'static str = "the Messages protocol";

    /// Every message here ends in a block, so the mark goes into that.
    const CACHE_MARK: Option<CacheMark> = Some(CacheMark {
        messages: CACHED_MESSAGES,
        text: r#","cache_control":{"type":"ephemeral"}"#,
        before_end: "}]}".len(),
    });

    /// The base URL comes without a version; one that has it already is taken as it is meant.
    fn path(base_url: &str) -> &'static str {
        if base_url.ends_with("/v1") { "/messages" } else { "/v1/messages" }
    }

    fn add_headers(headers: &mut HeaderMap, key: Option<&ApiKey>) -> Result<(), InvalidHeaderValue> {
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(key.expose())?;
            value.set_sensitive(true);
            headers.insert("x-api-key", value);
        }
        Ok(())
    }

    /// The system prompt is none of the messages.
    fn push_system(_: &mut Vec<u8>, _: Option<&str>) -> serde_json::Result<()> {
        Ok(())
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
        Writer { images: Images::of(request, config), config }.push_group(json, group)
    }

    fn tools(tools: &[ToolSpec]) -> serde_json::Result<Vec<u8>> {
        settings::tools_json(tools)
    }

    fn settings(request: &ModelRequest, config: &ProviderConfig) -> Result<Vec<u8>, ModelError> {
        settings::settings(request, config)
    }
}
