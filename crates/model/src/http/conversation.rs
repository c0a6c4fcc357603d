//! The messages of a request as JSON, kept from one request to the next.
//!
//! A conversation grows at its end, so only what is new has to be written. What must hold: the text is the same as if
//! it were written anew: only what the very same messages and tools came to is used again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lorimer_protocol::{Message, Role, ToolSpec};
use serde_json::Result;

use super::{CacheMark, Protocol, ProviderConfig};
use crate::{Attachment, ModelError, ModelRequest};

/// What every body begins with.
const BODY_HEAD: &[u8] = b"{\"messages\":[";
/// Room for what is in a body between messages, tools and settings.
const NAMES_BYTES: usize = 64;

/// The written part of a conversation.
#[derive(Debug, Default)]
pub struct Conversation {
    begun: bool,
    system: Option<String>,
    shows_images: bool,
    attachments: Arc<BTreeMap<String, Attachment>>,
    messages: Vec<Arc<Message>>,
    /// The members of the `messages` array, with commas between them.
    json: Vec<u8>,
    /// Where the last group begins, which may grow: in `messages` and in `json`.
    last_group: Option<(usize, usize)>,
    /// Where in `json` the messages end that are not the model's own.
    ends: Vec<usize>,
    /// The last body, whose room and beginning the next one takes over once it is sent.
    last_body: Bytes,
    /// How much of `json` the last body begins with.
    in_last_body: usize,
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
    ) -> std::result::Result<Bytes, ModelError> {
        let settings = P::settings(request, config)?;
        self.join::<P>(request, config, &settings).map_err(|error| config.unwritable(&error))
    }

    /// `{"messages":[…],"tools":[…],` and then the members of the settings.
    fn join<P: Protocol>(
        &mut self,
        request: &ModelRequest,
        config: &ProviderConfig,
        settings: &[u8],
    ) -> Result<Bytes> {
        self.extend::<P>(request, config)?;
        self.take_tools::<P>(request)?;
        let marks = P::CACHE_MARK.map_or(0, |mark| mark.messages * mark.text.len());
        let size = self.json.len() + marks + self.tools_json.len() + settings.len() + NAMES_BYTES;
        let (mut body, begun) = self.begin_body(size);
        self.push_messages(&mut body, P::CACHE_MARK, begun);
        body.extend_from_slice(b"],");
        if !self.tools_json.is_empty() {
            body.extend_from_slice(b"\"tools\":");
            body.extend_from_slice(&self.tools_json);
            body.extend_from_slice(b",");
        }
        body.extend_from_slice(settings.get(1..).unwrap_or_default());
        let body = body.freeze();
        // Marks stand at other places next time.
        self.in_last_body = if P::CACHE_MARK.is_none() { self.json.len() } else { 0 };
        self.last_body = body.clone();
        Ok(body)
    }

    /// A body that begins with as much of `json` as the last one has of it, and how much that is.
    fn begin_body(&mut self, size: usize) -> (BytesMut, usize) {
        match std::mem::take(&mut self.last_body).try_into_mut() {
            Ok(mut body) if self.in_last_body > 0 => {
                body.truncate(BODY_HEAD.len() + self.in_last_body);
                body.reserve(size.saturating_sub(self.in_last_body));
                (body, self.in_last_body)
            }
            _ => {
                let mut body = BytesMut::with_capacity(size);
                body.extend_from_slice(BODY_HEAD);
                (body, 0)
            }
        }
    }

    fn extend<P: Protocol>(&mut self, request: &ModelRequest, config: &ProviderConfig) -> Result<()> {
        let shows_images = config.accepts_images(&request.config.model);
        if !self.begins(request, shows_images) {
            *self = Self {
                begun: true,
                system: request.system.clone(),
                shows_images,
                attachments: Arc::clone(&request.attachments),
                tools: Arc::clone(&self.tools),
                tools_json: std::mem::take(&mut self.tools_json),
                ..Self::default()
            };
            P::push_system(&mut self.json, request.system.as_deref())?;
        } else if let Some((first, start)) = self.last_group.take() {
            self.messages.truncate(first);
            self.json.truncate(start);
            self.in_last_body = self.in_last_body.min(start);
            self.ends.retain(|end| *end <= start);
        }
        while let Some(rest @ [_, ..]) = request.messages.get(self.messages.len()..) {
            let group = &rest[..P::group(rest).clamp(1, rest.len())];
            let start = self.json.len();
            self.last_group = Some((self.messages.len(), start));
            P::push_group(&mut self.json, group, request, config)?;
            if self.json.len() > start && group.iter().all(|message| message.role != Role::Assistant) {
                self.ends.push(self.json.len());
            }
            self.messages.extend_from_slice(group);
        }
        Ok(())
    }

    /// Adds the messages to a body that has the first `begun` bytes of them, the last ones marked for the cache.
    fn push_messages(&self, body: &mut BytesMut, mark: Option<CacheMark>, begun: usize) {
        let mut from = begun;
        if let Some(CacheMark { messages, text, before_end }) = mark {
            for end in &self.ends[self.ends.len().saturating_sub(messages)..] {
                let at = end.saturating_sub(before_end);
                body.extend_from_slice(&self.json[from..at]);
                body.extend_from_slice(text.as_bytes());
                from = at;
            }
        }
        body.extend_from_slice(&self.json[from..]);
    }

    fn take_tools<P: Protocol>(&mut self, request: &ModelRequest) -> Result<()> {
        if !Arc::ptr_eq(&self.tools, &request.tools) {
            self.tools_json = if request.tools.is_empty() { Vec::new() } else { P::tools(&request.tools)? };
            self.tools = Arc::clone(&request.tools);
        }
        Ok(())
    }

    /// Whether the request begins with what is written already.
    fn begins(&self, request: &ModelRequest, shows_images: bool) -> bool {
        self.begun
            && self.system == request.system
            && self.shows_images == shows_images
            && (Arc::ptr_eq(&self.attachments, &request.attachments)
                || self.attachments == request.attachments)
            && self.messages.len() <= request.messages.len()
            && self.messages.iter().zip(&request.messages).all(|(written, asked)| Arc::ptr_eq(written, asked))
    }
}

