//! Every limit of the planner, with its unit.

/// Most replies to one prompt; the report is due then, whatever is still open.
pub(super) const MAX_REPLIES: usize = 64;

/// Most folders that are listed for one prompt, the root included.
pub(super) const MAX_LISTINGS: usize = 40;

/// Most folders that are listed in one reply.
pub(super) const LISTINGS_PER_REPLY: usize = 8;

/// Most paths that are taken from one listing; the tool shows 100.
pub(super) const MAX_PATHS_PER_LISTING: usize = 200;

/// Longest path that is taken from a result, in bytes.
pub(super) const MAX_PATH_BYTES: usize = 512;

/// Most text files whose lines are counted for one prompt.
pub(super) const MAX_MEASURED_FILES: usize = 400;

/// Most text files whose lines are counted in one reply.
pub(super) const MEASURED_PER_REPLY: usize = 40;

/// Lines that are asked for when only the line count is wanted.
pub(super) const COUNT_LINES: u64 = 1;

/// Lines of a README that are read.
pub(super) const README_LINES: u64 = 12;

/// Lines of a build file that are read.
pub(super) const BUILD_FILE_LINES: u64 = 40;

/// Lines of the root `.gitignore` that are read.
pub(super) const IGNORE_FILE_LINES: u64 = 200;

/// Most build files of the root that are read.
pub(super) const MAX_BUILD_FILES_READ: usize = 2;

/// Most lines that are kept of one read.
pub(super) const MAX_LINES_PER_READ: usize = 200;

/// Most rows that are kept of one search; the tool shows 250.
pub(super) const MAX_ROWS_PER_SEARCH: usize = 250;

/// Most rules that are taken from the root `.gitignore`.
pub(super) const MAX_IGNORE_RULES: usize = 200;

/// Entry points that are reported by name.
pub(super) const SHOWN_ENTRY_POINTS: usize = 8;

/// Build files that are reported by name, for each build system.
pub(super) const SHOWN_BUILD_FILES: usize = 3;

/// TODO and FIXME marks that are reported with their place.
pub(super) const SHOWN_MARKS: usize = 5;

/// Largest files that are reported.
pub(super) const SHOWN_LARGEST: usize = 5;

/// Names that a sentence lists before it says "and N more".
pub(super) const SHOWN_NAMES: usize = 4;

/// Failures that are reported with their text.
pub(super) const SHOWN_FAILURES: usize = 3;

/// Longest quoted piece of foreign text in the report, in characters.
pub(super) const MAX_QUOTE_CHARS: usize = 100;

/// Longest path shown in full, in characters.
pub(super) const MAX_SHOWN_PATH_CHARS: usize = 160;
