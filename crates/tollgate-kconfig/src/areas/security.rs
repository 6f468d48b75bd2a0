//! Security modules, which system calls consult; keys and ciphers; hardening that no other area lists.

use tollgate_model::Boundary::{Exec, FileSystem, PageCache, PathLookup, SignalSend, Socket};

entries! {
    SECURITY [PathLookup, Exec, Socket, SignalSend] "security modules are asked before many operations"
        ("include/linux/lsm_hook_defs.h");
    SECURITY_NETWORK [Socket] "security modules are asked about sockets" ("security/Kconfig");
    SECURITY_PATH [PathLookup, FileSystem] "security modules are asked about paths" ("security/Kconfig");
    SECURITY_SELINUX [PathLookup, PageCache, Exec, Socket] "labels are compared, with a cache of verdicts"
        ("security/selinux/Kconfig").parameters(&["selinux", "enforcing"]);
    SECURITY_APPARMOR [PathLookup, Exec, Socket] "paths are matched against the program's profile"
        ("security/apparmor/Kconfig").parameters(&["apparmor"]);
    SECURITY_SMACK [PathLookup, Exec, Socket] "labels are compared" ("security/smack/Kconfig");
    SECURITY_TOMOYO [PathLookup, Exec] "paths are matched against the program's domain"
        ("security/tomoyo/Kconfig");
    SECURITY_LANDLOCK [PathLookup]
        "in restricted threads the rules that a program set for itself are looked up"
        ("security/landlock/Kconfig");
    BPF_LSM [PathLookup, Exec, Socket, SignalSend] "BPF programs can be asked as well" ("kernel/bpf/Kconfig");
    LSM [PathLookup, Exec, Socket, SignalSend]
        "these modules are asked, in this order, unless lsm= says otherwise" ("security/Kconfig")
        .parameters(&["lsm", "security"]);
    IMA [PathLookup, Exec] "files can be hashed before they are used, as the policy says"
        ("security/integrity/ima/Kconfig").parameters(&["ima_policy"]);
    EVM [PathLookup, FileSystem] "attributes of files are checked against a signature"
        ("security/integrity/evm/Kconfig");
    SECURITY_YAMA "limits which processes a process may trace";
    AUDIT "audit records; for system calls see AUDITSYSCALL";
    RANDOMIZE_BASE "the kernel may lie anywhere; whether it was moved is another question";
    RANDOMIZE_MEMORY "the kernel's mapping of all memory may lie anywhere";
    STRICT_KERNEL_RWX "the kernel's code cannot be written";
    _ => CRYPTO DEFAULT_SECURITY SECURITYFS AUDIT_WATCH KEYS KEY ENCRYPTED_KEYS TRUSTED_KEYS
        PERSISTENT_KEYRINGS INTEGRITY STRICT ARCH_HAS_STRICT MODULE_SIG LOCK_DOWN RANDSTRUCT GCC_PLUGIN
        GCC_PLUGINS FORTIFY STATIC_USERMODEHELPER RESET_ATTACK_MITIGATION RELOCATABLE DYNAMIC_MEMORY_LAYOUT
        SYSTEM_TRUSTED SYSTEM_BLACKLIST SYSTEM_REVOCATION SECONDARY_TRUSTED
}
