//! Models that need no key and no network: the planner and recorded scripts.

mod turn;

pub use turn::{PlannedCall, PlannedTurn};
