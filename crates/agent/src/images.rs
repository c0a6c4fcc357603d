//! The bytes of images that a request shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lorimer_model::{Attachment, ModelRequest};
use lorimer_protocol::{ContentBlock, ImageBlock, Message};
use lorimer_session::Attachments;

/// The images that were read so far. They are named by their content, so they never change.
#[derive(Default)]
pub(crate) struct Images(Mutex<Arc<BTreeMap<String, Attachment>>>);

impl Images {
    /// Gives a request the bytes of its images. One that is not there any more is told by its placeholder.
    pub fn fill(&self, request: &mut ModelRequest, stored: Option<&Attachments>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let missing: Vec<(String, String)> = request
            .messages
            .iter()
            .flat_map(|message| images_of(message))
            .filter_map(|image| Some((text(image, "attachmentId")?, text(image, "mediaType")?)))
            .filter(|(id, _)| !known.contains_key(id))
            .collect();
        for (id, media_type) in missing {
            if let Some(bytes) = stored.and_then(|stored| stored.load(&id)) {
                let attachment = Attachment { media_type, base64: STANDARD.encode(bytes) };
                Arc::make_mut(&mut known).insert(id, attachment);
            }
        }
        request.attachments = Arc::clone(&known);
    }
}

fn images_of(message: &Message) -> impl Iterator<Item = &ImageBlock> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(image),
        _ => None,
    })
}

fn text(image: &ImageBlock, key: &str) -> Option<String> {
    image.attachment.get(key)?.as_str().map(str::to_owned)
}
