//! Putting new content in place in one step.
//!
//! The content is staged beside the target and moved over it, so that no one ever sees half of it. The target is the
//! file itself, never a link to it: a link stays a link. A file with several names (hard links) gets a new inode under
//! this name and keeps the old content under the others: that is what keeps a workspace from reaching, through a
//! second name, a file that is outside of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RawMode, RenameFlags, Uid, fchmod, fchown, linkat, openat, renameat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::facts::FileFacts;
use super::place::{Place, sync_folder};

/// How much is written between two looks at the cancel token, in bytes.
const WRITE_CHUNK_BYTES: usize = 1024 * 1024;

/// Longest part of the target's name in the staging name, in bytes; names end at 255.
const STAGING_NAME_BYTES: usize = 100;

/// Mode of a staged file that replaces another, until it gets the other's.
const PRIVATE_MODE: u32 = 0o600;

/// Mode of a new file; the system takes the umask off.
const NEW_FILE_MODE: u32 = 0o666;

const STAGED_FLAGS: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// New content and what must hold for it to be put in place.
pub(crate) struct Publication<'a> {
    /// Where it goes.
    pub place: &'a mut Place,
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
pub(crate) fn publish(publication: Publication<'_>) -> io::Result<Published> {
    let Publication { place, content, replaces, cancel } = publication;
    place.make_folder()?;
    let mut staged = Staged::create(place, replaces.is_none())?;
    for chunk in content.chunks(WRITE_CHUNK_BYTES) {
        if cancel.is_cancelled() {
            return Ok(Published::Aborted);
        }
        staged.file.write_all(chunk)?;
    }
    if let Some(before) = replaces {
        staged.take_owner_and_mode(before)?;
    }
    staged.file.sync_all()?;
    if cancel.is_cancelled() {
        return Ok(Published::Aborted);
    }
    match replaces {
        Some(before) => staged.replace(before),
        None => staged.create_only(),
    }
}
/// A staged file; it is removed unless it was moved into place.
struct Staged<'a> {
    file: File,
    name: String,
    place: &'a Place,
    folder: &'a OwnedFd,
    moved: bool,
}

impl<'a> Staged<'a> {
    fn create(place: &'a Place, is_new: bool) -> io::Result<Self> {
        let folder = place.folder()?;
        let name = staging_name(place.name());
        let mode = Mode::from_raw_mode((if is_new { NEW_FILE_MODE } else { PRIVATE_MODE }) as RawMode);
        let file = File::from(openat(folder, &name, STAGED_FLAGS, mode)?);
        Ok(Self { file, name, place, folder, moved: false })
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
        fchmod(&self.file, Mode::from_raw_mode(before.mode as RawMode))?;
        Ok(())
    }

    fn replace(mut self, before: &FileFacts) -> io::Result<Published> {
        // Staging took a while; this is the last look.
        if self.place.facts()?.is_none_or(|now| now.version != before.version) {
            return Ok(Published::Changed);
        }
        renameat(self.folder, &self.name, self.folder, self.place.name())?;
        self.moved = true;
        self.done()
    }

    fn create_only(mut self) -> io::Result<Published> {
        let (folder, name) = (self.folder, self.place.name());
        match linkat(folder, &self.name, folder, name, AtFlags::empty()) {
            Ok(()) => unlinkat(folder, &self.name, AtFlags::empty())?,
            Err(Errno::EXIST) => return Ok(Published::Exists),
            // Not every file system has hard links.
            Err(_) => match renameat_with(folder, &self.name, folder, name, RenameFlags::NOREPLACE) {
                Ok(()) => {}
                Err(Errno::EXIST) => return Ok(Published::Exists),
                Err(error) => return Err(error.into()),
            },
        }
        self.moved = true;
        self.done()
    }

    fn done(&self) -> io::Result<Published> {
        // The change is on disk only with its folder's entry.
        sync_folder(self.folder);
        Ok(Published::Done(FileFacts::of(&self.file.metadata()?)))
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if !self.moved {
            let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

fn staging_name(target: &OsStr) -> String {
    let base = target.to_string_lossy();
    let mut end = base.len().min(STAGING_NAME_BYTES);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!(".{}.{}.{}.tmp", &base[..end], std::process::id(), Uuid::new_v4())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use super::*;

    fn put(path: &Path, content: &str, replaces: Option<&FileFacts>) -> Published {
        let cancel = CancellationToken::new();
        let mut place = Place::of(path).unwrap();
        let content = content.as_bytes();
        publish(Publication { place: &mut place, content, replaces, cancel: &cancel }).unwrap()
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
        let mut place = Place::of(&path).unwrap();
        let publication = Publication { place: &mut place, content: b"x", replaces: None, cancel: &cancel };
        assert!(matches!(publish(publication).unwrap(), Published::Aborted));
        assert!(names(folder.path()).is_empty());
    }
}
