//! Files that can be read at once.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, open, openat2};

/// Largest file that counts, in bytes: it is read in less than a millisecond.
#[cfg(target_os = "linux")]
const MAX_NEARBY_BYTES: i64 = 1024 * 1024;

/// File systems of local disks and memory, by their magic numbers (`linux/magic.h`): ext, XFS, Btrfs, F2FS, bcachefs,
/// ZFS, tmpfs, overlay.
#[cfg(target_os = "linux")]
const LOCAL: [u32; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e, 0x2fc1_2fc1, 0x0102_1994, 0x794c_7630];

/// The workspace of the first call, as far as files in it may be nearby.
#[derive(Debug, Default)]
pub(crate) struct Nearby {
    workspace: OnceLock<Workspace>,
}

#[derive(Debug)]
struct Workspace {
    path: PathBuf,
    /// `None` when its file system is not local.
    folder: Option<OwnedFd>,
}

impl Nearby {
    /// Whether a path means a small regular file of the workspace, reached without links, on the workspace's own file
    /// system, which is local. Reading one does not wait for a network or another program, so it needs no other
    /// thread: changing threads takes longer than the read. The workspace itself is looked at before every request
    /// anyway.
    pub fn holds(&self, cwd: &Path, file_path: &str) -> bool {
        let workspace = self.workspace.get_or_init(|| {
            let folder = local_folder(cwd).ok().flatten();
            Workspace { path: cwd.to_owned(), folder }
        });
        let Some(folder) = workspace.folder.as_ref().filter(|_| workspace.path == cwd) else {
            return false;
        };
        let path = Path::new(file_path);
        let relative = if path.is_absolute() { path.strip_prefix(cwd).ok() } else { Some(path) };
        relative.is_some_and(|relative| is_small_file(folder, relative).unwrap_or(false))
    }
}

#[cfg(target_os = "linux")]
fn local_folder(cwd: &Path) -> io::Result<Option<OwnedFd>> {
    let folder = open(cwd, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let is_local = LOCAL.contains(&(fstatfs(&folder)?.f_type as u32));
    Ok(is_local.then_some(folder))
}

#[cfg(target_os = "linux")]
fn is_small_file(folder: &OwnedFd, relative: &Path) -> io::Result<bool> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    let file = openat2(folder, relative, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?;
    let seen = fstat(&file)?;
    Ok(FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile && seen.st_size <= MAX_NEARBY_BYTES)
}

/// Elsewhere nothing tells in one step whether a link or a mount is on the way.
#[cfg(not(target_os = "linux"))]
fn local_folder(_: &Path) -> io::Result<Option<OwnedFd>> {
    Ok(None)
}

#[cfg(not(target_os = "linux"))]
fn is_small_file(_: &OwnedFd, _: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_small_files_of_the_workspace_itself_are_nearby() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        let cwd = root.join("w");
        fs::create_dir_all(cwd.join("d")).unwrap();
        fs::write(cwd.join("d/f"), "x").unwrap();
        fs::write(root.join("outside"), "x").unwrap();
        fs::File::create(cwd.join("large")).unwrap().set_len(MAX_NEARBY_BYTES as u64 + 1).unwrap();
        symlink("d/f", cwd.join("link")).unwrap();
        symlink("d", cwd.join("way")).unwrap();
        crate::files::harness::make_fifo(&cwd.join("fifo"));
        let far = ["../outside", "/proc/self/environ", "large", "link", "way/f", "fifo", "d", "none", ""];
        let nearby = Nearby::default();
        for path in far {
            assert!(!nearby.holds(&cwd, path), "{path}");
        }
        // Only where the temporary folder is on a local disk can anything be nearby.
        let local = open(&cwd, OFlags::PATH, Mode::empty()).and_then(fstatfs).unwrap().f_type as u32;
        for path in ["d/f", "d/../d/f", &cwd.join("d/f").to_string_lossy()] {
            assert_eq!(nearby.holds(&cwd, path), LOCAL.contains(&local), "{path}");
        }
        assert!(!nearby.holds(&cwd.join("d"), "f"));
    }
}
