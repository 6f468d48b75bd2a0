//! The filter of system calls that containers usually have: a BPF program for the host and bubblewrap, JSON for runc and
//! crun. A user's own profile is passed to the runtimes that read profiles, podman and docker.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tollgate_os::calls;
use tollgate_os::paths::{self, PathError};
use tollgate_os::seccomp::{self, Answers, Rules};

use crate::error::{EnvironmentError, plainly, unusable};
use crate::pairs::{Changes, Key};

/// The calls that Docker's documentation lists as blocked by its default profile ("Significant syscalls blocked by the
/// default profile", docs.docker.com/engine/security/seccomp), except clone(2), for which the profile forbids the flags that
/// make namespaces: here, an allowed call is allowed with all arguments. On x86-64, some exist only in the 32-bit entry, and
/// some only in older kernels.
pub(crate) const BLOCKED: &str = "acct add_key bpf clock_adjtime clock_settime create_module delete_module finit_module \
    get_kernel_syms get_mempolicy init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind mount \
    move_pages nfsservctl open_by_handle_at perf_event_open personality pivot_root process_vm_readv process_vm_writev ptrace \
    query_module quotactl reboot request_key set_mempolicy setns settimeofday stime swapon swapoff sysfs _sysctl umount umount2 \
    unshare uselib userfaultfd ustat vm86 vm86old";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Seccomp {
    #[default]
    Default,
    None,
    /// A profile in a file, which a runtime reads.
    File(PathBuf),
}

impl Seccomp {
    pub const KEY: Key = Key::one_of("seccomp", &["default", "none"]).changes(Self::CHANGES);
    /// Key for runtimes that can also read a profile.
    pub const KEY_OF_CONTAINERS: Key = Self::KEY.or("a profile's file");

    /// A process without CAP_SYS_ADMIN may install a filter only with no_new_privs, seccomp(2).
    const CHANGES: Changes = Changes::Facts(&["seccomp.", "process.no_new_privileges"]);

    pub fn read(value: &str) -> Result<Self, String> {
        match value {
            "" => Err("seccomp is default, none or a profile's file".to_owned()),
            "default" => Ok(Self::Default),
            "none" => Ok(Self::None),
            file => Ok(Self::File(file.into())),
        }
    }

    /// Whose filter it is: a runtime's default, this program's, or a profile's; `None` without a filter.
    pub fn whose(&self, runtime: Option<&str>) -> Option<String> {
        match (self, runtime) {
            (Self::None, _) => None,
            (Self::Default, Some(runtime)) => Some(format!("{runtime}'s default")),
            (Self::Default, None) => {
                Some("tollgate's own, of the calls that Docker's documentation lists as blocked".to_owned())
            }
            (Self::File(file), _) => Some(format!("the profile {}", file.display())),
        }
    }
}

impl fmt::Display for Seccomp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::None => f.write_str("none"),
            Self::File(file) => write!(f, "{}", file.display()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Filter(seccomp::Filter);

impl Filter {
    /// Returns the filter that a name of an environment asks for, if any. Fails for a profile's file, which only runtimes read.
    pub fn read(asked: &Seccomp) -> Result<Option<Self>, EnvironmentError> {
        match asked {
            Seccomp::None => Ok(None),
            Seccomp::Default => Self::of_containers().map(Some),
            Seccomp::File(_) => Err(takes_no_file()),
        }
    }

    fn of_containers() -> Result<Self, EnvironmentError> {
        let all = Answers::all(libc::SECCOMP_RET_ALLOW);
        let mut rules = Rules { long: all.clone(), short: all };
        for numbers in BLOCKED.split_whitespace().filter_map(calls::number) {
            rules.add(numbers, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs());
        }
        let filter = rules.filter();
        filter
            .map(Self)
            .ok_or_else(|| unusable!("the default filter is longer than the 4096 instructions of one"))
    }

    /// Installs it for good on this thread and its children (seccomp(2)).
    pub fn install(&self) -> Result<(), EnvironmentError> {
        seccomp::install(&self.0)
            .map_err(|error| unusable!("the kernel refuses a seccomp filter: {}", plainly(error)))
    }

    /// Its instructions, as bubblewrap reads them from a descriptor.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        seccomp::bytes(&self.0)
    }
}

/// Returns `linux.seccomp` of a bundle's config.json (OCI runtime specification, config-linux.md), for runtimes without their
/// own filter. It is `None` if no filter is asked for. Fails like [`Filter::read`].
pub(crate) fn oci(asked: &Seccomp) -> Result<Option<Value>, EnvironmentError> {
    match asked {
        Seccomp::None => Ok(None),
        Seccomp::Default => Ok(Some(json!({
            "defaultAction": "SCMP_ACT_ALLOW",
            "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
            "syscalls": [{
                "names": BLOCKED.split_whitespace().collect::<Vec<_>>(),
                "action": "SCMP_ACT_ERRNO",
                "errnoRet": libc::EPERM,
            }],
        }))),
        Seccomp::File(_) => Err(takes_no_file()),
    }
}

pub(crate) fn takes_no_file() -> EnvironmentError {
    unusable!("it takes no profile from a file; runtime=podman and runtime=docker do")
}

/// Returns the absolute path of a profile that a runtime reads itself. Fails if it is not a regular file: opening a FIFO
/// without a writer would block.
pub(crate) fn file_for(runtime: &str, file: &Path) -> Result<PathBuf, EnvironmentError> {
    let refused =
        |why: std::io::Error| unusable!("{}: {runtime} cannot read it: {}", file.display(), plainly(why));
    paths::open_regular(file).map_err(|error| match error {
        PathError::Io(why) => refused(why),
        other => unusable!("{other}"),
    })?;
    std::path::absolute(file).map_err(refused)
}

#[cfg(test)]
mod tests;
