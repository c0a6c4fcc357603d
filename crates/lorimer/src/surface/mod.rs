//! The headless surface: events to standard output, progress to standard error.

mod progress;
mod safe_text;
mod stdout;

pub use progress::Progress;
pub use safe_text::{safe_for_stdout, safe_line, short_id};
pub use stdout::StdoutWriter;
