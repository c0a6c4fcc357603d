//! Models that need no key and no network: the planner and recorded scripts.

mod planner;
mod play;
mod provider;
mod replay;
mod script;
mod turn;

pub use provider::{OFFLINE_ROUTE, OfflineProvider, PLANNER_MODEL};
pub use replay::{Difference, REPLAY_ROUTE, RecordedReply, ReplayProvider, result_text};
pub use turn::{PlannedCall, PlannedTurn};
