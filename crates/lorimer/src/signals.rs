//! Signals that end a run.

use lorimer_protocol::AbortCause;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// Why a run ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// SIGINT
    Interrupt,
    /// SIGTERM
    Terminate,
    /// SIGHUP
    Hangup,
}

impl Ending {
    /// What the log says.
    pub fn cause(self) -> AbortCause {
        match self {
            Self::Interrupt => AbortCause::User,
            Self::Terminate | Self::Hangup => AbortCause::Disposed,
        }
    }

    /// What the shell is told.
    pub fn exit(self) -> Exit {
        Exit::Signal(match self {
            Self::Hangup => 1,
            Self::Interrupt => 2,
            Self::Terminate => 15,
        })
    }
}

/// The signals of this process, from now on. One that was ignored from the start (`nohup`, a background job of a
/// script) stays ignored.
pub struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
}

impl Signals {
    /// Takes the signals over from the system.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: unless_ignored(SignalKind::interrupt())?,
            terminate: unless_ignored(SignalKind::terminate())?,
            hangup: unless_ignored(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Ending {
        tokio::select! {
            () = received(&mut self.interrupt) => Ending::Interrupt,
            () = received(&mut self.terminate) => Ending::Terminate,
            () = received(&mut self.hangup) => Ending::Hangup,
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

fn unless_ignored(kind: SignalKind) -> std::io::Result<Option<Signal>> {
    if is_ignored(kind.as_raw_value()) { Ok(None) } else { signal(kind).map(Some) }
}

fn is_ignored(number: i32) -> bool {
    // SAFETY: a `sigaction` of zeros is a valid value to be filled in, and with a null new action the call only reads
    // the disposition of a signal of this process.
    let handler = unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(number, std::ptr::null(), &mut current) == 0).then_some(current.sa_sigaction)
    };
    handler == Some(libc::SIG_IGN)
}
