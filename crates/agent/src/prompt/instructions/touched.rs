//! Which files the model has worked on, as the surface has it.

use std::collections::{HashMap, HashSet, VecDeque};

use lorimer_protocol::{CallId, ContentBlock, Message};
use lorimer_session::{Log, SurfaceNode, SurfaceNodeKind};
use serde::Deserialize;

/// Tools whose calls name one file.
const FILE_TOOLS: [&str; 3] = ["read", "write", "edit"];

/// Follows the calls and results of a log.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// The next event to look at.
    from_seq: u64,
    /// Calls without a result, with the file they name. A model may repeat an id; results come in order.
    pending: HashMap<CallId, VecDeque<Option<String>>>,
    known: HashSet<String>,
}

#[derive(Deserialize)]
struct FileArguments {
    file_path: String,
}

impl Touched {
    /// Files of calls that have succeeded since the last time, as the model wrote them, each once.
    pub fn next_paths(&mut self, log: &Log) -> Vec<String> {
        let nodes = log.surface().nodes();
        // What replaces an older part has a late seq at an early place, and says nothing new.
        let new = nodes.iter().rev().take_while(|node| node.seq >= self.from_seq).count();
        self.from_seq = log.next_seq();
        nodes[nodes.len() - new..].iter().filter_map(|node| self.hear(node)).collect()
    }

    fn hear(&mut self, node: &SurfaceNode) -> Option<String> {
        match node.kind {
            SurfaceNodeKind::Assistant => {
                self.calls(&node.message);
                None
            }
            SurfaceNodeKind::ToolResult => self.result(&node.message),
            SurfaceNodeKind::User => None,
        }
    }

    fn calls(&mut self, message: &Message) {
        for block in &message.content {
            if let ContentBlock::ToolCall(call) = block {
                let path = FILE_TOOLS
                    .contains(&call.name.as_str())
                    .then(|| serde_json::from_str::<FileArguments>(&call.arguments).ok())
                    .flatten()
                    .map(|arguments| arguments.file_path);
                self.pending.entry(call.id.clone()).or_default().push_back(path);
            }
        }
    }

    fn result(&mut self, message: &Message) -> Option<String> {
        let block = message.tool_result()?;
        let waiting = self.pending.get_mut(&block.tool_call_id)?;
        let path = waiting.pop_front().flatten();
        if waiting.is_empty() {
            self.pending.remove(&block.tool_call_id);
        }
        let path = path.filter(|_| block.is_error != Some(true))?;
        self.known.insert(path.clone()).then_some(path)
    }
}
