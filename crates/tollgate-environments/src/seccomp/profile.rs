//! Profiles: `linux.seccomp` of the OCI runtime specification (config-linux.md), and Docker's form of the same.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tollgate_model::bounded;
use tollgate_model::text::excerpt;
use tollgate_os::calls;
use tollgate_os::paths::{self, PathError};

use crate::error::{EnvironmentError, plainly, unusable};

/// The most bytes of a profile; Docker's own has 20,000.
const MAX_BYTES: u64 = 1 << 20;
/// The most names in one; the kernel's tables have some 900.
const MAX_NAMES: usize = 10_000;
/// The largest error number (`MAX_ERRNO` of linux/err.h).
const MAX_ERRNO: u32 = 4095;

/// A profile whose names and actions are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Profile {
    /// For calls that no rule names.
    pub other: Action,
    /// None for all.
    pub architectures: Option<Vec<Arch>>,
    /// `SECCOMP_FILTER_FLAG_*`.
    pub flags: Vec<String>,
    pub rules: Vec<Rule>,
}

/// What is done at some calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub names: Vec<String>,
    pub action: Action,
    /// On arguments; all of them hold where the rule does.
    pub conditions: Vec<Condition>,
}

/// A condition on an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Condition {
    index: u32,
    value: u64,
    #[serde(default)]
    value_two: u64,
    op: String,
}

/// An ABI of x86.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    X86,
    X32,
}

impl Arch {
    const ALL: [(Self, &str); 3] =
        [(Self::X86_64, "SCMP_ARCH_X86_64"), (Self::X86, "SCMP_ARCH_X86"), (Self::X32, "SCMP_ARCH_X32")];

    /// None for those of other machines.
    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(arch, _)| arch)
    }

    fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(arch, _)| *arch == self).map_or("", |(_, name)| name)
    }
}

/// The answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Allow,
    /// The call fails with this error.
    Errno(u16),
    KillThread,
    KillProcess,
    Trap,
    Log,
}

impl Action {
    fn by_name(name: &str, errno: Option<u32>) -> Result<Self, String> {
        Ok(match name {
            "SCMP_ACT_ALLOW" => Self::Allow,
            "SCMP_ACT_ERRNO" => {
                let errno = errno.unwrap_or(libc::EPERM.unsigned_abs());
                let errno = (errno <= MAX_ERRNO).then_some(errno as u16);
                Self::Errno(errno.ok_or("errnoRet is an error's number, from 0 to 4095")?)
            }
            "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => Self::KillThread,
            "SCMP_ACT_KILL_PROCESS" => Self::KillProcess,
            "SCMP_ACT_TRAP" => Self::Trap,
            "SCMP_ACT_LOG" => Self::Log,
            "SCMP_ACT_TRACE" | "SCMP_ACT_NOTIFY" => {
                return Err(format!("{name} needs a second process that answers, and there is none"));
            }
            other => {
                return Err(format!(
                    "`{}` is no action; there are SCMP_ACT_ALLOW, SCMP_ACT_ERRNO, SCMP_ACT_KILL_THREAD, SCMP_ACT_KILL_PROCESS, \
                     SCMP_ACT_TRAP and SCMP_ACT_LOG",
                    excerpt(other)
                ));
            }
        })
    }

    /// As a filter returns it (seccomp(2)).
    pub fn answer(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Errno(errno) => libc::SECCOMP_RET_ERRNO | u32::from(errno),
            Self::KillThread => libc::SECCOMP_RET_KILL_THREAD,
            Self::KillProcess => libc::SECCOMP_RET_KILL_PROCESS,
            Self::Trap => libc::SECCOMP_RET_TRAP,
            Self::Log => libc::SECCOMP_RET_LOG,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Allow => "SCMP_ACT_ALLOW",
            Self::Errno(_) => "SCMP_ACT_ERRNO",
            // The name that older runtimes know too.
            Self::KillThread => "SCMP_ACT_KILL",
            Self::KillProcess => "SCMP_ACT_KILL_PROCESS",
            Self::Trap => "SCMP_ACT_TRAP",
            Self::Log => "SCMP_ACT_LOG",
        }
    }
}

/// A profile as it is written. Docker's has `archMap` for `architectures`, and conditions on the container.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SeccompProfile {
    default_action: String,
    default_errno_ret: Option<u32>,
    architectures: Option<Vec<String>>,
    arch_map: Option<Vec<ArchMap>>,
    flags: Option<Vec<String>>,
    syscalls: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArchMap {
    architecture: String,
    sub_architectures: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    names: Vec<String>,
    action: String,
    errno_ret: Option<u32>,
    args: Option<Vec<Condition>>,
    includes: Option<Value>,
    excludes: Option<Value>,
}

