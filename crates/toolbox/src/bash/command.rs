//! From a call to a process: arguments, directory, environment, limits, and whether it may run at all.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lorimer_process::{CaptureSpec, CommandSpec, scrubbed_env, set_variable};
use lorimer_protocol::PermissionMode;
use lorimer_sandbox::{Backend, Verdict, verdict};
use lorimer_session::Session;
use lorimer_tools::{ToolContext, ToolError};

use super::confinement::{Confinement, Wanted};
use super::{BashArgs, BashOptions, BashOutput};

/// Longest command line in bytes: Linux takes no longer single argument (128 KiB with its final NUL).
const MAX_COMMAND_BYTES: usize = 128 * 1024 - 1;

/// The folder in a session's folder that has the full output of commands.
const SPILL_DIR: &str = "files";
/// The log in a session's folder.
const LOG_FILE: &str = "session.jsonl";

const SHELL: &str = "DSH_SHELL";
const SESSION_ID: &str = "DSH_SESSION_ID";
const SESSION_LOG: &str = "DSH_SESSION_JSONL";
/// Variables that tell of one harness's session. Inherited ones tell of another session, in which this program was
/// started as a command, so none is passed on. `DSH_HOME` and `LORIMER_*` are a person's settings and stay.
const OF_A_SESSION: [&str; 4] = [SHELL, SESSION_ID, SESSION_LOG, "DSH_WEB_URL"];

/// What a command is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub mode: PermissionMode,
    pub backend: Backend,
}

/// The process that a call asks for, and what it is held to.
///
/// # Errors
/// When the command cannot be held to its mode, or an argument cannot be used.
pub(super) fn spec(
    options: &BashOptions,
    confinement: &Confinement,
    args: &BashArgs,
    context: &ToolContext,
    denied: &[PathBuf],
) -> Result<(CommandSpec, Option<Held>), ToolError> {
    let mode = context.permission_mode();
    let argv = shell_argv(options, args)?;
    let is_approved = context.is_approved();
    let wanted = Wanted { mode, workspace: &context.workspace, is_approved, denied };
    let confined = confinement.confine(&wanted, argv.clone())?;
    let held = confined.as_ref().map(|confined| Held { mode, backend: confined.backend });
    let (argv, temporary) = confined.map_or((argv, None), |confined| (confined.argv, confined.temporary));
    let cwd = directory(args, &context.cwd);
    let allowed = &options.allowed_variables;
    let ambient = std::env::vars_os().filter(|(name, _)| {
        let is = |listed: &String| name.as_os_str() == listed.as_str();
        !options.secret_variables.iter().any(is) || allowed.iter().any(is)
    });
    let mut env = environment(ambient, allowed, &context.session, &cwd);
    if let Some(temporary) = temporary {
        set_variable(&mut env, "TMPDIR", temporary);
    }
    let spec = CommandSpec {
        argv,
        cwd,
        env,
        timeout_ms: Some(timeout_ms(options, args.timeout_ms)?),
        grace_ms: options.grace_ms,
        capture: CaptureSpec {
            head_bytes: options.head_bytes,
            tail_bytes: options.tail_bytes,
            spill_dir: context.session.directory().map(|directory| directory.join(SPILL_DIR)),
            spill_max_bytes: options.spill_max_bytes,
        },
    };
    Ok((spec, held))
}

/// Tells a denial from a failure of the command's own, and from a command that did not run.
pub(super) fn judged(
    mut output: BashOutput,
    held: Held,
    can_escalate: bool,
) -> Result<BashOutput, ToolError> {
    match verdict(held.backend, output.exit_code, &output.stderr.text) {
        Verdict::Own => {}
        // Nothing but deny rules was held, and no wider mode takes them off.
        Verdict::Denied if held.mode == PermissionMode::DangerFullAccess => {}
        Verdict::Denied => {
            output.denied_under = Some(held.mode.as_str().to_owned());
            output.can_escalate = can_escalate;
        }
        Verdict::NotRun(reason) => {
            return Err(ToolError::plain(format!(
                "the command did not run, because it could not be confined: {reason}"
            )));
        }
    }
    Ok(output)
}

/// `bash -c -- <command>`: after `--` a command that begins with `-` is no option of the shell.
fn shell_argv(options: &BashOptions, args: &BashArgs) -> Result<Vec<OsString>, ToolError> {
    let length = args.command.len();
    if length > MAX_COMMAND_BYTES {
        return Err(invalid(&format!(
            "\"command\" has {length} bytes, and {MAX_COMMAND_BYTES} are the most; write a script file and run that"
        )));
    }
    if args.command.contains('\0') {
        return Err(invalid("\"command\" contains a NUL character; leave it out"));
    }
    Ok([options.shell.as_str(), "-c", "--", args.command.as_str()].map(OsString::from).to_vec())
}

/// How long the command may run, in milliseconds.
///
/// # Errors
/// When the wish is no time span.
pub(super) fn timeout_ms(options: &BashOptions, wish: Option<f64>) -> Result<u64, ToolError> {
    let wish_ms = match wish {
        None => options.timeout_ms,
        // The conversion saturates, and the clamp below brings what is too much back.
        Some(ms) if ms > 0.0 => ms.ceil() as u64,
        Some(ms) => {
            return Err(invalid(&format!("\"timeoutMs\" must be more than 0 milliseconds (got {ms})")));
        }
    };
    Ok(wish_ms.min(options.max_timeout_ms))
}

/// The directory that the model asked for, as it wrote it. An empty one is none.
pub(super) fn given_workdir(args: &BashArgs) -> Option<&str> {
    args.workdir.as_deref().filter(|workdir| !workdir.is_empty())
}

