//! What a child may touch.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What a child may touch. Everything is readable that is not hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Folders and files that may be changed, absolute paths without links. Those that do not exist are left out.
    pub writable: Vec<PathBuf>,
    /// What stays read-only inside them.
    pub read_only: Vec<PathBuf>,
    /// What the child does not see: files are empty, folders too.
    pub hidden: Vec<PathBuf>,
    /// Whether it may talk to other machines and to services of this one.
    pub network: bool,
}

const WRITABLE: &str = "--writable";
const READ_ONLY: &str = "--read-only";
const HIDDEN: &str = "--hidden";
const NETWORK: &str = "--network";

impl Policy {
    /// The policy as arguments of a helper.
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        for (flag, paths) in
            [(WRITABLE, &self.writable), (READ_ONLY, &self.read_only), (HIDDEN, &self.hidden)]
        {
            for path in paths {
                args.push(OsString::from(flag));
                args.push(path.clone().into_os_string());
            }
        }
        if self.network {
            args.push(OsString::from(NETWORK));
        }
        args
    }

    /// Takes the next argument of a helper; `false` when it is none of a policy.
    pub(crate) fn take_arg(&mut self, arg: &OsStr, rest: &mut impl Iterator<Item = OsString>) -> bool {
        let list = match arg.to_str() {
            Some(NETWORK) => {
                self.network = true;
                return true;
            }
            Some(WRITABLE) => &mut self.writable,
            Some(READ_ONLY) => &mut self.read_only,
            Some(HIDDEN) => &mut self.hidden,
            _ => return false,
        };
        list.extend(rest.next().map(PathBuf::from));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_survives_its_arguments() {
        let policy = Policy {
            writable: vec!["/w".into(), "/t".into()],
            read_only: vec!["/w/.git/hooks".into()],
            hidden: vec!["--network".into()],
            network: true,
        };
        let mut args = policy.to_args().into_iter();
        let mut read = Policy::default();
        while let Some(arg) = args.next() {
            assert!(read.take_arg(&arg, &mut args));
        }
        assert_eq!(read, policy);
    }
}
