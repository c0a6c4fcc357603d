//! The messages of a request as JSON, kept from one request to the next.
//!
//! A conversation grows at its end, so only what is new has to be written. What must hold: the text is the same as if
//! it were written anew: only what the very same messages and tools came to is used again.

use std::sync::Arc;

use lorimer_protocol::{Message, ToolSpec};
use serde_json::Result;

use super::request::{push_message, push_system, tools_json};
use crate::ModelRequest;

/// The written part of a conversation.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    system: Option<String>,
    messages: Vec<Arc<Message>>,
    /// The members of the `messages` array, with commas between them.
    json: Vec<u8>,
    tools: Arc<Vec<ToolSpec>>,
    /// The `tools` array; empty when there are none.
    tools_json: Vec<u8>,
}

impl Conversation {
    /// The members of the request's `messages` array.
    ///
    /// # Errors
    /// When a message cannot be written as JSON.
    pub fn extended(&mut self, request: &ModelRequest) -> Result<&[u8]> {
        if !self.begins(request) {
            self.system.clone_from(&request.system);
            self.messages.clear();
            self.json.clear();
            push_system(&mut self.json, request.system.as_deref())?;
        }
        for message in &request.messages[self.messages.len()..] {
            push_message(&mut self.json, message)?;
            self.messages.push(Arc::clone(message));
        }
        Ok(&self.json)
    }

    /// The request's `tools` array; empty when it has none.
    ///
    /// # Errors
    /// When a tool cannot be written as JSON.
    pub fn tools(&mut self, request: &ModelRequest) -> Result<&[u8]> {
        if !Arc::ptr_eq(&self.tools, &request.tools) {
            self.tools_json = if request.tools.is_empty() { Vec::new() } else { tools_json(&request.tools)? };
            self.tools = Arc::clone(&request.tools);
        }
        Ok(&self.tools_json)
    }

    /// Whether the request begins with what is written already.
    fn begins(&self, request: &ModelRequest) -> bool {
        !self.json.is_empty()
            && self.system == request.system
            && self.messages.len() <= request.messages.len()
            && self.messages.iter().zip(&request.messages).all(|(written, asked)| Arc::ptr_eq(written, asked))
    }
}
