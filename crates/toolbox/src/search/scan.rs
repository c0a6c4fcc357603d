//! One walk over a tree on several threads: what ends it, how much it found and what it could not read.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};
use lorimer_tools::ToolError;

use super::failure;
use super::options::SearchOptions;
use super::place::Place;
use crate::deny::DenyRules;

/// Tells the threads of a search to end.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks for the end.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end was asked for.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The shared state of one walk.
pub(super) struct Scan {
    tool: &'static str,
    place: Place,
    stop: Stop,
    found_bytes: AtomicU64,
    max_bytes: u64,
    unreadable: Mutex<Option<String>>,
    deny: Arc<DenyRules>,
    denied: AtomicU64,
}

impl Scan {
    /// A walk of `place`, as far as the options let it.
    ///
    /// # Errors
    /// When deny rules forbid the place itself.
    pub(super) fn new(
        tool: &'static str,
        place: Place,
        stop: Stop,
        options: &SearchOptions,
    ) -> Result<Self, ToolError> {
        place.check(tool, &options.deny)?;
        Ok(Self {
            tool,
            place,
            stop,
            found_bytes: AtomicU64::new(0),
            max_bytes: options.raw_output_max_bytes,
            unreadable: Mutex::new(None),
            deny: Arc::clone(&options.deny),
            denied: AtomicU64::new(0),
        })
    }

    /// Whether deny rules are about this search.
    pub(super) fn has_rules(&self) -> bool {
        !self.deny.is_empty_for(self.tool)
    }

    /// Whether the walk must leave something out, which is then counted.
    pub(super) fn leaves_out(&self, found: &Path) -> bool {
        if !self.has_rules() {
            return false;
        }
        let is_denied = self.deny.denying(self.tool, &self.place.real_path_of(found)).is_some();
        self.denied.fetch_add(u64::from(is_denied), Ordering::Relaxed);
        is_denied
    }

    /// How many paths were left out.
    pub(super) fn left_out(&self) -> u64 {
        self.denied.load(Ordering::Relaxed)
    }

    /// Where the walk starts.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Whether there is nothing left to do: too much was found, or nobody waits any more.
    pub(super) fn is_over(&self) -> bool {
        self.stop.is_set() || self.found_bytes.load(Ordering::Relaxed) > self.max_bytes
    }

    /// Counts what was found; false when that was too much.
    pub(super) fn count(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        self.found_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= self.max_bytes
    }

    /// Remembers something that could not be read. Of several the first by name is kept, whatever the order in which
    /// the threads meet them.
    pub(super) fn note_unreadable(&self, what: String) {
        let mut kept = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_none_or(|kept| what < *kept) {
            *kept = Some(what);
        }
    }

    /// Visits every regular file that the walker lets through and returns what the visitors made of them, in no
    /// particular order. `visitor` is called once for each thread.
    pub(super) fn run<T, V>(&self, walker: &mut WalkBuilder, visitor: impl Fn() -> V) -> Vec<T>
    where
        T: Send,
        V: FnMut(&DirEntry) -> Option<T> + Send,
    {
        let (sender, receiver) = mpsc::channel();
        // Zero lets the walker choose.
        walker.threads(if self.place.is_directory() { 0 } else { 1 });
        walker.build_parallel().run(|| {
            let sender = sender.clone();
            let mut visit = visitor();
            Box::new(move |entry| {
                if self.is_over() {
                    return WalkState::Quit;
                }
                match entry {
                    Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                        if let Some(found) = visit(&entry) {
                            // The receiver outlives the walk.
                            let _ = sender.send(found);
                        }
                    }
                    Ok(_) => {}
                    Err(why) => self.note_walk_error(&why),
                }
                WalkState::Continue
            })
        });
        drop(sender);
        receiver.into_iter().collect()
    }

    /// How the walk ended. What could not be read is a failure only when nothing was found: a result would hide
    /// nothing then, and "no results" would not be known to be true.
    pub(super) fn outcome(&self, found_nothing: bool) -> Result<(), ToolError> {
        let bytes = self.found_bytes.load(Ordering::Relaxed);
        if bytes > self.max_bytes {
            return Err(failure::overflow(self.tool, bytes, self.max_bytes));
        }
        if self.stop.is_set() {
            return Err(failure::aborted(self.tool));
        }
        let unreadable = self.unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        match &*unreadable {
            Some(what) if found_nothing => Err(failure::failed(self.tool, what)),
            _ => Ok(()),
        }
    }

    /// What has gone meanwhile is not missed, and a malformed rule in an ignore file hides nothing.
    fn note_walk_error(&self, error: &ignore::Error) {
        let has_gone = error.io_error().is_some_and(|why| why.kind() == ErrorKind::NotFound);
        if error.is_io() && !has_gone {
            self.note_unreadable(self.describe(error));
        }
    }

    fn describe(&self, error: &ignore::Error) -> String {
        match error {
            ignore::Error::WithPath { path, err } => format!("{}: {err}", self.place.name_of(path)),
            ignore::Error::WithDepth { err, .. } => self.describe(err),
            other => other.to_string(),
        }
    }
}

/// The line of a result that says how many paths deny rules kept out of it; empty when it was none.
pub(super) fn left_out_line(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => "\n\n(1 path was left out by deny rules of the configuration)".to_owned(),
        count => format!("\n\n({count} paths were left out by deny rules of the configuration)"),
    }
}

/// For a count that is told only when there is something to tell.
pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Globs in the order of ripgrep's `--glob`, anchored to the workspace.
///
/// # Errors
/// When one of them is malformed.
pub(super) fn overrides<'a>(
    tool: &str,
    place: &Place,
    globs: impl IntoIterator<Item = &'a str>,
) -> Result<Override, ToolError> {
    let mut builder = OverrideBuilder::new(place.cwd());
    for glob in globs {
        builder.add(glob).map_err(|why| failure::invalid_pattern(tool, why))?;
    }
    builder.build().map_err(|why| failure::invalid_pattern(tool, why))
}
