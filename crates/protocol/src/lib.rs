//! The words of Lorimer: blocks, messages, session events, call and result views, ids.
//!
//! This crate has no I/O and no async. It owns the *shapes* that meet in the session log (DSH log format 0)
//! and everything that reads or writes them depends on it.
//!
//! What must hold:
//! - **Whatever is read is written back unchanged.** An [`Event`] keeps its `data` as the raw JSON text it was
//!   read with; typed payloads are *views* of it. Blocks, messages and sources keep unknown types and extra
//!   fields.
//! - **Nothing here panics on input.** Parsers return errors; unknown things stay unknown.
//!
//! ```
//! use lorimer_protocol::{Event, Payload};
//!
//! let line = r#"{"type":"turn/start","seq":1,"time":5,"data":{"turn":1,"later":true}}"#;
//! let event = Event::from_json(line)?;
//! assert!(matches!(event.payload()?, Payload::TurnStart(start) if start.turn == 1));
//! assert_eq!(event.to_json(), line);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod chunk_rows;
mod event;
mod header;
mod ids;
mod lang;
mod message;
mod payload;
mod stream;
mod view;

pub use block::{ContentBlock, ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock};
pub use chunk_rows::{
    ChunkRow, ChunkRowError, MIN_PACKED_RUN, PackedKind, PackedRow, StoredRow, pack_borrowed, pack_rows,
};
pub use event::{Draft, Event, EventError, SurfaceOp};
pub use header::{HeaderError, SESSION_FORMAT_VERSION, SessionHeader};
pub use ids::{CallId, MessageId, SessionId};
pub use lang::lang_from_path;
pub use message::{Message, Role, Source};
pub use payload::{
    AbortCause, AdapterDefaults, ApprovalAsked, ApprovalDecided, ApprovalOutcome, AssistantChunk,
    AssistantMessage, CallConfig, CompactionPrune, EndSeed, ErrorInfo, EventData, FsObservation, FsObserved,
    InboxOutcome, InboxSpliced, InboxTarget, LlmRetry, LlmRetryStarted, Payload, PayloadError,
    PermissionMode, RequestContext, RequestHeader, RequestHeaderEvent, RequestHeaderReason, RetryMode,
    SandboxModeEvent, SeqRange, SessionTitle, StepEnd, StepStart, TitleSource, TodoItem, TodoStatus,
    TodoWrite, ToolCall, ToolResult, ToolSpec, TurnEnd, TurnEndReason, TurnStart, WorkingDirectoryChange,
    is_known_event_type,
};
pub use stream::{Failure, FinishReason, StreamChunk, TokenUsage};
pub use view::{
    CallView, FileDiff, FileLocation, ReadFileLine, ResultView, SearchFile, SearchMatch, ToolCallKind,
    WebSource,
};

/// Fields that were read and are not known here; they are written back as they came.
pub type Extra = serde_json::Map<String, serde_json::Value>;
