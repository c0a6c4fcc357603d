//! What a confined command's end says about its confinement.

use crate::{Backend, HELPER_FAILED, HELPER_SPEAKER};

/// What a confined command's end means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the command's own.
    Own,
    /// It looks as if the confinement has refused something. A guess: a command may say the same for other reasons.
    Denied,
    /// The command did not run, for this reason.
    NotRun(String),
}

/// Reads a command's exit code and standard error.
pub fn verdict(backend: Backend, exit_code: Option<i32>, stderr: &str) -> Verdict {
    let failed = exit_code.is_none_or(|code| code != 0);
    if !failed {
        return Verdict::Own;
    }
    if let Some(reason) = not_run(backend, exit_code, stderr) {
        return Verdict::NotRun(reason);
    }
    let said = stderr.to_lowercase();
    let signs: &[&str] = match backend {
        Backend::Landlock | Backend::Bubblewrap => {
            &["read-only file system", "permission denied", "operation not permitted"]
        }
        Backend::Seatbelt => &["operation not permitted"],
    };
    if signs.iter().any(|sign| said.contains(sign)) { Verdict::Denied } else { Verdict::Own }
}

fn not_run(backend: Backend, exit_code: Option<i32>, stderr: &str) -> Option<String> {
    let line_of = |speaker: &str| {
        let line = stderr.lines().next()?.strip_prefix(speaker)?;
        Some(format!("{}{line}", speaker))
    };
    match backend {
        Backend::Landlock if exit_code == Some(HELPER_FAILED) => line_of(HELPER_SPEAKER),
        Backend::Bubblewrap if exit_code == Some(HELPER_FAILED) => line_of(HELPER_SPEAKER),
        Backend::Bubblewrap if exit_code == Some(1) => line_of("bwrap: "),
        Backend::Seatbelt if exit_code.is_some_and(|code| code >= 64) => line_of("sandbox-exec: "),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_apart() {
        use Backend::{Bubblewrap, Landlock};
        let said = |backend, code, text: &str| verdict(backend, Some(code), text);
        assert_eq!(said(Landlock, 0, "Permission denied"), Verdict::Own);
        assert_eq!(said(Landlock, 1, "touch: /etc/x: Permission denied"), Verdict::Denied);
        assert_eq!(said(Bubblewrap, 1, "touch: cannot touch '/x': Read-only file system"), Verdict::Denied);
        assert_eq!(said(Landlock, 2, "no such test"), Verdict::Own);
        let lost = "lorimer-confine: no rules\n";
        assert_eq!(said(Landlock, 125, lost), Verdict::NotRun("lorimer-confine: no rules".to_owned()));
        assert_eq!(said(Landlock, 1, lost), Verdict::Own);
        assert_eq!(
            said(Bubblewrap, 1, "bwrap: Can't mkdir /x: Permission denied"),
            Verdict::NotRun("bwrap: Can't mkdir /x: Permission denied".to_owned())
        );
    }
}
