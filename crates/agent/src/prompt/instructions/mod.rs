//! Instruction files: AGENTS.md and CLAUDE.md of the home, of the project down to the workspace, and of the folders
//! below it that were worked in (llm spec 11).
//!
//! What must hold:
//! - **The log is the memory.** What the model was told is read from the messages on the surface, whose changes carry
//!   digests. A process that goes on with a session says again only what changed meanwhile.
//! - **Messages are only appended.** A change is a new message that says what it replaces.
//! - **Doubt changes nothing.** A file that cannot be looked at counts as it was last told.

mod changes;
mod files;
mod imports;
mod probe;
mod render;
mod scopes;
mod told;
mod touched;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lorimer_protocol::Message;
use lorimer_session::Session;
use serde_json::json;

use changes::{Found, baseline_changes, update_changes};
use files::Files;
use render::{Frame, render};
use scopes::Scopes;
use told::Told;
use touched::Touched;

use super::own_folders::OwnFolders;

/// Where instruction files are looked for and how much of them is taken.
#[derive(Clone, Debug)]
pub struct InstructionOptions {
    /// A folder whose own files come first: the home of Lorimer.
    pub home: Option<PathBuf>,
    /// Most bytes of one message with instructions.
    pub max_bytes: usize,
    /// Larger files are skipped, in bytes.
    pub max_source_bytes: u64,
    /// A folder that holds one of these is a project's root.
    pub project_root_markers: Vec<String>,
    /// File names that are taken in each folder, in order.
    pub candidates: Vec<String>,
    /// Files that are not read, and not taken in by others.
    pub denied: DeniedPaths,
}

type IsDenied = dyn Fn(&Path) -> bool + Send + Sync;

/// Says which real paths must not be read.
#[derive(Clone, Default)]
pub struct DeniedPaths(Option<Arc<IsDenied>>);

impl DeniedPaths {
    /// Those for which `is_denied` says so.
    pub fn new(is_denied: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_denied)))
    }

    pub(super) fn contain(&self, path: &Path) -> bool {
        self.0.as_ref().is_some_and(|is_denied| is_denied(path))
    }
}

impl std::fmt::Debug for DeniedPaths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "DeniedPaths(some)" } else { "DeniedPaths(none)" })
    }
}

impl Default for InstructionOptions {
    fn default() -> Self {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        Self {
            home: None,
            max_bytes: 65_536,
            max_source_bytes: 1_048_576,
            project_root_markers: names(&[".git"]),
            candidates: names(&["AGENTS.md", "CLAUDE.md", "AGENTS.local.md", "CLAUDE.local.md"]),
            denied: DeniedPaths::default(),
        }
    }
}

/// What one turn knows of the instruction files. It starts empty: the log says what was told, the first look at the
/// files says what has changed since.
#[derive(Debug, Default)]
pub(crate) struct Instructions {
    touched: Touched,
    scopes: Scopes,
    files: Files,
}

impl Instructions {
    /// What the model has to be told before its next request, when there is anything.
    pub(crate) fn next_message(
        &mut self,
        session: &Session,
        options: &InstructionOptions,
        cwd: &Path,
        own: &mut OwnFolders<'_>,
    ) -> Option<Message> {
        let (told, paths) = session.with_log(|log| (Told::of(log), self.touched.next_paths(log)));
        self.scopes.find_root(options, cwd, own);
        let moved = session.with_log(|log| log.working_directory().map(PathBuf::from));
        self.scopes.add_touched(cwd, moved.as_deref().unwrap_or(cwd), &paths);
        self.scopes.add_told(cwd, told.scopes());
        let found = self.look(options, cwd, &told);
        self.compose(options, cwd, &told, &found)
    }

    /// Every file that counts now, broadest first.
    fn look(&mut self, options: &InstructionOptions, cwd: &Path, told: &Told) -> Found {
        self.files.begin_step(&options.denied);
        let mut found = Found::default();
        for scope in self.scopes.list(options, cwd) {
            let mut digests = Vec::new();
            for name in scope.names {
                let path = scope.folder.join(name);
                let probe = self.files.probe(&path, &scope.folder, scope.boundary, options.max_source_bytes);
                found.take(&path, probe, told, &mut digests);
            }
        }
        found
    }

    fn compose(
        &self,
        options: &InstructionOptions,
        cwd: &Path,
        told: &Told,
        found: &Found,
    ) -> Option<Message> {
        if !found.present.is_empty()
            && let identity = self.identity(options, cwd)
            && !(told.baseline.as_ref() == Some(&identity)
                && told.paths().all(|path| self.scopes.contains(options, Path::new(path))))
        {
            let frame = Frame::Baseline { identity, supersedes: !told.is_empty() };
            return Some(render(baseline_changes(found), &frame, options.max_bytes));
        }
        let changes = update_changes(found, told);
        (!changes.is_empty()).then(|| render(changes, &Frame::Update, options.max_bytes))
    }

    /// What a baseline depends on beside the files: another one calls for a new baseline.
    fn identity(&self, options: &InstructionOptions, cwd: &Path) -> String {
        let relative = cwd.strip_prefix(self.scopes.root(cwd)).unwrap_or(Path::new(""));
        json!({
            "maxBytes": options.max_bytes,
            "maxSourceBytes": options.max_source_bytes,
            "projectRootMarkers": options.project_root_markers,
            "candidates": options.candidates,
            "root": relative.to_string_lossy(),
        })
        .to_string()
    }
}
