//! Typed payloads of session events (core spec 1.4 and 1.5).
//!
//! A payload is a view of [`Event::data`](crate::Event::data): parsing one never loses what it does not know,
//! because the event keeps its text.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::{CallId, Extra, Failure, Message, StreamChunk, TokenUsage};

/// A payload type: which event it belongs to and whether foreign readers may skip it.
pub trait EventData: Serialize + DeserializeOwned {
    /// The event's `type`.
    const TYPE: &'static str;
    /// Whether events of this type are written with `ignorable: true`.
    const IGNORABLE: bool = false;
}

/// A payload that does not have the shape of its event type.
#[derive(Debug, Error)]
#[error("event \"{kind}\" has a malformed payload: {source}")]
pub struct PayloadError {
    /// The event's type.
    pub kind: String,
    /// What was wrong.
    #[source]
    pub source: serde_json::Error,
}

macro_rules! payloads {
    ($($kind:literal => $name:ident($data:ty)),* $(,)?) => {
        /// The payload of an event whose type is understood here.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Payload {
            $(
                #[doc = concat!("`", $kind, "`")]
                $name($data),
            )*
            /// An event type that has no typed view here.
            Other,
        }

        impl Payload {
            /// Parses `data` as the payload of an event of type `kind`.
            ///
            /// # Errors
            /// When the type has a typed view and the data does not have its shape.
            pub fn parse(kind: &str, data: &RawValue) -> Result<Self, PayloadError> {
                match kind {
                    $($kind => serde_json::from_str(data.get())
                        .map(Self::$name)
                        .map_err(|source| PayloadError { kind: kind.to_owned(), source }),)*
                    _ => Ok(Self::Other),
                }
            }
        }
    };
}

macro_rules! event_data {
    ($($name:ident = $kind:literal $(, ignorable $ignorable:literal)?;)*) => {
        $(impl EventData for $name {
            const TYPE: &'static str = $kind;
            $(const IGNORABLE: bool = $ignorable;)?
        })*
    };
}

payloads! {
    "turn/start" => TurnStart(TurnStart),
    "turn/end" => TurnEnd(TurnEnd),
    "step/start" => StepStart(StepStart),
    "step/end" => StepEnd(StepEnd),
    "user/message" => UserMessage(Message),
    "assistant/chunk" => AssistantChunk(AssistantChunk),
    "assistant/message" => AssistantMessage(AssistantMessage),
    "tool/call" => ToolCall(ToolCall),
    "tool/result" => ToolResult(ToolResult),
    "todo/write" => TodoWrite(TodoWrite),
    "request/header" => RequestHeader(RequestHeaderEvent),
    "request/context" => RequestContext(RequestContext),
    "session/end-seed" => EndSeed(EndSeed),
    "agent/inbox/spliced" => InboxSpliced(InboxSpliced),
    "llm/retry" => LlmRetry(LlmRetry),
    "llm/retry-started" => LlmRetryStarted(LlmRetryStarted),
    "compaction/prune" => CompactionPrune(CompactionPrune),
    "session/title" => SessionTitle(SessionTitle),
    "sandbox/mode" => SandboxMode(SandboxModeEvent),
    "lorimer/fs-observed" => FsObserved(FsObserved),
}

event_data! {
    TurnStart = "turn/start";
    TurnEnd = "turn/end";
    StepStart = "step/start";
    StepEnd = "step/end";
    Message = "user/message";
    AssistantChunk = "assistant/chunk";
    AssistantMessage = "assistant/message";
    ToolCall = "tool/call";
    ToolResult = "tool/result";
    TodoWrite = "todo/write";
    RequestHeaderEvent = "request/header";
    RequestContext = "request/context";
    EndSeed = "session/end-seed";
    InboxSpliced = "agent/inbox/spliced";
    LlmRetry = "llm/retry";
    LlmRetryStarted = "llm/retry-started";
    CompactionPrune = "compaction/prune";
    SessionTitle = "session/title";
    SandboxModeEvent = "sandbox/mode";
    FsObserved = "lorimer/fs-observed", ignorable true;
}

