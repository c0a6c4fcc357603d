//! What a protocol has to say for itself.

use std::fmt::Debug;
use std::sync::Arc;

use lorimer_protocol::{Failure, Message, StreamChunk, ToolSpec};
use reqwest::header::{HeaderMap, InvalidHeaderValue};
use serde_json::Value;

use super::{ApiKey, ProviderConfig};
use crate::{ModelError, ModelRequest};

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Content is still to come.
    Open,
    /// The finish reason is known; counts may follow.
    Finishing,
    /// The server said that this was all.
    Done,
}

/// Which messages a server is told to keep in its cache, and how. All other messages are written without it, so that a
/// message once written never changes.
#[derive(Clone, Copy, Debug)]
pub struct CacheMark {
    /// How many of the last messages that are not the model's own are marked.
    pub messages: usize,
    /// What is put into a message.
    pub text: &'static str,
    /// How many bytes before the message's end it is put.
    pub before_end: usize,
}

/// A way to ask a server for a reply. Everything here is pure.
pub trait Protocol: Debug + Default + Send + Sync + 'static {
    /// Reads the answer.
    type Decoder: Decode;

    /// What people call it.
    const NAME: &'static str;

    /// How messages are marked for the server's cache, if they are.
    const CACHE_MARK: Option<CacheMark> = None;

    /// What is appended to a base URL that does not end in a slash.
    fn path(base_url: &str) -> &'static str;

    /// Adds the headers that are this protocol's own, and the key where there is one.
    ///
    /// # Errors
    /// When the key cannot stand in a header.
    fn add_headers(headers: &mut HeaderMap, key: Option<&ApiKey>) -> Result<(), InvalidHeaderValue>;

    /// Adds what precedes the first message, to the members of a `messages` array.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    fn push_system(json: &mut Vec<u8>, system: Option<&str>) -> serde_json::Result<()>;

    /// How many of these messages (of which there is at least one) are written together. It must not depend on more
    /// than these messages, and not on anything after the first that is not of the group.
    fn group(messages: &[Arc<Message>]) -> usize;

    /// Adds what a group comes to, to the members of a `messages` array. It depends on the group, the settings and
    /// the request's model alone.
    ///
    /// # Errors
    /// When a message cannot be written as JSON.
    fn push_group(
        json: &mut Vec<u8>,
        group: &[Arc<Message>],
        request: &ModelRequest,
        config: &ProviderConfig,
    ) -> serde_json::Result<()>;

    /// The `tools` array.
    ///
    /// # Errors
    /// When a tool cannot be written as JSON.
    fn tools(tools: &[ToolSpec]) -> serde_json::Result<Vec<u8>>;

    /// Every other member of the body, as an object with at least one member.
    ///
    /// # Errors
    /// [`ModelError::UnsupportedEffort`] when the provider does not offer the effort that is asked for.
    fn settings(request: &ModelRequest, config: &ProviderConfig) -> Result<Vec<u8>, ModelError>;
}

/// The frames of one stream to chunks: a state machine without I/O.
pub trait Decode: Debug + Default + Send + 'static {
    /// Takes the data of one event, named `name` when it has a name, and appends the chunks it makes.
    ///
    /// # Errors
    /// A failure in the server's words when the event is an error, or `MALFORMED_RESPONSE` when it is no frame.
    fn frame(
        &mut self,
        name: &str,
        data: &str,
        chunks: &mut impl Extend<StreamChunk>,
    ) -> Result<Progress, Failure>;

    /// How far the stream is.
    fn progress(&self) -> Progress;

    /// Ends the stream: closes the blocks, then counts, then the finish.
    fn end(self, chunks: &mut impl Extend<StreamChunk>);
}

/// Most blocks of one reply: no model makes a thousand calls at once, and finding a block takes time for each.
pub(crate) const MAX_BLOCKS: usize = 1024;

/// The failure of a reply with more than [`MAX_BLOCKS`].
pub(crate) fn too_many_blocks() -> Failure {
    let message = format!("the server sent more than {MAX_BLOCKS} blocks in one reply");
    Failure::new("MALFORMED_RESPONSE", message)
}

/// The failure that a frame is when it stands alone, if it is one.
pub(crate) fn frame_failure<D: Decode>(name: &str, data: &str) -> Option<Failure> {
    D::default().frame(name, data, &mut Vec::new()).err()
}

/// The JSON value of a text, or the text itself when it is none.
pub(crate) fn loose_value(data: &str) -> Value {
    serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned()))
}
