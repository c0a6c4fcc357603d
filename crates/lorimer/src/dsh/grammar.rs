//! The launcher's command line: its own flags come first, and from the first token that is none of them on everything
//! belongs to the profile.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A profile that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// One task, one answer.
    Headless,
    /// Serves SDK clients.
    Sdk,
    /// A page in the browser.
    Web,
}

impl Profile {
    /// All of them.
    const ALL: [(&str, Self); 3] = [("headless", Self::Headless), ("sdk", Self::Sdk), ("web", Self::Web)];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, profile)| profile)
    }
}

/// What is to be printed instead of running anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dump {
    /// The rows that a run would have.
    Effective,
    /// The rows before anybody changed one.
    Default,
}

/// A profile to be started.
#[derive(Debug, PartialEq, Eq)]
pub struct Launch {
    /// Which one.
    pub profile: Profile,
    /// Patch files; later ones win.
    pub patches: Vec<PathBuf>,
    /// Rows instead of a run.
    pub dump: Option<Dump>,
    /// What the profile gets.
    pub arguments: Vec<OsString>,
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// A profile.
    Launch(Launch),
    /// Something about the whole program: its help or its version.
    Program(OsString),
}

const FLAGS: [&str; 4] = ["--profile", "--patch", "--dump-config", "--dump-default-config"];
const PROGRAM_FLAGS: [&str; 4] = ["--help", "-h", "--version", "-V"];

/// Whether arguments (without the program's name) are of this grammar: the first is a profile's name or a launcher flag.
pub fn applies(arguments: &[OsString]) -> bool {
    let Some(first) = arguments.first() else {
        return false;
    };
    let (flag, _) = halves(first);
    FLAGS.iter().any(|known| flag == *known) || first.to_str().and_then(Profile::named).is_some()
}

/// Reads the command line.
///
/// # Errors
/// With what is wrong with it.
pub fn parse(arguments: &[OsString]) -> Result<Request, String> {
    let mut flags = Flags::default();
    let mut rest = arguments.iter();
    if let Some(word) = arguments.first().filter(|word| word.to_str().and_then(Profile::named).is_some()) {
        flags.profile = Some(word.clone());
        rest.next();
    }
    loop {
        let ahead = rest.clone();
        let Some(token) = rest.next() else {
            break;
        };
        if flags.profile.is_none() && PROGRAM_FLAGS.iter().any(|flag| token == flag) {
            return Ok(Request::Program(token.clone()));
        }
        if !flags.take(token, &mut rest)? {
            rest = ahead;
            break;
        }
    }
    flags.launch(rest.cloned().collect()).map(Request::Launch)
}

#[derive(Default)]
struct Flags {
    profile: Option<OsString>,
    patches: Vec<PathBuf>,
    dump: Option<Dump>,
}

impl Flags {
    /// `false` when the token is no launcher flag.
    fn take<'a>(
        &mut self,
        token: &'a OsStr,
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<bool, String> {
        let (flag, value) = halves(token);
        let dump = match flag.to_str() {
            Some("--profile") => {
                let name = value.or_else(|| rest.next().map(OsString::as_os_str));
                let name = name.filter(|name| !name.is_empty() && !name.as_bytes().starts_with(b"-"));
                let name = name.ok_or("--profile needs a name")?;
                if self.profile.is_some() {
                    return Err("a profile is named twice; choose one".to_owned());
                }
                self.profile = Some(name.to_owned());
                return Ok(true);
            }
            Some("--patch") => {
                let path = value.or_else(|| rest.next().map(OsString::as_os_str));
                let path = path.filter(|path| !path.is_empty()).ok_or("--patch needs a file")?;
                self.patches.push(PathBuf::from(path));
                return Ok(true);
            }
            Some("--dump-config") => Dump::Effective,
            Some("--dump-default-config") => Dump::Default,
            _ => return Ok(false),
        };
        if value.is_some() {
            return Err(format!("{} takes no value", flag.to_string_lossy()));
        }
        if self.dump.is_some_and(|other| other != dump) {
            return Err("--dump-config and --dump-default-config exclude each other".to_owned());
        }
        self.dump = Some(dump);
        Ok(true)
    }

