//! `lorimer login`: store a provider's key.

use std::io::{BufRead, IsTerminal, Write};
use std::os::fd::AsFd;

use lorimer_model::split_route;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::cli::LoginArgs;
use crate::credentials::Credentials;
use crate::exit::{CommandError, Exit};
use crate::surface::Progress;
use crate::{home, routes, settings};

/// Asks for a key (or reads a line of standard input) and stores it.
///
/// # Errors
/// When the provider needs no key, none is given, or it cannot be stored.
pub fn login(args: &LoginArgs) -> Result<Exit, CommandError> {
    let home = home::home()?;
    let settings = settings::load(&home, None, &[])?;
    let asked = args.provider.clone().unwrap_or_else(|| split_route(&settings.model).0.to_owned());
    let provider = routes::providers(&settings, &home)?
        .get(&asked)
        .map_err(|error| CommandError::usage(error.to_string()))?
        .id()
        .to_owned();
    let variable = routes::key_variable_of(&settings, &provider)
        .ok_or_else(|| CommandError::usage(format!("{provider} needs no key")))?;
    let key = read_key(&format!("Key for {provider} ({variable}): "))?;
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CommandError::usage("that is no key: it must be printable ASCII without spaces"));
    }
    let mut credentials = Credentials::load(&home)?;
    let path = credentials.store(&variable, &key)?.to_owned();
    Progress::note(&format!(
        "stored in {}; the variable {variable}, when it is set, goes first",
        path.display()
    ));
    Ok(Exit::Completed)
}

/// One line of standard input; a terminal does not show it.
fn read_key(prompt: &str) -> Result<String, CommandError> {
    let stdin = std::io::stdin();
    let unreadable = |error: std::io::Error| CommandError::failed(format!("cannot read the key: {error}"));
    let _silence = if stdin.is_terminal() {
        let _ = write!(std::io::stderr(), "{prompt}");
        let silence = Silence::new().map_err(unreadable)?;
        Some(silence)
    } else {
        None
    };
    let mut line = String::new();
    stdin.lock().read_line(&mut line).map_err(unreadable)?;
    Ok(line.trim().to_owned())
}

/// Keeps the terminal from showing what is typed, until it is dropped.
struct Silence(Termios);

impl Silence {
    fn new() -> std::io::Result<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(stdin.as_fd())?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO;
        tcsetattr(stdin.as_fd(), OptionalActions::Now, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin().as_fd(), OptionalActions::Now, &self.0);
        let _ = writeln!(std::io::stderr());
    }
}
