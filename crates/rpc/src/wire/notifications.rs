//! What the server tells.

use lorimer_protocol::SessionId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub(crate) const SESSION_EVENT: &str = "session.event";
pub(crate) const SESSION_STATUS: &str = "session.status";
pub(crate) const REQUEST_CANCELLED: &str = "request.cancelled";

/// `session.event`
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEventParams {
    /// The session.
    pub session_id: SessionId,
    /// The event, exactly as it is in the log.
    #[schemars(schema_with = "event_schema")]
    pub event: Box<RawValue>,
}

fn event_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"$ref": "#/$defs/SessionEvent"})
}

/// `session.status`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatusParams {
    /// The session.
    pub session_id: SessionId,
    /// What it does.
    pub status: SessionState,
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// It works.
    Running,
    /// It has nothing left to do.
    Idle,
}

/// `request.cancelled`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestCancelled {
    /// The server's request.
    pub id: String,
}
