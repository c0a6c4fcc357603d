//! The providers of one process, by route id.

use std::sync::Arc;

use crate::{ModelError, Provider};

/// Names that are taken for a route id.
const ALIASES: [(&str, &str); 1] = [("deepseek", "deepseek-official")];

/// Splits `provider/model` at its first slash; a model id may hold more of them.
///
/// Without a slash the whole text is the provider. An empty model counts as none.
pub fn split_route(route: &str) -> (&str, Option<&str>) {
    match route.split_once('/') {
        Some((provider, model)) => (provider, Some(model).filter(|model| !model.is_empty())),
        None => (route, None),
    }
}

/// Providers in the order they were added.
#[derive(Clone, Default)]
pub struct Registry {
    providers: Vec<Arc<dyn Provider>>,
}

impl Registry {
    /// A registry without providers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a provider; one with the same id is replaced and keeps its place.
    pub fn add(&mut self, provider: Arc<dyn Provider>) {
        match self.providers.iter_mut().find(|known| known.id() == provider.id()) {
            Some(known) => *known = provider,
            None => self.providers.push(provider),
        }
    }

    /// The provider of a route id or of one of its aliases (`deepseek`).
    ///
    /// # Errors
    /// [`ModelError::UnknownProvider`] with the nearest known id when there is one that is close.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Provider>, ModelError> {
        let find = |id: &str| self.providers.iter().find(|provider| provider.id() == id).cloned();
        let alias = || ALIASES.iter().find(|(alias, _)| *alias == name).and_then(|(_, id)| find(id));
        find(name).or_else(alias).ok_or_else(|| ModelError::UnknownProvider {
            name: name.to_owned(),
            nearest: nearest(name, self.known_names()),
        })
    }

    /// All providers in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Provider>> {
        self.providers.iter()
    }

    fn known_names(&self) -> impl Iterator<Item = &str> {
        let ids = self.providers.iter().map(|provider| provider.id());
        let aliases = ALIASES.iter().filter(|(_, id)| self.providers.iter().any(|known| known.id() == *id));
        ids.chain(aliases.map(|(alias, _)| *alias))
    }
}

/// The candidate with the fewest edits to `name`, when those are few for its length.
fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    const LEAST_EDITS: usize = 2;
    let name = name.to_lowercase();
    let most_edits = LEAST_EDITS.max(name.chars().count() / 3);
    let scored = candidates.map(|candidate| (edit_distance(&name, candidate), candidate));
    let (edits, candidate) = scored.min_by_key(|(edits, _)| *edits)?;
    (edits <= most_edits).then(|| candidate.to_owned())
}

/// Fewest insertions, removals and replacements of characters that turn `a` into `b`.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OfflineProvider;
    use crate::chat::{ChatOverrides, deepseek};

    fn registry() -> Registry {
        let mut registry = Registry::new();
        registry.add(Arc::new(deepseek(|_| None, ChatOverrides::default())));
        registry.add(Arc::new(OfflineProvider::new()));
        registry
    }

    #[test]
    fn splits_at_the_first_slash() {
        assert_eq!(split_route("a/b/c"), ("a", Some("b/c")));
        assert_eq!(split_route("a"), ("a", None));
        assert_eq!(split_route("a/"), ("a", None));
        assert_eq!(split_route("offline//tmp/x.json"), ("offline", Some("/tmp/x.json")));
    }

    #[test]
    fn finds_ids_aliases_and_near_misses() {
        let registry = registry();
        assert_eq!(registry.get("deepseek").unwrap().id(), "deepseek-official");
        assert_eq!(registry.get("offline").unwrap().id(), "offline");
        let nearest_of = |name| match registry.get(name) {
            Err(ModelError::UnknownProvider { nearest, .. }) => nearest,
            _ => panic!("{name} is known"),
        };
        assert_eq!(nearest_of("ofline"), Some("offline".to_owned()));
        assert_eq!(nearest_of("deepsek"), Some("deepseek".to_owned()));
        assert_eq!(nearest_of("gemini"), None);
    }

    #[test]
    fn counts_edits() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
    }
}
