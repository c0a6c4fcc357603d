//! Images of a session: files named by their content, beside the log.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The folder of a session's images.
const FOLDER: &str = "attachments";
/// What every id begins with.
const PREFIX: &str = "sha256:";

/// The images of one session.
#[derive(Clone, Debug)]
pub struct Attachments {
    folder: PathBuf,
}

impl Attachments {
    /// The images in a session's folder. Nothing is created before the first is stored.
    pub fn of(session_directory: &Path) -> Self {
        Self { folder: session_directory.join(FOLDER) }
    }

    /// Stores bytes and returns their id, `sha256:<hex>`. The same bytes are stored once.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn store(&self, bytes: &[u8]) -> std::io::Result<String> {
        let name: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let path = self.folder.join(&name);
        if !path.is_file() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let staged = self.folder.join(format!("{name}.{}.tmp", uuid::Uuid::new_v4().simple()));
            let mut file =
                std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&staged)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            std::fs::rename(&staged, &path)?;
        }
        Ok(format!("{PREFIX}{name}"))
    }

    /// Gives every image a second name in another session's folder.
    pub(crate) fn share_with(&self, other: &Self) -> std::io::Result<()> {
        if !self.folder.is_dir() {
            return Ok(());
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&other.folder)?;
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            std::fs::hard_link(entry.path(), other.folder.join(entry.file_name()))?;
        }
        Ok(())
    }

    /// The bytes of an id; `None` when they are not here, or are not what the id says.
    pub fn load(&self, id: &str) -> Option<Vec<u8>> {
        let name = id.strip_prefix(PREFIX)?;
        if name.len() != 64 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let bytes = std::fs::read(self.folder.join(name)).ok()?;
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        (digest == name).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_by_their_content_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let images = Attachments::of(dir.path());
        let id = images.store(b"bytes").expect("stored");
        assert_eq!(images.store(b"bytes").expect("stored"), id);
        assert_eq!(images.load(&id).as_deref(), Some(&b"bytes"[..]));
        assert_eq!(images.load("sha256:../../etc/passwd"), None);
        std::fs::write(dir.path().join(FOLDER).join(&id[7..]), "other").expect("written");
        assert_eq!(images.load(&id), None);
    }
}
