//! One reply of a model that is not a network service.

use lorimer_protocol::TokenUsage;

/// A tool call of a planned turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedCall {
    /// Call id; `None` to have one made (`call_<turn>_<index>`).
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// Raw JSON text of the arguments.
    pub arguments: String,
}

/// One whole reply: reasoning, text, calls, how it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedTurn {
    /// Reasoning; `Some("")` streams the field empty.
    pub reasoning: Option<String>,
    /// Text; empty for none.
    pub text: String,
    /// Tool calls in order.
    pub calls: Vec<PlannedCall>,
    /// Finish reason on the wire (`stop`, `tool_calls`, `length`); `None` derives it from `calls`.
    pub finish: Option<String>,
    /// Token counts; `None` for an estimate.
    pub usage: Option<TokenUsage>,
}
