//! Looking at processes through `/proc`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Place, TRIAL_VARIABLE};

/// How long what a killed run leaves may take to go: far more than the supervisor's grace.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// The thread that writes the log.
#[derive(Debug)]
pub struct JournalThread(File);

impl JournalThread {
    /// Finds it in a process that runs.
    pub fn find(pid: u32) -> Option<Self> {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let named = |path: &Path| {
            std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim_end() == "lorimer-journal")
        };
        let thread = threads.flatten().map(|entry| entry.path()).find(|path| named(path))?;
        File::open(thread.join("stat")).ok().map(Self)
    }

    /// `S` waits for a command, `D` waits for the disk, `R` computes.
    pub fn state(&self) -> char {
        let mut line = [0; 64];
        let length = self.0.read_at(&mut line, 0).unwrap_or(0);
        let after_name = line[..length].iter().rposition(|byte| *byte == b')').map(|at| at + 2);
        after_name.and_then(|at| line.get(at)).map_or('?', |state| char::from(*state))
    }
}

/// The direct children of a process.
pub fn children_of(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Waits until nothing of a trial runs any more. What does not go is named, and killed.
pub fn wait_until_gone(place: &Place, children: &[u32]) -> Result<(), String> {
    let limit = Instant::now() + GONE_WITHIN;
    loop {
        let left = left_of(place, children);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > limit {
            let named: Vec<String> =
                left.iter().map(|pid| format!("{pid} ({})", command_line(*pid))).collect();
            left.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)).for_each(|pid| {
                // It may go by itself just now.
                let _ = kill_process(pid, Signal::KILL);
            });
            return Err(format!("still running {GONE_WITHIN:?} after the kill: {}", named.join(", ")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn left_of(place: &Place, children: &[u32]) -> Vec<u32> {
    let variable = format!("{TRIAL_VARIABLE}={}", place.name);
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| is_alive(*pid) && (children.contains(pid) || belongs(*pid, &variable, place))).collect()
}

/// A process of a trial has its variable or works in its workspace.
fn belongs(pid: u32, variable: &str, place: &Place) -> bool {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let environment = std::fs::read(folder.join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
        || std::fs::read_link(folder.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&place.workspace))
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X', 'x']))
}

fn command_line(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}
