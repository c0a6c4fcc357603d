//! Looks at the files with ignore rules before the library opens them.
//!
//! The library opens and reads whatever has the right name. A pipe of that name would hold a thread for good, and a
//! link to an endless device would fill the memory.

use std::fs::Metadata;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Names that are read in every directory.
const NAMES: [&str; 3] = [".gitignore", ".ignore", CUSTOM_NAME];
/// Ripgrep's own file of rules.
pub(super) const CUSTOM_NAME: &str = ".rgignore";
/// Most bytes of a file of rules.
const MAX_RULES_BYTES: u64 = 16 * 1024 * 1024;
/// Most bytes of a line that leads to a repository's own folder.
const MAX_POINTER_BYTES: u64 = 4096;

/// The file that makes it unsafe to read the rules of `directory`.
pub(super) fn unsafe_file(directory: &Path) -> Option<PathBuf> {
    let unsafe_rules = NAMES.iter().map(|name| directory.join(name)).find(|path| !is_harmless(path));
    unsafe_rules.or_else(|| unsafe_repository_file(&directory.join(".git")))
}

/// The file that makes it unsafe to read the rules of `directory` or of a directory above it.
pub(super) fn unsafe_file_at_or_above(directory: &Path) -> Option<PathBuf> {
    let real = directory.canonicalize().ok()?;
    unsafe_file(directory).or_else(|| real.ancestors().find_map(unsafe_file))
}

/// A repository has rules of its own in `info/exclude`. A worktree leads to them through two pointer files.
fn unsafe_repository_file(git: &Path) -> Option<PathBuf> {
    let metadata = std::fs::metadata(git).ok()?;
    let exclude = |folder: &Path| Some(folder.join("info/exclude")).filter(|path| !is_harmless(path));
    if !metadata.is_file() {
        return exclude(git);
    }
    if !is_harmless(git) {
        return Some(git.to_owned());
    }
    let folder = PathBuf::from(first_line(git)?.strip_prefix("gitdir: ")?);
    let pointer = folder.join("commondir");
    if !is_harmless(&pointer) {
        return Some(pointer);
    }
    exclude(&folder.join(first_line(&pointer)?))
}

fn first_line(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).ok()?;
    let mut line = String::new();
    BufReader::new(file.take(MAX_POINTER_BYTES)).read_line(&mut line).ok()?;
    Some(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Whether reading to the end ends soon. What is not there and what is a directory cannot be read at all.
fn is_harmless(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.len() <= MAX_RULES_BYTES,
        Ok(metadata) => metadata.is_dir() || is_null_device(&metadata),
        Err(_) => true,
    }
}

/// A common way to switch a file of rules off.
fn is_null_device(metadata: &Metadata) -> bool {
    metadata.file_type().is_char_device()
        && std::fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == metadata.rdev())
}
