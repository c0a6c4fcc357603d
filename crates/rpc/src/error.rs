//! What an answer says when there is none.

use serde::Serialize;

/// Code of every failure inside a method, as DSH's server has it (wire spec 1.2).
const INTERNAL_ERROR: i32 = -32603;

/// The `error` of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RpcError {
    /// Always -32603.
    pub code: i32,
    /// What happened, to what, and what to do.
    pub message: String,
}

impl RpcError {
    /// A failure in words.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: INTERNAL_ERROR, message: message.into() }
    }

    pub(crate) fn unknown_method(method: &str) -> Self {
        Self::new(format!("unknown DeepSeek Harness SDK runtime method: {method}"))
    }

    pub(crate) fn not_initialized() -> Self {
        Self::new("SDK server is not initialized")
    }

    pub(crate) fn shutting_down() -> Self {
        Self::new("SDK server is shutting down")
    }

    pub(crate) fn already_open(session_id: &str) -> Self {
        Self::new(format!("SDK session is already open or opening: {session_id}"))
    }
}

impl From<lorimer_agent::AgentError> for RpcError {
    fn from(error: lorimer_agent::AgentError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<lorimer_agent::DirectoryError> for RpcError {
    fn from(error: lorimer_agent::DirectoryError) -> Self {
        Self::new(error.to_string())
    }
}
