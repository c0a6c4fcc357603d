//! The fold: what a log's events come to.

mod inbox;
mod log;
mod made;
mod repair;
mod surface;
mod turn;
mod usage;

pub use inbox::Inbox;
pub(crate) use log::EventView;
pub use log::{FoldError, Log};
pub use made::ResultData;
pub use repair::closers;
pub use surface::{ResultParts, Surface, SurfaceNode, SurfaceNodeKind};
pub use turn::{PendingCall, TurnState};
