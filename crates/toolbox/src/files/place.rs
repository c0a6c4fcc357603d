//! Where a change is made: a name in a folder that is held open.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::facts::{FileFacts, READ_FLAGS};
use super::no_links::{make_folder, open_folder};

/// A name in a folder. Everything that is done to a file goes through one of these, so that it is done to one file:
/// the folder is looked up once and then held, whatever becomes of its path.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    name: OsString,
    /// `None` as long as it does not exist.
    folder: Option<OwnedFd>,
}

impl Place {
    /// The place of a resolved path. Its folder need not exist.
    ///
    /// # Errors
    /// What the system says; [`is_off_the_way`](super::is_off_the_way) when it is no longer what it was resolved to.
    pub fn of(real_path: &Path) -> io::Result<Self> {
        // The root is in no folder; it is its own.
        let parent = real_path.parent().unwrap_or(real_path);
        let name = real_path.file_name().unwrap_or(OsStr::new("."));
        let folder = match open_folder(parent) {
            Ok(folder) => Some(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(Self { path: parent.to_owned(), name: name.to_owned(), folder })
    }

    /// The name.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// The folder.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn folder(&self) -> io::Result<&OwnedFd> {
        self.folder.as_ref().ok_or_else(|| Errno::NOENT.into())
    }

    /// Makes the folder when it does not exist.
    pub fn make_folder(&mut self) -> io::Result<()> {
        if self.folder.is_none() {
            self.folder = Some(make_folder(&self.path)?);
        }
        Ok(())
    }

    /// The facts of what is there, `None` when nothing is. A link is what is there, not what it leads to.
    pub fn facts(&self) -> io::Result<Option<FileFacts>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        match statat(folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(seen) => Ok(Some(FileFacts::of_stat(&seen))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens what is there for reading if it is a regular file, like [`open_regular`](super::open_regular).
    pub fn open_regular(&self) -> io::Result<(Option<File>, FileFacts)> {
        let seen = self.facts()?.ok_or(Errno::NOENT)?;
        let Some(folder) = self.folder.as_ref().filter(|_| seen.is_regular) else {
            return Ok((None, seen));
        };
        let file = File::from(openat(folder, &self.name, READ_FLAGS, Mode::empty())?);
        let facts = FileFacts::of(&file.metadata()?);
        Ok((facts.is_regular.then_some(file), facts))
    }
}

/// Brings a folder's entries to the disk. Some systems cannot; then it is as it is.
pub(crate) fn sync_folder(folder: &OwnedFd) {
    let readable = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let _ = openat(folder, ".", readable, Mode::empty()).and_then(rustix::fs::fsync);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_place_stays_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["d", "other"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("f"), name).unwrap();
        }
        let place = Place::of(&root.join("d/f")).unwrap();
        fs::rename(root.join("d"), root.join("moved")).unwrap();
        symlink("other", root.join("d")).unwrap();
        let (file, facts) = place.open_regular().unwrap();
        assert_eq!(io::read_to_string(file.unwrap()).unwrap(), "d");
        assert_eq!(FileFacts::at(&root.join("moved/f")).unwrap().unwrap(), facts);
        assert_eq!(place.facts().unwrap().unwrap(), facts);
        assert!(super::super::is_off_the_way(&Place::of(&root.join("d/f")).unwrap_err()));
    }

    #[test]
    fn only_regular_files_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        crate::files::harness::make_fifo(&root.join("fifo"));
        fs::write(root.join("f"), "").unwrap();
        symlink("f", root.join("link")).unwrap();
        for name in ["fifo", "link", "."] {
            let place =
                Place { path: root.clone(), name: name.into(), folder: Some(open_folder(&root).unwrap()) };
            assert!(place.open_regular().unwrap().0.is_none(), "{name}");
        }
        assert!(!Place::of(Path::new("/")).unwrap().facts().unwrap().unwrap().is_regular);
        let missing = Place::of(&root.join("none/f")).unwrap();
        assert_eq!(missing.facts().unwrap(), None);
        assert_eq!(missing.open_regular().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
