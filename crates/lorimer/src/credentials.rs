//! Keys that `lorimer login` stored: a file of the home that only its owner can read.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use toml_edit::DocumentMut;

use crate::exit::CommandError;

/// The file's name in the home.
pub const FILE_NAME: &str = "credentials.toml";
/// The table of keys, by the variable they stand for.
const KEYS: &str = "keys";

/// The stored keys.
pub struct Credentials {
    path: PathBuf,
    document: DocumentMut,
}

impl Credentials {
    /// Reads the stored keys; none are there before the first login.
    ///
    /// # Errors
    /// When the file cannot be read, is not TOML, or can be read by others.
    pub fn load(home: &Path) -> Result<Self, CommandError> {
        let path = home.join(FILE_NAME);
        let unusable = |why: String| CommandError::usage(format!("cannot use {}: {why}", path.display()));
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(unusable(error.to_string())),
        };
        if let Ok(metadata) = std::fs::metadata(&path)
            && metadata.permissions().mode() & 0o077 != 0
        {
            return Err(unusable("others can read it; make it yours alone with chmod 600".to_owned()));
        }
        // The text holds keys, so no part of it goes into the complaint.
        let document = text
            .parse()
            .map_err(|_| unusable("it is not valid TOML; log in again after moving it away".to_owned()))?;
        Ok(Self { path, document })
    }

    /// The key that stands for a variable.
    pub fn get(&self, variable: &str) -> Option<String> {
        self.document.get(KEYS)?.get(variable)?.as_str().map(str::to_owned)
    }

    /// Stores a key. The file appears with its final mode and content at once.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn store(&mut self, variable: &str, key: &str) -> Result<&Path, CommandError> {
        self.document[KEYS][variable] = toml_edit::value(key);
        self.write().map_err(|error| {
            CommandError::failed(format!("cannot write {}: {error}", self.path.display()))
        })?;
        Ok(&self.path)
    }

    fn write(&self) -> std::io::Result<()> {
        let home = self.path.parent().unwrap_or(Path::new("."));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(home)?;
        let staged = self.path.with_extension(format!("toml.{}.tmp", std::process::id()));
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&staged)?;
        let written = file
            .write_all(self.document.to_string().as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| std::fs::rename(&staged, &self.path));
        if written.is_err() {
            let _ = std::fs::remove_file(&staged);
        }
        written
    }
}
