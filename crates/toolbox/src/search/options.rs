//! How much a search may look at, keep and show.

use std::sync::Arc;

use crate::deny::DenyRules;

/// The limits of [`GlobTool`](super::GlobTool) and [`GrepTool`](super::GrepTool).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Whether a `glob` with too many results shows some of each top-level entry instead of the oldest ones.
    pub sample_over_cap_glob_results: bool,
    /// Most paths a `glob` shows.
    pub glob_max_results: usize,
    /// Most matches a `grep` shows.
    pub grep_max_matches: usize,
    /// Most bytes of one matching line that are shown.
    pub grep_max_line_bytes: usize,
    /// Most bytes of JSON that are stored for a card.
    pub search_meta_max_bytes: usize,
    /// Most bytes that a search may find before it fails.
    pub raw_output_max_bytes: u64,
    /// Longest search in milliseconds.
    pub timeout_ms: u64,
    /// What must not be found.
    pub deny: Arc<DenyRules>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            sample_over_cap_glob_results: true,
            glob_max_results: 100,
            grep_max_matches: 250,
            grep_max_line_bytes: 2000,
            search_meta_max_bytes: 65_536,
            raw_output_max_bytes: 20_000_000,
            timeout_ms: 30_000,
            deny: Arc::default(),
        }
    }
}
