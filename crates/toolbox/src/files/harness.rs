//! A workspace with a session, and the file tools driven as a model drives them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lorimer_protocol::{Draft, Event, FsObserved, PermissionMode, SandboxModeEvent, SessionHeader};
use lorimer_session::Session;
use lorimer_tools::{
    CallRequest, DurableResult, ErasedTool, Meta, Outcome, Pipeline, PipelineBuilder, Registry,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{EditOptions, EditTool, ReadOptions, ReadTool, TodoWriteTool, WriteOptions, WriteTool};

/// What a call came to, in the shapes that tests compare.
pub(crate) struct Ended {
    pub text: String,
    pub code: Option<String>,
    pub is_error: bool,
    pub meta: Option<Value>,
    /// The card of the result as JSON.
    pub view: Option<Value>,
    pub value: Option<Value>,
}

pub(crate) struct Desk {
    pub root: PathBuf,
    pub session: Arc<Session>,
    pub cancel: CancellationToken,
    pipeline: Pipeline,
    folder: Arc<tempfile::TempDir>,
}

impl Desk {
    pub fn new() -> Self {
        Self::with(ReadOptions::default(), WriteOptions::default(), EditOptions::default())
    }

    pub fn with(read: ReadOptions, write: WriteOptions, edit: EditOptions) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        Self::at(folder, Session::in_memory(header()), read, write, edit)
    }

    /// The same workspace with a session that begins with these events.
    pub fn resumed(&self, events: impl IntoIterator<Item = Arc<Event>>) -> Self {
        let session = Session::in_memory(header());
        for event in events {
            let mut draft = Draft::new(&event.data_as::<FsObserved>().unwrap().unwrap());
            draft.data = event.data.clone();
            session.append(draft).unwrap();
        }
        let (read, write, edit) = Default::default();
        Self::at(Arc::clone(&self.folder), session, read, write, edit)
    }

    fn at(
        folder: Arc<tempfile::TempDir>,
        session: Session,
        read: ReadOptions,
        write: WriteOptions,
        edit: EditOptions,
    ) -> Self {
        let root = folder.path().canonicalize().unwrap();
        let mut registry = Registry::default();
        registry.register(ReadTool::new(read)).unwrap();
        registry.register(WriteTool::new(write)).unwrap();
        registry.register(EditTool::new(edit)).unwrap();
        registry.register(TodoWriteTool).unwrap();
        Self {
            session: Arc::new(session),
            cancel: CancellationToken::new(),
            pipeline: PipelineBuilder::new(registry, root.clone()).build(),
            root,
            folder,
        }
    }

    pub fn set_mode(&self, mode: PermissionMode) {
        self.session.append(Draft::new(&SandboxModeEvent { mode, source: None })).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub fn tool(&self, name: &str) -> Arc<dyn ErasedTool> {
        self.pipeline.registry().find("s1", name).unwrap()
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Ended {
        let request =
            CallRequest { call_id: "c".into(), name: name.to_owned(), arguments: arguments.to_string() };
        let outcome = self.pipeline.call(&request, Arc::clone(&self.session), self.cancel.clone()).await;
        let meta = outcome.meta.as_ref().map(Meta::to_value);
        let durable =
            DurableResult { content: &outcome.content, is_error: outcome.is_error, meta: meta.as_ref() };
        let view = self.tool(name).present_result(&arguments, durable);
        self.ended(&outcome, view.map(|view| serde_json::to_value(view).unwrap()))
    }

    pub async fn read(&self, name: &str) -> Ended {
        self.call("read", serde_json::json!({ "file_path": name })).await
    }

    /// The workspace's path is replaced by `/w` in every text.
    fn ended(&self, outcome: &Outcome, view: Option<Value>) -> Ended {
        Ended {
            text: self.masked(&outcome.plain_text().unwrap()),
            code: outcome.error.as_ref().map(|error| error.code.clone()),
            is_error: outcome.is_error,
            meta: outcome.meta.as_ref().map(|meta| self.masked_json(&meta.to_value())),
            view: view.map(|view| self.masked_json(&view)),
            value: outcome.value.as_ref().map(|value| self.masked_json(value)),
        }
    }

    fn masked(&self, text: &str) -> String {
        text.replace(&*self.root.to_string_lossy(), "/w")
    }

    fn masked_json(&self, value: &Value) -> Value {
        serde_json::from_str(&self.masked(&value.to_string())).unwrap()
    }

    /// How many observations the log has.
    pub fn events(&self) -> u64 {
        self.session.with_log(|log| log.next_seq())
    }
}

fn header() -> SessionHeader {
    SessionHeader::new("s1".into(), 0, None)
}

/// Makes a FIFO.
pub(crate) fn make_fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A folder that is neither in a workspace nor in a folder for temporary files, where the system has one.
pub(crate) fn outside() -> Option<tempfile::TempDir> {
    let temporary = [PathBuf::from("/tmp"), std::env::temp_dir()].map(|path| path.canonicalize().unwrap());
    ["/var/tmp", "/dev/shm"]
        .iter()
        .filter_map(|path| Path::new(path).canonicalize().ok())
        .filter(|path| !temporary.iter().any(|root| path.starts_with(root)))
        .find_map(|path| tempfile::tempdir_in(path).ok())
}
