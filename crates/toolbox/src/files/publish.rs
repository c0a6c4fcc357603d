//! Putting new content in place in one step.
//!
//! The content is staged beside the target and moved over it, so that no one ever sees half of it. The target is the
//! file itself, never a link to it: a link stays a link. A file with several names (hard links) gets a new inode under
//! this name and keeps the old content under the others: that is what keeps a workspace from reaching, through a
//! second name, a file that is outside of it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Gid, Mode, RenameFlags, Uid, fchmod, fchown, renameat_with};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::facts::FileFacts;

/// How much is written between two looks at the cancel token, in bytes.
const WRITE_CHUNK_BYTES: usize = 1024 * 1024;

/// Longest part of the target's name in the staging name, in bytes; names end at 255.
const STAGING_NAME_BYTES: usize = 100;

/// Mode of a staged file that replaces another, until it gets the other's.
const PRIVATE_MODE: u32 = 0o600;

/// Mode of a new file; the system takes the umask off.
const NEW_FILE_MODE: u32 = 0o666;

/// New content and what must hold for it to be put in place.
pub(crate) struct Publication<'a> {
    /// Where it goes; no link.
    pub path: &'a Path,
    pub content: &'a [u8],
    /// The file that is replaced; `None`: there must be none.
    pub replaces: Option<&'a FileFacts>,
    pub cancel: &'a CancellationToken,
}

/// How a publication ended.
#[derive(Debug)]
pub(crate) enum Published {
    /// In place, with the new file's facts.
    Done(FileFacts),
    /// Something else is there now. Nothing was changed.
    Changed,
    /// Something is there where nothing was to be. Nothing was changed.
    Exists,
    /// The caller cancelled. Nothing was changed.
    Aborted,
}

/// Puts content in place. Missing parents are made.
///
/// # Errors
/// What the system says; the target is then unchanged.
pub(crate) fn publish(publication: &Publication<'_>) -> io::Result<Published> {
    if let Some(parent) = publication.path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut staged = Staged::create(publication.path, publication.replaces.is_none())?;
    for chunk in publication.content.chunks(WRITE_CHUNK_BYTES) {
        if publication.cancel.is_cancelled() {
            return Ok(Published::Aborted);
        }
        staged.file.write_all(chunk)?;
    }
    if let Some(before) = publication.replaces {
        staged.take_owner_and_mode(before)?;
    }
    staged.file.sync_all()?;
    if publication.cancel.is_cancelled() {
        return Ok(Published::Aborted);
    }
    match publication.replaces {
        Some(before) => staged.replace(publication.path, before),
        None => staged.create_only(publication.path),
    }
}

/// A staged file; it is removed unless it was moved into place.
struct Staged {
    file: File,
    path: PathBuf,
    moved: bool,
}

impl Staged {
    fn create(target: &Path, is_new: bool) -> io::Result<Self> {
        let path = target.with_file_name(staging_name(target));
        let mode = if is_new { NEW_FILE_MODE } else { PRIVATE_MODE };
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        Ok(Self { file, path, moved: false })
    }

    /// Makes the staged file as accessible as the one it replaces. The owner is kept where the system lets us.
    fn take_owner_and_mode(&self, before: &FileFacts) -> io::Result<()> {
        let own = FileFacts::of(&self.file.metadata()?);
        if own.uid != before.uid || own.gid != before.gid {
            let group = Some(Gid::from_raw(before.gid));
            let kept = fchown(&self.file, Some(Uid::from_raw(before.uid)), group);
            // Another person's file: its group alone may still be ours to give.
            let _ = kept.or_else(|_| fchown(&self.file, None, group));
        }
        fchmod(&self.file, Mode::from_raw_mode(before.mode as rustix::fs::RawMode))?;
        Ok(())
    }

    fn replace(mut self, target: &Path, before: &FileFacts) -> io::Result<Published> {
        // Staging took a while; this is the last look.
        if FileFacts::at(target)?.is_none_or(|now| now.version != before.version) {
            return Ok(Published::Changed);
        }
        std::fs::rename(&self.path, target)?;
        self.moved = true;
        self.done()
    }

    fn create_only(mut self, target: &Path) -> io::Result<Published> {
        match std::fs::hard_link(&self.path, target) {
            Ok(()) => std::fs::remove_file(&self.path)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(Published::Exists),
            // Not every file system has hard links.
            Err(_) => match renameat_with(CWD, &self.path, CWD, target, RenameFlags::NOREPLACE) {
                Ok(()) => {}
                Err(rustix::io::Errno::EXIST) => return Ok(Published::Exists),
                Err(error) => return Err(error.into()),
            },
        }
        self.moved = true;
        self.done()
    }

    fn done(&self) -> io::Result<Published> {
        // The change is on disk only with its folder's entry. Some systems cannot sync a folder; then it is as it is.
        if let Some(folder) = self.path.parent() {
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(Published::Done(FileFacts::of(&self.file.metadata()?)))
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.moved {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn staging_name(target: &Path) -> String {
    let base = target.file_name().unwrap_or_default().to_string_lossy();
    let mut end = base.len().min(STAGING_NAME_BYTES);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!(".{}.{}.{}.tmp", &base[..end], std::process::id(), Uuid::new_v4())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    fn put(path: &Path, content: &str, replaces: Option<&FileFacts>) -> Published {
        let cancel = CancellationToken::new();
        publish(&Publication { path, content: content.as_bytes(), replaces, cancel: &cancel }).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_new_file_is_as_open_as_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/new");
        assert!(matches!(put(&path, "x", None), Published::Done(_)));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
        let usual = folder.path().join("usual");
        std::fs::write(&usual, "").unwrap();
        assert_eq!(path.metadata().unwrap().mode(), usual.metadata().unwrap().mode());
        assert_eq!(path.metadata().unwrap().nlink(), 1);
        assert_eq!(names(path.parent().unwrap()), ["new"]);
    }

    #[test]
    fn nothing_is_written_over_what_appeared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "theirs").unwrap();
        assert!(matches!(put(&path, "ours", None), Published::Exists));
        let before = FileFacts::at(&path).unwrap().unwrap();
        std::fs::write(&path, "theirs again").unwrap();
        assert!(matches!(put(&path, "ours", Some(&before)), Published::Changed));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(put(&path, "ours", Some(&before)), Published::Changed));
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_replaced_file_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o755, 0o600, 0o664, 0o4755] {
            let path = folder.path().join(format!("{mode:o}"));
            std::fs::write(&path, "old").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let before = FileFacts::at(&path).unwrap().unwrap();
            let Published::Done(after) = put(&path, "new", Some(&before)) else { panic!() };
            assert_eq!(path.metadata().unwrap().mode() & 0o7777, mode & 0o777);
            assert_eq!(FileFacts::at(&path).unwrap().unwrap(), after);
        }
    }

    #[test]
    fn the_longest_name_can_be_staged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ß".repeat(127));
        assert!(matches!(put(&path, "x", None), Published::Done(_)));
    }

    #[test]
    fn a_cancelled_publication_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = CancellationToken::new();
        cancel.cancel();
        let path = folder.path().join("f");
        let publication = Publication { path: &path, content: b"x", replaces: None, cancel: &cancel };
        assert!(matches!(publish(&publication).unwrap(), Published::Aborted));
        assert!(names(folder.path()).is_empty());
    }
}
