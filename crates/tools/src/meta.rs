//! What a tool stores for its card.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What a tool stores beside a result for its card, as the JSON text that goes into the log.
#[derive(Clone, Debug)]
pub struct Meta(Box<RawValue>);

impl Meta {
    /// The text of data that writes itself as JSON; `None` for what JSON cannot hold.
    pub fn of(data: &impl Serialize) -> Option<Self> {
        serde_json::value::to_raw_value(data).ok().map(Self)
    }

    /// The text.
    pub fn into_text(self) -> Box<RawValue> {
        self.0
    }

    /// The value that the text stands for.
    pub fn to_value(&self) -> Value {
        // The text was written as JSON.
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

impl PartialEq for Meta {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl From<Value> for Meta {
    fn from(value: Value) -> Self {
        Self::of(&value).unwrap_or_else(|| Self(RawValue::NULL.to_owned()))
    }
}
