//! What a child process may touch, held by the operating system.
//!
//! A [`Policy`] says which paths a child may write, which stay read-only inside them, which it does not see at all, and
//! whether it has a network. A [`Sandbox`] is a way to hold a child to that: it puts its own program in front of the
//! child's arguments ([`Sandbox::confine`]).
//!
//! - **Linux, Landlock**: this program, started again as a helper, makes a mount namespace of its own in which everything
//!   but the writable paths is read-only, gives up its capabilities, and puts Landlock and a seccomp filter over itself
//!   before it becomes the child. Without namespaces Landlock and seccomp alone hold the writable paths; what they cannot
//!   hold is told as [`Strength::Partial`].
//! - **Linux, bubblewrap**: the same by `bwrap`, with a process namespace, and the helper inside for the seccomp filter.
//! - **macOS, Seatbelt**: a profile for `sandbox-exec`.
//!
//! What must hold: a child that cannot be confined as the policy says does not run; nothing of the sandbox can be taken off
//! from inside; the child's own exit code and output come through.
//!
//! The program calls [`confine_if_asked`] first thing in its `main`.
//!
//! ```
//! use lorimer_sandbox::Policy;
//!
//! let policy = Policy { writable: vec!["/src/project".into()], ..Policy::default() };
//! assert!(!policy.network);
//! ```

#![cfg(unix)]

mod backend;
mod denial;
mod policy;
mod probe;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod seatbelt;

pub use backend::{Backend, Choice, Sandbox, Unavailable};
pub use denial::{Verdict, verdict};
pub use policy::Policy;
pub use probe::{Probe, Strength};

/// The arguments that make a program which calls [`confine_if_asked`] a helper that confines itself and becomes another
/// program.
pub const CONFINE_ARGS: [&str; 2] = ["--internal", "confine"];

/// Exit code of a helper that could not confine itself; the child did not run.
pub const HELPER_FAILED: i32 = 125;

/// What a helper's line on standard error begins with when it could not confine itself.
pub const HELPER_SPEAKER: &str = "lorimer-confine: ";

/// Becomes a helper, and never returns, when the arguments of this process begin with [`CONFINE_ARGS`].
///
/// To be called first thing in `main`, before any thread is started.
pub fn confine_if_asked() {
    #[cfg(target_os = "linux")]
    linux::helper::run_if_asked();
}

/// Lets a test program without a `main` of its own be a helper.
///
/// Put once at the top level of a test crate whose tests confine children: it runs [`confine_if_asked`] before the test
/// harness looks at the arguments.
#[macro_export]
macro_rules! confine_in_tests {
    () => {
        #[used]
        #[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
        #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
        static CONFINE_BEFORE_TESTS: extern "C" fn() = {
            extern "C" fn before_main() {
                $crate::confine_if_asked();
            }
            before_main
        };
    };
}
