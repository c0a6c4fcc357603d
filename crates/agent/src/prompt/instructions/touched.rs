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

#[cfg(test)]
mod tests {
    use lorimer_protocol::{AssistantMessage, Draft, Extra, Role, Source, ToolResult};
    use lorimer_protocol::{SessionHeader, ToolResultBlock};
    use lorimer_session::Session;

    use super::*;

    fn message(role: Role, content: Vec<ContentBlock>, source: Source) -> Message {
        Message { id: "m".into(), role, content, source, extra: Extra::new() }
    }

    fn reply(session: &Session, calls: &[(&str, &str, &str)]) {
        let content = calls.iter().map(|(id, name, path)| {
            ContentBlock::tool_call(*id, *name, format!(r#"{{"file_path":"{path}"}}"#))
        });
        let source = Source::Model {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            replay_state: None,
            extra: Extra::new(),
        };
        let message = message(Role::Assistant, content.collect(), source);
        let data: AssistantMessage =
            serde_json::from_value(serde_json::json!({"turn": 1, "step": 1, "message": message}))
                .expect("a reply");
        session.append(Draft::new(&data).on_surface()).expect("fits");
    }

    fn result(session: &Session, id: &str, is_error: bool) {
        let block = ToolResultBlock {
            tool_call_id: id.into(),
            is_error: Some(is_error),
            ..ToolResultBlock::default()
        };
        let message = message(Role::User, vec![ContentBlock::ToolResult(block)], Source::tool(id.into()));
        let data = ToolResult { turn: 1, step: 1, message, error: None, meta: None };
        session.append(Draft::new(&data).on_surface()).expect("fits");
    }

    #[test]
    fn successful_calls_of_the_file_tools_count_once_each() {
        let session = Session::in_memory(SessionHeader::new("s".into(), 0, None));
        let mut touched = Touched::default();
        reply(&session, &[("1", "read", "a"), ("2", "edit", "b"), ("3", "grep", "c")]);
        result(&session, "1", false);
        assert_eq!(session.with_log(|log| touched.next_paths(log)), ["a"]);
        result(&session, "2", true);
        result(&session, "3", false);
        reply(&session, &[("4", "write", "a"), ("5", "write", "d")]);
        result(&session, "4", false);
        result(&session, "5", false);
        assert_eq!(session.with_log(|log| touched.next_paths(log)), ["d"]);
        assert_eq!(session.with_log(|log| touched.next_paths(log)), [""; 0]);
        assert_eq!(session.with_log(|log| Touched::default().next_paths(log)), ["a", "d"]);
    }

    #[test]
    fn results_of_a_repeated_id_belong_to_its_calls_in_order() {
        let session = Session::in_memory(SessionHeader::new("s".into(), 0, None));
        reply(&session, &[("1", "grep", "a"), ("1", "read", "b"), ("1", "read", "c")]);
        result(&session, "1", false);
        result(&session, "1", true);
        result(&session, "1", false);
        assert_eq!(session.with_log(|log| Touched::default().next_paths(log)), ["c"]);
    }
}