    fn launch(self, arguments: Vec<OsString>) -> Result<Launch, String> {
        let names = Profile::ALL.map(|(name, _)| name).join(", ");
        let Some(name) = self.profile else {
            return Err(format!("--profile <name> is required (there are: {names})"));
        };
        let name = name.to_string_lossy();
        if name.contains(['/', '\\']) || [".", "..", "node_modules"].contains(&name.as_ref()) {
            return Err(format!("\"{name}\" cannot be a profile's name (there are: {names})"));
        }
        let profile = Profile::named(&name)
            .ok_or_else(|| format!("profile \"{name}\" does not exist (there are: {names})"))?;
        if let (Some(_), Some(first)) = (self.dump, arguments.first()) {
            return Err(format!(
                "nothing runs when rows are printed, so \"{}\" has no place there",
                first.to_string_lossy()
            ));
        }
        if self.dump == Some(Dump::Default) && !self.patches.is_empty() {
            return Err(
                "--dump-default-config prints the rows before any --patch; use --dump-config".to_owned()
            );
        }
        Ok(Launch { profile, patches: self.patches, dump: self.dump, arguments })
    }
}

/// `--flag=value` as its two halves.
fn halves(token: &OsStr) -> (&OsStr, Option<&OsStr>) {
    let bytes = token.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) if bytes.starts_with(b"--") => {
            (OsStr::from_bytes(&bytes[..at]), Some(OsStr::from_bytes(&bytes[at + 1..])))
        }
        _ => (token, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(line: &str) -> Vec<OsString> {
        line.split(' ').map(|token| if token == "''" { "".into() } else { token.into() }).collect()
    }

    fn launch(line: &str) -> Launch {
        assert!(applies(&tokens(line)), "{line}");
        match parse(&tokens(line)) {
            Ok(Request::Launch(launch)) => launch,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn flags_stop_at_the_first_other_token() {
        let one = launch("headless --patch a --patch=b task --patch c");
        assert_eq!(one.profile, Profile::Headless);
        assert_eq!(one.patches, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(one.arguments, tokens("task --patch c"));
        let same = launch("--patch a --patch=b --profile=headless task --patch c");
        assert_eq!(one, same);
        assert_eq!(launch("--profile sdk -- --patch x").arguments, tokens("-- --patch x"));
        assert_eq!(launch("sdk --dump-config").dump, Some(Dump::Effective));
        assert_eq!(launch("--dump-default-config --profile sdk").dump, Some(Dump::Default));
        assert_eq!(launch("web --host x").profile, Profile::Web);
    }

    #[test]
    fn other_command_lines_are_not_of_this_grammar() {
        for line in ["run headless", "--version", "-V", "--help", "help", "headles", "--profiles x", "''"] {
            assert!(!applies(&tokens(line)), "{line}");
        }
        assert!(!applies(&[]));
        assert_eq!(parse(&tokens("--patch a -V")), Ok(Request::Program("-V".into())));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |line: &str| match parse(&tokens(line)) {
            Err(said) => said,
            Ok(request) => panic!("{line}: {request:?}"),
        };
        let lines = [
            "--patch a",
            "--dump-config",
            "--patch a headless task",
            "--profile",
            "--profile ''",
            "--profile=",
            "--profile --patch",
            "--profile nope",
            "--profile a/b",
            "--profile a\\b",
            "--profile ..",
            "--profile node_modules",
            "--profile sdk --profile sdk",
            "headless --profile sdk",
            "headless --patch",
            "headless --dump-config=1",
            "headless --dump-config --dump-default-config",
            "headless --dump-config task",
            "headless --patch a --dump-default-config",
        ];
        let all: Vec<String> = lines.iter().map(|line| format!("{line}: {}", said(line))).collect();
        insta::assert_snapshot!(all.join("\n"), @r#"
        --patch a: --profile <name> is required (there are: headless, sdk, web)
        --dump-config: --profile <name> is required (there are: headless, sdk, web)
        --patch a headless task: --profile <name> is required (there are: headless, sdk, web)
        --profile: --profile needs a name
        --profile '': --profile needs a name
        --profile=: --profile needs a name
        --profile --patch: --profile needs a name
        --profile nope: profile "nope" does not exist (there are: headless, sdk, web)
        --profile a/b: "a/b" cannot be a profile's name (there are: headless, sdk, web)
        --profile a\b: "a\b" cannot be a profile's name (there are: headless, sdk, web)
        --profile ..: ".." cannot be a profile's name (there are: headless, sdk, web)
        --profile node_modules: "node_modules" cannot be a profile's name (there are: headless, sdk, web)
        --profile sdk --profile sdk: a profile is named twice; choose one
        headless --profile sdk: a profile is named twice; choose one
        headless --patch: --patch needs a file
        headless --dump-config=1: --dump-config takes no value
        headless --dump-config --dump-default-config: --dump-config and --dump-default-config exclude each other
        headless --dump-config task: nothing runs when rows are printed, so "task" has no place there
        headless --patch a --dump-default-config: --dump-default-config prints the rows before any --patch; use --dump-config
        "#);
    }
}
