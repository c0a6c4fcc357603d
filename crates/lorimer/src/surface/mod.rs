//! The headless surface: events to standard output, progress to standard error.

mod progress;
mod stdout;

pub use progress::Progress;
pub use stdout::StdoutWriter;
