//! Files of the kernel that tell about this very process.

use std::path::Path;

/// Whether a real path is below `/proc/<this process>`: its environment holds keys, its memory everything.
///
/// `/proc/self` and `/proc/thread-self` are links, so they are resolved by then.
pub(crate) fn is_of_this_process(real_path: &Path) -> bool {
    real_path.starts_with(Path::new("/proc").join(std::process::id().to_string()))
}
