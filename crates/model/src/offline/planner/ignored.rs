//! Which paths the survey passes over: well-known output folders and plain rules of the root `.gitignore`.

use super::limits::MAX_IGNORE_RULES;

/// Folders that hold no sources of the project, wherever they are.
const OUTPUT_FOLDERS: &[&str] = &[
    ".cache",
    ".git",
    ".gradle",
    ".idea",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".pytest_cache",
    ".ruff_cache",
    ".svelte-kit",
    ".terraform",
    ".tox",
    ".turbo",
    ".venv",
    ".vscode",
    "__pycache__",
    "bower_components",
    "build",
    "coverage",
    "dist",
    "node_modules",
    "out",
    "target",
    "vendor",
    "venv",
];

/// One line of a `.gitignore`, as far as it is plain.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// A file or folder of this name, anywhere.
    Name {
        /// The name.
        name: String,
        /// Whether only folders are meant.
        folder_only: bool,
    },
    /// This path from the root on.
    Path(String),
    /// Files and folders whose names end so.
    Suffix(String),
}

impl Rule {
    /// Reads one line; `None` for comments, exceptions and everything that needs a real matcher.
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', '!']) {
            return None;
        }
        let (body, folder_only) = line.strip_suffix('/').map_or((line, false), |body| (body, true));
        let (body, anywhere) = body.strip_prefix("**/").map_or((body, false), |body| (body, true));
        let special = |text: &str| text.is_empty() || text.contains(['*', '?', '[', '\\']);
        if let Some(suffix) = body.strip_prefix("*.") {
            let plain = !special(suffix) && !suffix.contains('/');
            return plain.then(|| Self::Suffix(format!(".{suffix}")));
        }
        let rooted = body.trim_start_matches('/');
        if special(rooted) {
            return None;
        }
        let from_root = body.len() != rooted.len() || rooted.contains('/');
        match (from_root, anywhere) {
            (true, true) => None,
            (true, false) => Some(Self::Path(rooted.to_owned())),
            (false, _) => Some(Self::Name { name: rooted.to_owned(), folder_only }),
        }
    }

    /// Whether the rule is about this file or folder itself.
    fn covers(&self, path: &str, is_folder: bool) -> bool {
        let last = path.rsplit('/').next().unwrap_or(path);
        match self {
            Self::Name { name, folder_only } => name == last && (is_folder || !folder_only),
            Self::Path(rooted) => rooted == path,
            Self::Suffix(suffix) => last.ends_with(suffix.as_str()),
        }
    }
}

/// What the survey passes over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IgnoreRules {
    rules: Vec<Rule>,
}

impl IgnoreRules {
    /// The plain rules in the lines of a `.gitignore`; exceptions (`!…`) are not applied.
    pub(super) fn parse(lines: &[String]) -> Self {
        let rules = lines.iter().filter_map(|line| Rule::parse(line));
        Self { rules: rules.take(MAX_IGNORE_RULES).collect() }
    }

    /// The outermost folder (or the file itself) because of which `path` is passed over.
    pub(super) fn skipped<'a>(&self, path: &'a str) -> Option<Skipped<'a>> {
        let folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        for folder in folders {
            if self.skips_folder(folder) {
                return Some(Skipped::Folder(folder));
            }
        }
        self.covers(path, false).then_some(Skipped::File)
    }

    /// Whether a folder itself is passed over, not looking at the ones around it.
    fn skips_folder(&self, folder: &str) -> bool {
        let name = folder.rsplit('/').next().unwrap_or(folder);
        OUTPUT_FOLDERS.contains(&name) || self.covers(folder, true)
    }

    fn covers(&self, path: &str, is_folder: bool) -> bool {
        self.rules.iter().any(|rule| rule.covers(path, is_folder))
    }
}

/// Why a path is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skipped<'a> {
    /// It lies in this folder.
    Folder(&'a str),
    /// The file itself is ignored.
    File,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> IgnoreRules {
        IgnoreRules::parse(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn well_known_folders_are_passed_over_at_any_depth() {
        let none = IgnoreRules::default();
        assert_eq!(none.skipped("web/node_modules/a/b.js"), Some(Skipped::Folder("web/node_modules")));
        assert_eq!(none.skipped("src/build"), None, "a file of that name is not a folder");
        assert_eq!(none.skipped("src/main.rs"), None);
    }

    #[test]
    fn plain_rules_of_the_ignore_file_count() {
        let rules = rules("# note\n/gen\ntmp/\n.env\n*.log\ndocs/site\n!keep\nwe?rd\n**/deep/\n");
        assert_eq!(rules.skipped("gen/a.rs"), Some(Skipped::Folder("gen")));
        assert_eq!(rules.skipped("src/gen/a.rs"), None, "anchored at the root");
        assert_eq!(rules.skipped("a/tmp/x"), Some(Skipped::Folder("a/tmp")));
        assert_eq!(rules.skipped("a/tmp"), None, "folders only");
        assert_eq!(rules.skipped("a/.env"), Some(Skipped::File));
        assert_eq!(rules.skipped("x.log"), Some(Skipped::File));
        assert_eq!(rules.skipped("docs/site/i.html"), Some(Skipped::Folder("docs/site")));
        assert_eq!(rules.skipped("a/b/deep/c"), Some(Skipped::Folder("a/b/deep")));
        assert_eq!(rules.skipped("keep"), None);
    }
}
