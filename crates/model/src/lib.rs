//! Model providers behind one trait: a request goes in, [`StreamChunk`](lorimer_protocol::StreamChunk)s come out.
//!
//! What must hold:
//! - A stream ends with exactly one `finish` chunk; every failure is a `finish` of kind `error` in the server's words.
//!   Success needs a finish reason from the server.
//! - A request is a pure function of its [`ModelRequest`]; nothing else about the person or the session is sent.
//! - Retries are not made here: they belong to the loop.

mod assembler;
mod chat;
mod estimate;
mod failure;
mod http;
mod images;
mod messages;
mod offline;
mod prices;
mod provider;
mod registry;
mod sse;

pub use assembler::{Assembled, Assembler};
pub use chat::{ChatConfig, ChatModel, ChatOverrides, ChatProvider, DEEPSEEK_ROUTE, deepseek};
pub use estimate::{estimate_header_tokens, estimate_message_tokens};
pub use http::{
    ApiKey, ChatDialect, EffortStyle, HttpProvider, ProviderConfig, ProviderModel, ProviderOverrides,
    ThinkingMode,
};
pub use images::Attachment;
pub use messages::{
    ANTHROPIC_ROUTE, MessagesConfig, MessagesModel, MessagesOverrides, MessagesProvider, anthropic,
};
pub use offline::{
    Difference, OFFLINE_ROUTE, OfflineProvider, PLANNER_MODEL, PlannedCall, PlannedTurn, REPLAY_ROUTE,
    RecordedReply, ReplayProvider, result_text,
};
pub use prices::{Prices, cost_usd};
pub use provider::{ChunkStream, ModelError, ModelInfo, ModelRequest, Provider, RetryPolicy};
pub use registry::{Registry, split_route};
