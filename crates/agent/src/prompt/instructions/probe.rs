//! Looking at files without ever waiting for one, and without leaving a folder.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::DeniedPaths;

/// File times move in ticks: a file that changed less than this before it was looked at may change again unseen.
const TICK: Duration = Duration::from_millis(50);

/// What a look at a path shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    Missing,
    /// It cannot be looked at.
    Hidden,
    File(Version),
    /// A folder, a pipe, a device.
    Other,
}

/// Another version is other content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Sight {
    /// Whether the same sight later means the same content.
    pub fn is_settled(&self, now: SystemTime) -> bool {
        let Self::File(version) = self else {
            return *self != Self::Hidden;
        };
        let (seconds, nanos) = version.changed;
        let (Ok(seconds), Ok(nanos)) = (u64::try_from(seconds), u32::try_from(nanos)) else {
            return false;
        };
        let age = now.duration_since(UNIX_EPOCH + Duration::new(seconds, nanos));
        age.is_ok_and(|age| age > TICK)
    }
}

/// Looks at each path at most once a step.
#[derive(Debug, Default)]
pub(super) struct Prober {
    seen: HashMap<OsString, Sight>,
    denied: DeniedPaths,
    /// How often the file system was asked, and how often a file was read.
    pub stats: usize,
    pub reads: usize,
}

/// Why there is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoText {
    /// There is no such text.
    Absent,
    /// There may be one.
    Hidden,
}

impl Prober {
    /// What was seen in the last step counts no more.
    pub fn begin_step(&mut self, denied: &DeniedPaths) {
        self.denied.clone_from(denied);
        self.seen.clear();
    }

    pub fn look(&mut self, path: &Path) -> Sight {
        if let Some(sight) = self.seen.get(path.as_os_str()) {
            return *sight;
        }
        self.stats += 1;
        let sight = match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Sight::File(Version::of(&metadata)),
            Ok(_) => Sight::Other,
            Err(error) if is_missing(error.kind()) => Sight::Missing,
            Err(_) => Sight::Hidden,
        };
        self.seen.insert(path.as_os_str().to_owned(), sight);
        sight
    }

    /// Real place and text of a regular UTF-8 file whose real place is inside `boundary`: a repository cannot name a
    /// file of the person's.
    pub fn read(
        &mut self,
        path: &Path,
        boundary: &Path,
        max_bytes: u64,
    ) -> Result<(PathBuf, String), NoText> {
        self.reads += 1;
        let real = fs::canonicalize(path).map_err(no_text)?;
        if !real.starts_with(fs::canonicalize(boundary).map_err(no_text)?) {
            return Err(NoText::Absent);
        }
        if self.denied.contain(&real) || self.denied.contain(path) {
            return Err(NoText::Absent);
        }
        let file = open_regular(&real)?;
        // A link may have taken the place of a folder on the way since.
        if fs::canonicalize(path).map_err(no_text)? != real {
            return Err(NoText::Hidden);
        }
        let mut bytes = Vec::new();
        file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(no_text)?;
        if bytes.len() as u64 > max_bytes {
            return Err(NoText::Absent);
        }
        String::from_utf8(bytes).map(|text| (real, text)).map_err(|_| NoText::Absent)
    }
}

fn is_missing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

// `map_err` hands the error over.
#[expect(clippy::needless_pass_by_value)]
fn no_text(error: std::io::Error) -> NoText {
    if is_missing(error.kind()) { NoText::Absent } else { NoText::Hidden }
}

/// Opens what is a regular file both before and after. Opening a pipe or a device returns at once.
fn open_regular(real: &Path) -> Result<File, NoText> {
    let before = fs::symlink_metadata(real).map_err(no_text)?;
    if !before.is_file() {
        return Err(NoText::Absent);
    }
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(real).map_err(no_text)?;
    let opened = file.metadata().map_err(no_text)?;
    if !opened.is_file() || (opened.dev(), opened.ino()) != (before.dev(), before.ino()) {
        return Err(NoText::Hidden);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_trusted_a_tick_after_its_last_change() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let sight = Prober::default().look(file.path());
        let now = SystemTime::now();
        assert!(!sight.is_settled(now) && !sight.is_settled(now - TICK));
        assert!(sight.is_settled(now + 2 * TICK));
        assert!(Sight::Missing.is_settled(now) && !Sight::Hidden.is_settled(now));
    }

    #[test]
    fn a_path_is_looked_at_once_a_step() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("f");
        let mut prober = Prober::default();
        assert_eq!((prober.look(&path), prober.look(dir.path())), (Sight::Missing, Sight::Other));
        fs::write(&path, "x").expect("written");
        assert_eq!((prober.look(&path), prober.stats), (Sight::Missing, 2));
        prober.begin_step(&DeniedPaths::default());
        assert!(matches!(prober.look(&path), Sight::File(_)));
    }
}
