//! The environment that a child process gets: the ambient one without secrets.
//!
//! The rule looks at names, and at URLs with a password in them. Any other secret in a variable with a harmless name gets
//! through, and a harmless variable whose name looks like a secret is removed unless it is allowed by name.

use std::ffi::{OsStr, OsString};

/// A variable whose name contains one of these, in any case, is taken for a secret.
const SECRET_PARTS: [&str; 9] =
    ["KEY", "PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIAL", "COOKIE", "BEARER"];

/// A variable whose name has one of these as a whole word (`NPM_AUTH`, not `GIT_AUTHOR_NAME`) is taken for a secret.
const SECRET_WORDS: [&str; 5] = ["AUTH", "PASS", "PAT", "JWT", "DSN"];

/// Names that match a rule above and are passed on all the same.
///
/// `SSH_AUTH_SOCK` holds the path of a socket and no secret, and Git over SSH does not work without it. Whether a
/// command may reach that socket is for the sandbox to decide, not for this list.
const NEVER_SECRET: [&str; 1] = ["SSH_AUTH_SOCK"];

/// What every command gets, so that it prints plain text and does not wait in a pager.
const FIXED: [(&str, &str); 4] =
    [("NO_COLOR", "1"), ("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat")];

/// The ambient environment without variables that look like secrets, and with the fixed entries
/// `NO_COLOR=1 TERM=dumb PAGER=cat GIT_PAGER=cat`.
///
/// `allow` names variables that are passed on whatever they look like. Everything else, `LD_PRELOAD` and `PATH`
/// included, is left as it is. Add or replace entries afterwards with [`set_variable`].
pub fn scrubbed_env(
    ambient: impl Iterator<Item = (OsString, OsString)>,
    allow: &[String],
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<_> = ambient
        .filter(|(name, value)| {
            allow.iter().any(|allowed| OsStr::new(allowed) == name)
                || !(looks_secret(name) || holds_credentials(value))
        })
        .collect();
    for (name, value) in FIXED {
        set_variable(&mut env, name, value);
    }
    env
}

/// Sets one variable in an environment, replacing every entry of that name.
pub fn set_variable(
    env: &mut Vec<(OsString, OsString)>,
    name: impl Into<OsString>,
    value: impl Into<OsString>,
) {
    let name = name.into();
    env.retain(|(present, _)| *present != name);
    env.push((name, value.into()));
}

/// Whether a variable of this name is kept from child processes.
#[must_use]
pub fn looks_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_uppercase();
    if NEVER_SECRET.contains(&name.as_str()) {
        return false;
    }
    SECRET_PARTS.iter().any(|part| name.contains(part))
        || name.split(|c: char| !c.is_alphanumeric()).any(|word| SECRET_WORDS.contains(&word))
}

/// Whether a value is a URL with a password in it (`postgres://user:password@host/db`). Proxies are left alone: without
/// theirs a command could reach nothing.
fn holds_credentials(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    let Some((scheme, rest)) = value.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let password =
        authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
    !scheme.starts_with("http")
        && !scheme.starts_with("socks")
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        && password.is_some_and(|password| !password.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(ambient: &[&str], allow: &[&str]) -> Vec<String> {
        let ambient = ambient.iter().map(|name| (OsString::from(name), OsString::from("v")));
        let allow: Vec<String> = allow.iter().map(|name| (*name).to_owned()).collect();
        let env = scrubbed_env(ambient, &allow);
        env.into_iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn secrets_are_removed_whatever_the_case() {
        for name in [
            "DEEPSEEK_API_KEY",
            "apiKey",
            "Db_Password",
            "SSH_PASSWD",
            "MY_SECRET_THING",
            "GITHUB_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "NPM_AUTH",
            "AUTH",
            "npm_config__auth",
        ] {
            assert!(looks_secret(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn harmless_names_stay() {
        for name in
            ["PATH", "HOME", "GIT_AUTHOR_NAME", "XAUTHORITY", "SSH_AUTH_SOCK", "LD_PRELOAD", "LANG", "PWD"]
        {
            assert!(!looks_secret(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn an_allowed_name_stays() {
        assert_eq!(names(&["A_TOKEN", "B_TOKEN"], &["B_TOKEN"])[..1], ["B_TOKEN"]);
    }

    #[test]
    fn fixed_entries_replace_ambient_ones() {
        let ambient =
            [("TERM", "xterm"), ("HOME", "/h")].map(|(n, v)| (OsString::from(n), OsString::from(v)));
        let env = scrubbed_env(ambient.into_iter(), &[]);
        let terms: Vec<_> = env.iter().filter(|(name, _)| name == "TERM").collect();
        assert_eq!(terms, [&(OsString::from("TERM"), OsString::from("dumb"))]);
        for (name, value) in FIXED {
            assert!(env.contains(&(name.into(), value.into())), "{name}");
        }
    }
}
