//! Files that can be read at once.

use std::path::Path;

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

/// Whether a path means a small regular file of the workspace, reached without links, on the workspace's own file
/// system, which is local. Reading one does not wait for a network or another program, so it needs no other thread:
/// changing threads takes longer than the read. The workspace itself is looked at before every request anyway.
pub(crate) fn is_nearby(cwd: &Path, file_path: &str) -> bool {
    let path = Path::new(file_path);
    let relative = if path.is_absolute() { path.strip_prefix(cwd).ok() } else { Some(path) };
    relative.is_some_and(|relative| looks_nearby(cwd, relative).unwrap_or(false))
}

#[cfg(target_os = "linux")]
fn looks_nearby(cwd: &Path, relative: &Path) -> rustix::io::Result<bool> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let folder = open(cwd, flags | OFlags::DIRECTORY, Mode::empty())?;
    if !LOCAL.contains(&(fstatfs(&folder)?.f_type as u32)) {
        return Ok(false);
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    let file = fstat(openat2(&folder, relative, flags, Mode::empty(), resolve)?)?;
    Ok(FileType::from_raw_mode(file.st_mode) == FileType::RegularFile && file.st_size <= MAX_NEARBY_BYTES)
}

/// Elsewhere nothing tells in one step whether a link or a mount is on the way.
#[cfg(not(target_os = "linux"))]
fn looks_nearby(_: &Path, _: &Path) -> std::io::Result<bool> {
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
        for path in far {
            assert!(!is_nearby(&cwd, path), "{path}");
        }
        // Only where the temporary folder is on a local disk can anything be nearby.
        let local = open(&cwd, OFlags::PATH, Mode::empty()).and_then(fstatfs).unwrap().f_type as u32;
        for path in ["d/f", "d/../d/f", &cwd.join("d/f").to_string_lossy()] {
            assert_eq!(is_nearby(&cwd, path), LOCAL.contains(&local), "{path}");
        }
    }
}