/// Where the command starts. Whether it exists shows when the command is started.
fn directory(args: &BashArgs, cwd: &Path) -> PathBuf {
    given_workdir(args).map_or_else(|| cwd.to_owned(), |workdir| cwd.join(workdir))
}

/// What a command gets: the ambient environment without secrets, and what tells of its session.
fn environment(
    ambient: impl Iterator<Item = (OsString, OsString)>,
    allowed: &[String],
    session: &Session,
    cwd: &Path,
) -> Vec<(OsString, OsString)> {
    let mut env = scrubbed_env(ambient, allowed);
    env.retain(|(name, _)| !OF_A_SESSION.iter().any(|managed| name == managed));
    set_variable(&mut env, SHELL, "1");
    set_variable(&mut env, SESSION_ID, session.id().as_str());
    if let Some(directory) = session.directory() {
        set_variable(&mut env, SESSION_LOG, directory.join(LOG_FILE));
    }
    // The shell keeps this name of the directory, symbolic links included, when it is one.
    set_variable(&mut env, "PWD", cwd);
    env
}

fn invalid(problem: &str) -> ToolError {
    ToolError::typed("ToolArgsError", "INVALID_ARGS", format!("invalid arguments: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lorimer_protocol::SessionHeader;
    use lorimer_session::{Store, StoreOptions};

    fn args(command: &str) -> BashArgs {
        BashArgs { command: command.to_owned(), ..BashArgs::default() }
    }

    fn environment_of(ambient: &[(&str, &str)], allowed: &[&str], session: &Session) -> Vec<String> {
        let ambient = ambient.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let allowed: Vec<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        environment(ambient, &allowed, session, Path::new("/w"))
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
            .collect()
    }

    #[test]
    fn a_command_gets_no_secret_and_nothing_of_another_session() {
        let session = Session::in_memory(SessionHeader::new("s1".into(), 0, None));
        let ambient = [
            ("PATH", "/bin"),
            ("A_TOKEN", "a"),
            ("B_TOKEN", "b"),
            ("DSH_HOME", "/h"),
            ("LORIMER_HOME", "/l"),
            ("LORIMER_API_KEY", "k"),
            ("DSH_SESSION_ID", "outer"),
            ("DSH_SESSION_JSONL", "/outer"),
            ("DSH_WEB_URL", "http://outer"),
            ("PWD", "/outer"),
        ];
        insta::assert_snapshot!(environment_of(&ambient, &["B_TOKEN"], &session).join("\n"), @"
        PATH=/bin
        B_TOKEN=b
        DSH_HOME=/h
        LORIMER_HOME=/l
        NO_COLOR=1
        TERM=dumb
        PAGER=cat
        GIT_PAGER=cat
        DSH_SHELL=1
        DSH_SESSION_ID=s1
        PWD=/w
        ");
    }

    #[test]
    fn a_stored_session_names_its_log() {
        let home = tempfile::tempdir().expect("a directory");
        let session =
            Store::new(home.path(), StoreOptions::default()).create(Path::new("/w")).expect("a session");
        let log = session.directory().expect("a directory").join("session.jsonl");
        let wanted = format!("DSH_SESSION_JSONL={}", log.display());
        assert!(environment_of(&[], &[], &session).contains(&wanted));
    }

    #[test]
    fn time_limits_are_clamped() {
        let options = BashOptions { timeout_ms: 60, max_timeout_ms: 600, ..BashOptions::default() };
        let limits =
            [None, Some(0.1), Some(59.0), Some(600.5), Some(f64::MAX)].map(|wish| timeout_ms(&options, wish));
        assert_eq!(limits, [Ok(60), Ok(1), Ok(59), Ok(600), Ok(600)]);
        let short = BashOptions { timeout_ms: 60, max_timeout_ms: 30, ..BashOptions::default() };
        assert_eq!(timeout_ms(&short, None), Ok(30));
    }

    #[test]
    fn what_is_no_time_span_is_refused() {
        let refused = [0.0, -5.0, f64::NAN].map(|wish| timeout_ms(&BashOptions::default(), Some(wish)));
        let texts = refused.map(|limit| limit.expect_err("no time span").to_string()).join("\n");
        insta::assert_snapshot!(texts, @r#"
        invalid arguments: "timeoutMs" must be more than 0 milliseconds (got 0)
        invalid arguments: "timeoutMs" must be more than 0 milliseconds (got -5)
        invalid arguments: "timeoutMs" must be more than 0 milliseconds (got NaN)
        "#);
    }

    #[test]
    fn what_no_system_call_takes_is_refused() {
        let long = "x".repeat(MAX_COMMAND_BYTES + 1);
        let refused =
            [long.as_str(), "a\0b"].map(|command| shell_argv(&BashOptions::default(), &args(command)));
        let texts = refused.map(|argv| argv.expect_err("cannot run").to_string()).join("\n");
        insta::assert_snapshot!(texts, @r#"
        invalid arguments: "command" has 131072 bytes, and 131071 are the most; write a script file and run that
        invalid arguments: "command" contains a NUL character; leave it out
        "#);
        assert!(shell_argv(&BashOptions::default(), &args(&long[1..])).is_ok());
    }

    #[test]
    fn a_relative_workdir_counts_from_the_working_directory() {
        let start = |workdir: Option<&str>| {
            directory(&BashArgs { workdir: workdir.map(str::to_owned), ..args("ls") }, Path::new("/w"))
        };
        let starts = [None, Some(""), Some("a/b"), Some("/c")].map(start);
        assert_eq!(starts, ["/w", "/w", "/w/a/b", "/c"].map(PathBuf::from));
    }
}
