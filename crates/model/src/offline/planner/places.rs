//! Which files start a program and which build it, judged by their paths.

/// How the name of an entry point ends that others build upon.
pub(super) const LIBRARY: &str = "library";

/// Folders whose files do not start the project itself.
const SIDE_FOLDERS: &[&str] = &[
    "__tests__",
    "bench",
    "benches",
    "e2e",
    "example",
    "examples",
    "fixtures",
    "samples",
    "spec",
    "test",
    "testdata",
    "tests",
    "third_party",
];

/// Folders in which a script with a telling name is an entry point; the empty name is the root.
const SCRIPT_FOLDERS: &[&str] = &["", "app", "bin", "cli", "server", "src"];

/// Stems of scripts that start something.
const SCRIPT_STEMS: &[&str] = &["app", "cli", "index", "main", "server"];

/// File names that start something wherever they are.
const STARTERS: &[(&str, &str)] = &[
    ("main.go", "Go program"),
    ("__main__.py", "Python program"),
    ("manage.py", "Django project"),
    ("wsgi.py", "Python web application"),
    ("asgi.py", "Python web application"),
    ("Main.java", "Java program"),
    ("Application.java", "Java program"),
    ("Main.kt", "Kotlin program"),
    ("Application.kt", "Kotlin program"),
    ("Program.cs", ".NET program"),
    ("main.c", "C program"),
    ("main.cc", "C++ program"),
    ("main.cpp", "C++ program"),
    ("main.swift", "Swift program"),
    ("main.dart", "Dart program"),
    ("main.zig", "Zig program"),
    ("config.ru", "Ruby web application"),
];

/// Build files by name, with the tool that reads them.
const BUILD_FILES: &[(&str, &str)] = &[
    ("Cargo.toml", "Cargo"),
    ("package.json", "npm"),
    ("pnpm-workspace.yaml", "pnpm"),
    ("deno.json", "Deno"),
    ("deno.jsonc", "Deno"),
    ("tsconfig.json", "TypeScript"),
    ("pyproject.toml", "Python"),
    ("setup.py", "Python"),
    ("setup.cfg", "Python"),
    ("requirements.txt", "Python"),
    ("go.mod", "Go"),
    ("go.work", "Go"),
    ("pom.xml", "Maven"),
    ("build.gradle", "Gradle"),
    ("build.gradle.kts", "Gradle"),
    ("settings.gradle", "Gradle"),
    ("settings.gradle.kts", "Gradle"),
    ("build.sbt", "sbt"),
    ("CMakeLists.txt", "CMake"),
    ("meson.build", "Meson"),
    ("configure.ac", "Autoconf"),
    ("Makefile", "Make"),
    ("makefile", "Make"),
    ("GNUmakefile", "Make"),
    ("justfile", "Just"),
    ("Justfile", "Just"),
    ("MODULE.bazel", "Bazel"),
    ("WORKSPACE.bazel", "Bazel"),
    ("BUILD.bazel", "Bazel"),
    ("flake.nix", "Nix"),
    ("Gemfile", "Bundler"),
    ("composer.json", "Composer"),
    ("mix.exs", "Mix"),
    ("Package.swift", "SwiftPM"),
    ("pubspec.yaml", "Dart"),
    ("build.zig", "Zig"),
    ("Dockerfile", "Docker"),
    ("compose.yaml", "Docker"),
    ("compose.yml", "Docker"),
    ("docker-compose.yml", "Docker"),
    (".gitlab-ci.yml", "GitLab CI"),
];

/// Build files by the end of their name.
const BUILD_ENDS: &[(&str, &str)] =
    &[(".csproj", ".NET"), (".fsproj", ".NET"), (".sln", ".NET"), (".cabal", "Cabal")];

/// Where GitHub keeps its workflows.
const WORKFLOWS: &str = ".github/workflows";

/// The folder and the name of a path.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// What the file at `path` starts, when its place says that it starts something.
pub(super) fn entry_point(path: &str) -> Option<&'static str> {
    let (folder, name) = split(path);
    if folder.split('/').any(|part| SIDE_FOLDERS.contains(&part)) {
        return None;
    }
    let (above, last) = split(folder);
    rust_entry(above, last, name)
        .or_else(|| STARTERS.iter().find(|(starter, _)| *starter == name).map(|&(_, what)| what))
        .or_else(|| script_entry(last, name))
}

