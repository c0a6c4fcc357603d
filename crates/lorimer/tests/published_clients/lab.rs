//! A fresh home, a workspace, and what is left of them afterwards.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::log::Log;
use crate::server::Server;

/// The key that every runtime gets unless a test takes it away.
pub const KEY: &str = "sk-lab-7f3a91c0de";
/// What no wait of these tests comes near; it only ends a test that hangs.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// One test's files.
pub struct Lab {
    root: TempDir,
}

impl Lab {
    /// A home that does not exist yet and an empty workspace.
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("lab-").tempdir().expect("a temporary folder");
        std::fs::create_dir(root.path().join("ws")).expect("a workspace");
        Self { root }
    }

    /// The folder around everything.
    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().expect("a real path")
    }

    pub fn workspace(&self) -> PathBuf {
        self.root().join("ws")
    }

    /// Writes a file of the workspace.
    pub fn put(&self, path: &str, content: &str) {
        let path = self.workspace().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, content).expect("a file");
    }

    /// The options of a client for this place, without a key.
    pub fn keyless(&self, server: &Server) -> Value {
        json!({
            "dsh_bin": env!("CARGO_BIN_EXE_lorimer"),
            "dsh_home": self.root().join("home"),
            "cwd": self.workspace(),
            "base_url": server.url(),
            "initialize_timeout_seconds": 60,
            // A busy machine may take long; how long an end takes is looked at where it matters.
            "shutdown_timeout_seconds": 30,
            "env": {
                "HOME": self.root(),
                "LORIMER_RETRY__INITIAL_DELAY_MS": "1",
                "LORIMER_RETRY__MAX_RETRIES": "2",
            },
        })
    }

    /// The options of a client for this place.
    pub fn options(&self, server: &Server) -> Value {
        let mut options = self.keyless(server);
        options["api_key"] = KEY.into();
        options
    }

    /// The options of a client whose commands may do everything.
    pub fn unfenced(&self, server: &Server) -> Value {
        let mut options = self.options(server);
        options["env"]["DSH_PERMISSION_MODE"] = "danger-full-access".into();
        options
    }

    /// The log of a session, of which there is one.
    #[track_caller]
    pub fn log(&self, id: &str) -> Log {
        let logs = Log::all_of(&self.root().join("home/lorimer"));
        let mut logs: Vec<Log> = logs.into_iter().filter(|log| log.id() == id).collect();
        assert_eq!(logs.len(), 1, "logs of {id}");
        logs.remove(0)
    }

    /// How many sessions are stored.
    pub fn stored(&self) -> usize {
        Log::all_of(&self.root().join("home/lorimer")).len()
    }

    /// Asserts that no process works here any more.
    #[track_caller]
    pub fn assert_nothing_runs(&self) {
        let root = self.root();
        let gone = holds_in_time(|| processes_in(&root).is_empty());
        assert!(gone, "still running: {:?}", processes_in(&root));
    }
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: impl Fn() -> bool) {
    assert!(holds_in_time(what), "it never came");
}

fn holds_in_time(what: impl Fn() -> bool) -> bool {
    let limit = Instant::now() + PATIENCE;
    while !what() {
        if Instant::now() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// The command lines of the processes whose working directory is within a folder.
fn processes_in(folder: &Path) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    processes
        .filter(|process| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
        .map(|process| {
            std::fs::read_to_string(process.join("cmdline")).unwrap_or_default().replace('\0', " ")
        })
        .collect()
}
