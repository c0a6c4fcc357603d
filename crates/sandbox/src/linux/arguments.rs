//! A policy on its way to the helper, and what follows from it for mounts.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::policy::Policy;

const WRITABLE: &str = "--writable";
const READ_ONLY: &str = "--read-only";
const HIDDEN: &str = "--hidden";
const MUST_HIDE: &str = "--must-hide";
const NETWORK: &str = "--network";

impl Policy {
    /// Whether everything may be changed that is not protected.
    pub(crate) fn is_open(&self) -> bool {
        self.writable.iter().any(|path| path.as_os_str() == "/")
    }

    /// Folders between a writable one and something protected in it, outermost first. They can be written in, but must
    /// not be moved: what is protected would go with them, and something else could take its place.
    pub(crate) fn pinned(&self) -> Vec<PathBuf> {
        let protected = self.read_only.iter().chain(&self.hidden);
        let between = protected.flat_map(|path| {
            let roots = self.writable.iter().filter(|root| path.starts_with(root) && path != *root);
            let root = roots.max_by_key(|root| root.components().count());
            let above = path.ancestors().skip(1);
            let below_root = above.take_while(move |folder| root.is_some_and(|root| *folder != root));
            below_root.map(PathBuf::from).collect::<Vec<_>>()
        });
        let mut pinned: Vec<PathBuf> = between.collect();
        pinned.sort();
        pinned.dedup();
        pinned
    }

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
        if self.must_hide {
            args.push(OsString::from(MUST_HIDE));
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
            Some(MUST_HIDE) => {
                self.must_hide = true;
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
    fn folders_above_what_is_protected_are_pinned() {
        let policy = Policy {
            writable: vec!["/w".into(), "/t".into()],
            read_only: vec!["/w/.git/hooks".into(), "/w/.bashrc".into(), "/elsewhere/x".into()],
            hidden: vec!["/w/a/b/key".into()],
            ..Policy::default()
        };
        assert_eq!(policy.pinned(), ["/w/.git", "/w/a", "/w/a/b"].map(PathBuf::from));
        assert!(!policy.is_open());
        let open =
            Policy { writable: vec!["/".into()], hidden: vec!["/w/a/key".into()], ..Policy::default() };
        assert_eq!(open.pinned(), ["/w", "/w/a"].map(PathBuf::from));
        assert!(open.is_open());
    }

    #[test]
    fn a_policy_survives_its_arguments() {
        let policy = Policy {
            writable: vec!["/w".into(), "/t".into()],
            read_only: vec!["/w/.git/hooks".into()],
            hidden: vec!["--network".into()],
            must_hide: true,
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
