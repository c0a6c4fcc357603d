//! Scripts: recorded replies in a JSON file, for tests and demonstrations.
//!
//! ```json
//! {"turns": [{"reasoning": "…", "text": "…", "calls": [{"name": "read", "arguments": {"file_path": "a"}}]}],
//!  "fail": {"2": {"status": 503, "message": "busy"}}}
//! ```
//!
//! The turn that is played is the number of replies already in the request; past the end it is the last one. A
//! request that offers no tools while the script calls some asks for a title or a summary and gets a fixed text.

use std::collections::HashMap;
use std::path::Path;

use jiff::Timestamp;
use lorimer_protocol::{Failure, StreamChunk};
use serde::Deserialize;
use serde_json::Value;

use super::play::{failed, turn_chunks, turn_number};
use super::{PlannedCall, PlannedTurn};
use crate::ModelRequest;
use crate::chat::usage_from_wire;
use crate::failure::{Advice, ErrorAnswer, from_answer};

/// What a request for a title or a summary is answered with.
const HELPER_TEXT: &str = "Helper text";
/// Largest script that is read, in bytes.
const MAX_SCRIPT_BYTES: u64 = 64 * 1024 * 1024;

/// A script as it stands in its file. Fields that are not known are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Script {
    turns: Vec<ScriptTurn>,
    /// By 1-based number of the request.
    #[serde(default)]
    fail: HashMap<u64, ScriptFailure>,
    /// Window in tokens that the script pretends to have.
    #[serde(default)]
    pub context_window: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct ScriptTurn {
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    empty_reasoning: bool,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    calls: Vec<ScriptCall>,
    #[serde(default)]
    finish: Option<String>,
    #[serde(default)]
    usage: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct ScriptCall {
    #[serde(default)]
    id: Option<String>,
    name: String,
    /// Raw text as a string, or the arguments themselves.
    arguments: Value,
}

#[derive(Debug, Deserialize)]
struct ScriptFailure {
    #[serde(default = "default_status")]
    status: u16,
    #[serde(default = "default_message")]
    message: String,
}

fn default_status() -> u16 {
    500
}

fn default_message() -> String {
    "scripted failure".to_owned()
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Says what is wrong with the file, with line and column where that is known.
    pub(super) fn load(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let unreadable = |error: std::io::Error| {
            format!(
                "the script {shown} cannot be read ({error}); `-m offline` needs no script, and \
                     `-m offline/FILE` plays one"
            )
        };
        let meta = std::fs::metadata(path).map_err(unreadable)?;
        if !meta.is_file() {
            return Err(format!("the script {shown} is not a file"));
        }
        if meta.len() > MAX_SCRIPT_BYTES {
            return Err(format!("the script {shown} is larger than {MAX_SCRIPT_BYTES} bytes"));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let script: Self = serde_json::from_slice(&bytes)
            .map_err(|error| format!("the script {shown} is malformed: {error}"))?;
        match script.turns.is_empty() {
            true => Err(format!("the script {shown} has no turns")),
            false => Ok(script),
        }
    }

    /// The chunks of the `nth` request (1-based) to this script.
    pub(super) fn chunks(&self, request: &ModelRequest, nth: u64) -> Vec<StreamChunk> {
        match self.fail.get(&nth) {
            Some(planned) => failed(planned.failure()),
            None => turn_chunks(&self.turn(request), request),
        }
    }

    fn turn(&self, request: &ModelRequest) -> PlannedTurn {
        let calls_tools = self.turns.iter().any(|turn| !turn.calls.is_empty());
        if request.tools.is_empty() && calls_tools {
            return PlannedTurn { text: HELPER_TEXT.to_owned(), ..PlannedTurn::default() };
        }
        let number = turn_number(&request.messages);
        let turn = self.turns.get(number).or(self.turns.last());
        turn.map(ScriptTurn::planned).unwrap_or_default()
    }
}

impl ScriptTurn {
    fn planned(&self) -> PlannedTurn {
        let reasoning = self.reasoning.clone().filter(|text| !text.is_empty());
        PlannedTurn {
            reasoning: reasoning.or_else(|| self.empty_reasoning.then(String::new)),
            text: self.text.clone().unwrap_or_default(),
            calls: self.calls.iter().map(ScriptCall::planned).collect(),
            finish: self.finish.clone().filter(|finish| !finish.is_empty()),
            usage: self.usage.as_ref().and_then(usage_from_wire),
        }
    }
}

impl ScriptCall {
    fn planned(&self) -> PlannedCall {
        let arguments = match &self.arguments {
            Value::String(raw) => raw.clone(),
            parsed => parsed.to_string(),
        };
        let id = self.id.clone().filter(|id| !id.is_empty());
        PlannedCall { id, name: self.name.clone(), arguments }
    }
}

impl ScriptFailure {
    fn failure(&self) -> Failure {
        let answer = ErrorAnswer { status: self.status, body: &self.message, ..ErrorAnswer::default() };
        from_answer(&answer, Advice { url: "the script", key_variable: None }, Timestamp::UNIX_EPOCH)
    }
}
