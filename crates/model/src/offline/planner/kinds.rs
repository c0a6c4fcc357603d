//! What a file is, judged by its name alone.

/// How early files of a language are measured when not all can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Programs.
    Code,
    /// Configuration, markup, styles.
    Setup,
    /// Prose.
    Prose,
    /// Tables and dumps.
    Data,
}

impl Rank {
    /// The rank of what comes last.
    pub(super) const LAST: Self = Self::Data;
}

/// A language of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Language {
    /// How early it is measured.
    pub(super) rank: Rank,
    /// How it is called.
    pub(super) name: &'static str,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text of a known language.
    Text(Language),
    /// Text that a program wrote: lock files, minified sources, source maps.
    Generated,
    /// Images, archives, fonts and the like.
    Binary,
    /// The name does not tell.
    Unknown,
}

/// Languages by lower-case extension, separated by spaces.
const LANGUAGES: &[(Rank, &str, &str)] = &[
    (Rank::Code, "Rust", "rs"),
    (Rank::Code, "TypeScript", "ts tsx mts cts"),
    (Rank::Code, "JavaScript", "js jsx mjs cjs"),
    (Rank::Code, "Python", "py pyi"),
    (Rank::Code, "Go", "go"),
    (Rank::Code, "Java", "java"),
    (Rank::Code, "Kotlin", "kt kts"),
    (Rank::Code, "Scala", "scala sc"),
    (Rank::Code, "C", "c h"),
    (Rank::Code, "C++", "cc cpp cxx hh hpp hxx"),
    (Rank::Code, "C#", "cs"),
    (Rank::Code, "F#", "fs fsx"),
    (Rank::Code, "Swift", "swift"),
    (Rank::Code, "Objective-C", "m mm"),
    (Rank::Code, "Ruby", "rb rake gemspec"),
    (Rank::Code, "PHP", "php"),
    (Rank::Code, "Perl", "pl pm"),
    (Rank::Code, "Lua", "lua"),
    (Rank::Code, "R", "r"),
    (Rank::Code, "Julia", "jl"),
    (Rank::Code, "Dart", "dart"),
    (Rank::Code, "Elixir", "ex exs"),
    (Rank::Code, "Erlang", "erl hrl"),
    (Rank::Code, "Haskell", "hs"),
    (Rank::Code, "OCaml", "ml mli"),
    (Rank::Code, "Clojure", "clj cljs cljc edn"),
    (Rank::Code, "Zig", "zig"),
    (Rank::Code, "Nim", "nim"),
    (Rank::Code, "Solidity", "sol"),
    (Rank::Code, "Vue", "vue"),
    (Rank::Code, "Svelte", "svelte"),
    (Rank::Code, "Shell", "sh bash zsh fish"),
    (Rank::Code, "PowerShell", "ps1 psm1"),
    (Rank::Code, "Batch", "bat cmd"),
    (Rank::Code, "Assembly", "s asm"),
    (Rank::Code, "SQL", "sql"),
    (Rank::Code, "Protocol Buffers", "proto"),
    (Rank::Code, "GraphQL", "graphql gql"),
    (Rank::Code, "Nix", "nix"),
    (Rank::Code, "Terraform", "tf tfvars"),
    (Rank::Setup, "HTML", "html htm"),
    (Rank::Setup, "CSS", "css scss sass less"),
    (Rank::Setup, "TOML", "toml"),
    (Rank::Setup, "YAML", "yaml yml"),
    (Rank::Setup, "JSON", "json jsonc json5"),
    (Rank::Setup, "XML", "xml xsd xsl plist csproj fsproj vbproj"),
    (Rank::Setup, "INI", "ini cfg conf properties editorconfig"),
    (Rank::Setup, "CMake", "cmake"),
    (Rank::Setup, "Make", "mk"),
    (Rank::Setup, "Gradle", "gradle"),
    (Rank::Prose, "Markdown", "md markdown mdx"),
    (Rank::Prose, "reStructuredText", "rst"),
    (Rank::Prose, "AsciiDoc", "adoc asciidoc"),
    (Rank::Prose, "TeX", "tex bib"),
    (Rank::Prose, "Plain text", "txt"),
    (Rank::Data, "CSV", "csv tsv"),
    (Rank::Data, "JSON Lines", "jsonl ndjson"),
];

