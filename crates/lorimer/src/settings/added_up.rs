//! Lists that no place takes anything away from.

use serde_json::Value as Json;
use toml_edit::Value;

use super::table::SettingValue;

/// A list that places only add to: none takes away what an earlier one has set.
#[derive(Clone, Debug, Default)]
pub struct AddedUp(pub Vec<String>);

impl SettingValue for AddedUp {
    const WANTED: &'static str = Vec::<String>::WANTED;
    fn schema() -> Json {
        Vec::<String>::schema()
    }
    fn from_toml(value: &Value) -> Option<Self> {
        Vec::from_toml(value).map(Self)
    }
    fn from_text(text: &str) -> Option<Self> {
        Vec::from_text(text).map(Self)
    }
    fn to_toml(&self) -> Option<Value> {
        self.0.to_toml()
    }
    fn over(mut self, before: &Self) -> Self {
        self.0.retain(|one| !before.0.contains(one));
        self.0.splice(0..0, before.0.iter().cloned());
        self
    }
}
