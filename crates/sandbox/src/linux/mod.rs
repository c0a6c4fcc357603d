//! Linux: a helper with namespaces, Landlock and seccomp, or bubblewrap around it.

mod arguments;
pub(crate) mod bubblewrap;
mod capabilities;
pub(crate) mod helper;
mod mount_table;
mod mounts;
pub(crate) mod probe;
mod rules;
mod seccomp;
mod sockets;
