//! Policies that come with the pipeline.

mod repeat_reminder;
mod spill;

pub use repeat_reminder::RepeatReminder;
pub use spill::SpillPolicy;
