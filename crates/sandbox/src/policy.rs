//! What a child may touch.

use std::path::PathBuf;

/// What a child may touch. Everything is readable that is not hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Folders and files that may be changed, absolute paths without links. Those that do not exist are left out. With
    /// `/` in it, everything may be changed that may be without confinement.
    pub writable: Vec<PathBuf>,
    /// What stays read-only inside them.
    pub read_only: Vec<PathBuf>,
    /// What the child does not see: files are empty, folders too.
    pub hidden: Vec<PathBuf>,
    /// Whether a child does not run where that cannot be held.
    pub must_hide: bool,
    /// Whether it may talk to other machines and to services of this one.
    pub network: bool,
}