#[cfg(test)]
mod tests {
    use lorimer_protocol::{ContentBlock, ImageBlock, Source, ToolResultBlock};
    use serde_json::json;

    use super::*;
    use crate::chat::Chat;
    use crate::http::ProviderModel;
    use crate::messages::Messages;

    fn result(id: &str) -> Arc<Message> {
        let attachment = json!({"attachmentId":"sha256:0123456789"});
        let image = ContentBlock::Image(ImageBlock { attachment, ..ImageBlock::default() });
        let block =
            ToolResultBlock { tool_call_id: id.into(), content: vec![image], ..ToolResultBlock::default() };
        let content = vec![ContentBlock::ToolResult(block)];
        Arc::new(Message { content, ..Message::user_text("r", "", Source::user()) })
    }

    fn config() -> ProviderConfig {
        let mut config = ProviderConfig::new("p", "P", "http://h");
        let sees = ProviderModel { id: "sees".into(), accepts_images: true, ..ProviderModel::default() };
        config.models.push(sees);
        config
    }

    fn kept_is_as_good_as_new<P: Protocol>() {
        let user = |text: &str| Arc::new(Message::user_text("u", text, Source::user()));
        let reply = Message { role: Role::Assistant, ..Message::user_text("a", "reply", Source::user()) };
        let log = [user("one"), Arc::new(reply), result("a"), result("b"), user("two"), user("three")];
        let png = Attachment { media_type: "image/png".into(), base64: "AAAA".into() };
        let shown = Arc::new(BTreeMap::from([("sha256:0123456789".to_owned(), png)]));
        let steps = [
            (1, "m", false),
            (3, "m", false),
            (4, "m", false),
            (4, "sees", false),
            (5, "sees", true),
            (6, "sees", true),
            (6, "m", true),
            (3, "m", false),
            (0, "m", false),
            (6, "sees", true),
        ];
        let mut kept = Conversation::default();
        for (length, model, with_bytes) in steps {
            let mut request = ModelRequest { messages: log[..length].to_vec(), ..ModelRequest::default() };
            request.config.model = model.into();
            if with_bytes {
                request.attachments = Arc::clone(&shown);
            }
            let anew = Conversation::default().body::<P>(&request, &config()).unwrap();
            assert_eq!(kept.body::<P>(&request, &config()).unwrap(), anew, "{length} {model}");
            let body: serde_json::Value = serde_json::from_slice(&anew).unwrap();
            let sends_image = body.to_string().contains("AAAA");
            assert_eq!(sends_image, with_bytes && model == "sees" && length > 2, "{body}");
        }
    }

    #[test]
    fn what_is_kept_gives_the_bytes_of_what_is_new() {
        kept_is_as_good_as_new::<Chat>();
        kept_is_as_good_as_new::<Messages>();
    }

    #[test]
    fn images_of_the_messages_protocol_stand_in_their_place() {
        let png = Attachment { media_type: "image/png".into(), base64: "AAAA".into() };
        let mut request = ModelRequest { messages: vec![result("a")], ..ModelRequest::default() };
        let content = |request: &ModelRequest| -> serde_json::Value {
            let body = Conversation::default().body::<Messages>(request, &config()).unwrap();
            serde_json::from_slice::<serde_json::Value>(&body).unwrap()["messages"][0]["content"][0]["content"].take()
        };
        request.config.model = "sees".into();
        let omitted = "[image omitted because this model accepts text only; attachment sha256:01234567]";
        assert_eq!(content(&request), omitted);
        request.attachments = Arc::new(BTreeMap::from([("sha256:0123456789".to_owned(), png)]));
        let source = json!({"type":"base64","media_type":"image/png","data":"AAAA"});
        assert_eq!(content(&request), json!([{"type":"image","source":source}]));
    }
}
