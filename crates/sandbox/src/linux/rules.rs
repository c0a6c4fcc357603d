//! Landlock: what may be written, and which processes and sockets can be reached.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};

use crate::policy::Policy;

/// The newest ABI whose rights are asked for; an older kernel holds what it knows.
const NEWEST: ABI = ABI::V7;

/// Devices that every program may use. The terminals are those of the mount namespace's own; without one there are none.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Shared memory; a private one when there is a mount namespace.
const SHARED_MEMORY: &str = "/dev/shm";

/// Restricts this process. Returns what the kernel cannot hold.
///
/// # Errors
/// When the kernel has no Landlock at all, or a rule cannot be made.
pub(super) fn restrict(policy: &Policy) -> Result<Vec<String>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot set Landlock rules: {error}");
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .map_err(|error| failed(&error))?;
    if !policy.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(|error| failed(&error))?;
    }
    let mut created = ruleset.create().map_err(|error| failed(&error))?;
    let all = AccessFs::from_all(NEWEST);
    let mut rules = vec![("/".into(), AccessFs::from_read(NEWEST))];
    rules.extend(policy.writable.iter().map(|path| (path.clone(), all)));
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    rules.extend(DEVICES.map(|path| (path.into(), device)));
    rules.push((SHARED_MEMORY.into(), all));
    for (path, access) in rules {
        // What does not exist needs no rule.
        let Ok(fd) = PathFd::new(&path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        created = created.add_rule(PathBeneath::new(fd, access)).map_err(|error| failed(&error))?;
    }
    let status = created.restrict_self().map_err(|error| failed(&error))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(Vec::new()),
        RulesetStatus::PartiallyEnforced => Ok(vec![
            "this kernel's Landlock is older: some of cutting files short, device control, signals to other processes \
             and local sockets"
                .to_owned(),
        ]),
        RulesetStatus::NotEnforced => {
            Err("this kernel has no Landlock; use a newer one, or install bubblewrap".to_owned())
        }
    }
}