/// The event types of DSH's format 0 (core spec 1.17); a log with any other type is refused unless the event is
/// marked `ignorable`.
const KNOWN_EVENT_TYPES: [&str; 48] = [
    "agent-preset/selected",
    "agent/inbox/spliced",
    "approval/asked",
    "approval/decided",
    "approval/policy",
    "assistant/chunk",
    "assistant/message",
    "command/done",
    "command/run",
    "compaction/end",
    "compaction/prune",
    "compaction/start",
    "compaction/summary",
    "feedback/record",
    "goal/change",
    "hook/invoked",
    "hook/result",
    "llm/retry",
    "llm/retry-started",
    "permission/preset",
    "plan/mode",
    "request/context",
    "request/header",
    "sandbox/mode",
    "schedule/change",
    "session/end-seed",
    "session/title",
    "session/title-llm-request",
    "step/end",
    "step/start",
    "subagent/descriptor",
    "team/member",
    "team/message/delivered",
    "team/message/queued",
    "team/task",
    "todo/write",
    "tool-workflow/agent-end",
    "tool-workflow/agent-start",
    "tool-workflow/run-end",
    "tool-workflow/run-start",
    "tool/call",
    "tool/code-dispatch",
    "tool/code-dispatch-start",
    "tool/result",
    "turn/end",
    "turn/start",
    "user/message",
    "web/deepseek-search-llm-request",
];

/// Whether a log may hold events of this type without marking them `ignorable`.
pub fn is_known_event_type(kind: &str) -> bool {
    KNOWN_EVENT_TYPES.binary_search(&kind).is_ok()
}

/// `turn/start`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStart {
    /// 1-based, increasing by one.
    pub turn: u64,
}

/// `turn/end`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// The open turn.
    pub turn: u64,
    /// Why it ended.
    pub reason: TurnEndReason,
}

/// Why a turn ended. Tagged by `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TurnEndReason {
    /// The model finished.
    Completed,
    /// The input was refused.
    Blocked,
    /// The output limit cut the answer.
    MaxTokens,
    /// Written by recovery: the process died.
    Interrupted,
    /// Cancelled.
    Aborted {
        /// By whom.
        reason: AbortCause,
    },
    /// Failed.
    Error {
        /// How.
        error: Failure,
    },
    /// A reason of a later version, verbatim.
    #[serde(untagged)]
    Other(Value),
}

/// Who cancelled a turn. Tagged by `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AbortCause {
    /// The person.
    User,
    /// The agent that delegated.
    Parent,
    /// A hook.
    Hook {
        /// In the hook's words.
        reason: String,
    },
    /// The host shut down.
    Disposed,
    /// A log of an older writer.
    Legacy,
}

/// `step/start`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStart {
    /// The open turn.
    pub turn: u64,
    /// 1-based within the turn.
    pub step: u64,
}

/// `step/end`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnd {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
}

/// `assistant/chunk`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssistantChunk {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// What was streamed.
    pub chunk: StreamChunk,
}

/// `assistant/message`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// The reply.
    pub message: Message,
    /// Token counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// `true` when a cancellation cut it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<bool>,
}

/// `tool/call`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// The call.
    pub call_id: CallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The raw text of the arguments.
    pub arguments: String,
}

/// `tool/result`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// A user message with exactly one `tool-result` block.
    pub message: Message,
    /// Only for typed errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    /// What the tool keeps for its card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A typed error's name and code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// `FsError`, `ToolArgsError`, ….
    pub name: String,
    /// `FS_NOT_FOUND`, `INVALID_ARGS`, ….
    pub code: String,
}

impl ErrorInfo {
    /// An error's name and code.
    pub fn new(name: impl Into<String>, code: impl Into<String>) -> Self {
        Self { name: name.into(), code: code.into() }
    }
}

/// `todo/write`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoWrite {
    /// The whole list.
    pub todos: Vec<TodoItem>,
}

/// One item of the todo list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a todo item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

/// `request/header`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestHeaderEvent {
    /// What every request sends beside its messages.
    pub header: RequestHeader,
    /// Why it is logged.
    pub reason: RequestHeaderReason,
}

/// Why a request header is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestHeaderReason {
    /// First of the session.
    Initial,
    /// First of this process.
    Resume,
    /// It differs from the last.
    Change,
}

/// Model, sampling, system prompt and tools of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestHeader {
    /// Route and sampling.
    pub config: CallConfig,
    /// Which config fields the adapter filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter_defaults: Option<AdapterDefaults>,
    /// The system prompt; absent when empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Array of [`ToolSpec`]; absent when empty. A fixture may hold a token here, so it is kept as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Value>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl RequestHeader {
    /// The tools as specs; empty when absent or of another shape.
    pub fn tool_specs(&self) -> Vec<ToolSpec> {
        self.tools.as_ref().and_then(|tools| Vec::<ToolSpec>::deserialize(tools).ok()).unwrap_or_default()
    }
}

