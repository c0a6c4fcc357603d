//! A mount namespace in which everything but the writable paths is read-only, and some paths are not there.
//!
//! Where everything is writable, mounts stay as they are but for what is protected.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
};
use rustix::thread::UnshareFlags;

use super::mount_table;
use super::sockets::control_sockets;
use crate::policy::Policy;

/// Arranges the mounts of this process. An error leaves no rights wider than before.
///
/// # Errors
/// In words, when this system gives no namespace or refuses a mount.
pub(super) fn arrange(policy: &Policy) -> Result<(), String> {
    let here = std::env::current_dir().map_err(|error| format!("no working directory: {error}"))?;
    enter_namespace()?;
    arrange_mounts(policy)?;
    // The old working directory is on the old, now read-only mount.
    std::env::set_current_dir(&here).map_err(|error| format!("cannot return to {}: {error}", here.display()))
}

fn enter_namespace() -> Result<(), String> {
    let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    // SAFETY: the helper has one thread and shares nothing with others that a new namespace could break.
    let enter = |flags| unsafe { rustix::thread::unshare_unsafe(flags) };
    // Shared memory of System V is reached by number, not by path.
    let own = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    if enter(own).is_err() {
        enter(UnshareFlags::NEWUSER | own)
            .map_err(|error| format!("this system gives no namespace: {error}"))?;
        map_ids(uid, gid).map_err(|error| format!("cannot map ids: {error}"))?;
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|error| format!("cannot make mounts private: {error}"))
}

/// The person stays the person.
fn map_ids(uid: u32, gid: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

fn arrange_mounts(policy: &Policy) -> Result<(), String> {
    let refused =
        |what: &str, path: &Path, error: io::Error| format!("cannot {what} {}: {error}", path.display());
    // A folder that is a mount cannot be moved.
    let pinned = policy.pinned();
    let writable = policy.writable.iter().chain(&pinned).map(PathBuf::as_path);
    let writable: Vec<&Path> = writable.filter(|path| path.exists() && *path != Path::new("/")).collect();
    for path in &writable {
        mount_bind_recursive(*path, *path).map_err(|error| refused("mount", path, error.into()))?;
    }
    let opened: &[&Path] = if policy.is_open() { &[] } else { &writable };
    // What was read-only before stays so.
    let changeable =
        mount_table::changeable().map_err(|error| refused("list", Path::new("mounts"), error))?;
    if !policy.is_open() {
        set_read_only(Path::new("/"), true, true)
            .map_err(|error| refused("protect", Path::new("/"), error))?;
    }
    for path in opened {
        for mount in changeable.iter().filter(|mount| mount.starts_with(path)) {
            set_read_only(mount, false, false).map_err(|error| refused("open", mount, error))?;
        }
    }
    for path in policy.read_only.iter().filter(|path| path.exists()) {
        mount_bind_recursive(path, path)
            .map_err(io::Error::from)
            .and_then(|()| set_read_only(path, true, true))
            .map_err(|error| refused("protect", path, error))?;
    }
    for path in &policy.hidden {
        hide(path).map_err(|error| refused("hide", path, error))?;
    }
    for path in control_sockets() {
        hide(&path).map_err(|error| refused("hide", &path, error))?;
    }
    private_shared_memory();
    if !policy.is_open() {
        private_terminals();
    }
    Ok(())
}

/// A folder becomes an empty one, anything else an empty file.
fn hide(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(found) if found.is_dir() => {
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
            Ok(mount("tmpfs", path, "tmpfs", flags, Some(c"size=4k,mode=555"))?)
        }
        Ok(_) => Ok(mount_bind("/dev/null", path)?),
    }
}

/// Programs make semaphores there. Where it cannot be had, they use the one of the system, if the rules let them.
fn private_shared_memory() {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let _ = mount("tmpfs", "/dev/shm", "tmpfs", flags, Some(c"mode=1777"));
}

/// A program may make terminals, and sees none of the person's.
fn private_terminals() {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let own = mount("devpts", "/dev/pts", "devpts", flags, Some(c"newinstance,ptmxmode=0666,mode=0620"));
    match own {
        Ok(()) => drop(mount_bind("/dev/pts/ptmx", "/dev/ptmx")),
        Err(_) => drop(hide(Path::new("/dev/pts"))),
    }
}

/// `struct mount_attr` of mount_setattr(2).
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns_fd: u64,
}

const MOUNT_ATTR_RDONLY: u64 = 1;

/// Makes a mount read-only or not, with all below it when `recursive`.
fn set_read_only(path: &Path, read_only: bool, recursive: bool) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let (set, clear) = if read_only { (MOUNT_ATTR_RDONLY, 0) } else { (0, MOUNT_ATTR_RDONLY) };
    let attr = MountAttr { set, clear, propagation: 0, userns_fd: 0 };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: path and attributes live across the call, and the size is that of the structure.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
