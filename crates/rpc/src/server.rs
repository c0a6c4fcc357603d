//! The dispatcher: takes frames in their order, answers what needs no session, and hands the rest to session tasks.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use lorimer_protocol::SessionId;
use lorimer_session::Store;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::RpcError;
use crate::frame::{Incoming, Line, RequestId, id_of_beginning, next_line};
use crate::host::{Channels, Host, Route};
use crate::opening::{How, Opening};
use crate::outbox::Outbox;
use crate::reverse::Reverse;
use crate::session::{Command, SessionHandle};
use crate::wire::{
    Cancel, Close, Delete, Empty, Fork, GetWorkingDirectory, Initialize, InitializeResult, List, ListParams,
    Method, Prompt, Resume, RuntimeInfo, ServerInfo, SetWorkingDirectory, Shutdown,
};
use crate::{notes, stored};

/// How DSH's server names itself; its clients may look at it.
const SERVER_NAME: &str = "deepseek-harness-sdk-runtime";
const SERVER_VERSION: &str = "0.0.1";

/// Largest integer that every JSON reader keeps exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// What a request takes beside its text, in bytes.
const REQUEST_BYTES: usize = 2048;
/// Least room for requests that wait for their answer, in bytes.
const LEAST_ROOM_BYTES: usize = 16 << 20;
/// Longest id of a session, in bytes: it is the name of a folder.
const MAX_SESSION_ID_BYTES: usize = 200;

/// How long the last answer may take to be read before the server ends without that.
const LAST_ANSWER_GRACE: Duration = Duration::from_millis(500);

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// Longest line of a client, in bytes.
    pub max_frame_bytes: usize,
    /// Most bytes that wait for a client that does not read.
    pub max_queued_bytes: usize,
    /// How long a turn may take to end after a shutdown before its log is closed without it, in milliseconds.
    pub shutdown_grace_ms: u64,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self { max_frame_bytes: 64 << 20, max_queued_bytes: 8 << 20, shutdown_grace_ms: 500 }
    }
}

/// Serves one client until it shuts the server down, closes `input`, stops taking `output`, or `stop` fires. All
/// sessions are closed in an orderly way before it returns.
///
/// # Errors
/// When the system cannot start a thread.
pub async fn serve(
    host: Arc<dyn Host>,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    options: ServerOptions,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let (outbox, written) = Outbox::start(output, options.max_queued_bytes)?;
    let mut lines = read_lines(input, options.max_frame_bytes)?;
    let reverse = Reverse::new(outbox.clone());
    let mut server = Server {
        host,
        outbox,
        reverse,
        options,
        initialized: None,
        sessions: HashMap::new(),
        tasks: TaskTracker::new(),
        room: Arc::new(Semaphore::new(room_bytes(&options) as usize)),
    };
    let mut shutdown = server.run(&mut lines, stop).await;
    server.dispose().await;
    let last_answers = async {
        server.refuse_late(&mut lines, &mut shutdown).await;
        for id in shutdown {
            server.outbox.answer(&id, Ok(Empty {})).await;
        }
        server.tasks.close();
        server.tasks.wait().await;
        drop(server);
        let _ = written.await;
    };
    let _ = tokio::time::timeout(LAST_ANSWER_GRACE, last_answers).await;
    notes::finish();
    Ok(())
}

/// Reads lines on a thread of its own. One line waits at most, so a client that sends faster than it is served waits
/// in the pipe.
fn read_lines(input: impl Read + Send + 'static, max_bytes: usize) -> std::io::Result<Receiver<Line>> {
    let (sender, receiver) = channel(1);
    std::thread::Builder::new().name("lorimer-rpc-in".to_owned()).spawn(move || {
        let mut input = BufReader::with_capacity(64 * 1024, input);
        pump(&mut input, max_bytes, &sender);
    })?;
    Ok(receiver)
}