/// Route and sampling of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallConfig {
    /// Provider route id.
    pub provider: String,
    /// Model id.
    pub model: String,
    /// Effort id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Output limit in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Stop sequences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Config fields that the adapter filled in; each `true` or absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AdapterDefaults {
    /// The effort is the adapter's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<bool>,
    /// The output limit is the adapter's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<bool>,
}

/// What the model is told of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name it is called by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// `request/context`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestContext {
    /// Provider route id.
    pub provider: String,
    /// Model id.
    pub model: String,
    /// The model's window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

/// `session/end-seed`: what came before was inherited or restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSeed {}

/// `agent/inbox/spliced`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InboxSpliced {
    /// Which list.
    pub target: InboxTarget,
    /// Where.
    pub start: u64,
    /// How many left; absent when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_count: Option<u64>,
    /// What came in.
    pub inserted: Vec<Message>,
    /// `canceled` when the removed were discarded rather than claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<InboxOutcome>,
}

/// The two lists of the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InboxTarget {
    /// Opens a turn of its own.
    NextTurn,
    /// Enters the running turn at its next step.
    NextStep,
}

/// What became of removed inbox messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InboxOutcome {
    /// Thrown away.
    Canceled,
}

/// `llm/retry`: a failed request will be repeated after a wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmRetry {
    /// Names the retry.
    pub retry_id: String,
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// Provider route id.
    pub provider: String,
    /// Whether retries are bounded.
    pub mode: RetryMode,
    /// The bound, for `normal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Identifies the policy that decided.
    pub policy_key: String,
    /// 1-based count.
    pub retry: u32,
    /// The wait in milliseconds.
    pub delay_ms: u64,
    /// Why.
    pub failure: Failure,
}

/// Whether retries are bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetryMode {
    /// Up to a count.
    Normal,
    /// Until success or cancellation.
    Always,
}

/// `llm/retry-started`: the wait is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmRetryStarted {
    /// Names the retry.
    pub retry_id: String,
    /// The open turn.
    pub turn: u64,
    /// The open step.
    pub step: u64,
    /// 1-based count.
    pub retry: u32,
}

/// `compaction/prune`: the next event replaces a tool result by a shorter one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionPrune {
    /// First and last shadowed seq.
    pub shadowed_range: SeqRange,
    /// All shadowed seqs.
    pub shadowed_seqs: Vec<u64>,
    /// Their estimated tokens.
    pub shadowed_token_count: u64,
}

/// First and last seq, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeqRange {
    /// First.
    pub start: u64,
    /// Last.
    pub end: u64,
}

/// `session/title`: the latest wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionTitle {
    /// The title.
    pub title: String,
    /// Events it was made from.
    pub message_seqs: Vec<u64>,
    /// Who made it.
    pub source: TitleSource,
}

/// Who made a title. Tagged by `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TitleSource {
    /// The first words of the first message.
    Fallback,
    /// The person.
    User,
    /// A title provider.
    Provider {
        /// Its id.
        provider: String,
        /// `{provider, model}` of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Value>,
    },
}

/// `sandbox/mode`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxModeEvent {
    /// The mode from here on.
    pub mode: PermissionMode,
    /// `delegation` when inherited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// What the agent may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Nothing.
    ReadOnly,
    /// Files of the workspace and of temporary folders.
    #[default]
    WorkspaceWrite,
    /// Anything the person may.
    DangerFullAccess,
}

impl PermissionMode {
    /// The mode's name on the command line and in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }
}

impl std::str::FromStr for PermissionMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::ReadOnly, Self::WorkspaceWrite, Self::DangerFullAccess]
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| format!("\"{text}\" is not one of read-only, workspace-write, danger-full-access"))
    }
}

/// `lorimer/fs-observed`: the model has seen (or not found) a file. DSH keeps this in memory only; as an event it
/// survives a resume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsObserved {
    /// The file's real path (of the nearest existing ancestor plus the rest, when it is missing).
    pub target_key: String,
    /// What was seen.
    pub observation: FsObservation,
}

/// What was seen of a file. Tagged by `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum FsObservation {
    /// It was there in this version.
    Present {
        /// `dev:ino:size:mtimeNs:ctimeNs`.
        version: String,
    },
    /// It was not there.
    Absent,
}
