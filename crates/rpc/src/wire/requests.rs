//! What a client asks for.

use lorimer_protocol::{ContentBlock, MessageId, PermissionMode, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// Where and with which model sessions work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// The workspace; relative to the process's own directory, which it is when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Provider route id; the configured one when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model id at the provider; the provider's first when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Effort id; the model's default when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Output limit in tokens, a positive integer; the model's default when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1))]
    pub max_tokens: Option<serde_json::Value>,
    /// What agents may change; the configured mode when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<PermissionMode>,
    /// Which requests of the server the client answers.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
}

/// Which requests of the server a client answers. What is not declared is never sent, and counts as a no.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCapabilities {
    /// `approval/request`
    #[serde(default)]
    pub approvals: bool,
    /// `question/ask`: with it the model has the tool `ask_user_question`.
    #[serde(default)]
    pub questions: bool,
}

/// Who serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The protocol's identity, as DSH's server gives it.
    pub server_info: ServerInfo,
    /// The program behind it, and what it has settled on.
    pub runtime: RuntimeInfo,
}

/// The protocol's identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// The protocol's name.
    pub name: String,
    /// The protocol's version.
    pub version: String,
}

/// The program, and what sessions will work with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeInfo {
    /// `lorimer`
    pub name: String,
    /// The program's version.
    pub version: String,
    /// The workspace, an absolute path.
    pub cwd: String,
    /// Provider route id.
    pub provider: String,
    /// Model id.
    pub model: String,
    /// What agents may change.
    pub permission_mode: PermissionMode,
}

/// A message for a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptParams {
    /// The session. An id that is new creates it; one that is stored but not open here is refused.
    pub session_id: SessionId,
    /// The message.
    pub content_blocks: Vec<ContentBlock>,
    /// When the agent gets it.
    #[serde(default)]
    pub delivery: Delivery,
}

/// When an agent gets a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// In a turn of its own, after those that wait.
    #[default]
    NextTurn,
    /// With the next step of the running turn; without one, in a turn of its own.
    NextStep,
}

/// A message's receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptResult {
    /// The message's id in `agent/inbox/spliced`, which was notified before.
    pub message_id: MessageId,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionParams {
    /// The session.
    pub session_id: SessionId,
}

/// A session and a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetWorkingDirectoryParams {
    /// The session. An id that is new creates it.
    pub session_id: SessionId,
    /// The directory; a relative path starts at the current one.
    pub path: String,
}

/// Where relative paths and commands start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkingDirectory {
    /// An absolute path.
    pub cwd: String,
}

/// What there was to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CancelResult {
    /// Whether a turn was running.
    pub cancelled: bool,
}

/// Which sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListParams {
    /// Only those of this workspace, an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Stored sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListResult {
    /// The newest activity first.
    pub sessions: Vec<ListedSession>,
}

/// A stored session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    /// Its id.
    pub session_id: SessionId,
    /// Its workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session_id: Option<SessionId>,
    /// When it was created, epoch milliseconds.
    pub created_at_ms: u64,
    /// Last write, epoch milliseconds.
    pub updated_at_ms: u64,
    /// Size of its log in bytes.
    pub size_bytes: u64,
    /// Whether it is open in this process.
    pub open: bool,
}

/// Where a fork begins to differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkParams {
    /// The session to begin like.
    pub session_id: SessionId,
    /// The last turn to keep; everything when left out, as long as no turn is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
}

/// A new session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkResult {
    /// Its id.
    pub session_id: SessionId,
}