/// Languages by lower-case file name, separated by spaces.
const NAMED: &[(Rank, &str, &str)] = &[
    (Rank::Setup, "Make", "makefile gnumakefile"),
    (Rank::Setup, "Just", "justfile"),
    (Rank::Setup, "CMake", "cmakelists.txt"),
    (Rank::Setup, "Dockerfile", "dockerfile containerfile"),
    (Rank::Setup, "Starlark", "build.bazel workspace.bazel module.bazel"),
    (Rank::Setup, "Meson", "meson.build"),
    (Rank::Setup, "Go module", "go.mod go.work"),
    (Rank::Code, "Ruby", "gemfile rakefile"),
    (
        Rank::Setup,
        "Ignore rules",
        ".gitignore .dockerignore .npmignore .ignore .prettierignore .eslintignore",
    ),
    (Rank::Setup, "INI", ".editorconfig .gitattributes .gitmodules"),
    (Rank::Prose, "Plain text", "license licence copying notice readme authors changelog codeowners"),
];

/// Files that tools write and people do not read, by lower-case name.
const GENERATED: &[&str] = &[
    "bun.lock",
    "cargo.lock",
    "composer.lock",
    "deno.lock",
    "flake.lock",
    "gemfile.lock",
    "go.sum",
    "go.work.sum",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "pdm.lock",
    "pipfile.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "uv.lock",
    "yarn.lock",
];

/// Ends of names of generated files.
const GENERATED_ENDS: &[&str] = &[".map", ".min.css", ".min.js", ".snap"];

/// Extensions of files that are not text, or are only so by accident.
const BINARY: &str = "7z a avi avif bin bmp bz2 class dat db deb dll dmg doc docx dylib ear eot exe flac gif gz heic \
    icns ico iso jar jpeg jpg lib lockb mkv mov mp3 mp4 node o obj odt ogg onnx otf parquet pdf pickle pkl png ppt \
    pptx psd pyc pyd rar rlib rpm so sqlite sqlite3 svg tar tgz tif tiff ttf war wasm wav webm webp whl woff woff2 \
    xls xlsx xz zip zst";

/// What the file at `path` is.
pub(super) fn kind_of(path: &str) -> Kind {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    if GENERATED.contains(&name.as_str()) || GENERATED_ENDS.iter().any(|end| name.ends_with(end)) {
        return Kind::Generated;
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    let by_extension = || extension.and_then(|extension| find(LANGUAGES, extension));
    if let Some(language) = find(NAMED, &name).or_else(by_extension) {
        return Kind::Text(language);
    }
    match extension {
        Some(extension) if is_listed(BINARY, extension) => Kind::Binary,
        _ => Kind::Unknown,
    }
}

/// The entry of `table` that lists `word`.
fn find(table: &[(Rank, &'static str, &str)], word: &str) -> Option<Language> {
    let entry = table.iter().find(|(_, _, words)| is_listed(words, word));
    entry.map(|&(rank, name, _)| Language { rank, name })
}

/// Whether `word` is one of the words of `list`.
fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_kind() {
        let language = |path: &str| match kind_of(path) {
            Kind::Text(language) => language.name,
            _ => "",
        };
        assert_eq!(language("src/main.rs"), "Rust");
        assert_eq!(language("Web/App.TSX"), "TypeScript");
        assert_eq!(language("CMakeLists.txt"), "CMake");
        assert_eq!(language("deploy/Dockerfile"), "Dockerfile");
        assert_eq!(language(".gitignore"), "Ignore rules");
        assert_eq!(kind_of("Cargo.lock"), Kind::Generated);
        assert_eq!(kind_of("js/app.min.js"), Kind::Generated);
        assert_eq!(kind_of("logo.PNG"), Kind::Binary);
        assert_eq!(kind_of("bin/tool"), Kind::Unknown);
        assert_eq!(kind_of(""), Kind::Unknown);
    }
}
