use tollgate_model::Boundary::{Exec, IoUring, PathLookup, SignalSend, Socket, SystemCall};

use crate::{audit, calls, kernel, permission};

facts! {
    pub(super) FACTS
    "kernel.lsm" Of(kernel::security_modules) "The security modules that are active, in their order."
        [PathLookup, Exec, Socket, SignalSend] "the kernel calls the hook of each module in turn";
    "kernel.io_uring_disabled" Number("/proc/sys/kernel/io_uring_disabled")
        "Whether io_uring is disabled: 0 no, 1 for those without privilege or group, 2 for all.";
    "kernel.unprivileged_userfaultfd" Flag("/proc/sys/vm/unprivileged_userfaultfd")
        "Whether userfaultfd handles kernel faults without privilege.";
    "kernel.unprivileged_bpf_disabled" Number("/proc/sys/kernel/unprivileged_bpf_disabled")
        "Whether bpf(2) is refused without privilege: 0 no, 1 yes for good, 2 yes.";
    "kernel.perf_event_paranoid" Number("/proc/sys/kernel/perf_event_paranoid")
        "The restriction of perf_event_open(2) without privilege: -1 none, 2 all but a task's own user mode.";
    "kernel.ptrace_scope" Number("/proc/sys/kernel/yama/ptrace_scope")
        "The processes that Yama lets a process trace: 0 those of its user, 1 its descendants, 2 any with \
         CAP_SYS_PTRACE, 3 none.";
    "allowed.io_uring" Of(permission::tried, "io_uring_setup(2) without parameters", calls::may_use_io_uring)
        "Whether this process may set up an io_uring."
        [IoUring] "without io_uring no calls go in batches";
    "allowed.userfaultfd" Of(permission::tried, "userfaultfd(2) with a flag that does not exist", calls::may_use_userfaultfd)
        "Whether this process may handle page faults, the kernel's included.";
    "allowed.perf_events" Of(permission::counters)
        "The modes that this process may count of its own thread: kernel and user, user, or nothing.";
    "audit.hints" Of(audit::hints)
        "The evidence that system calls are audited; none is the lack of evidence."
        [SystemCall] "where a rule is loaded each call takes the slow path; without privilege no file says whether one is";
    "audit.enabled" Of(audit::enabled)
        "Whether the kernel audits: 0 no, 1 yes, 2 yes until the next boot; root may ask."
        [SystemCall] "threads that are audited take the slow path of each call";
    "audit.rules" Of(audit::rules)
        "The audit rules that are loaded, each with its action, its list and the number of its calls; root may ask."
        [SystemCall] "the rules of the list exit are compared with each call, and a match writes a record";
    "audit.login" Of(audit::login) "The user that logged in, as auditing keeps it; unset without a login.";
    "kernel.lockdown" Choice("/sys/kernel/security/lockdown")
        "The kernel lockdown mode, which restricts root too: none, integrity, confidentiality.";
    "kernel.kptr_restrict" Number("/proc/sys/kernel/kptr_restrict")
        "Whether the kernel's addresses are hidden: 0 no, 1 without privilege, 2 yes.";
    "kernel.dmesg_restrict" Flag("/proc/sys/kernel/dmesg_restrict")
        "Whether reading the kernel's messages takes privilege.";
    "kernel.io_uring_group" Number("/proc/sys/kernel/io_uring_group")
        "The group that may use io_uring where only one may; -1 is none.";
    "kernel.user_namespaces_max" Number("/proc/sys/user/max_user_namespaces")
        "The largest number of user namespaces.";
    "kernel.unprivileged_userns_clone" Flag("/proc/sys/kernel/unprivileged_userns_clone")
        "Whether user namespaces can be made without privilege, on Debian's kernels.";
    "kernel.apparmor_restrict_userns" Flag("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
        "Whether AppArmor confines processes that make user namespaces without privilege.";
}
