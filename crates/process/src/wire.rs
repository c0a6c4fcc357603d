//! What Lorimer and a supervisor say to each other over the control socket.
//!
//! Lorimer sends one [`Request`], then perhaps [`STOP`]. The supervisor answers with [`Report`]s of a fixed size. The
//! end of the socket means that the other side is gone. Both sides are the same program, so there are no versions.
//!
//! Command line and environment travel here and not as arguments of the supervisor: they stay out of its entry in
//! the process table, where `pkill -f` would find it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

/// The byte that asks the supervisor to end the command.
pub(crate) const STOP: u8 = b'S';

/// More than any system takes as arguments and environment, and little enough to refuse nonsense.
const REQUEST_MAX_BYTES: u32 = 256 * 1024 * 1024;

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) argv: Vec<OsString>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) grace: Duration,
}

impl Request {
    /// Sends the request as one block with its length in front.
    pub(crate) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let mut body = Vec::with_capacity(8 * 1024);
        let grace_ms = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX);
        body.extend_from_slice(&grace_ms.to_le_bytes());
        put(&mut body, self.cwd.as_os_str())?;
        put_count(&mut body, self.argv.len())?;
        for arg in &self.argv {
            put(&mut body, arg)?;
        }
        put_count(&mut body, self.env.len())?;
        for (name, value) in &self.env {
            put(&mut body, name)?;
            put(&mut body, value)?;
        }
        let mut block = Vec::with_capacity(body.len() + 4);
        put_count(&mut block, body.len())?;
        block.extend_from_slice(&body);
        to.write_all(&block)
    }

    /// Receives a request.
    pub(crate) fn receive(from: &mut impl Read) -> io::Result<Self> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length > REQUEST_MAX_BYTES {
            return Err(malformed());
        }
        let mut body = Vec::new();
        from.take(u64::from(length)).read_to_end(&mut body)?;
        let mut rest = body.as_slice();
        let grace_ms = u64::from_le_bytes(take_array(&mut rest)?);
        let cwd = PathBuf::from(take(&mut rest)?);
        let argc = take_count(&mut rest)?;
        let argv = (0..argc).map(|_| take(&mut rest)).collect::<io::Result<_>>()?;
        let envc = take_count(&mut rest)?;
        let env = (0..envc).map(|_| Ok((take(&mut rest)?, take(&mut rest)?))).collect::<io::Result<_>>()?;
        Ok(Self { argv, cwd, env, grace: Duration::from_millis(grace_ms) })
    }
}

/// What the supervisor has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The command runs as this process, which leads its own session and group.
    Started { pid: i32 },
    /// The working directory could not be entered.
    NoDirectory { errno: i32 },
    /// The command could not be started.
    NoProgram { errno: i32 },
    /// The supervisor could not set itself up; nothing was started.
    NoSupervision { errno: i32 },
    /// The command and all it started are gone, apart from `survivors`.
    Ended { end: End, stopped: bool, survivors: u32 },
}

/// How the main process of a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exit(i32),
    Signal(i32),
    /// It could not be killed, or its status was lost.
    Unknown,
}

impl Report {
    /// The size of every report.
    pub(crate) const BYTES: usize = 16;

    /// The report as it travels: kind, stopped, padding, value, survivors.
    pub(crate) fn encode(self) -> [u8; Self::BYTES] {
        let (kind, stopped, value, survivors) = match self {
            Self::Started { pid } => (b'+', false, pid, 0),
            Self::NoDirectory { errno } => (b'd', false, errno, 0),
            Self::NoProgram { errno } => (b'p', false, errno, 0),
            Self::NoSupervision { errno } => (b's', false, errno, 0),
            Self::Ended { end: End::Exit(code), stopped, survivors } => (b'x', stopped, code, survivors),
            Self::Ended { end: End::Signal(signal), stopped, survivors } => {
                (b'k', stopped, signal, survivors)
            }
            Self::Ended { end: End::Unknown, stopped, survivors } => (b'?', stopped, 0, survivors),
        };
        let mut bytes = [0; Self::BYTES];
        bytes[0] = kind;
        bytes[1] = u8::from(stopped);
        bytes[4..8].copy_from_slice(&value.to_le_bytes());
        bytes[8..12].copy_from_slice(&survivors.to_le_bytes());
        bytes
    }

    /// Reads a report; `None` for bytes that are none.
    pub(crate) fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let stopped = bytes[1] != 0;
        let value = i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let survivors = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        let ended = |end| Self::Ended { end, stopped, survivors };
        match bytes[0] {
            b'+' => Some(Self::Started { pid: value }),
            b'd' => Some(Self::NoDirectory { errno: value }),
            b'p' => Some(Self::NoProgram { errno: value }),
            b's' => Some(Self::NoSupervision { errno: value }),
            b'x' => Some(ended(End::Exit(value))),
            b'k' => Some(ended(End::Signal(value))),
            b'?' => Some(ended(End::Unknown)),
            _ => None,
        }
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "this is not a request to a process supervisor")
}

fn put(to: &mut Vec<u8>, text: &OsStr) -> io::Result<()> {
    put_count(to, text.len())?;
    to.extend_from_slice(text.as_bytes());
    Ok(())
}

fn put_count(to: &mut Vec<u8>, count: usize) -> io::Result<()> {
    let count = u32::try_from(count).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    to.extend_from_slice(&count.to_le_bytes());
    Ok(())
}

fn take(from: &mut &[u8]) -> io::Result<OsString> {
    let length = take_count(from)? as usize;
    let (text, rest) = from.split_at_checked(length).ok_or_else(malformed)?;
    *from = rest;
    Ok(OsString::from_vec(text.to_vec()))
}

fn take_count(from: &mut &[u8]) -> io::Result<u32> {
    take_array(from).map(u32::from_le_bytes)
}

fn take_array<const N: usize>(from: &mut &[u8]) -> io::Result<[u8; N]> {
    let (bytes, rest) = from.split_first_chunk::<N>().ok_or_else(malformed)?;
    *from = rest;
    Ok(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        let request = Request {
            argv: vec!["a".into(), OsString::from_vec(vec![0xFF, b' '])],
            cwd: "/tmp".into(),
            env: vec![("A".into(), "1".into()), ("B".into(), "".into())],
            grace: Duration::from_millis(77),
        };
        let mut bytes = Vec::new();
        request.send(&mut bytes).expect("sent");
        assert_eq!(Request::receive(&mut bytes.as_slice()).expect("received"), request);
        for cut in 0..bytes.len() {
            assert!(Request::receive(&mut &bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn reports_arrive_as_they_were_sent() {
        for report in [
            Report::Started { pid: 12345 },
            Report::NoDirectory { errno: 2 },
            Report::NoProgram { errno: 13 },
            Report::NoSupervision { errno: 24 },
            Report::Ended { end: End::Exit(255), stopped: false, survivors: 0 },
            Report::Ended { end: End::Signal(9), stopped: true, survivors: 3 },
            Report::Ended { end: End::Unknown, stopped: true, survivors: 1 },
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
    }

    proptest! {
        #[test]
        fn nonsense_is_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut framed = u32::try_from(bytes.len()).unwrap_or(0).to_le_bytes().to_vec();
            framed.extend_from_slice(&bytes);
            let _ = Request::receive(&mut framed.as_slice());
            if let Some(report) = bytes.first_chunk::<{ Report::BYTES }>() {
                let _ = Report::decode(report);
            }
        }
    }
}
