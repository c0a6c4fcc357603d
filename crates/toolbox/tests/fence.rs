//! The fence of the file tools while somebody moves the folders under them.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lorimer_protocol::{Draft, PermissionMode, SandboxModeEvent, SessionHeader};
use lorimer_session::Session;
use lorimer_toolbox::{EditTool, ReadTool, WriteTool};
use lorimer_tools::{CallRequest, Pipeline, PipelineBuilder, Registry};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// How many times the folder is swapped, unless `LORIMER_FENCE_SWAPS` says it.
const SWAPS: u64 = 4_000;

/// How long a folder stays what it is, at most: about as long as a call takes.
const LONGEST_STAY: Duration = Duration::from_micros(60);

const THEIRS: &str = "theirs: not to be changed\n";

/// What the calls came to.
#[derive(Debug, Default)]
struct Tally {
    calls: u64,
    done: u64,
    denied: u64,
    otherwise: u64,
}

struct Desk {
    session: Arc<Session>,
    pipeline: Pipeline,
}

impl Desk {
    fn new(workspace: &Path) -> Self {
        let session = Session::in_memory(SessionHeader::new("s1".into(), 0, None));
        let mode = SandboxModeEvent { mode: PermissionMode::WorkspaceWrite, source: None };
        session.append(Draft::new(&mode)).unwrap();
        let mut registry = Registry::default();
        registry.register(ReadTool::default()).unwrap();
        registry.register(WriteTool::default()).unwrap();
        registry.register(EditTool::default()).unwrap();
        let pipeline = PipelineBuilder::new(registry, workspace.to_owned()).build();
        Self { session: Arc::new(session), pipeline }
    }

    async fn call(&self, tally: &mut Tally, name: &str, arguments: Value) -> String {
        let request =
            CallRequest { call_id: "c".into(), name: name.to_owned(), arguments: arguments.to_string() };
        let cancel = CancellationToken::new();
        let outcome = self.pipeline.call(&request, Arc::clone(&self.session), cancel).await;
        tally.calls += 1;
        match outcome.error.as_ref().map(|error| error.code.as_str()) {
            _ if !outcome.is_error => tally.done += 1,
            Some("FS_SANDBOX_DENIED") => tally.denied += 1,
            _ => tally.otherwise += 1,
        }
        outcome.plain_text().unwrap_or_default()
    }
}

/// A workspace, and a folder that is neither in it nor in a folder for temporary files.
struct Ground {
    workspace: tempfile::TempDir,
    outside: tempfile::TempDir,
}

impl Ground {
    /// `None` where the system has no such folder.
    fn new() -> Option<Self> {
        let temporary =
            [PathBuf::from("/tmp"), std::env::temp_dir()].map(|path| path.canonicalize().unwrap());
        let outside = ["/var/tmp", "/dev/shm"]
            .iter()
            .filter_map(|path| Path::new(path).canonicalize().ok())
            .filter(|path| !temporary.iter().any(|root| path.starts_with(root)))
            .find_map(|path| tempfile::tempdir_in(path).ok())?;
        let workspace = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("f"), THEIRS).unwrap();
        fs::create_dir_all(workspace.path().join("d")).unwrap();
        fs::write(workspace.path().join("d/f"), "ours: 0\n").unwrap();
        Some(Self { workspace, outside })
    }

    /// Everything that can be told of the outside: names, inodes, times and content.
    fn state_outside(&self) -> Vec<String> {
        let mut state: Vec<String> = fs::read_dir(self.outside.path())
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let seen = path.symlink_metadata().unwrap();
                let content = fs::read_to_string(&path).unwrap_or_default();
                format!(
                    "{} {} {:o} {} {} {} {content}",
                    path.display(),
                    seen.ino(),
                    seen.mode(),
                    seen.nlink(),
                    seen.mtime_nsec(),
                    seen.ctime_nsec()
                )
            })
            .collect();
        state.sort();
        state
    }
}

/// Makes `d` a link and a folder again, until it was swapped so many times.
fn swap(workspace: &Path, link_to: &Path, swaps: u64, done: &AtomicU64) {
    let [folder, aside, link] = ["d", "aside", "link"].map(|name| workspace.join(name));
    let mut turn = 0_u32;
    while done.load(Ordering::Relaxed) < swaps {
        // The link takes the folder's place, and gives it back; for a moment nothing is there.
        fs::rename(&folder, &aside).unwrap();
        let _ = fs::remove_file(&link);
        symlink(link_to, &link).unwrap();
        if fs::rename(&link, &folder).is_ok() {
            stay(&mut turn);
            fs::remove_file(&folder).unwrap();
        }
        // A call may have made the folder anew in the moment when nothing was there.
        while fs::rename(&aside, &folder).is_err() {
            let _ = fs::remove_dir_all(&folder);
        }
        done.fetch_add(2, Ordering::Relaxed);
        stay(&mut turn);
    }
}

