//! Opening what a resolved path means, and nothing else.
//!
//! A resolved path has no links on its way. Whoever can change the folders on the way can put one there after it was
//! resolved; opened like this, the path then leads nowhere instead of somewhere else. What was decided about the path
//! so holds for what is opened.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

/// A folder to work in. With this it need not be readable.
#[cfg(target_os = "linux")]
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Mode of a new folder; the system takes the umask off.
const NEW_FOLDER_MODE: u32 = 0o777;

/// Opens a folder to work in.
///
/// # Errors
/// What the system says; `ELOOP` or `ENOTDIR` for a link.
pub(crate) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    open(path, FOLDER)
}

/// Opens a folder to work in, and makes what is missing of it.
///
/// # Errors
/// What the system says; `ELOOP` or `ENOTDIR` for a link.
pub(crate) fn make_folder(path: &Path) -> io::Result<OwnedFd> {
    match open_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(walk(path, true)?),
        opened => opened,
    }
}

/// Opens an absolute path.
///
/// # Errors
/// What the system says; `ELOOP` or `ENOTDIR` for a link.
pub(crate) fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        match openat2(CWD, path, flags | OFlags::NOFOLLOW, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // A kernel before 5.6, or a filter over this process that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    Ok(open_stepwise(path, flags)?)
}

fn open_stepwise(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            openat(walk(parent, false)?, name, flags | OFlags::NOFOLLOW, Mode::empty())
        }
        _ => walk(path, false),
    }
}

/// Goes to a folder step by step, each relative to the one before.
fn walk(path: &Path, makes: bool) -> Result<OwnedFd, Errno> {
    let mut folder = rustix::fs::open("/", FOLDER, Mode::empty())?;
    for component in path.components() {
        let name = match component {
            Component::RootDir => continue,
            Component::Normal(name) => name,
            _ => return Err(Errno::INVAL),
        };
        folder = match openat(&folder, name, FOLDER, Mode::empty()) {
            Err(Errno::NOENT) if makes => {
                match mkdirat(&folder, name, Mode::from_raw_mode(NEW_FOLDER_MODE as rustix::fs::RawMode)) {
                    Ok(()) | Err(Errno::EXIST) => openat(&folder, name, FOLDER, Mode::empty())?,
                    Err(error) => return Err(error),
                }
            }
            opened => opened?,
        };
    }
    Ok(folder)
}

/// Whether an error of these functions means that a folder on the way is none, or no more.
pub(crate) fn is_off_the_way(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENOTDIR))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    type Open = fn(&Path) -> io::Result<OwnedFd>;
    const WAYS: [Open; 2] =
        [|path| open(path, OFlags::CLOEXEC), |path| Ok(open_stepwise(path, OFlags::CLOEXEC)?)];

    #[test]
    fn links_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/f"), "x").unwrap();
        symlink("d", root.join("way")).unwrap();
        symlink("d/f", root.join("link")).unwrap();
        for open in WAYS {
            for path in ["d", "d/f"] {
                assert!(open(&root.join(path)).is_ok(), "{path}");
            }
            assert!(open(Path::new("/")).is_ok());
            for path in ["way", "way/f", "link", "d/f/x"] {
                assert!(is_off_the_way(&open(&root.join(path)).unwrap_err()), "{path}");
            }
            assert_eq!(open(&root.join("none/f")).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        assert!(is_off_the_way(&open_folder(&root.join("d/f")).unwrap_err()));
        assert!(is_off_the_way(&open_folder(&root.join("way")).unwrap_err()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn links_of_the_kernel_are_links() {
        for path in ["/proc/self/environ", "/proc/self/cwd", "/proc/self/root/etc/passwd", "/dev/fd/0"] {
            for open in WAYS {
                assert!(is_off_the_way(&open(Path::new(path)).unwrap_err()), "{path}");
            }
        }
    }

    #[test]
    fn missing_folders_are_made_but_not_behind_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("d")).unwrap();
        symlink("d", root.join("way")).unwrap();
        symlink("nothing", root.join("dangling")).unwrap();
        make_folder(&root.join("d/a/b")).unwrap();
        make_folder(&root.join("d/a/b")).unwrap();
        assert!(root.join("d/a/b").is_dir());
        for path in ["way/c", "dangling/c", "dangling"] {
            assert!(make_folder(&root.join(path)).is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(root.join("d")).unwrap().count(), 1);
        assert!(!root.join("nothing").exists());
    }
}
