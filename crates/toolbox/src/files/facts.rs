//! What the system says of a file, and opening one without waiting.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FileType, OFlags, Stat};

use super::no_links;

/// How a file is opened for reading: without waiting, and without following a link.
pub(crate) const READ_FLAGS: OFlags =
    OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What is known of a file from one `stat`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileFacts {
    /// `dev:ino:size:mtimeNs:ctimeNs`; two files or two states of one differ in it.
    pub version: String,
    pub is_regular: bool,
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
}

/// Read, write and execute for owner, group and others. Set-id bits do not survive a write, as in the kernel.
const PERMISSION_BITS: u32 = 0o777;

impl FileFacts {
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            version: version(
                [metadata.dev(), metadata.ino(), metadata.size()],
                (metadata.mtime(), metadata.mtime_nsec()),
                (metadata.ctime(), metadata.ctime_nsec()),
            ),
            is_regular: metadata.is_file(),
            size: metadata.size(),
            mode: metadata.mode() & PERMISSION_BITS,
            uid: metadata.uid(),
            gid: metadata.gid(),
        }
    }

    /// The same facts from the system's own record.
    #[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between systems")]
    pub fn of_stat(seen: &Stat) -> Self {
        Self {
            version: version(
                [seen.st_dev as u64, seen.st_ino as u64, seen.st_size as u64],
                (seen.st_mtime as i64, seen.st_mtime_nsec as i64),
                (seen.st_ctime as i64, seen.st_ctime_nsec as i64),
            ),
            is_regular: FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile,
            size: seen.st_size as u64,
            mode: seen.st_mode as u32 & PERMISSION_BITS,
            uid: seen.st_uid,
            gid: seen.st_gid,
        }
    }

    /// The facts of what is at `path`, `None` when nothing is.
    #[cfg(test)]
    pub fn at(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::of(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn version([device, inode, size]: [u64; 3], modified: (i64, i64), changed: (i64, i64)) -> String {
    let nanoseconds = |(seconds, rest): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    format!("{device}:{inode}:{size}:{}:{}", nanoseconds(modified), nanoseconds(changed))
}

/// Opens what is at a resolved path for reading if it is a regular file, and says what it is. Never waits for a writer
/// of a FIFO and never opens a device: it looks before it opens, and again at what it opened.
pub(crate) fn open_regular(path: &Path) -> io::Result<(Option<File>, FileFacts)> {
    let seen = FileFacts::of(&std::fs::metadata(path)?);
    if !seen.is_regular {
        return Ok((None, seen));
    }
    let file = File::from(no_links::open(path, READ_FLAGS)?);
    let facts = FileFacts::of(&file.metadata()?);
    Ok((facts.is_regular.then_some(file), facts))
}

/// The whole content, or `None` when it is longer than `cap` bytes.
pub(crate) fn read_to_cap(file: &mut File, size: u64, cap: u64) -> io::Result<Option<Vec<u8>>> {
    if size > cap {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).saturating_add(1));
    file.take(cap.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= cap).then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_changes_with_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "one").unwrap();
        let before = FileFacts::at(&path).unwrap().unwrap();
        assert_eq!(before.version.split(':').count(), 5);
        assert_eq!(FileFacts::of_stat(&rustix::fs::stat(&path).unwrap()), before);
        std::fs::write(&path, "longer").unwrap();
        assert_ne!(FileFacts::at(&path).unwrap().unwrap().version, before.version);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(FileFacts::at(&path).unwrap(), None);
    }

    #[test]
    fn fifos_and_devices_are_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        crate::files::harness::make_fifo(&fifo);
        for path in [fifo.as_path(), Path::new("/dev/zero"), folder.path()] {
            assert!(open_regular(path).unwrap().0.is_none(), "{path:?}");
        }
    }

    #[test]
    fn a_cap_is_inclusive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "12345").unwrap();
        for (said, cap, fits) in [(5, 5, true), (5, 4, false), (0, 5, true), (0, 4, false)] {
            let mut file = File::open(&path).unwrap();
            assert_eq!(read_to_cap(&mut file, said, cap).unwrap().is_some(), fits, "{said} {cap}");
        }
    }
}
