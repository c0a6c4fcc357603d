//! What works here.

use std::fmt;

/// What the gap begins with that leaves read-only and hidden paths open.
pub(crate) const NO_NAMESPACE: &str = "without a mount namespace";

/// How much of a policy a backend holds here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strength {
    /// All of it.
    Full,
    /// The writable paths are held; these are not.
    Partial(Vec<String>),
}

/// What was found out about one backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It works.
    Works(Strength),
    /// It does not, for this reason, which says what to do.
    Fails(String),
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Works(Strength::Full) => write!(f, "works"),
            Self::Works(Strength::Partial(gaps)) => write!(f, "works in part; not held: {}", gaps.join("; ")),
            Self::Fails(why) => write!(f, "does not work: {why}"),
        }
    }
}
