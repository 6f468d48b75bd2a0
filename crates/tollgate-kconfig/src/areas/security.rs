//! Security modules, which are asked at system calls; keys and ciphers; hardening that is named nowhere else.

use super::{Entry, about, covers, moves};

pub(crate) static ENTRIES: &[Entry] = &[
    moves(
        "SECURITY",
        "open, exec, sockets, signals",
        "security modules are asked before many operations",
        "include/linux/lsm_hook_defs.h",
    ),
    moves("SECURITY_NETWORK", "sockets", "security modules are asked about sockets", "security/Kconfig"),
    moves(
        "SECURITY_PATH",
        "creating, renaming and removing files",
        "security modules are asked about paths",
        "security/Kconfig",
    ),
    moves(
        "SECURITY_SELINUX",
        "open, read, write, exec, sockets",
        "labels are compared, with a cache of verdicts",
        "security/selinux/Kconfig",
    )
    .parameters(&["selinux", "enforcing"]),
    moves(
        "SECURITY_APPARMOR",
        "open, exec, sockets",
        "paths are matched against the program's profile",
        "security/apparmor/Kconfig",
    )
    .parameters(&["apparmor"]),
    moves("SECURITY_SMACK", "open, exec, sockets", "labels are compared", "security/smack/Kconfig"),
    moves(
        "SECURITY_TOMOYO",
        "open, exec",
        "paths are matched against the program's domain",
        "security/tomoyo/Kconfig",
    ),
    moves(
        "SECURITY_LANDLOCK",
        "open and others of restricted threads",
        "rules that a program set for itself are looked up",
        "security/landlock/Kconfig",
    ),
    moves(
        "BPF_LSM",
        "whatever programs are attached to",
        "BPF programs can be asked as well",
        "kernel/bpf/Kconfig",
    ),
    moves(
        "LSM",
        "open, exec, sockets, signals",
        "these modules are asked, in this order, unless lsm= says otherwise",
        "security/Kconfig",
    )
    .parameters(&["lsm", "security"]),
    moves(
        "IMA",
        "open and exec",
        "files can be hashed before they are used, as the policy says",
        "security/integrity/ima/Kconfig",
    )
    .parameters(&["ima_policy"]),
    moves(
        "EVM",
        "open and chmod",
        "attributes of files are checked against a signature",
        "security/integrity/evm/Kconfig",
    ),
    about("SECURITY_YAMA", "who may trace whom"),
    about("AUDIT", "records of what happened, for system calls see AUDITSYSCALL"),
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
