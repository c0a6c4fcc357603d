//! The ways a search fails (core spec 5.11).

use std::fmt::Display;

use lorimer_tools::ToolError;

const NAME: &str = "SearchError";

/// The library refused the pattern.
pub(super) fn invalid_pattern(tool: &str, why: impl Display) -> ToolError {
    ToolError::typed(NAME, "SEARCH_INVALID_PATTERN", format!("{tool} pattern rejected by ripgrep: {why}"))
}

/// The search could not be made, for the reason that ripgrep would exit with 2.
pub(super) fn failed(tool: &str, why: impl Display) -> ToolError {
    ToolError::typed(NAME, "SEARCH_FAILED", format!("{tool} search failed (exit 2): {why}"))
}

/// More was found than a search may keep.
pub(super) fn overflow(tool: &str, bytes: u64, cap: u64) -> ToolError {
    let message = format!(
        "{tool} produced {bytes} bytes of raw output, over the {cap}-byte cap; narrow pattern, path, or include and retry"
    );
    ToolError::typed(NAME, "SEARCH_RAW_OUTPUT_OVERFLOW", message)
}

/// The caller cancelled or the time was over.
pub(super) fn aborted(tool: &str) -> ToolError {
    let message = format!("{tool} was aborted before completion (tool timeout or caller cancellation)");
    ToolError::typed(NAME, "SEARCH_ABORTED", message)
}
