//! Security modules, which are asked at system calls; keys and ciphers; hardening that is named nowhere else.

use tollgate_model::Boundary::{Exec, FileSystem, PageCache, PathLookup, SignalSend, Socket};

use super::{Entry, about, affects, covers};

pub(crate) static ENTRIES: &[Entry] = &[
    affects(
        "SECURITY",
        &[PathLookup, Exec, Socket, SignalSend],
        "security modules are asked before many operations",
        "include/linux/lsm_hook_defs.h",
    ),
    affects("SECURITY_NETWORK", &[Socket], "security modules are asked about sockets", "security/Kconfig"),
    affects(
        "SECURITY_PATH",
        &[PathLookup, FileSystem],
        "security modules are asked about paths",
        "security/Kconfig",
    ),
    affects(
        "SECURITY_SELINUX",
        &[PathLookup, PageCache, Exec, Socket],
        "labels are compared, with a cache of verdicts",
        "security/selinux/Kconfig",
    )
    .parameters(&["selinux", "enforcing"]),
    affects(
        "SECURITY_APPARMOR",
        &[PathLookup, Exec, Socket],
        "paths are matched against the program's profile",
        "security/apparmor/Kconfig",
    )
    .parameters(&["apparmor"]),
    affects("SECURITY_SMACK", &[PathLookup, Exec, Socket], "labels are compared", "security/smack/Kconfig"),
    affects(
        "SECURITY_TOMOYO",
        &[PathLookup, Exec],
        "paths are matched against the program's domain",
        "security/tomoyo/Kconfig",
    ),
    affects(
        "SECURITY_LANDLOCK",
        &[PathLookup],
        "in restricted threads the rules that a program set for itself are looked up",
        "security/landlock/Kconfig",
    ),
    affects(
        "BPF_LSM",
        &[PathLookup, Exec, Socket, SignalSend],
        "BPF programs can be asked as well",
        "kernel/bpf/Kconfig",
    ),
    affects(
        "LSM",
        &[PathLookup, Exec, Socket, SignalSend],
        "these modules are asked, in this order, unless lsm= says otherwise",
        "security/Kconfig",
    )
    .parameters(&["lsm", "security"]),
    affects(
        "IMA",
        &[PathLookup, Exec],
        "files can be hashed before they are used, as the policy says",
        "security/integrity/ima/Kconfig",
    )
    .parameters(&["ima_policy"]),
    affects(
        "EVM",
        &[PathLookup, FileSystem],
        "attributes of files are checked against a signature",
        "security/integrity/evm/Kconfig",
    ),
    about("SECURITY_YAMA", "limits which processes a process may trace"),
    about("AUDIT", "audit records; for system calls see AUDITSYSCALL"),
    about("RANDOMIZE_BASE", "the kernel may lie anywhere; whether it was moved is another question"),
    about("RANDOMIZE_MEMORY", "the kernel's mapping of all memory may lie anywhere"),
    about("STRICT_KERNEL_RWX", "the kernel's code cannot be written"),
    covers("CRYPTO"),
    covers("DEFAULT_SECURITY"),
    covers("SECURITYFS"),
    covers("AUDIT_WATCH"),
    covers("KEYS"),
    covers("KEY"),
    covers("ENCRYPTED_KEYS"),
    covers("TRUSTED_KEYS"),
    covers("PERSISTENT_KEYRINGS"),
    covers("INTEGRITY"),
    covers("STRICT"),
    covers("ARCH_HAS_STRICT"),
    covers("MODULE_SIG"),
    covers("LOCK_DOWN"),
    covers("RANDSTRUCT"),
    covers("GCC_PLUGIN"),
    covers("GCC_PLUGINS"),
    covers("FORTIFY"),
    covers("STATIC_USERMODEHELPER"),
    covers("RESET_ATTACK_MITIGATION"),
    covers("RELOCATABLE"),
    covers("DYNAMIC_MEMORY_LAYOUT"),
    covers("SYSTEM_TRUSTED"),
    covers("SYSTEM_BLACKLIST"),
    covers("SYSTEM_REVOCATION"),
    covers("SECONDARY_TRUSTED"),
];
