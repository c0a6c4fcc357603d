//! What a reply's thinking needs to be sent back: signatures and encrypted blocks, kept in the log beside the message.
//!
//! `{"response":{"kind":"messages"},"blocks":[{"type":"thinking","signature":"…"},null,…]}`, with one entry for each
//! block of the message.

use lorimer_protocol::{Message, Source};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const KIND: &str = "messages";

/// What one block needs beside its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Entry {
    /// Thinking with its proof of origin.
    Thinking {
        /// As it came.
        signature: String,
    },
    /// Thinking that is only there in encrypted form.
    RedactedThinking {
        /// As it came.
        data: String,
    },
}

/// The state of a reply with one entry for each of its blocks; `None` when no block needs any.
pub(super) fn to_state(entries: &[Option<Entry>]) -> Option<Value> {
    let needed = entries.iter().any(Option::is_some);
    needed.then(|| json!({"response": {"kind": KIND}, "blocks": entries}))
}

/// The entries of a message that this provider made, one for each block; `None` when it did not, or when they do not
/// fit the message. A signature is worth nothing to anyone else.
pub(super) fn from_message(message: &Message, provider: &str) -> Option<Vec<Option<Entry>>> {
    let Source::Model { provider: maker, replay_state: Some(state), .. } = &message.source else {
        return None;
    };
    let is_ours = maker == provider && state.get("response")?.get("kind")? == KIND;
    let blocks = state.get("blocks")?.as_array().filter(|blocks| blocks.len() == message.content.len())?;
    is_ours.then(|| blocks.iter().map(|entry| Entry::deserialize(entry).ok()).collect())
}
