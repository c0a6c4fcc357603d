//! Giving up what root may, or what a user namespace has given.

use rustix::thread::{CapabilitySet, CapabilitySets};

/// Root keeps what lets it work on files of others, as far as the rules leave files to it.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID);

/// Gives up every capability but [`KEPT`], now and for every program that is started.
pub(super) fn give_up() -> Result<(), String> {
    let failed = |error: rustix::io::Errno| format!("cannot give up capabilities: {error}");
    rustix::thread::set_no_new_privs(true).map_err(failed)?;
    let held = rustix::thread::capabilities(None).map_err(failed)?;
    if held.permitted.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().iter().filter(|one| !KEPT.contains(*one)) {
            // A kernel may know fewer of them.
            let _ = rustix::thread::remove_capability_from_bounding_set(capability);
        }
    }
    let kept = held.permitted & KEPT;
    let sets = CapabilitySets {
        effective: held.effective & KEPT,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, sets).map_err(failed)
}
