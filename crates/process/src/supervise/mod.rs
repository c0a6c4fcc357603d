//! The supervisor: a small process of our own between Lorimer and one command.
//!
//! It exists because only a process that outlives Lorimer, and that orphans come back to, can promise that nothing of
//! a command stays behind. What must hold:
//!
//! * it is single-threaded and starts before anything else of the program runs;
//! * it ends only when nothing of the command is left, or when what is left cannot be killed;
//! * the end of the control socket (Lorimer is gone, however it went) ends the command;
//! * a stop asks with SIGTERM first and forces with SIGKILL once the grace is over.
//!
//! On Linux it is the reaper of every orphan below it, so that `setsid` and double forks do not help a process to
//! escape. Elsewhere it knows only the process group of the command, and a child that calls `setsid` may escape.
//! A process started by somebody else on a command's behalf (a service manager, a container engine) is never part of
//! the command.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod proc_table;
#[cfg(target_os = "linux")]
use linux as platform;
#[cfg(any(not(target_os = "linux"), test))]
#[cfg_attr(target_os = "linux", allow(dead_code))]
mod portable;
#[cfg(not(target_os = "linux"))]
use portable as platform;

mod tree;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::process::Pid;

use crate::wire::{Report, Request};

pub(crate) use platform::kill_session;
pub(crate) use tree::KILL_LIMIT;

/// The arguments that make a program which calls [`supervise_if_asked`] a supervisor.
pub const SUPERVISE_ARGS: [&str; 2] = ["--internal", "supervise"];

/// Becomes a supervisor, and never returns, when the arguments of this process are exactly [`SUPERVISE_ARGS`].
///
/// To be called first thing in `main`, before any thread is started.
pub fn supervise_if_asked() {
    if std::env::args_os().skip(1).eq(SUPERVISE_ARGS.map(OsString::from)) {
        supervise_main();
    }
}

/// Runs the command that arrives over standard input, which must be the control socket, and ends this process.
pub fn supervise_main() -> ! {
    let status = match supervise() {
        Ok(()) => 0,
        Err(_nobody_listens) => 2,
    };
    std::process::exit(status)
}

/// Starts a supervisor in a test program that has no `main` of its own.
///
/// Put once at the top level of a test crate whose tests run commands with
/// [`Supervisor::this_program`](crate::Supervisor::this_program): it runs [`supervise_if_asked`] before the test
/// harness looks at the arguments.
#[macro_export]
macro_rules! supervise_in_tests {
    () => {
        #[used]
        #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
        #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
        static SUPERVISE_BEFORE_TESTS: extern "C" fn() = {
            extern "C" fn before_main() {
                $crate::supervise_if_asked();
            }
            before_main
        };
    };
}

/// The whole life of a supervisor.
fn supervise() -> io::Result<()> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let mut control = take_control(&null)?;
    let events = match platform::prepare() {
        Ok(events) => events,
        Err(error) => return refuse(&mut control, &error, |errno| Report::NoSupervision { errno }),
    };
    let request = Request::receive(&mut control)?;
    if let Err(error) = std::env::set_current_dir(&request.cwd) {
        return refuse(&mut control, &error, |errno| Report::NoDirectory { errno });
    }
    let main = match start(&request, &control) {
        Ok(pid) => pid,
        Err(error) => return refuse(&mut control, &error, |errno| Report::NoProgram { errno }),
    };
    // The output pipes belong to the command alone: their end must not wait for this process.
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    drop(null);
    tree::Tree::new(main, request.grace, events, control).watch()
}

/// Moves the control socket away from standard input, so that the command cannot inherit it.
fn take_control(null: &File) -> io::Result<UnixStream> {
    let stdin = rustix::stdio::stdin();
    let control = UnixStream::from(stdin.try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(null)?;
    Ok(control)
}

/// Starts the command at the head of its own session, with nothing to read.
///
/// The command itself reports its start before it becomes the program: the program could kill this process before
/// this process said anything.
fn start(request: &Request, control: &UnixStream) -> io::Result<Pid> {
    let (program, args) = request.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let supervisor = rustix::process::getpid();
    let control = control.try_clone()?;
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(request.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null());
    let before_exec = move || {
        platform::become_command(supervisor)?;
        let report = Report::Started { pid: rustix::process::getpid().as_raw_nonzero().get() };
        // When Lorimer is gone already, the loop sees the end of the socket.
        let _ = rustix::io::write(&control, &report.encode());
        reset_signals()
    };
    // SAFETY: the closure runs in the only thread of a fresh fork and makes nothing but system calls.
    unsafe { command.pre_exec(before_exec) };
    Ok(Pid::from_child(&command.spawn()?))
}

/// Gives the command the signals as a login shell would: none ignored and, after that, none blocked.
fn reset_signals() -> io::Result<()> {
    const LAST_STANDARD_SIGNAL: i32 = 31;
    for signal in 1..=LAST_STANDARD_SIGNAL {
        // SAFETY: the default action replaces no handler that anything relies on, as the program is about to be
        // replaced. The two signals that take no action refuse, which is fine.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: the set is initialised by the first call before the second one reads it.
    unsafe {
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        if libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Says why nothing was started.
fn refuse(control: &mut UnixStream, error: &io::Error, report: fn(i32) -> Report) -> io::Result<()> {
    let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
    control.write_all(&report(errno).encode())
}
