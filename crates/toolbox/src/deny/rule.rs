//! One rule.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::TOOLS;

/// What makes a segment of a pattern more than a name.
const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// A pattern and the tool that it is about.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// As it was written, without the tool.
    pub pattern: String,
    tool: Option<&'static str>,
    /// The folder that the pattern starts in, as it was named and where it really is. Without a `glob` this is what
    /// is denied.
    pub below: Vec<PathBuf>,
    /// What is denied, from there.
    pub glob: Option<GlobMatcher>,
    /// The folders whose whole content is denied, from there: of `a/**` it is `a`.
    pub folder: Option<GlobMatcher>,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        (&self.pattern, self.tool, &self.below) == (&other.pattern, other.tool, &other.below)
    }
}

impl Eq for Rule {}

impl Rule {
    pub fn parse(text: &str, workspace: &Path, home: Option<&Path>) -> Result<Self, String> {
        let (tool, pattern) = split_tool(text)?;
        let (start, rest) = anchored(pattern, workspace, home)?;
        let rest = rest.trim_end_matches('/');
        if rest.split('/').any(|segment| segment == "..") {
            return Err("a pattern has no \"..\"; write where it leads".to_owned());
        }
        let (literal, glob) = split_literal(rest);
        let named = start.join(literal);
        let mut below = vec![named];
        below.extend(std::fs::canonicalize(&below[0]).ok().filter(|real| *real != below[0]));
        let folder = glob.as_deref().and_then(|glob| glob.strip_suffix("/**"));
        Ok(Self {
            pattern: pattern.to_owned(),
            tool,
            below,
            folder: folder.map(matcher).transpose()?,
            glob: glob.as_deref().map(matcher).transpose()?,
        })
    }

    pub fn is_about(&self, tool: &str) -> bool {
        self.tool.is_none_or(|only| only == tool)
    }

    /// Whether a path or a folder that it is in is denied.
    pub fn matches(&self, path: &Path) -> bool {
        self.below_start(path).any(|rest| match &self.glob {
            None => true,
            Some(glob) => rest.ancestors().any(|part| !part.as_os_str().is_empty() && glob.is_match(part)),
        })
    }

    /// Whether a path is denied whose folder is not.
    pub fn matches_first(&self, path: &Path) -> bool {
        self.below_start(path).any(|rest| self.glob.as_ref().is_none_or(|glob| glob.is_match(rest)))
    }

    /// Whether all that is in this folder is denied.
    pub fn takes_content_of(&self, folder: &Path) -> bool {
        let Some(matcher) = &self.folder else { return false };
        self.below_start(folder).any(|rest| matcher.is_match(rest))
    }

    /// A path from where the pattern starts, when it is there.
    fn below_start<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.below.iter().filter_map(|below| path.strip_prefix(below).ok())
    }

    /// Whether everything in `below` is denied.
    pub fn is_whole(&self) -> bool {
        self.glob.as_ref().is_none_or(|glob| glob.glob().glob() == "**")
    }
}

fn split_tool(text: &str) -> Result<(Option<&'static str>, &str), String> {
    let Some((name, pattern)) = text.split_once(':') else { return Ok((None, text)) };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Ok((None, text));
    }
    match TOOLS.iter().find(|tool| **tool == name) {
        Some(tool) => Ok((Some(tool), pattern)),
        None => Err(format!("\"{name}\" is none of the tools {}", TOOLS.join(", "))),
    }
}

/// Where a pattern starts, and its rest.
fn anchored(pattern: &str, workspace: &Path, home: Option<&Path>) -> Result<(PathBuf, String), String> {
    if pattern.trim_matches(['/', ' ']).is_empty() {
        return Err("it names no path".to_owned());
    }
    if pattern.starts_with('!') {
        return Err("a deny rule allows nothing; leave out the \"!\"".to_owned());
    }
    if let Some(rest) = pattern.strip_prefix("~/") {
        let home = home.ok_or("there is no home folder for \"~\"; write an absolute path")?;
        return Ok((home.to_owned(), rest.to_owned()));
    }
    if let Some(rest) = pattern.strip_prefix('/') {
        return Ok((PathBuf::from("/"), rest.to_owned()));
    }
    let rest = pattern.strip_prefix("./").unwrap_or(pattern);
    let any_depth = !pattern.trim_end_matches('/').contains('/');
    Ok((workspace.to_owned(), if any_depth { format!("**/{rest}") } else { rest.to_owned() }))
}

/// The names that a pattern starts with, and what comes after them.
fn split_literal(pattern: &str) -> (PathBuf, Option<String>) {
    let segments: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let names = segments.iter().take_while(|segment| !segment.contains(SPECIAL)).count();
    let rest = segments[names..].join("/");
    (segments[..names].iter().collect(), (!rest.is_empty()).then_some(rest))
}

fn matcher(glob: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}