/// Waits for a time that differs from turn to turn.
fn stay(turn: &mut u32) {
    *turn = turn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let until = Instant::now() + LONGEST_STAY * (*turn >> 24) / 256;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

async fn work(desk: &Desk, is_over: &AtomicBool) -> Tally {
    let mut tally = Tally::default();
    let mut count = 0;
    while !is_over.load(Ordering::Relaxed) {
        count += 1;
        let new = format!("d/new-{}", count % 50);
        let deep = format!("d/sub-{}/deep/new", count % 50);
        desk.call(&mut tally, "write", json!({"file_path": new, "content": "x"})).await;
        desk.call(&mut tally, "write", json!({"file_path": deep, "content": "x"})).await;
        desk.call(&mut tally, "read", json!({"file_path": "d/f"})).await;
        let edit = json!({"file_path": "d/f", "old_string": ": ", "new_string": ":  "});
        desk.call(&mut tally, "edit", edit).await;
        desk.call(&mut tally, "read", json!({"file_path": "d/f"})).await;
        desk.call(&mut tally, "write", json!({"file_path": "d/f", "content": format!("ours: {count}\n")}))
            .await;
    }
    tally
}

fn wanted_swaps() -> u64 {
    std::env::var("LORIMER_FENCE_SWAPS").ok().and_then(|text| text.parse().ok()).unwrap_or(SWAPS)
}

/// Somebody who swaps a workspace's folder `d` for a link and back.
struct Swapper {
    thread: std::thread::JoinHandle<()>,
    is_over: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
}

impl Swapper {
    fn start(workspace: &Path, link_to: &Path) -> Self {
        let (is_over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let thread = {
            let (is_over, done) = (Arc::clone(&is_over), Arc::clone(&done));
            let (workspace, link_to) = (workspace.to_owned(), link_to.to_owned());
            std::thread::spawn(move || {
                swap(&workspace, &link_to, wanted_swaps(), &done);
                is_over.store(true, Ordering::Relaxed);
            })
        };
        Self { thread, is_over, done }
    }

    fn end(self) -> u64 {
        self.thread.join().unwrap();
        self.done.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn nothing_lands_outside_while_a_folder_is_swapped_for_a_link() {
    let Some(ground) = Ground::new() else { return };
    let before = ground.state_outside();
    let workspace = ground.workspace.path().canonicalize().unwrap();
    let desk = Desk::new(&workspace);
    let swapper = Swapper::start(&workspace, ground.outside.path());
    let tally = work(&desk, &swapper.is_over).await;
    let swaps = swapper.end();
    println!("{swaps} swaps, {tally:?}");
    assert_eq!(ground.state_outside(), before, "{swaps} swaps, {tally:?}");
    assert!(tally.done > 0 && tally.denied > 0, "{tally:?}");
}

/// A process that was told to read its workspace must not be made to show its own memory.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_of_the_harness_are_not_read_while_a_folder_is_swapped_for_a_link() {
    let workspace = tempfile::tempdir().unwrap();
    let root = workspace.path().canonicalize().unwrap();
    fs::create_dir(root.join("d")).unwrap();
    fs::write(root.join("d/status"), "ours\n").unwrap();
    let desk = Desk::new(&root);
    let swapper = Swapper::start(&root, Path::new("/proc/self"));
    let mut tally = Tally::default();
    while !swapper.is_over.load(Ordering::Relaxed) {
        let text = desk.call(&mut tally, "read", json!({"file_path": "d/status"})).await;
        assert!(!text.contains("Threads:"), "{tally:?} {text}");
    }
    let swaps = swapper.end();
    println!("{swaps} swaps, {tally:?}");
    assert!(tally.done > 0, "{tally:?}");
}

#[tokio::test]
async fn a_second_name_of_a_file_outside_is_let_go() {
    let Some(ground) = Ground::new() else { return };
    let (theirs, ours) = (ground.outside.path().join("f"), ground.workspace.path().join("name"));
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o640)).unwrap();
    let desk = Desk::new(&ground.workspace.path().canonicalize().unwrap());
    let mut tally = Tally::default();
    for (tool, arguments) in [
        ("edit", json!({"file_path": "name", "old_string": "not", "new_string": "now"})),
        ("write", json!({"file_path": "name", "content": "ours"})),
    ] {
        let _ = fs::remove_file(&ours);
        if fs::hard_link(&theirs, &ours).is_err() {
            // Not on one file system.
            return;
        }
        desk.call(&mut tally, "read", json!({"file_path": "name"})).await;
        let text = desk.call(&mut tally, tool, arguments).await;
        assert_eq!(tally.done, tally.calls, "{text}");
        assert_ne!(fs::read_to_string(&ours).unwrap(), THEIRS);
        assert_eq!(fs::read_to_string(&theirs).unwrap(), THEIRS);
        let (theirs, ours) = (theirs.metadata().unwrap(), ours.metadata().unwrap());
        assert_eq!((theirs.nlink(), ours.nlink()), (1, 1));
        assert_eq!((theirs.mode() & 0o777, ours.mode() & 0o777), (0o640, 0o640));
    }
}