fn pump(input: &mut impl BufRead, max_bytes: usize, lines: &Sender<Line>) {
    // What cannot be read any more has ended.
    while let Ok(Some(line)) = next_line(input, max_bytes) {
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// What `initialize` has settled.
struct Initialized {
    route: Route,
    channels: Channels,
}

struct Server {
    host: Arc<dyn Host>,
    outbox: Outbox,
    reverse: Arc<Reverse>,
    options: ServerOptions,
    initialized: Option<Initialized>,
    sessions: HashMap<SessionId, SessionHandle>,
    /// Lists that are being made.
    tasks: TaskTracker,
    /// What requests that wait for their answer may take up, in bytes.
    room: Arc<Semaphore>,
}

impl Server {
    /// Returns the ids of `shutdown` requests that wait for their answer.
    async fn run(&mut self, lines: &mut Receiver<Line>, stop: CancellationToken) -> Vec<RequestId> {
        let broken = self.outbox.broken().clone();
        loop {
            let line = tokio::select! {
                biased;
                () = stop.cancelled() => return Vec::new(),
                () = broken.cancelled() => return Vec::new(),
                line = lines.recv() => line,
            };
            let Some(line) = line else { return Vec::new() };
            // A client that does not read its answers must not keep the server from ending.
            let shutdown = tokio::select! {
                biased;
                () = stop.cancelled() => return Vec::new(),
                shutdown = self.line(line) => shutdown,
            };
            if let Some(id) = shutdown {
                return vec![id];
            }
        }
    }

    /// What came after a shutdown: a second shutdown is answered like the first, anything else is refused.
    async fn refuse_late(&self, lines: &mut Receiver<Line>, shutdown: &mut Vec<RequestId>) {
        while !shutdown.is_empty()
            && let Ok(Line::Whole(line)) = lines.try_recv()
        {
            match Incoming::parse(&line) {
                Some(Incoming::Request { id, method, .. }) if method == Shutdown::NAME => shutdown.push(id),
                Some(Incoming::Request { id, .. }) => {
                    self.outbox.answer::<Empty>(&id, Err(RpcError::shutting_down())).await;
                }
                _ => {}
            }
        }
    }

    /// Takes one line; `Some` when it asks for the end.
    async fn line(&mut self, line: Line) -> Option<RequestId> {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(beginning) => {
                self.too_long(&beginning).await;
                return None;
            }
        };
        match Incoming::parse(&line)? {
            Incoming::Request { id, method, .. } if method == Shutdown::NAME => return Some(id),
            Incoming::Request { mut id, method, params } => {
                // What waits for an answer takes up room, and a client that has none left waits.
                if let Ok(room) = Arc::clone(&self.room).acquire_many_owned(self.cost_of(line.len())).await {
                    id.hold(room);
                }
                // The line is no longer needed, and it may be long.
                drop(line);
                self.request(id, &method, params.get()).await;
            }
            Incoming::Response { id, result } => self.reverse.answered(&id, result),
            Incoming::Notification => {}
            Incoming::Junk(why) => crate::note(&format!("a line was dropped: {why}")),
        }
        None
    }

    /// What a request of this length takes of the room, and what it takes beside its text.
    fn cost_of(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.saturating_add(REQUEST_BYTES)).unwrap_or(u32::MAX).min(room_bytes(&self.options))
    }

    async fn too_long(&self, beginning: &[u8]) {
        let error = format!("the request is longer than {} bytes; send less", self.options.max_frame_bytes);
        match id_of_beginning(beginning) {
            Some(id) => self.outbox.answer::<Empty>(&id, Err(RpcError::new(error))).await,
            None => crate::note(&format!("a line was dropped: {error}")),
        }
    }

    async fn request(&mut self, id: RequestId, method: &str, params: &str) {
        match self.dispatch(&id, method, params).await {
            Ok(Done::Answered) => {}
            Ok(Done::With(result)) => self.outbox.answer(&id, Ok(result)).await,
            Err(error) => self.outbox.answer::<Empty>(&id, Err(error)).await,
        }
    }

    async fn dispatch(&mut self, id: &RequestId, method: &str, params: &str) -> Result<Done, RpcError> {
        match method {
            Initialize::NAME => self.initialize(params),
            List::NAME => self.list(id, params_of::<List>(params)?),
            Fork::NAME => {
                let params = params_of::<Fork>(params)?;
                self.on_store(id, move |store| stored::fork(store, &params)).await
            }
            Delete::NAME => self.delete(id, params_of::<Delete>(params)?.session_id).await,
            Close::NAME => self.close(id, &params_of::<Close>(params)?.session_id).await,
            Cancel::NAME => self.hand_to_open(id, &params_of::<Cancel>(params)?.session_id, Command::Cancel),
            Resume::NAME => self.resume(id, params_of::<Resume>(params)?.session_id),
            Prompt::NAME => {
                self.check_initialized()?;
                let params = params_of::<Prompt>(params)?;
                let command = Command::Prompt { content: params.content_blocks, delivery: params.delivery };
                self.hand_to_session(id, params.session_id, command)
            }
            GetWorkingDirectory::NAME => {
                self.check_initialized()?;
                self.hand_to_session(
                    id,
                    params_of::<GetWorkingDirectory>(params)?.session_id,
                    Command::GetDirectory,
                )
            }
            SetWorkingDirectory::NAME => {
                self.check_initialized()?;
                let params = params_of::<SetWorkingDirectory>(params)?;
                self.hand_to_session(id, params.session_id, Command::SetDirectory { path: params.path })
            }
            _ => Err(RpcError::unknown_method(method)),
        }
    }

    fn initialize(&mut self, params: &str) -> Result<Done, RpcError> {
        let params = params_of::<Initialize>(params)?;
        let max_tokens =
            params.max_tokens.as_ref().filter(|value| !value.is_null()).map(safe_integer).transpose()?;
        let route = self.host.route(&params, max_tokens)?;
        let (name, version) = self.host.program();
        let result = InitializeResult {
            server_info: ServerInfo { name: SERVER_NAME.to_owned(), version: SERVER_VERSION.to_owned() },
            runtime: RuntimeInfo {
                name: name.to_owned(),
                version: version.to_owned(),
                cwd: route.cwd.to_string_lossy().into_owned(),
                provider: route.provider.clone(),
                model: route.model.clone(),
                permission_mode: route.permission_mode,
            },
        };
        let declared = params.capabilities;
        let channels = Channels {
            approver: declared.approvals.then(|| Arc::clone(&self.reverse) as _),
            questioner: declared.questions.then(|| Arc::clone(&self.reverse) as _),
        };
        self.initialized = Some(Initialized { route, channels });
        Done::with(&result)
    }

    fn check_initialized(&self) -> Result<&Initialized, RpcError> {
        self.initialized.as_ref().ok_or_else(RpcError::not_initialized)
    }

    /// Hands a request to its session, which is created when its id is new.
    fn hand_to_session(
        &mut self,
        id: &RequestId,
        session: SessionId,
        command: Command,
    ) -> Result<Done, RpcError> {
        let unsent = match self.sessions.get(&session) {
            Some(handle) => match handle.send(id.clone(), command) {
                Ok(()) => return Ok(Done::Answered),
                Err(unsent) => unsent,
            },
            None => (id.clone(), command),
        };
        let handle = self.start(How::Create(session.clone()))?;
        // A task that was just started takes commands.
        let _ = handle.send(unsent.0, unsent.1);
        self.sessions.insert(session, handle);
        Ok(Done::Answered)
    }

    fn hand_to_open(&self, id: &RequestId, session: &SessionId, command: Command) -> Result<Done, RpcError> {
        let handle = self.sessions.get(session).filter(|handle| handle.is_open());
        match handle.map(|handle| handle.send(id.clone(), command)) {
            Some(Ok(())) => Ok(Done::Answered),
            _ => Err(RpcError::new(format!("session \"{session}\" is not open"))),
        }
    }

    fn resume(&mut self, id: &RequestId, session: SessionId) -> Result<Done, RpcError> {
        self.check_initialized()?;
        if self.sessions.get(&session).is_some_and(SessionHandle::is_open) {
            return Err(RpcError::already_open(session.as_str()));
        }
        let handle = self.start(How::Resume(session.clone()))?;
        let _ = handle.send(id.clone(), Command::Resume);
        self.sessions.insert(session, handle);
        Ok(Done::Answered)
    }

    fn start(&self, how: How) -> Result<SessionHandle, RpcError> {
        let Initialized { route, channels } = self.check_initialized()?;
        let (How::Create(session) | How::Resume(session)) = &how;
        if session.as_str().len() > MAX_SESSION_ID_BYTES {
            return Err(RpcError::new(format!("a session id has at most {MAX_SESSION_ID_BYTES} bytes")));
        }
        let opening =
            Opening { host: Arc::clone(&self.host), route: route.clone(), channels: channels.clone(), how };
        let grace = Duration::from_millis(self.options.shutdown_grace_ms);
        Ok(SessionHandle::start(opening, self.outbox.clone(), grace))
    }

    async fn close(&mut self, id: &RequestId, session: &SessionId) -> Result<Done, RpcError> {
        match self.sessions.get_mut(session) {
            Some(handle) if handle.is_open() => handle.close().await,
            _ => return Err(RpcError::new(format!("session \"{session}\" is not open"))),
        }
        self.sessions.remove(session);
        self.outbox.answer(id, Ok(Empty {})).await;
        Ok(Done::Answered)
    }

    async fn delete(&mut self, id: &RequestId, session: SessionId) -> Result<Done, RpcError> {
        if let Some(handle) = self.sessions.get_mut(&session) {
            handle.close().await;
            self.sessions.remove(&session);
        }
        self.on_store(id, move |store| stored::delete(store, &session)).await
    }

    fn list(&mut self, id: &RequestId, params: ListParams) -> Result<Done, RpcError> {
        let is_open = |handle: &SessionHandle| handle.is_open();
        let open = self.sessions.iter().filter(|(_, handle)| is_open(handle)).map(|(id, _)| id.clone());
        let open: Vec<SessionId> = open.collect();
        let (host, outbox, id) = (Arc::clone(&self.host), self.outbox.clone(), id.clone());
        self.tasks.spawn(async move {
            let listed =
                tokio::task::spawn_blocking(move || stored::list(host.store(), &params, &open)).await;
            outbox.answer(&id, listed.map_err(|_| RpcError::new("failed unexpectedly"))).await;
        });
        Ok(Done::Answered)
    }

    /// Answers with what `work` gives, off the thread that serves. What comes next waits, so that requests about one
    /// session keep their order.
    async fn on_store<R: serde::Serialize + Send + 'static>(
        &self,
        id: &RequestId,
        work: impl FnOnce(&Store) -> Result<R, RpcError> + Send + 'static,
    ) -> Result<Done, RpcError> {
        let host = Arc::clone(&self.host);
        let answer = tokio::task::spawn_blocking(move || work(host.store())).await;
        let answer = answer.unwrap_or_else(|_| Err(RpcError::new("failed unexpectedly")));
        self.outbox.answer(id, answer).await;
        Ok(Done::Answered)
    }

    /// Nothing is told after this point; all sessions end, at the same time.
    async fn dispose(&mut self) {
        self.outbox.mute();
        self.reverse.give_up();
        futures_util::future::join_all(self.sessions.values_mut().map(SessionHandle::close)).await;
    }
}

/// Room for requests that wait for their answer.
fn room_bytes(options: &ServerOptions) -> u32 {
    u32::try_from(options.max_frame_bytes.max(LEAST_ROOM_BYTES)).unwrap_or(u32::MAX).min(u32::MAX >> 4)
}

/// How a request was dealt with.
enum Done {
    /// Somebody answers it, or has.
    Answered,
    /// It is to be answered with this.
    With(Value),
}

impl Done {
    fn with<R: serde::Serialize>(result: &R) -> Result<Self, RpcError> {
        serde_json::to_value(result).map(Self::With).map_err(|error| RpcError::new(error.to_string()))
    }
}

fn params_of<M: Method>(params: &str) -> Result<M::Params, RpcError> {
    serde_json::from_str(params).map_err(|error| RpcError::new(format!("{}: {error}", M::NAME)))
}

fn safe_integer(value: &Value) -> Result<u64, RpcError> {
    let whole = value.as_u64().or_else(|| {
        value.as_f64().filter(|number| number.fract() == 0.0 && *number > 0.0).map(|number| number as u64)
    });
    whole
        .filter(|number| (1..=MAX_SAFE_INTEGER).contains(number))
        .ok_or_else(|| RpcError::new("initialize maxTokens must be a positive safe integer"))
}
