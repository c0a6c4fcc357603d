//! The ways to confine a child, and which of them is used.

use std::ffi::OsString;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::policy::Policy;
use crate::probe::{NO_NAMESPACE, Probe, Strength};

/// A way to confine a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Linux: a helper with namespaces, Landlock and seccomp.
    Landlock,
    /// Linux: bubblewrap with the helper's seccomp filter.
    Bubblewrap,
    /// macOS: `sandbox-exec`.
    Seatbelt,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Landlock => "landlock",
            Self::Bubblewrap => "bubblewrap",
            Self::Seatbelt => "seatbelt",
        })
    }
}

impl Backend {
    /// The backends of this system, the preferred one first.
    pub fn of_this_system() -> &'static [Self] {
        if cfg!(target_os = "linux") { &[Self::Landlock, Self::Bubblewrap] } else { &[Self::Seatbelt] }
    }

    /// Tries whether it works, by confining a child that does nothing.
    pub fn probe(self) -> Probe {
        #[cfg(target_os = "linux")]
        return crate::linux::probe::probe(self);
        #[cfg(not(target_os = "linux"))]
        crate::seatbelt::probe(self)
    }
}

/// Which backend a person wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The first that works.
    #[default]
    Auto,
    /// This one and no other.
    Only(Backend),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "landlock" => Ok(Self::Only(Backend::Landlock)),
            "bubblewrap" => Ok(Self::Only(Backend::Bubblewrap)),
            "seatbelt" => Ok(Self::Only(Backend::Seatbelt)),
            _ => Err(format!("\"{text}\" is not one of auto, landlock, bubblewrap, seatbelt")),
        }
    }
}

/// No backend works.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("commands cannot be confined here: {0}")]
pub struct Unavailable(pub String);

/// A backend that works here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    backend: Backend,
    strength: Strength,
}

impl Sandbox {
    /// Finds a backend that works.
    ///
    /// # Errors
    /// When the wanted one, or every one, does not; the text says what to do.
    pub fn find(choice: Choice) -> Result<Self, Unavailable> {
        let wanted: &[Backend] = match &choice {
            Choice::Auto => Backend::of_this_system(),
            Choice::Only(backend) => std::slice::from_ref(backend),
        };
        let mut failures = Vec::new();
        let mut partial = None;
        for backend in wanted.iter().copied() {
            match backend.probe() {
                Probe::Works(Strength::Full) => return Ok(Self { backend, strength: Strength::Full }),
                Probe::Works(strength) => {
                    partial.get_or_insert(Self { backend, strength });
                }
                Probe::Fails(why) => failures.push(format!("{backend}: {why}")),
            }
        }
        partial.ok_or_else(|| Unavailable(failures.join("; ")))
    }

    /// Which backend it is.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// How much of a policy it holds.
    pub fn strength(&self) -> &Strength {
        &self.strength
    }

    /// Whether it holds hidden paths.
    pub fn hides(&self) -> bool {
        match &self.strength {
            Strength::Full => true,
            Strength::Partial(gaps) => !gaps.iter().any(|gap| gap.starts_with(NO_NAMESPACE)),
        }
    }

    /// The arguments that run a program held to a policy.
    pub fn confine(&self, policy: &Policy, argv: Vec<OsString>) -> Vec<OsString> {
        #[cfg(target_os = "linux")]
        return match self.backend {
            Backend::Bubblewrap => crate::linux::bubblewrap::argv(policy, argv),
            _ => crate::linux::helper::argv(policy, argv),
        };
        #[cfg(not(target_os = "linux"))]
        crate::seatbelt::argv(policy, argv)
    }
}
