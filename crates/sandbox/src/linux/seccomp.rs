//! A filter over system calls that no tool of a project needs and that lead around the other rules.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// Tracing others, changing mounts and namespaces, loading code into the kernel, its keys, and ways to do system calls
/// without doing them.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// The bits of a socket's type that are not flags.
const SOCKET_TYPE: u64 = 0xf;

/// Installs the filter over this process.
///
/// # Errors
/// When the system refuses.
pub(super) fn install(network: bool) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot set the seccomp filter: {error}");
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| failed(&error))?;
    let filter = |rules: BTreeMap<i64, Vec<SeccompRule>>, errno: i32| {
        let action = SeccompAction::Errno(errno.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?;
        BpfProgram::try_from(filter)
    };
    let refused = filter(refused(network).map_err(|error| failed(&error))?, libc::EPERM);
    seccompiler::apply_filter(&refused.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
    // A library that finds no `clone3` uses `clone`, whose flags a filter can see.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let hidden = filter(clone3, libc::ENOSYS).map_err(|error| failed(&error))?;
    seccompiler::apply_filter(&hidden).map_err(|error| failed(&error))
}

fn refused(network: bool) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let namespaces = [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID, libc::CLONE_NEWNET];
    let clone = namespaces
        .into_iter()
        .map(|flag| {
            let flag = u64::from(flag.unsigned_abs());
            let set = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?;
            SeccompRule::new(vec![set])
        })
        .collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_clone, clone);
    // Limits of its own a process may set; with those of others it could end them.
    let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![other])?]);
    if !network {
        rules.insert(libc::SYS_socket, Vec::new());
        // Pairs of connected sockets stay possible, as streams: a datagram of a pair can be sent to anybody.
        let kind = SeccompCmpOp::MaskedEq(SOCKET_TYPE);
        let datagrams = u64::from(libc::SOCK_DGRAM.unsigned_abs());
        let datagrams = SeccompCondition::new(1, SeccompCmpArgLen::Dword, kind, datagrams)?;
        rules.insert(libc::SYS_socketpair, vec![SeccompRule::new(vec![datagrams])?]);
    }
    Ok(rules)
}
