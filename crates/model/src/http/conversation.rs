//! The messages of a request as JSON, kept from one request to the next.
//!
//! A conversation grows at its end, so only what is new has to be written. What must hold: the text is the same as if
//! it were written anew: only what the very same messages and tools came to is used again.

use std::sync::Arc;

use lorimer_protocol::{Message, ToolSpec};
use serde_json::Result;

use super::{Protocol, ProviderConfig};
use crate::{ModelError, ModelRequest};

/// The written part of a conversation.
#[derive(Debug, Default)]
pub struct Conversation {
    begun: bool,
    system: Option<String>,
    messages: Vec<Arc<Message>>,
    /// The members of the `messages` array, with commas between them.
    json: Vec<u8>,
    /// Where the last group begins, which may grow: in `messages` and in `json`.
    last_group: Option<(usize, usize)>,
    tools: Arc<Vec<ToolSpec>>,
    /// The `tools` array; empty when there are none.
    tools_json: Vec<u8>,
}

impl Conversation {
    /// The bytes of a request's body: the messages, which may have been written in part already, then the settings.
    ///
    /// # Errors
    /// [`ModelError::UnsupportedEffort`] when the provider does not offer the effort that is asked for.
    pub fn body<P: Protocol>(
        &mut self,
        request: &ModelRequest,
        config: &ProviderConfig,
    ) -> std::result::Result<Vec<u8>, ModelError> {
        let settings = P::settings(request, config)?;
        self.join::<P>(request, config, &settings).map_err(|error| config.unwritable(&error))
    }

    /// `{"messages":[…],"tools":[…],` and then the members of the settings.
    fn join<P: Protocol>(
        &mut self,
        request: &ModelRequest,
        config: &ProviderConfig,
        settings: &[u8],
    ) -> Result<Vec<u8>> {
        let mut body = b"{\"messages\":[".to_vec();
        self.extend::<P>(request, config)?;
        body.extend_from_slice(&self.json);
        body.extend_from_slice(b"],");
        self.take_tools::<P>(request)?;
        if !self.tools_json.is_empty() {
            body.extend_from_slice(b"\"tools\":");
            body.extend_from_slice(&self.tools_json);
            body.push(b',');
        }
        body.extend_from_slice(settings.get(1..).unwrap_or_default());
        Ok(body)
    }

    fn extend<P: Protocol>(&mut self, request: &ModelRequest, config: &ProviderConfig) -> Result<()> {
        if !self.begins(request) {
            *self = Self {
                begun: true,
                system: request.system.clone(),
                tools: Arc::clone(&self.tools),
                tools_json: std::mem::take(&mut self.tools_json),
                ..Self::default()
            };
            P::push_system(&mut self.json, request.system.as_deref())?;
        } else if let Some((first, start)) = self.last_group.take() {
            self.messages.truncate(first);
            self.json.truncate(start);
        }
        while let Some(rest @ [_, ..]) = request.messages.get(self.messages.len()..) {
            let group = &rest[..P::group(rest).clamp(1, rest.len())];
            self.last_group = Some((self.messages.len(), self.json.len()));
            P::push_group(&mut self.json, group, request, config)?;
            self.messages.extend_from_slice(group);
        }
        Ok(())
    }

    fn take_tools<P: Protocol>(&mut self, request: &ModelRequest) -> Result<()> {
        if !Arc::ptr_eq(&self.tools, &request.tools) {
            self.tools_json = if request.tools.is_empty() { Vec::new() } else { P::tools(&request.tools)? };
            self.tools = Arc::clone(&request.tools);
        }
        Ok(())
    }

    /// Whether the request begins with what is written already.
    fn begins(&self, request: &ModelRequest) -> bool {
        self.begun
            && self.system == request.system
            && self.messages.len() <= request.messages.len()
            && self.messages.iter().zip(&request.messages).all(|(written, asked)| Arc::ptr_eq(written, asked))
    }
}
