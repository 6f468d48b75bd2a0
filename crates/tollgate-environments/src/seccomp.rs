//! Filters of system calls: the one that containers usually have, and those of a profile's file.
//!
//! A filter is a program of BPF where this program installs it or hands it over (the host, bubblewrap), and JSON where a runtime
//! takes a profile. `profile` reads and writes that.

use std::fmt;
use std::path::{Path, PathBuf};

use tollgate_os::calls;
use tollgate_os::seccomp::{self, Answers, Rules};

use crate::error::{EnvironmentError, plainly, unusable};
use crate::pairs::{Changes, Key};

mod profile;

pub(crate) use profile::{Action, Arch, Profile, Rule, check};

/// The calls that Docker's documentation names as blocked by its default profile ("Significant syscalls blocked by the default
/// profile", docs.docker.com/engine/security/seccomp), but clone(2), of which the profile forbids the flags that make namespaces:
/// an allowed call stays allowed here with all arguments. Some exist on x86-64 by the 32-bit entry alone, and some in older
/// kernels.
pub(crate) const BLOCKED: &str = "acct add_key bpf clock_adjtime clock_settime create_module delete_module finit_module \
    get_kernel_syms get_mempolicy init_module ioperm iopl kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind mount \
    move_pages nfsservctl open_by_handle_at perf_event_open personality pivot_root process_vm_readv process_vm_writev ptrace \
    query_module quotactl reboot request_key set_mempolicy setns settimeofday stime swapon swapoff sysfs _sysctl umount umount2 \
    unshare uselib userfaultfd ustat vm86 vm86old";

/// A filter of system calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Seccomp {
    /// That of containers: the calls that Docker's documentation lists as blocked are refused.
    #[default]
    Default,
    /// None.
    None,
    /// A profile in a file.
    File(PathBuf),
}

impl Seccomp {
    /// The key that asks for it.
    pub const KEY: Key =
        Key::one_of("seccomp", &["default", "none"]).or("a profile's file").changes(Self::CHANGES);

    /// A process without CAP_SYS_ADMIN may have a filter only with no_new_privs, seccomp(2).
    const CHANGES: Changes = Changes::Facts(&["seccomp.", "process.no_new_privileges"]);

    /// The one with this value.
    pub fn read(value: &str) -> Result<Self, String> {
        match value {
            "" => Err("seccomp is default, none or a profile's file".to_owned()),
            "default" => Ok(Self::Default),
            "none" => Ok(Self::None),
            file => Ok(Self::File(file.into())),
        }
    }

    /// Whose it is: that of a runtime which has one by default, of this program, or of a profile; None without one.
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

/// A filter that can be installed.
#[derive(Debug)]
pub(crate) struct Filter(seccomp::Filter);

impl Filter {
    /// The filter that a name of an environment asks for; None where it asks for none.
    ///
    /// # Errors
    /// A sentence: the profile's file cannot be read, is no profile, or asks for what this program does not filter by.
    pub fn read(asked: &Seccomp) -> Result<Option<Self>, EnvironmentError> {
        match asked {
            Seccomp::None => Ok(None),
            Seccomp::Default => Profile::of_containers().program("the default filter"),
            Seccomp::File(file) => Profile::read(file)?.program(&file.display().to_string()),
        }
    }

    /// Installs it on this thread and on what it starts, for good (seccomp(2)).
    ///
    /// # Errors
    /// A sentence: the kernel refuses it.
    pub fn install(&self) -> Result<(), EnvironmentError> {
        seccomp::install(&self.0)
            .map_err(|error| unusable!("the kernel refuses a seccomp filter: {}", plainly(error)))
    }

    /// Its instructions, as bubblewrap reads them from a descriptor.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        seccomp::bytes(&self.0)
    }
}

impl Profile {
    /// The filter of containers.
    pub(crate) fn of_containers() -> Self {
        let names = BLOCKED.split_whitespace().map(str::to_owned).collect();
        let action = Action::Errno(libc::EPERM.unsigned_abs() as u16);
        Self {
            other: Action::Allow,
            architectures: Some(vec![Arch::X86_64, Arch::X86, Arch::X32]),
            flags: Vec::new(),
            rules: vec![Rule { names, action, conditions: Vec::new() }],
        }
    }

    /// The profile that a runtime without one of its own gets; None where it gets none.
    pub(crate) fn asked(asked: &Seccomp) -> Result<Option<Self>, EnvironmentError> {
        Ok(match asked {
            Seccomp::None => None,
            Seccomp::Default => Some(Self::of_containers()),
            Seccomp::File(file) => Some(Self::read(file)?),
        })
    }

    /// The program of it. As libseccomp has it, the 32-bit entry kills where the profile lists architectures and not that one.
    fn program(&self, shown: &str) -> Result<Option<Filter>, EnvironmentError> {
        if let Some(rule) = self.rules.iter().find(|rule| !rule.conditions.is_empty()) {
            let name = rule.names.first().map_or("a call", String::as_str);
            return Err(unusable!(
                "{shown}: the rule for {name} has conditions (args), by which tollgate's own filter does not decide; write rules \
                 without args, or use a container of runc, podman or docker"
            ));
        }
        if let Some(flag) = self.flags.first() {
            return Err(unusable!(
                "{shown}: tollgate's own filter has no flags, but the profile sets {flag}; leave it out"
            ));
        }
        let has = |arch| self.architectures.as_ref().is_none_or(|listed| listed.contains(&arch));
        let other = self.other.answer();
        let short = if has(Arch::X86) { other } else { libc::SECCOMP_RET_KILL_PROCESS };
        let mut rules = Rules { long: Answers::all(other), short: Answers::all(short) };
        for rule in &self.rules {
            for name in &rule.names {
                let Some(mut numbers) = calls::number(name) else { continue };
                numbers.i386 = numbers.i386.filter(|_| has(Arch::X86));
                numbers.x32 = numbers.x32.filter(|_| has(Arch::X32));
                rules.add(numbers, rule.action.answer());
            }
        }
        let filter = rules.filter();
        filter.map(|filter| Some(Filter(filter))).ok_or_else(|| {
            unusable!("{shown}: the profile has more rules than a filter has room for (4096 instructions)")
        })
    }
}

/// The absolute path of a profile that a runtime reads itself, after a look whether it is one.
pub(crate) fn file_for(runtime: &str, file: &Path) -> Result<std::path::PathBuf, EnvironmentError> {
    check(file)?;
    std::path::absolute(file)
        .map_err(|error| unusable!("{}: {runtime} cannot read it: {}", file.display(), plainly(error)))
}

#[cfg(test)]
mod tests;
