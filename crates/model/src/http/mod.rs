//! What every protocol over HTTP shares: settings, the client, the kept conversation and the exchange itself.
//!
//! A protocol says how a request is written and how its answer is read ([`Protocol`], [`Decode`]); nothing here knows
//! which protocols there are.

mod client;
mod config;
mod conversation;
mod exchange;
mod protocol;
mod provider;
mod reading;

pub use config::{
    ApiKey, ChatDialect, EffortStyle, ProviderConfig, ProviderModel, ProviderOverrides, ThinkingMode,
};
#[cfg(test)]
pub(crate) use conversation::Conversation;
pub(crate) use protocol::{
    CacheMark, Decode, MAX_BLOCKS, Progress, Protocol, frame_failure, loose_value, too_many_blocks,
};
pub use provider::HttpProvider;
