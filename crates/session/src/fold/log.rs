//! The fold of a whole log.

use std::collections::HashMap;
use std::sync::Arc;

use lorimer_protocol::{
    AssistantMessage, Event, EventData, FsObservation, FsObserved, InboxSpliced, Message, PayloadError,
    PermissionMode, RequestContext, RequestHeader, RequestHeaderEvent, Role, SandboxModeEvent, SessionHeader,
    SessionTitle, Source, StepStart, SurfaceOp, TodoItem, TodoWrite, TokenUsage, ToolCall, ToolResult,
    ToolSpec, TurnEnd, TurnEndReason, TurnStart, WorkingDirectoryChange, is_known_event_type,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use thiserror::Error;

use super::inbox::Inbox;
use super::made::{Made, ResultData, reply_reads_back_equal};
use super::surface::{ResultParts, Surface, SurfaceNode, SurfaceNodeKind};
use super::turn::TurnState;
use super::usage;

/// An event that does not fit the log before it.
#[derive(Debug, Error)]
pub enum FoldError {
    /// Seqs are contiguous from 0.
    #[error("session event seq {got} is not contiguous; expected {expected}")]
    Seq {
        /// What was due.
        expected: u64,
        /// What came.
        got: u64,
    },
    /// A rule of the surface is broken.
    #[error("{0}")]
    Surface(String),
    /// A message event without a usable message.
    #[error("{kind} at index {seq} {why}")]
    Message {
        /// Event type.
        kind: String,
        /// Event seq.
        seq: u64,
        /// The rule.
        why: &'static str,
    },
    /// A splice that does not fit the inbox.
    #[error("invalid persisted inbox splice at session seq {seq}: {why}")]
    Inbox {
        /// Event seq.
        seq: u64,
        /// The rule.
        why: String,
    },
    /// A request header without a route.
    #[error("request/header at index {seq} lacks provider/model")]
    Route {
        /// Event seq.
        seq: u64,
    },
    /// Data of another shape.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// A type that cannot be interpreted here.
    #[error(
        "session \"{session}\" contains event type \"{kind}\" (seq {seq}) unknown to this harness and not marked \
         ignorable; refusing to interpret the log — it was likely written by a newer harness"
    )]
    UnknownType {
        /// The session.
        session: String,
        /// Event type.
        kind: String,
        /// Event seq.
        seq: u64,
    },
}

/// An event's members, borrowed from wherever they are.
#[derive(Clone, Copy)]
pub(crate) struct EventView<'a> {
    pub kind: &'a str,
    pub seq: u64,
    pub time: i64,
    pub data: &'a RawValue,
    pub source_event_seqs: Option<&'a [u64]>,
    pub surface_op: Option<SurfaceOp>,
    pub ignorable: bool,
}

impl<'a> From<&'a Event> for EventView<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            kind: &event.kind,
            seq: event.seq,
            time: event.time,
            data: &event.data,
            source_event_seqs: event.source_event_seqs.as_deref(),
            surface_op: event.surface_op,
            ignorable: event.ignorable == Some(true),
        }
    }
}

impl EventView<'_> {
    fn parse<T: DeserializeOwned>(&self) -> Result<T, FoldError> {
        serde_json::from_str(self.data.get())
            .map_err(|source| PayloadError { kind: self.kind.to_owned(), source }.into())
    }
}

/// What a session's events come to. A pure function of header and events.
#[derive(Clone, Debug)]
pub struct Log {
    header: SessionHeader,
    next_seq: u64,
    last_time: i64,
    last_kind_is_end_seed: bool,
    surface: Surface,
    turn: TurnState,
    last_turn_end: Option<TurnEndReason>,
    inbox: Inbox,
    request_header: Option<RequestHeader>,
    tool_specs: Arc<Vec<ToolSpec>>,
    request_context: Option<RequestContext>,
    title: Option<SessionTitle>,
    todos: Vec<TodoItem>,
    usage: TokenUsage,
    last_usage: Option<(u64, TokenUsage)>,
    observations: HashMap<String, FsObservation>,
    permission_mode: Option<PermissionMode>,
    working_directory: Option<String>,
}

