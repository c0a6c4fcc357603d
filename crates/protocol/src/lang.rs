//! The language hint of a path.

/// The highlighting hint for a file, from the extension of its last path segment.
///
/// The table is the read card's of DSH; an unknown or missing extension, a dotfile and a trailing dot have none.
///
/// ```
/// # use lorimer_protocol::lang_from_path;
/// assert_eq!(lang_from_path("src/B.TS"), Some("ts"));
/// assert_eq!(lang_from_path(r"src\a.py"), Some("py"));
/// assert_eq!(lang_from_path(".gitignore"), None);
/// assert_eq!(lang_from_path("x.constructor"), None);
/// ```
pub fn lang_from_path(path: &str) -> Option<&'static str> {
    let base = path.rsplit(['/', '\\']).next()?;
    let dot = base.rfind('.').filter(|&at| at > 0)?;
    lang_of_extension(&base[dot + 1..].to_lowercase())
}

fn lang_of_extension(extension: &str) -> Option<&'static str> {
    Some(match extension {
        "ts" | "mts" | "cts" => "ts",
        "tsx" => "tsx",
        "js" | "mjs" | "cjs" => "js",
        "jsx" => "jsx",
        "json" | "jsonc" => "json",
        "py" => "py",
        "rb" => "rb",
        "go" => "go",
        "rs" => "rs",
        "java" => "java",
        "c" | "h" => "c",
        "cc" | "cpp" | "hpp" | "cxx" => "cpp",
        "cs" => "cs",
        "kt" => "kotlin",
        "swift" => "swift",
        "php" => "php",
        "sh" | "bash" | "zsh" => "sh",
        "yaml" | "yml" => "yaml",
        "toml" => "toml",
        "ini" => "ini",
        "md" | "markdown" | "mdx" => "md",
        "html" | "htm" => "html",
        "css" => "css",
        "scss" => "scss",
        "less" => "less",
        "sql" => "sql",
        "xml" => "xml",
        "lua" => "lua",
        _ => return None,
    })
}
