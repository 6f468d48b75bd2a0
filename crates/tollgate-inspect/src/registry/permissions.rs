//! Permissions, security modules and auditing.

use tollgate_model::Boundary::{Exec, IoUring, PathLookup, SignalSend, Socket, SystemCall};

use super::{FactSpec, choice, flag, number, one};
use crate::{audit, kernel, permission};

pub(super) const FACTS: &[FactSpec] = &[
    one("kernel.lsm", kernel::security_modules, "The security modules that are active, in their order.")
        .affects(&[PathLookup, Exec, Socket, SignalSend], "the kernel calls the hook of each module in turn"),
    one(
        "kernel.io_uring_disabled",
        kernel::io_uring_disabled,
        "Whether io_uring is disabled: 0 no, 1 for those without privilege or group, 2 for all.",
    ),
    one(
        "kernel.unprivileged_userfaultfd",
        kernel::unprivileged_userfaultfd,
        "Whether userfaultfd handles kernel faults without privilege.",
    ),
    one(
        "kernel.unprivileged_bpf_disabled",
        kernel::unprivileged_bpf_disabled,
        "Whether bpf(2) is refused without privilege: 0 no, 1 yes for good, 2 yes.",
    ),
    one(
        "kernel.perf_event_paranoid",
        kernel::perf_event_paranoid,
        "The restriction of perf_event_open(2) without privilege: -1 none, 2 all but a task's own user mode.",
    ),
    one(
        "kernel.ptrace_scope",
        kernel::ptrace_scope,
        "The processes that Yama lets a process trace: 0 those of its user, 1 its descendants, 2 any with \
         CAP_SYS_PTRACE, 3 none.",
    ),
    one("allowed.io_uring", permission::io_uring, "Whether this process may set up an io_uring.")
        .affects(&[IoUring], "without io_uring no calls go in batches"),
    one(
        "allowed.userfaultfd",
        permission::userfaultfd,
        "Whether this process may handle page faults, the kernel's included.",
    ),
    one(
        "allowed.perf_events",
        permission::counters,
        "The modes that this process may count of its own thread: kernel and user, user, or nothing.",
    ),
    one(
        "audit.hints",
        audit::hints,
        "The evidence that system calls are audited; none is the lack of evidence.",
    )
    .affects(
        &[SystemCall],
        "where a rule is loaded each call takes the slow path, and no file says whether one is",
    ),
    one("audit.login", audit::login, "The user that logged in, as auditing keeps it; unset without a login."),
    choice(
        "kernel.lockdown",
        "/sys/kernel/security/lockdown",
        "The kernel lockdown mode, which restricts root too: none, integrity, confidentiality.",
    ),
    number(
        "kernel.kptr_restrict",
        "/proc/sys/kernel/kptr_restrict",
        "Whether the kernel's addresses are hidden: 0 no, 1 without privilege, 2 yes.",
    ),
    flag(
        "kernel.dmesg_restrict",
        "/proc/sys/kernel/dmesg_restrict",
        "Whether reading the kernel's messages takes privilege.",
    ),
    number(
        "kernel.io_uring_group",
        "/proc/sys/kernel/io_uring_group",
        "The group that may use io_uring where only one may; -1 is none.",
    ),
    number(
        "kernel.user_namespaces_max",
        "/proc/sys/user/max_user_namespaces",
        "The largest number of user namespaces.",
    ),
    flag(
        "kernel.unprivileged_userns_clone",
        "/proc/sys/kernel/unprivileged_userns_clone",
        "Whether user namespaces can be made without privilege, on Debian's kernels.",
    ),
    flag(
        "kernel.apparmor_restrict_userns",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "Whether AppArmor confines processes that make user namespaces without privilege.",
    ),
];
