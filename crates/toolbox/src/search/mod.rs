//! The tools `glob` and `grep`: which files there are, and which lines match (core spec 5.9–5.11).
//!
//! Both run ripgrep's libraries in this process. The walk and the matching happen on blocking threads that look at a
//! stop flag at every entry, every buffer and every match, so that a cancelled or late search ends soon. What is found
//! is sorted before it is shown: the same tree gives the same text, however many threads looked at it.

mod card;
mod failure;
mod file;
mod glob;
mod glob_text;
mod grep;
mod grep_text;
mod ignore_files;
mod options;
mod place;
mod runner;
mod scan;
mod store;
#[cfg(test)]
mod tests;

pub use glob::{GlobArgs, GlobOutput, GlobTool};
pub use grep::{GrepArgs, GrepMatch, GrepOutput, GrepTool};
pub use options::SearchOptions;
