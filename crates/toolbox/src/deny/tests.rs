//! Rules on real folders.

use std::fs;
use std::os::unix::fs::symlink;

use insta::assert_snapshot;

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    (folder, real)
}

fn rules(root: &Path, texts: &[&str]) -> DenyRules {
    DenyRules::parse(texts, root, Some(&root.join("home"))).unwrap()
}

#[test]
fn patterns_mean_what_they_mean_in_a_gitignore() {
    let (_guard, root) = folder();
    let denied =
        |pattern: &str, path: &str| rules(&root, &[pattern]).denying("read", &root.join(path)).is_some();
    for (pattern, inside, outside) in [
        (".env", vec![".env", "a/b/.env", ".env/x"], vec![".envrc", "a/env"]),
        ("**/.env", vec![".env", "a/b/.env"], vec!["x.env"]),
        ("*.pem", vec!["k.pem", "a/k.pem"], vec!["k.pem.txt"]),
        ("secrets/**", vec!["secrets/a", "secrets/a/b"], vec!["secrets", "a/secrets/b", "secrets2/a"]),
        ("secrets/", vec!["secrets", "secrets/a", "a/secrets/b"], vec!["secrets2"]),
        ("./a", vec!["a", "a/b"], vec!["b/a"]),
        ("a/*/c", vec!["a/b/c", "a/b/c/d"], vec!["a/c", "a/b/b/c"]),
        ("~/.ssh/**", vec!["home/.ssh/id"], vec![".ssh/id"]),
    ] {
        inside.into_iter().for_each(|path| assert!(denied(pattern, path), "{pattern} {path}"));
        outside.into_iter().for_each(|path| assert!(!denied(pattern, path), "{pattern} {path}"));
    }
    let absolute = rules(&root, &["/etc/passwd", "/srv/*/key"]);
    for (path, pattern) in
        [("/etc/passwd", Some("/etc/passwd")), ("/srv/a/key", Some("/srv/*/key")), ("/etc/passwd2", None)]
    {
        assert_eq!(absolute.denying("read", Path::new(path)), pattern);
    }
}

#[test]
fn a_rule_can_be_about_one_tool() {
    let (_guard, root) = folder();
    let rules = rules(&root, &["write:*.lock", "bash:x:y"]);
    assert_eq!(rules.denying("write", &root.join("Cargo.lock")), Some("*.lock"));
    assert_eq!(rules.denying("read", &root.join("Cargo.lock")), None);
    assert_eq!(rules.denying("bash", &root.join("x:y")), Some("x:y"));
    assert!(rules.is_empty_for("read") && !rules.is_empty_for("bash"));
}

#[test]
fn bad_rules_are_named() {
    let texts: Vec<String> = ["", "read:", "/", "!x", "reed:x", "a/../b", "[", "~/x"]
        .iter()
        .map(|text| DenyRules::parse(&[*text], Path::new("/w"), None).unwrap_err().to_string())
        .collect();
    assert_snapshot!(texts.join("\n"), @r#"
    the rule "" cannot be used: it names no path
    the rule "read:" cannot be used: it names no path
    the rule "/" cannot be used: it names no path
    the rule "!x" cannot be used: a deny rule allows nothing; leave out the "!"
    the rule "reed:x" cannot be used: "reed" is none of the tools read, write, edit, glob, grep, bash
    the rule "a/../b" cannot be used: a pattern has no ".."; write where it leads
    the rule "[" cannot be used: unclosed character class; missing ']'
    the rule "~/x" cannot be used: there is no home folder for "~"; write an absolute path
    "#);
}

#[test]
fn what_exists_is_hidden_from_commands() {
    let (_guard, root) = folder();
    for path in ["secrets/deep", "a/b", "home/.ssh", "kept"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    for path in ["secrets/deep/f", ".env", "a/b/.env", "a/b/f", "home/.ssh/id", "kept/real"] {
        fs::write(root.join(path), "").unwrap();
    }
    symlink("../kept/real", root.join("a/link.key")).unwrap();
    symlink(root.join("home"), root.join("way")).unwrap();
    let hidden = |texts: &[&str]| -> Vec<String> {
        let found = rules(&root, texts).hidden_from_commands().unwrap();
        found.iter().map(|path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(hidden(&[".env"]), [".env", "a/b/.env"]);
    assert_eq!(hidden(&["secrets/**", "secrets/deep", "none", "no/folder/**"]), ["secrets"]);
    assert_eq!(hidden(&["**/deep/**", "*.key"]), ["kept/real", "secrets/deep"]);
    assert_eq!(hidden(&["~/.ssh/**", "read:a/**"]), ["home/.ssh"]);
    assert_eq!(hidden(&["way/.ssh/id"]), ["home/.ssh/id"]);
    assert!(hidden(&["write:**"]).is_empty());
    let through_a_link = rules(&root, &["way/.ssh/**"]);
    assert!(through_a_link.denying("read", &root.join("home/.ssh/id")).is_some());
}
