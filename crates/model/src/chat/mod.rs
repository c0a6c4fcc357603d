//! Chat completions in the style of OpenAI, streamed as server-sent events.
//!
//! [`request`] and [`decode`] are pure; [`exchange`] joins them over HTTP.

mod config;
mod conversation;
mod decode;
mod deepseek;
mod exchange;
mod provider;
mod request;
mod wire;

pub use config::{ApiKey, ChatConfig, ChatModel, ChatOverrides, ThinkingMode};
pub use deepseek::{DEEPSEEK_ROUTE, deepseek};
pub use provider::ChatProvider;
pub(crate) use wire::{finish_reason, usage_from_wire};
