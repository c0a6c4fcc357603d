//! Images of a request: which are sent, and the text of blocks with what stands for the other images.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lorimer_protocol::{ContentBlock, ImageBlock};
use serde_json::Value;

use crate::ModelRequest;
use crate::http::ProviderConfig;

/// How much of an image's digest its placeholder names, in characters.
const DIGEST_CHARS: usize = 8;

/// The bytes of an image, ready to be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// `image/png`, `image/jpeg`, ….
    pub media_type: String,
    /// The bytes in standard base64 with padding.
    pub base64: String,
}

/// The images that a request may show. Without any when its model takes text only.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Images<'a> {
    attachments: Option<&'a BTreeMap<String, Attachment>>,
}

impl<'a> Images<'a> {
    /// What the request's model may be shown.
    pub(crate) fn of(request: &'a ModelRequest, config: &ProviderConfig) -> Self {
        let accepted = config.accepts_images(&request.config.model);
        Self { attachments: accepted.then_some(&*request.attachments) }
    }

    /// The bytes of a block, when it is an image that is sent.
    pub(crate) fn find(&self, block: &ContentBlock) -> Option<&'a Attachment> {
        match block {
            ContentBlock::Image(image) => self.attachments?.get(attachment_id(image)),
            _ => None,
        }
    }
}

/// What stands for an image that is not sent. The same image always gives the same text.
pub(crate) fn placeholder(image: &ImageBlock) -> String {
    format!("[image omitted because this model accepts text only; attachment sha256:{}]", short_digest(image))
}

/// The first hexadecimal characters of an image's digest.
pub(crate) fn short_digest(image: &ImageBlock) -> String {
    let id = attachment_id(image);
    let digest = id.strip_prefix("sha256:").unwrap_or(id);
    digest.chars().filter(char::is_ascii_hexdigit).take(DIGEST_CHARS).collect()
}

fn attachment_id(image: &ImageBlock) -> &str {
    image.attachment.get("attachmentId").and_then(Value::as_str).unwrap_or_default()
}

/// The text of blocks; images are the text that stands for them.
pub(crate) fn shown_text(blocks: &[ContentBlock]) -> Cow<'_, str> {
    text_of(blocks, |_, image| placeholder(image))
}

/// The text of blocks, joined without a separator; what stands for an image is a line of its own.
pub(crate) fn text_of(
    blocks: &[ContentBlock],
    stand_in: impl Fn(&ContentBlock, &ImageBlock) -> String,
) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed("");
    let mut after_image = false;
    for block in blocks {
        match block {
            ContentBlock::Text(block) if !block.text.is_empty() => {
                if std::mem::take(&mut after_image) && !block.text.starts_with('\n') {
                    append(&mut shown, "\n");
                }
                append(&mut shown, &block.text);
            }
            ContentBlock::Image(image) => {
                if !shown.is_empty() && !shown.ends_with('\n') {
                    append(&mut shown, "\n");
                }
                shown.to_mut().push_str(&stand_in(block, image));
                after_image = true;
            }
            _ => {}
        }
    }
    shown
}

/// Appends without a copy while there is only one piece.
pub(crate) fn append<'a>(text: &mut Cow<'a, str>, more: &'a str) {
    match more {
        "" => {}
        _ if text.is_empty() => *text = Cow::Borrowed(more),
        _ => text.to_mut().push_str(more),
    }
}
