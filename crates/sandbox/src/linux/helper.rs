//! The helper: this program, started again in front of a child. It confines itself and becomes the child.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{capabilities, mounts, rules, seccomp};
use crate::policy::Policy;
use crate::probe::NO_NAMESPACE;
use crate::{CONFINE_ARGS, HELPER_FAILED, HELPER_SPEAKER};

/// Only the seccomp filter: the rest is held by whoever started the helper.
const FILTER_ONLY: &str = "--filter-only";
/// Prints what is held instead of becoming a child.
pub(super) const PROBE: &str = "--probe";
const END_OF_OPTIONS: &str = "--";
/// This very program, whatever has become of its file.
const SELF: &str = "/proc/self/exe";

/// The arguments that run a program held to a policy.
pub(crate) fn argv(policy: &Policy, argv: Vec<OsString>) -> Vec<OsString> {
    let own = [SELF].into_iter().chain(CONFINE_ARGS).map(OsString::from);
    own.chain(policy.to_args()).chain([END_OF_OPTIONS.into()]).chain(argv).collect()
}

/// The arguments of a helper inside bubblewrap, for the program at `program`.
pub(super) fn filter_argv(program: OsString, network: bool, argv: Vec<OsString>) -> Vec<OsString> {
    let policy = Policy { network, ..Policy::default() };
    let own = CONFINE_ARGS.into_iter().chain([FILTER_ONLY]).map(OsString::from);
    [program]
        .into_iter()
        .chain(own)
        .chain(policy.to_args())
        .chain([END_OF_OPTIONS.into()])
        .chain(argv)
        .collect()
}

/// What a helper is asked for.
#[derive(Default)]
struct Request {
    policy: Policy,
    filter_only: bool,
    probe: bool,
    argv: Vec<OsString>,
}

pub(crate) fn run_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if CONFINE_ARGS.iter().all(|expected| args.next().is_some_and(|arg| arg == *expected)) {
        let failure = match run(args) {
            Ok(never) => match never {},
            Err(failure) => failure,
        };
        // With nobody left to read there is nothing more to do.
        let _ = std::io::stderr().write_all(format!("{HELPER_SPEAKER}{failure}\n").as_bytes());
        std::process::exit(HELPER_FAILED);
    }
}

fn run(args: impl Iterator<Item = OsString>) -> Result<std::convert::Infallible, String> {
    let request = parse(args)?;
    let gaps = if request.filter_only {
        rustix::thread::set_no_new_privs(true)
            .map_err(|error| format!("cannot give up privileges: {error}"))?;
        Vec::new()
    } else {
        confine(&request.policy)?
    };
    seccomp::install(request.policy.network)?;
    if request.probe {
        let _ = std::io::stdout().write_all(gaps.join("\n").as_bytes());
        std::process::exit(0);
    }
    let (program, args) = request.argv.split_first().ok_or("there is no program to run")?;
    let error = Command::new(program).args(args).exec();
    Err(format!("cannot run {}: {error}", program.to_string_lossy()))
}

/// Everything but the filter. Returns what cannot be held here.
fn confine(policy: &Policy) -> Result<Vec<String>, String> {
    let mut gaps = Vec::new();
    if let Err(why) = mounts::arrange(policy) {
        if policy.must_hide {
            return Err(why);
        }
        gaps.push(format!(
            "{NO_NAMESPACE} ({why}): read-only and hidden paths inside what is writable or readable, file modes \
             and times outside"
        ));
    }
    capabilities::give_up()?;
    gaps.extend(rules::restrict(policy)?);
    Ok(gaps)
}

fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Request, String> {
    let mut request = Request::default();
    while let Some(arg) = args.next() {
        if arg == END_OF_OPTIONS {
            request.argv = args.collect();
            return Ok(request);
        }
        if arg == FILTER_ONLY {
            request.filter_only = true;
        } else if arg == PROBE {
            request.probe = true;
        } else if !request.policy.take_arg(&arg, &mut args) {
            return Err(format!("unknown option {}", arg.to_string_lossy()));
        }
    }
    Ok(request)
}
