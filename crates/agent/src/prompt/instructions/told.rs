//! What the model was told, as the surface has it.

use std::collections::BTreeMap;

use lorimer_protocol::{Message, Source};
use lorimer_session::{Log, SurfaceNodeKind};
use serde::Deserialize;

/// The kind of the messages' source.
pub(super) const KIND: &str = "agent-instructions";

/// The instructions that the messages on the surface come to.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Identity of the latest baseline that is still on the surface.
    pub baseline: Option<String>,
    files: BTreeMap<String, ToldFile>,
}

#[derive(Debug)]
struct ToldFile {
    scope: String,
    digest: String,
}

/// A message's source, as far as it can be read: logs may come from elsewhere.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    #[serde(default)]
    baseline: bool,
    #[serde(default)]
    baseline_identity: Option<String>,
    #[serde(default)]
    changes: Vec<SaidChange>,
}

#[derive(Deserialize)]
struct SaidChange {
    action: String,
    path: String,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    digest: String,
}

impl Told {
    /// Reads the surface from its start.
    pub fn of(log: &Log) -> Self {
        let mut told = Self::default();
        for node in log.surface().nodes().iter().filter(|node| node.kind == SurfaceNodeKind::User) {
            told.hear(&node.message);
        }
        told
    }

    fn hear(&mut self, message: &Message) {
        let Source::Other(source) = &message.source else { return };
        if message.source.kind() != KIND {
            return;
        }
        let Ok(said) = Said::deserialize(source) else { return };
        if said.baseline {
            self.files.clear();
            self.baseline = Some(said.baseline_identity.unwrap_or_default());
        }
        for change in said.changes {
            if change.action == "remove" {
                self.files.remove(&change.path);
            } else {
                let file = ToldFile { scope: change.scope, digest: change.digest };
                self.files.insert(change.path, file);
            }
        }
    }

    /// Digest of the text that was told for a file.
    pub fn digest(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|file| file.digest.as_str())
    }

    /// Folder that a file was told for.
    pub fn scope(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|file| file.scope.as_str())
    }

    /// The files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The folders.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.files.values().map(|file| file.scope.as_str())
    }

    /// Whether no file counts.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn told(sources: &[Value]) -> Told {
        let mut told = Told::default();
        for source in sources {
            told.hear(&Message::user_text("m", "text", Source::Other(source.clone())));
        }
        told
    }

    #[test]
    fn later_messages_change_what_earlier_ones_said() {
        let change = |action: &str, path: &str, digest: &str| json!({"action": action, "path": path, "scope": "/w", "digest": digest});
        let told = told(&[
            json!({"kind": KIND, "changes": [change("set", "/old", "0")]}),
            json!({"kind": KIND, "baseline": true, "baselineIdentity": "i",
                "changes": [change("set", "/w/a", "1"), change("set", "/w/b", "1")]}),
            json!({"kind": KIND, "changes": [change("replace", "/w/a", "2"), {"action": "remove", "path": "/w/b"}]}),
        ]);
        assert_eq!(told.baseline.as_deref(), Some("i"));
        assert_eq!(told.paths().collect::<Vec<_>>(), ["/w/a"]);
        assert_eq!((told.digest("/w/a"), told.scope("/w/a")), (Some("2"), Some("/w")));
    }

    #[test]
    fn messages_of_another_shape_say_nothing() {
        let told = told(&[json!({"kind": KIND, "changes": 3}), json!({"kind": "goal", "baseline": true})]);
        assert!(told.is_empty() && told.baseline.is_none());
    }
}
