//! What the file tools share: targets, observations, the fence, publication and diffs (core spec 5.1, 5.6, 5.8).

mod blocking;
mod diff;
mod encoding;
mod error;
mod facts;
mod fence;
mod line_ends;
mod lock;
mod nearby;
mod no_links;
mod observation;
mod own_process;
mod place;
mod publish;
mod target;

#[cfg(test)]
pub(crate) mod harness;

pub(crate) use blocking::run_blocking;
pub(crate) use diff::{diffs_from_meta, hunks, meta_of_diffs};
pub(crate) use encoding::{NOT_TEXT_SNIFF_BYTES, describe_binary, describe_invalid};
pub(crate) use error::io_text;
pub use error::{FsCode, FsError};
pub(crate) use facts::{FileFacts, READ_FLAGS, open_regular, read_to_cap};
pub(crate) use fence::temporary_folder;
pub use fence::{ModeFence, WriteFence, WriteRequest};
pub(crate) use line_ends::to_lf;
pub(crate) use lock::lock_target;
pub(crate) use nearby::Nearby;
pub(crate) use no_links::{is_off_the_way, open as open_without_links};
pub(crate) use observation::{last_observation, record};
pub(crate) use own_process::is_of_this_process;
pub(crate) use place::Place;
pub(crate) use publish::{Publication, Published, publish};
pub use target::FsTarget;
pub(crate) use target::{check_path, normalize, resolve};
