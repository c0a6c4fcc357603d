//! Models that need no key and no network: the planner and recorded scripts.

mod planner;
mod play;
mod provider;
mod script;
mod turn;

pub use provider::{OFFLINE_ROUTE, OfflineProvider, PLANNER_MODEL};
pub use turn::{PlannedCall, PlannedTurn};
