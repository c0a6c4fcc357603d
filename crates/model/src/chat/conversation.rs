//! The messages of a request as JSON, kept from one request to the next.
//!
//! A conversation grows at its end, so only what is new has to be written. What must hold: the text is the same as if
//! it were written anew ([`Conversation::extended`] only reuses what the very same messages came to).

use std::sync::Arc;

use lorimer_protocol::Message;
use serde_json::Result;

use super::request::{push_message, push_system};
use crate::ModelRequest;

/// The written part of a conversation.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    system: Option<String>,
    messages: Vec<Arc<Message>>,
    /// The members of the `messages` array, with commas between them.
    json: Vec<u8>,
}

impl Conversation {
    /// The members of the request's `messages` array.
    ///
    /// # Errors
    /// When a message cannot be written as JSON.
    pub fn extended(&mut self, request: &ModelRequest) -> Result<&[u8]> {
        if !self.begins(request) {
            *self = Self { system: request.system.clone(), ..Self::default() };
            push_system(&mut self.json, request.system.as_deref())?;
        }
        for message in &request.messages[self.messages.len()..] {
            push_message(&mut self.json, message)?;
            self.messages.push(Arc::clone(message));
        }
        Ok(&self.json)
    }

    /// Whether the request begins with what is written already.
    fn begins(&self, request: &ModelRequest) -> bool {
        !self.json.is_empty()
            && self.system == request.system
            && self.messages.len() <= request.messages.len()
            && self.messages.iter().zip(&request.messages).all(|(written, asked)| Arc::ptr_eq(written, asked))
    }
}
