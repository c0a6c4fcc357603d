//! The surface: the events that form the conversation (core spec 1.3).

use std::sync::Arc;

use lorimer_protocol::{ErrorInfo, Message, SurfaceOp};
use serde_json::value::RawValue;

use super::log::FoldError;

/// Which event a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceNodeKind {
    /// `user/message`
    User,
    /// `assistant/message`
    Assistant,
    /// `tool/result`
    ToolResult,
}

impl SurfaceNodeKind {
    /// The kind of an eligible event type.
    pub fn of(event_type: &str) -> Option<Self> {
        Some(match event_type {
            "user/message" => Self::User,
            "assistant/message" => Self::Assistant,
            "tool/result" => Self::ToolResult,
            _ => return None,
        })
    }
}

/// One event of the conversation.
#[derive(Clone, Debug)]
pub struct SurfaceNode {
    /// The event.
    pub seq: u64,
    /// Which kind.
    pub kind: SurfaceNodeKind,
    /// Turn and step, for kinds that carry them.
    pub turn_step: Option<(u64, u64)>,
    /// Its message.
    pub message: Arc<Message>,
    /// What a tool result carries beside its message; a replacement has to carry it too.
    pub result: Option<Arc<ResultParts>>,
}

/// What a `tool/result` carries beside its message.
#[derive(Clone, Debug, Default)]
pub struct ResultParts {
    /// Name and code of a typed failure.
    pub error: Option<ErrorInfo>,
    /// What the tool stored for its card, as it was written.
    pub meta: Option<Box<RawValue>>,
}

/// The conversation as an ordered list of nodes.
#[derive(Clone, Debug, Default)]
pub struct Surface {
    nodes: Vec<SurfaceNode>,
    replace_generation: u64,
}

impl Surface {
    /// The nodes in conversation order.
    pub fn nodes(&self) -> &[SurfaceNode] {
        &self.nodes
    }

    /// How many replacements there have been.
    pub fn replace_generation(&self) -> u64 {
        self.replace_generation
    }

    pub(super) fn apply(
        &mut self,
        node: SurfaceNode,
        op: SurfaceOp,
        sources: Option<&[u64]>,
    ) -> Result<(), FoldError> {
        match op {
            SurfaceOp::Append => self.nodes.push(node),
            SurfaceOp::Replace { start, end } => {
                self.replace(node, start, end, sources.unwrap_or_default())?
            }
        }
        Ok(())
    }

    fn replace(&mut self, node: SurfaceNode, start: u64, end: u64, sources: &[u64]) -> Result<(), FoldError> {
        let first = self.index_of(start).ok_or_else(|| {
            FoldError::Surface(format!("surface replace: start seq {start} not found in surface"))
        })?;
        let last = self.index_of(end).ok_or_else(|| {
            FoldError::Surface(format!("surface replace: end seq {end} not found in surface"))
        })?;
        if first > last {
            return Err(FoldError::Surface(format!(
                "surface replace: start seq {start} (index {first}) is after end seq {end} (index {last})"
            )));
        }
        let shadowed = &self.nodes[first..=last];
        let missing: Vec<String> = shadowed
            .iter()
            .filter(|old| !sources.contains(&old.seq))
            .map(|old| old.seq.to_string())
            .collect();
        if !missing.is_empty() {
            return Err(FoldError::Surface(format!(
                "surface replace: sourceEventSeqs must include every shadowed surface node; missing {}",
                missing.join(", ")
            )));
        }
        if node.kind == SurfaceNodeKind::ToolResult {
            check_result_replacement(&node, shadowed)?;
        }
        self.nodes.splice(first..=last, [node]);
        self.replace_generation += 1;
        Ok(())
    }

    fn index_of(&self, seq: u64) -> Option<usize> {
        self.nodes.iter().rposition(|node| node.seq == seq)
    }
}

/// A replaced tool result may only change the content inside its block.
fn check_result_replacement(node: &SurfaceNode, shadowed: &[SurfaceNode]) -> Result<(), FoldError> {
    let [old] = shadowed else {
        return Err(FoldError::Surface(
            "tool/result surface replacement must rewrite exactly one current node".to_owned(),
        ));
    };
    if old.kind != SurfaceNodeKind::ToolResult {
        return Err(FoldError::Surface(
            "tool/result surface replacement must target a current tool/result".to_owned(),
        ));
    }
    let same = match (old.message.tool_result(), node.message.tool_result()) {
        (Some(before), Some(after)) => {
            before.tool_call_id == after.tool_call_id
                && before.is_error == after.is_error
                && old.message.id == node.message.id
                && old.message.source == node.message.source
        }
        _ => false,
    };
    if same {
        Ok(())
    } else {
        Err(FoldError::Surface("tool/result surface replacement may change only content".to_owned()))
    }
}
