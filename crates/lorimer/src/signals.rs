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

/// The signals of this process, from now on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Takes the signals over from the system.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub async fn next(&mut self) -> Ending {
        tokio::select! {
            _ = self.interrupt.recv() => Ending::Interrupt,
            _ = self.terminate.recv() => Ending::Terminate,
            _ = self.hangup.recv() => Ending::Hangup,
        }
    }
}
