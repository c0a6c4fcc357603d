//! The session itself: where its restored part ends, what waits in the inbox, its title.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Message;

/// `session/end-seed`: what came before was inherited or restored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndSeed {}

/// `agent/inbox/spliced`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InboxSpliced {
    /// Which list.
    pub target: InboxTarget,
    /// Where.
    pub start: u64,
    /// How many left; absent when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_count: Option<u64>,
    /// What came in.
    pub inserted: Vec<Message>,
    /// `canceled` when the removed were discarded rather than claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<InboxOutcome>,
}

/// The two lists of the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum InboxTarget {
    /// Opens a turn of its own.
    NextTurn,
    /// Enters the running turn at its next step.
    NextStep,
}

/// What became of removed inbox messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum InboxOutcome {
    /// Thrown away.
    Canceled,
}

/// `session/title`: the latest wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionTitle {
    /// The title.
    pub title: String,
    /// Events it was made from.
    pub message_seqs: Vec<u64>,
    /// Who made it.
    pub source: TitleSource,
}

/// Who made a title. Tagged by `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TitleSource {
    /// The first words of the first message.
    Fallback,
    /// The person.
    User,
    /// A title provider.
    Provider {
        /// Its id.
        provider: String,
        /// `{provider, model}` of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Value>,
    },
}
