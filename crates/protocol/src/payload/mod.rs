//! Typed payloads of session events (core spec 1.4 and 1.5).
//!
//! A payload is a view of [`Event::data`](crate::Event::data): parsing one never loses what it does not know,
//! because the event keeps its text.

mod approval;
mod request;
mod session;
mod tool;
mod turn;
mod workspace;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::Message;

pub use approval::{ApprovalAsked, ApprovalDecided, ApprovalOutcome};
pub use request::{
    AdapterDefaults, CallConfig, CompactionPrune, LlmRetry, LlmRetryStarted, RequestContext, RequestHeader,
    RequestHeaderEvent, RequestHeaderReason, RetryMode, SeqRange, ToolSpec,
};
pub use session::{EndSeed, InboxOutcome, InboxSpliced, InboxTarget, SessionTitle, TitleSource};
pub use tool::{ErrorInfo, TodoItem, TodoStatus, TodoWrite, ToolCall, ToolResult};
pub use turn::{
    AbortCause, AssistantChunk, AssistantMessage, StepEnd, StepStart, TurnEnd, TurnEndReason, TurnStart,
};
pub use workspace::{FsObservation, FsObserved, PermissionMode, SandboxModeEvent, WorkingDirectoryChange};

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

            /// The event types that have a typed view, each with the JSON Schema of its payload.
            #[cfg(feature = "schema")]
            pub fn schemas(generator: &mut schemars::SchemaGenerator) -> Vec<(&'static str, schemars::Schema)> {
                vec![$(($kind, generator.subschema_for::<$data>()),)*]
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
    "approval/asked" => ApprovalAsked(ApprovalAsked),
    "approval/decided" => ApprovalDecided(ApprovalDecided),
    "working-directory/change" => WorkingDirectoryChange(WorkingDirectoryChange),
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
    ApprovalAsked = "approval/asked";
    ApprovalDecided = "approval/decided";
    WorkingDirectoryChange = "working-directory/change", ignorable true;
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