impl Profile {
    /// Reads one.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn read(file: &Path) -> Result<Self, EnvironmentError> {
        Self::parse(&text(file)?).map_err(|why| of_file(file, &why))
    }

    /// Reads one from its text.
    ///
    /// # Errors
    /// The end of a sentence that begins with its file.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let document = document(text)?;
        let other = Action::by_name(&document.default_action, document.default_errno_ret)?;
        let mapped = document.arch_map.map(|maps| {
            let ours = maps.into_iter().filter(|map| map.architecture == Arch::X86_64.name());
            ours.flat_map(|map| map.sub_architectures.into_iter().flatten().chain([map.architecture]))
                .collect()
        });
        let listed: Option<Vec<String>> =
            document.architectures.filter(|listed| !listed.is_empty()).or(mapped);
        let architectures =
            listed.map(|listed| listed.iter().filter_map(|name| Arch::by_name(name)).collect::<Vec<_>>());
        let mut rules = Vec::new();
        let mut count = 0;
        for entry in document.syscalls.unwrap_or_default() {
            count += entry.names.len();
            if count > MAX_NAMES {
                return Err(format!("it has more than {MAX_NAMES} names of calls"));
            }
            if let Some(unknown) = entry.names.iter().find(|name| calls::number(name).is_none()) {
                let near =
                    calls::near(unknown).map_or(String::new(), |near| format!(" (did you mean {near}?)"));
                return Err(format!("`{}` is no system call of x86-64{near}", excerpt(unknown)));
            }
            let first = entry.names.first().map_or("a call", String::as_str);
            let is_set = |value: &Option<Value>| {
                value.as_ref().is_some_and(|value| !value.is_null() && *value != json!({}))
            };
            if is_set(&entry.includes) || is_set(&entry.excludes) {
                return Err(format!(
                    "the rule for {first} holds for some containers only (includes, excludes), which podman and docker alone know"
                ));
            }
            let action = Action::by_name(&entry.action, entry.errno_ret)?;
            rules.push(Rule { names: entry.names, action, conditions: entry.args.unwrap_or_default() });
        }
        Ok(Self { other, architectures, flags: document.flags.unwrap_or_default(), rules })
    }

    /// `linux.seccomp` of a bundle's config.json.
    pub fn oci(&self) -> Value {
        let with_errno = |mut value: Value, key: &str, action: Action| {
            if let Action::Errno(errno) = action {
                value[key] = json!(errno);
            }
            value
        };
        let rules = self.rules.iter().map(|rule| {
            let mut value = json!({ "names": rule.names, "action": rule.action.name() });
            if !rule.conditions.is_empty() {
                value["args"] = json!(rule.conditions);
            }
            with_errno(value, "errnoRet", rule.action)
        });
        let mut value = json!({ "defaultAction": self.other.name(), "syscalls": rules.collect::<Vec<_>>() });
        if let Some(listed) = &self.architectures {
            value["architectures"] = json!(listed.iter().map(|arch| arch.name()).collect::<Vec<_>>());
        }
        if !self.flags.is_empty() {
            value["flags"] = json!(self.flags);
        }
        with_errno(value, "defaultErrnoRet", self.other)
    }
}

/// Looks whether a file has the form of a profile. Its names and conditions are left to the runtime that reads it.
pub(crate) fn check(file: &Path) -> Result<(), EnvironmentError> {
    document(&text(file)?).map(drop).map_err(|why| of_file(file, &why))
}

fn document(text: &[u8]) -> Result<SeccompProfile, String> {
    serde_json::from_slice(text).map_err(|error| {
        let why = error.to_string();
        format!("it is no seccomp profile, a JSON object with defaultAction and syscalls: {}", excerpt(&why))
    })
}

fn text(file: &Path) -> Result<Vec<u8>, EnvironmentError> {
    // A FIFO without a writer would be waited for, past every signal that a session handles.
    let open = paths::open_regular(file).map_err(|error| match error {
        PathError::Io(error) => of_file(file, &plainly(error)),
        other => unusable!("{other}"),
    })?;
    let text = bounded::whole(open, MAX_BYTES).map_err(|error| of_file(file, &plainly(error)))?;
    text.ok_or_else(|| of_file(file, "it is longer than a seccomp profile, of at most 1 MiB"))
}

fn of_file(file: &Path, why: &str) -> EnvironmentError {
    unusable!("{}: {why}", excerpt(&file.to_string_lossy()))
}
