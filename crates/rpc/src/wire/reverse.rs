//! What the server asks for.

use lorimer_protocol::{CallId, CallView, SessionId};
use lorimer_toolbox::{Answer, Question};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A call that a person has to allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalParams {
    /// The session that asks.
    pub session_id: SessionId,
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool_name: String,
    /// Why it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The whole arguments.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub arguments: Value,
    /// The call as a card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<CallView>,
}

/// A person's decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalResult {
    /// Yes or no.
    pub outcome: ApprovalDecision,
    /// What the model reads with a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalDecision {
    /// Yes, this once.
    AllowedOnce,
    /// No.
    Rejected,
}

/// Questions of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionParams {
    /// The session that asks.
    pub session_id: SessionId,
    /// The call.
    pub call_id: CallId,
    /// The questions.
    pub questions: Vec<Question>,
    /// Why the answer before this one did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Answers of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionResult {
    /// One a question, in the same order.
    pub answers: Vec<Answer>,
}
