//! `--image FILE`: pictures for the model.

use std::path::Path;

use imagesize::ImageType;
use lorimer_protocol::{ContentBlock, Extra, ImageBlock};
use lorimer_session::{Attachments, Session};
use serde_json::json;

use crate::exit::CommandError;

/// Largest image, in bytes.
const MAX_IMAGE_BYTES: u64 = 20 * 1024 * 1024;

/// An image that was read and looks like one.
pub struct Image {
    bytes: Vec<u8>,
    media_type: &'static str,
    width: usize,
    height: usize,
    name: Option<String>,
}

impl Image {
    /// Reads a PNG, JPEG, WebP or GIF file.
    ///
    /// # Errors
    /// When it cannot be read, is too large, or is no such image.
    pub fn read(path: &Path) -> Result<Self, CommandError> {
        let unusable =
            |why: String| CommandError::usage(format!("cannot show {} to the model: {why}", path.display()));
        let metadata = std::fs::metadata(path).map_err(|error| unusable(error.to_string()))?;
        if !metadata.is_file() || metadata.len() > MAX_IMAGE_BYTES {
            return Err(unusable(format!("it must be a file of at most {MAX_IMAGE_BYTES} bytes")));
        }
        let bytes = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
        let media_type = match imagesize::image_type(&bytes) {
            Ok(ImageType::Png) => "image/png",
            Ok(ImageType::Jpeg) => "image/jpeg",
            Ok(ImageType::Webp) => "image/webp",
            Ok(ImageType::Gif) => "image/gif",
            _ => return Err(unusable("it is no PNG, JPEG, WebP or GIF image".to_owned())),
        };
        let size = imagesize::blob_size(&bytes).map_err(|error| unusable(error.to_string()))?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { bytes, media_type, width: size.width, height: size.height, name })
    }

    /// Stores the bytes with the session and gives the block that stands for them.
    ///
    /// # Errors
    /// When they cannot be stored.
    pub fn into_block(self, session: &Session) -> Result<ContentBlock, CommandError> {
        let folder = session
            .directory()
            .ok_or_else(|| CommandError::failed("this session is not saved, so it cannot hold images"))?;
        let id = Attachments::of(folder).store(&self.bytes).map_err(|error| {
            CommandError::failed(format!("cannot store an image in {}: {error}", folder.display()))
        })?;
        let attachment = json!({
            "attachmentId": id, "mediaType": self.media_type, "bytes": self.bytes.len(),
            "width": self.width, "height": self.height, "name": self.name,
        });
        Ok(ContentBlock::Image(ImageBlock { attachment, extra: Extra::new() }))
    }
}