/// Entry points by Cargo's conventions; `last` is the folder of the file and `above` the path before it.
fn rust_entry(above: &str, last: &str, name: &str) -> Option<&'static str> {
    match (last, name) {
        ("src", "main.rs") => Some("Rust program"),
        ("src", "lib.rs") => Some("Rust library"),
        ("bin", name) if split(above).1 == "src" && name.ends_with(".rs") => Some("Rust program"),
        (_, "main.rs") if above == "src/bin" || above.ends_with("/src/bin") => Some("Rust program"),
        _ => None,
    }
}

/// Entry points of languages where only custom names them; `last` is the folder of the file.
fn script_entry(last: &str, name: &str) -> Option<&'static str> {
    let (stem, extension) = name.rsplit_once('.')?;
    if !SCRIPT_STEMS.contains(&stem) {
        return None;
    }
    let in_place = SCRIPT_FOLDERS.contains(&last);
    match extension {
        "html" if stem == "index" && (in_place || last == "public") => Some("web page"),
        "ts" | "tsx" | "mts" if in_place => Some("TypeScript entry"),
        "js" | "jsx" | "mjs" | "cjs" if in_place => Some("JavaScript entry"),
        "py" if in_place && stem != "index" => Some("Python program"),
        "rb" if in_place && stem != "index" => Some("Ruby program"),
        "php" if stem == "index" && (in_place || last == "public") => Some("PHP page"),
        _ => None,
    }
}

/// The tool that the file at `path` belongs to, when it is a build file.
pub(super) fn build_tool(path: &str) -> Option<&'static str> {
    let (folder, name) = split(path);
    if folder == WORKFLOWS && (name.ends_with(".yml") || name.ends_with(".yaml")) {
        return Some("GitHub Actions");
    }
    let named = BUILD_FILES.iter().find(|(file, _)| *file == name);
    let ended = || BUILD_ENDS.iter().find(|(end, _)| name.ends_with(end));
    named.or_else(ended).map(|&(_, tool)| tool)
}

/// How well the build file at `path` names the project; lower is better. `None` when it does not name it.
pub(super) fn naming_rank(path: &str) -> Option<usize> {
    ["Cargo.toml", "package.json", "pyproject.toml", "go.mod"].iter().position(|name| *name == path)
}

/// Whether the file at `path` is the README of the workspace.
pub(super) fn is_readme(path: &str) -> bool {
    ["readme.md", "readme", "readme.rst", "readme.txt", "readme.adoc"].contains(&path.to_lowercase().as_str())
}

/// How deep a path lies: the number of folders around it.
pub(super) fn depth(path: &str) -> usize {
    path.matches('/').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_tell_entry_points() {
        assert_eq!(entry_point("src/main.rs"), Some("Rust program"));
        assert_eq!(entry_point("crates/a/src/lib.rs"), Some("Rust library"));
        assert_eq!(entry_point("src/bin/tool.rs"), Some("Rust program"));
        assert_eq!(entry_point("a/src/bin/tool/main.rs"), Some("Rust program"));
        assert_eq!(entry_point("bin/tool.rs"), None);
        assert_eq!(entry_point("cmd/x/main.go"), Some("Go program"));
        assert_eq!(entry_point("web/src/index.tsx"), Some("TypeScript entry"));
        assert_eq!(entry_point("lib/widgets/index.ts"), None);
        assert_eq!(entry_point("tests/src/main.rs"), None);
        assert_eq!(entry_point("main.py"), Some("Python program"));
    }

    #[test]
    fn names_tell_build_files() {
        assert_eq!(build_tool("a/b/Cargo.toml"), Some("Cargo"));
        assert_eq!(build_tool(".github/workflows/ci.yml"), Some("GitHub Actions"));
        assert_eq!(build_tool("App.csproj"), Some(".NET"));
        assert_eq!(build_tool("src/a.rs"), None);
    }
}
