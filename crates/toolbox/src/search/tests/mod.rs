//! Both tools on real trees.

mod failures;
mod odd_entries;
mod results;
mod texts;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lorimer_protocol::{CallId, SessionHeader, SessionId};
use lorimer_session::{Session, Store, StoreOptions};
use lorimer_tools::{Tool, ToolContext, ToolError};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{GlobArgs, GlobOutput, GlobTool, GrepArgs, GrepOutput, GrepTool, SearchOptions};

/// A folder with files in it. Every file is a second younger than the one before.
struct Tree {
    folder: TempDir,
    files: u64,
}

impl Tree {
    fn new(files: &[&str]) -> Self {
        let mut tree = Self { folder: TempDir::new().expect("a folder"), files: 0 };
        for file in files {
            tree.add(file, "needle\n");
        }
        tree
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn add(&mut self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("a folder");
        let mut file = File::create(&path).expect("a file");
        file.write_all(content.as_ref()).expect("writes");
        self.files += 1;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + self.files))
            .expect("a time");
        path
    }

    fn add_pipe(&self, path: &str) {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, self.path().join(path), rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe");
    }

    fn context(&self) -> ToolContext {
        let header = SessionHeader::new(SessionId("s".to_owned()), 0, None);
        context_in(Arc::new(Session::in_memory(header)), self.path())
    }

    async fn glob(&self, pattern: &str, path: Option<&str>) -> Result<GlobOutput, ToolError> {
        let args = GlobArgs { pattern: pattern.to_owned(), path: path.map(str::to_owned) };
        GlobTool::default().execute(&args, &self.context()).await
    }

    async fn paths(&self, pattern: &str, path: Option<&str>) -> Vec<String> {
        self.glob(pattern, path).await.expect("finds").paths
    }

    async fn grep(&self, pattern: &str, path: Option<&str>) -> Result<GrepOutput, ToolError> {
        GrepTool::default().execute(&grep_args(pattern, path, None), &self.context()).await
    }

    async fn rows(&self, pattern: &str, path: Option<&str>, include: Option<&str>) -> Vec<String> {
        let found = GrepTool::default().execute(&grep_args(pattern, path, include), &self.context()).await;
        let row = |found: super::GrepMatch| format!("{}:{}:{}", found.path, found.line_number, found.line);
        found.expect("finds").matches.into_iter().map(row).collect()
    }
}

fn context_in(session: Arc<Session>, cwd: &Path) -> ToolContext {
    ToolContext::new(CallId::from("c"), "search", Value::Null, session, cwd, CancellationToken::new())
}

fn grep_args(pattern: &str, path: Option<&str>, include: Option<&str>) -> GrepArgs {
    GrepArgs {
        pattern: pattern.to_owned(),
        path: path.map(str::to_owned),
        include: include.map(str::to_owned),
    }
}

fn failure<T: std::fmt::Debug>(ended: Result<T, ToolError>) -> (String, String) {
    let error = ended.expect_err("fails");
    (error.code().unwrap_or_default().to_owned(), error.message)
}
