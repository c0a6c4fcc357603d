//! The session header, the first line of a log (core spec 1.1).

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Extra, SessionId};

/// The log format that is written and read.
pub const SESSION_FORMAT_VERSION: u64 = 0;

/// What a log says of its session before the first event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionHeader {
    /// Always `session`.
    #[serde(rename = "type", default = "session_tag")]
    pub tag: String,
    /// Must be [`SESSION_FORMAT_VERSION`].
    pub version: u64,
    /// The session's id.
    pub id: SessionId,
    /// Epoch milliseconds.
    pub created_at: u64,
    /// The workspace, an absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The session this one was forked or spawned from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<SessionId>,
    /// How many events were inherited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed_length: Option<u64>,
    /// `subagent` or absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// How deep in a chain of delegations.
    #[serde(default)]
    pub delegation_depth: u64,
    /// The preset that the session was started with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_preset: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Extra,
}

fn session_tag() -> String {
    "session".to_owned()
}

/// A header line that cannot be used.
#[derive(Debug, Error)]
pub enum HeaderError {
    /// Not JSON.
    #[error("corrupt session log: header line is not valid JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// JSON of another kind.
    #[error("corrupt session log: first line is not a session header")]
    NotAHeader,
    /// A log format of another age.
    #[error("{0}")]
    Version(String),
    /// A member with a wrong value.
    #[error("{0}")]
    Invalid(String),
}

impl SessionHeader {
    /// A header for a new session.
    pub fn new(id: SessionId, created_at: u64, cwd: Option<String>) -> Self {
        Self {
            tag: session_tag(),
            version: SESSION_FORMAT_VERSION,
            id,
            created_at,
            cwd,
            parent_session: None,
            seed_length: None,
            origin: None,
            delegation_depth: 0,
            agent_preset: None,
            extra: Extra::new(),
        }
    }

    /// Reads the first line of a log. The version is checked before the shape.
    ///
    /// # Errors
    /// See [`HeaderError`]; the version texts are those of core spec 1.17.
    pub fn from_json(text: &str) -> Result<Self, HeaderError> {
        let value: serde_json::Value = serde_json::from_str(text).map_err(HeaderError::NotJson)?;
        let Some(record) =
            value.as_object().filter(|record| record.get("type").is_some_and(|t| t == "session"))
        else {
            return Err(HeaderError::NotAHeader);
        };
        let id = record.get("id").and_then(|id| id.as_str()).unwrap_or("?").to_owned();
        if let Some(version) = record.get("version").and_then(serde_json::Value::as_u64)
            && version != SESSION_FORMAT_VERSION
        {
            return Err(HeaderError::Version(format!(
                "session \"{id}\" uses log format v{version}, but this harness reads only \
                 v{SESSION_FORMAT_VERSION}: the log was written by a newer harness — upgrade the harness to open it"
            )));
        }
        if record.contains_key("sandboxMode") || record.contains_key("approvalPolicy") {
            return Err(HeaderError::Invalid(
                "session header uses retired policy baseline fields".to_owned(),
            ));
        }
        let header: Self = serde_json::from_value(value)
            .map_err(|error| HeaderError::Invalid(format!("invalid session header: {error}")))?;
        header.validate()?;
        Ok(header)
    }

    fn validate(&self) -> Result<(), HeaderError> {
        if self.origin.as_deref().is_some_and(|origin| origin != "subagent") {
            return Err(HeaderError::Invalid("session header origin must be \"subagent\"".to_owned()));
        }
        Ok(())
    }

    /// The header as one line, without the line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
