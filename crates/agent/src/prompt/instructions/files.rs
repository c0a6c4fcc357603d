//! Instruction files and what is known of them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use sha1::{Digest, Sha1};

use super::DeniedPaths;
use super::imports::Imports;
use super::probe::{NoText, Prober, Sight};

/// One file's text with its imports.
#[derive(Debug)]
pub(super) struct Instruction {
    pub path: String,
    pub scope: String,
    pub text: String,
    pub digest: String,
    /// A part could not be looked at: an older text of the file may be the better one.
    pub uncertain: bool,
}

/// What a file is at a step.
#[derive(Clone, Debug)]
pub(super) enum Probe {
    Present(Arc<Instruction>),
    Absent,
    Hidden,
}

#[derive(Debug)]
struct Known {
    /// The file, then what it imports, as they looked before they were read.
    looked_at: Vec<(PathBuf, Sight)>,
    /// The same looks mean the same text.
    settled: bool,
    probe: Probe,
}

/// Reads files when they have changed.
#[derive(Debug, Default)]
pub(super) struct Files {
    known: HashMap<OsString, Known>,
    pub prober: Prober,
}

impl Files {
    /// Files are looked at anew.
    pub fn begin_step(&mut self, denied: &DeniedPaths) {
        self.prober.begin_step(denied);
    }

    /// The file at `path`. One that cannot be looked at is what it was.
    pub fn probe(&mut self, path: &Path, scope: &Path, boundary: &Path, max_source_bytes: u64) -> Probe {
        if let Some(known) = self.known.get(path.as_os_str())
            && known.settled
            && known.looked_at.iter().all(|(path, sight)| self.prober.look(path) == *sight)
        {
            return known.probe.clone();
        }
        let fresh = self.load(path, scope, boundary, max_source_bytes);
        let doubtful = match &fresh.probe {
            Probe::Present(one) => one.uncertain,
            Probe::Absent => false,
            Probe::Hidden => true,
        };
        match self.known.get(path.as_os_str()) {
            Some(known) if doubtful => known.probe.clone(),
            _ => {
                let probe = fresh.probe.clone();
                self.known.insert(path.as_os_str().to_owned(), fresh);
                probe
            }
        }
    }

    fn load(&mut self, path: &Path, scope: &Path, boundary: &Path, max_source_bytes: u64) -> Known {
        let now = SystemTime::now();
        let sight = self.prober.look(path);
        let mut looked_at = vec![(path.to_owned(), sight)];
        let probe = match sight {
            Sight::Missing | Sight::Other => Probe::Absent,
            Sight::Hidden => Probe::Hidden,
            Sight::File(_) => match self.prober.read(path, boundary, max_source_bytes) {
                Err(NoText::Absent) => Probe::Absent,
                Err(NoText::Hidden) => Probe::Hidden,
                Ok((real, text)) => {
                    let mut imports = Imports::new(&mut self.prober, boundary, max_source_bytes);
                    let text = imports.expand(&text, &real);
                    let uncertain = imports.uncertain;
                    looked_at.append(&mut imports.looked_at);
                    instruction(path, scope, text.trim(), uncertain)
                }
            },
        };
        let settled =
            !matches!(probe, Probe::Hidden) && looked_at.iter().all(|(_, sight)| sight.is_settled(now));
        Known { looked_at, settled, probe }
    }
}

fn instruction(path: &Path, scope: &Path, text: &str, uncertain: bool) -> Probe {
    if text.is_empty() {
        return Probe::Absent;
    }
    let digest = Sha1::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    Probe::Present(Arc::new(Instruction {
        path: path.to_string_lossy().into_owned(),
        scope: scope.to_string_lossy().into_owned(),
        text: text.to_owned(),
        digest,
        uncertain,
    }))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    const LIMIT: u64 = 1000;

    fn text_of(files: &mut Files, dir: &Path) -> Option<String> {
        files.begin_step(&DeniedPaths::default());
        match files.probe(&dir.join("AGENTS.md"), dir, dir, LIMIT) {
            Probe::Present(one) => Some(one.text.clone()),
            Probe::Absent | Probe::Hidden => None,
        }
    }

    #[test]
    fn what_does_not_change_is_read_once_and_looked_at_once_a_step() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("AGENTS.md"), "@a.md\n@b.md\n@a.md").expect("written");
        fs::write(dir.path().join("a.md"), "text a").expect("written");
        // File times must be older than a tick to be trusted.
        sleep(Duration::from_millis(100));
        let mut files = Files::default();
        let text = text_of(&mut files, dir.path());
        assert_eq!(text.as_deref(), Some("text a\n@b.md\ntext a"));
        let reads = files.prober.reads;
        for _ in 1..100 {
            assert_eq!(text_of(&mut files, dir.path()), text);
        }
        assert_eq!((files.prober.reads, files.prober.stats), (reads, 300));
        fs::write(dir.path().join("b.md"), "text b").expect("written");
        assert_eq!(text_of(&mut files, dir.path()).as_deref(), Some("text a\ntext b\ntext a"));
    }

    #[test]
    fn a_change_within_the_same_tick_is_seen() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut files = Files::default();
        for round in 0..200 {
            let text = format!("{round:03}");
            fs::write(dir.path().join("AGENTS.md"), &text).expect("written");
            assert_eq!(text_of(&mut files, dir.path()), Some(text));
        }
    }

    #[test]
    fn what_cannot_be_looked_at_is_what_it_was() {
        let dir = tempfile::tempdir().expect("a directory");
        let [agents, import] = ["AGENTS.md", "a.md"].map(|name| dir.path().join(name));
        fs::write(&agents, "@a.md").expect("written");
        fs::write(&import, "text a").expect("written");
        let mut files = Files::default();
        for path in [&import, &agents] {
            assert_eq!(text_of(&mut files, dir.path()).as_deref(), Some("text a"));
            fs::remove_file(path).expect("removed");
            // A link to itself can be neither opened nor said to be missing.
            std::os::unix::fs::symlink(path, path).expect("linked");
        }
        assert_eq!(text_of(&mut files, dir.path()).as_deref(), Some("text a"));
        assert_eq!(text_of(&mut Files::default(), dir.path()), None);
    }

    #[test]
    fn large_blank_and_binary_files_are_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut files = Files::default();
        let cases: [(&[u8], bool); 5] =
            [(b" \n", false), (&[b'x'; 1000], true), (&[b'x'; 1001], false), (&[0xff], false), (b"x", true)];
        for (bytes, present) in cases {
            fs::write(dir.path().join("AGENTS.md"), bytes).expect("written");
            assert_eq!(text_of(&mut files, dir.path()).is_some(), present);
        }
    }

    #[test]
    fn imports_together_stay_within_the_limit_of_a_file() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("AGENTS.md"), "@a.md\n".repeat(200)).expect("written");
        fs::write(dir.path().join("a.md"), "x".repeat(300)).expect("written");
        let mut files = Files::default();
        files.begin_step(&DeniedPaths::default());
        let probe = files.probe(&dir.path().join("AGENTS.md"), dir.path(), dir.path(), 2000);
        let Probe::Present(one) = probe else { panic!("a file") };
        assert_eq!((one.text.matches('x').count(), one.text.matches('@').count()), (600, 198));
    }
}