impl Log {
    /// The fold of no events.
    pub fn new(header: SessionHeader) -> Self {
        Self {
            header,
            next_seq: 0,
            last_time: 0,
            last_kind_is_end_seed: false,
            surface: Surface::default(),
            turn: TurnState::default(),
            last_turn_end: None,
            inbox: Inbox::default(),
            request_header: None,
            tool_specs: Arc::default(),
            request_context: None,
            title: None,
            todos: Vec::new(),
            usage: TokenUsage::default(),
            last_usage: None,
            observations: HashMap::new(),
            permission_mode: None,
            working_directory: None,
        }
    }

    /// The session's header.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Seq of the next event.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Time of the last event, epoch milliseconds; 0 before the first.
    pub fn last_time(&self) -> i64 {
        self.last_time
    }

    /// Whether the log ends with `session/end-seed`.
    pub fn ends_with_seed_marker(&self) -> bool {
        self.last_kind_is_end_seed
    }

    /// The conversation's nodes.
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// The conversation (core spec 1.8): verbatim, in surface order, without empty assistant messages.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.surface
            .nodes()
            .iter()
            .filter(|node| node.kind != SurfaceNodeKind::Assistant || !node.message.content.is_empty())
            .map(|node| &node.message)
    }

    /// Where the log stands in its turns and steps.
    pub fn turn(&self) -> &TurnState {
        &self.turn
    }

    /// Why the latest ended turn ended.
    pub fn last_turn_end(&self) -> Option<&TurnEndReason> {
        self.last_turn_end.as_ref()
    }

    /// What waits for a turn or a step.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// The latest request header.
    pub fn request_header(&self) -> Option<&RequestHeader> {
        self.request_header.as_ref()
    }

    /// The tools of the latest request header.
    pub fn tool_specs(&self) -> &Arc<Vec<ToolSpec>> {
        &self.tool_specs
    }

    /// The latest request context.
    pub fn request_context(&self) -> Option<&RequestContext> {
        self.request_context.as_ref()
    }

    /// The latest title.
    pub fn title(&self) -> Option<&SessionTitle> {
        self.title.as_ref()
    }

    /// The latest todo list.
    pub fn todos(&self) -> &[TodoItem] {
        &self.todos
    }

    /// Token counts of all replies.
    pub fn usage(&self) -> &TokenUsage {
        &self.usage
    }

    /// Seq and token counts of the latest reply that has any.
    pub fn last_usage(&self) -> Option<&(u64, TokenUsage)> {
        self.last_usage.as_ref()
    }

    /// The last observation of a file by its real path.
    pub fn observation(&self, target_key: &str) -> Option<&FsObservation> {
        self.observations.get(target_key)
    }

    /// The permission mode that was logged last.
    pub fn permission_mode(&self) -> Option<PermissionMode> {
        self.permission_mode
    }

    /// Where relative paths and commands start, when that was changed; else it is the workspace.
    pub fn working_directory(&self) -> Option<&str> {
        self.working_directory.as_deref()
    }

    /// Adds one event.
    ///
    /// # Errors
    /// When it does not fit; the log is then unchanged.
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        self.apply_view(EventView::from(event))
    }

    /// Adds a `tool/result` whose payload was written from `data`.
    ///
    /// # Errors
    /// See [`Log::apply`].
    pub fn apply_result(&mut self, event: &Event, data: ResultData) -> Result<(), FoldError> {
        let made = (event.kind == ToolResult::TYPE && data.reads_back_equal()).then_some(Made::Result(data));
        self.apply_made(EventView::from(event), made)
    }

    /// Adds an `assistant/message` whose payload was written from `data`.
    ///
    /// # Errors
    /// See [`Log::apply`].
    pub fn apply_reply(&mut self, event: &Event, data: AssistantMessage) -> Result<(), FoldError> {
        let is_plain = event.kind == AssistantMessage::TYPE && reply_reads_back_equal(&data);
        self.apply_made(EventView::from(event), is_plain.then_some(Made::Reply(data)))
    }

    pub(crate) fn apply_view(&mut self, event: EventView<'_>) -> Result<(), FoldError> {
        self.apply_made(event, None)
    }

    fn apply_made(&mut self, event: EventView<'_>, made: Option<Made>) -> Result<(), FoldError> {
        if event.seq != self.next_seq {
            return Err(FoldError::Seq { expected: self.next_seq, got: event.seq });
        }
        if !event.ignorable && !is_known_event_type(event.kind) {
            return Err(FoldError::UnknownType {
                session: self.header.id.to_string(),
                kind: event.kind.to_owned(),
                seq: event.seq,
            });
        }
        check_surface_metadata(&event)?;
        match made {
            Some(Made::Result(data)) => {
                debug_assert!(event.parse::<ResultData>().is_ok_and(|read| read.message == data.message));
                self.tool_result(&event, data)?;
            }
            Some(Made::Reply(data)) => {
                debug_assert!(event.parse::<AssistantMessage>().is_ok_and(|read| read == data));
                self.assistant_message(&event, data)?;
            }
            None => self.apply_payload(&event)?,
        }
        self.next_seq += 1;
        self.last_time = event.time;
        self.last_kind_is_end_seed = event.kind == "session/end-seed";
        Ok(())
    }

    /// Skips `count` chunk events that a packed row holds.
    pub(crate) fn skip_chunks(&mut self, seq0: u64, count: u64, last_time: i64) -> Result<(), FoldError> {
        if seq0 != self.next_seq {
            return Err(FoldError::Seq { expected: self.next_seq, got: seq0 });
        }
        self.next_seq = seq0.checked_add(count).ok_or(FoldError::Seq { expected: seq0, got: u64::MAX })?;
        self.last_time = last_time;
        self.last_kind_is_end_seed = false;
        Ok(())
    }

    fn apply_payload(&mut self, event: &EventView<'_>) -> Result<(), FoldError> {
        match event.kind {
            "user/message" => self.user_message(event)?,
            "assistant/message" => self.assistant_message(event, event.parse()?)?,
            "tool/result" => self.tool_result(event, event.parse()?)?,
            "tool/call" => {
                let call: ToolCall = event.parse()?;
                self.turn.call_started(&call.call_id, event.seq);
            }
            "turn/start" => self.turn.start_turn(event.parse::<TurnStart>()?.turn),
            "turn/end" => {
                self.last_turn_end = Some(event.parse::<TurnEnd>()?.reason);
                self.turn.end_turn();
            }
            "step/start" => self.turn.start_step(event.parse::<StepStart>()?.step),
            "step/end" => self.turn.end_step(),
            "request/header" => self.set_request_header(event)?,
            "request/context" => self.request_context = Some(event.parse::<RequestContext>()?),
            "agent/inbox/spliced" => self.inbox_spliced(event)?,
            "session/title" => self.title = Some(event.parse::<SessionTitle>()?),
            "todo/write" => self.todos = event.parse::<TodoWrite>()?.todos,
            "sandbox/mode" => self.permission_mode = Some(event.parse::<SandboxModeEvent>()?.mode),
            "working-directory/change" => {
                // Ignorable, as below.
                if let Ok(change) = event.parse::<WorkingDirectoryChange>() {
                    self.working_directory = Some(change.cwd);
                }
            }
            "lorimer/fs-observed" => {
                // Ignorable: one of a later shape is skipped, as by any other reader.
                if let Ok(seen) = event.parse::<FsObserved>() {
                    self.observations.insert(seen.target_key, seen.observation);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn user_message(&mut self, event: &EventView<'_>) -> Result<(), FoldError> {
        let message: Message = event.parse()?;
        check_message(event, &message, Role::User)?;
        self.put_on_surface(event, SurfaceNodeKind::User, None, message, None).map(drop)
    }

    fn assistant_message(&mut self, event: &EventView<'_>, data: AssistantMessage) -> Result<(), FoldError> {
        check_message(event, &data.message, Role::Assistant)?;
        if !matches!(data.message.source, Source::Model { .. }) {
            return Err(message_error(event, "must have model source"));
        }
        let place = Some((data.turn, data.step));
        let message = self.put_on_surface(event, SurfaceNodeKind::Assistant, place, data.message, None)?;
        self.turn.register(&message, data.step);
        if let Some(reply) = data.usage {
            usage::add(&mut self.usage, &reply);
            self.last_usage = Some((event.seq, reply));
        }
        Ok(())
    }

    fn tool_result(&mut self, event: &EventView<'_>, data: ResultData) -> Result<(), FoldError> {
        check_message(event, &data.message, Role::User)?;
        let Source::Tool { call_id, .. } = &data.message.source else {
            return Err(message_error(event, "must have tool source"));
        };
        let Some(block) = data.message.tool_result() else {
            return Err(message_error(event, "must contain one tool-result block"));
        };
        if block.tool_call_id != *call_id {
            return Err(message_error(event, "mismatched tool call ids"));
        }
        let call_id = call_id.clone();
        let appended = event.surface_op == Some(SurfaceOp::Append);
        let parts = Some(ResultParts { error: data.error, meta: data.meta });
        self.put_on_surface(
            event,
            SurfaceNodeKind::ToolResult,
            Some((data.turn, data.step)),
            data.message,
            parts,
        )?;
        if appended {
            self.turn.call_ended(&call_id);
        }
        Ok(())
    }

    fn put_on_surface(
        &mut self,
        event: &EventView<'_>,
        kind: SurfaceNodeKind,
        turn_step: Option<(u64, u64)>,
        message: Message,
        result: Option<ResultParts>,
    ) -> Result<Arc<Message>, FoldError> {
        let (message, result) = (Arc::new(message), result.map(Arc::new));
        let node = SurfaceNode { seq: event.seq, kind, turn_step, message: Arc::clone(&message), result };
        let op = event.surface_op.unwrap_or(SurfaceOp::Append);
        self.surface.apply(node, op, event.source_event_seqs)?;
        Ok(message)
    }

    fn set_request_header(&mut self, event: &EventView<'_>) -> Result<(), FoldError> {
        let data: RequestHeaderEvent = event.parse()?;
        if data.header.config.provider.is_empty() || data.header.config.model.is_empty() {
            return Err(FoldError::Route { seq: event.seq });
        }
        self.tool_specs = Arc::new(data.header.tool_specs());
        self.request_header = Some(data.header);
        Ok(())
    }

    /// A fork does not inherit what waits: splices of its seed are not replayed.
    fn inbox_spliced(&mut self, event: &EventView<'_>) -> Result<(), FoldError> {
        if event.seq < self.header.seed_length.unwrap_or(0) {
            return Ok(());
        }
        let splice: InboxSpliced = event.parse()?;
        self.inbox.apply(splice).map_err(|why| FoldError::Inbox { seq: event.seq, why })
    }
}

fn message_error(event: &EventView<'_>, why: &'static str) -> FoldError {
    FoldError::Message { kind: event.kind.to_owned(), seq: event.seq, why }
}

fn check_message(event: &EventView<'_>, message: &Message, role: Role) -> Result<(), FoldError> {
    if message.id.as_str().is_empty() {
        return Err(message_error(event, "lacks an identified message"));
    }
    if message.role != role {
        let why = if role == Role::User {
            "message must have role \"user\""
        } else {
            "message must have role \"assistant\""
        };
        return Err(message_error(event, why));
    }
    if message.source.kind().is_empty() {
        return Err(message_error(event, "has invalid source"));
    }
    Ok(())
}

fn check_surface_metadata(event: &EventView<'_>) -> Result<(), FoldError> {
    let kind = event.kind;
    if SurfaceNodeKind::of(kind).is_none() {
        let carried = match (event.surface_op, event.source_event_seqs) {
            (Some(_), _) => "surfaceOp",
            (None, Some(_)) => "sourceEventSeqs",
            (None, None) => return Ok(()),
        };
        return Err(FoldError::Surface(format!(
            "session event \"{kind}\" is not surface-eligible and cannot carry {carried}"
        )));
    }
    if event.surface_op.is_none() {
        return Err(FoldError::Surface(format!(
            "session event \"{kind}\" is surface-eligible and requires a surfaceOp marker"
        )));
    }
    check_sources(event)
}

fn check_sources(event: &EventView<'_>) -> Result<(), FoldError> {
    let Some(sources) = event.source_event_seqs else {
        return Ok(());
    };
    if sources.is_empty() && event.kind != "assistant/message" {
        return Err(FoldError::Surface("sourceEventSeqs must not be empty".to_owned()));
    }
    if let Some(later) = sources.iter().find(|source| **source >= event.seq) {
        return Err(FoldError::Surface(format!(
            "sourceEventSeqs must reference earlier events: {later} >= current seq {}",
            event.seq
        )));
    }
    // Sources are written in ascending order, so the common case needs no set.
    if !sources.is_sorted_by(|a, b| a < b) {
        let mut sorted = sources.to_vec();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(FoldError::Surface("sourceEventSeqs must not contain duplicates".to_owned()));
        }
    }
    Ok(())
}
