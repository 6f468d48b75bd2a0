//! The settings of `host`: how the measured processes differ from others.

use std::fmt;
use std::path::PathBuf;

use tollgate_model::text::excerpt;

use crate::pairs::Changes::{self, Facts};
use crate::pairs::{Key, words};
use crate::seccomp::Seccomp;

/// A setting of the agent, which its bench processes inherit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    Cpu(usize),
    Dir(PathBuf),
    Seccomp(Seccomp),
    /// Addresses are not randomized (ADDR_NO_RANDOMIZE of personality(2), `setarch -R`).
    SetarchR,
    Sched(Sched),
    /// The nice value, from -20 to 19.
    Nice(i32),
    Variable(String, String),
}

words! {
    Sched:
    Batch = "batch",
    Other = "other",
    Idle = "idle",
    /// SCHED_FIFO, with priority 1.
    Fifo = "fifo",
    /// SCHED_RR, with priority 1.
    Rr = "rr"
}

const POLICY: Changes = Facts(&["process.policy"]);

pub(super) const KEYS: &[Key] = &[
    Key::own("cpu", "N").plain().changes(Facts(&[])),
    Key::own("dir", "DIR").changes(Facts(&["files."])),
    Key::own("env.", "NAME=VALUE").changes(Facts(&[])),
    Key::own("nice", "N").plain().changes(POLICY),
    Key::one_of("sched", Sched::WORDS).changes(POLICY),
    Seccomp::KEY,
    Key::one_of("setarch", &["-R"]).changes(Facts(&["process.personality"])),
];

pub(super) fn setting(key: &str, value: &str) -> Result<Setting, String> {
    // `+3` and `03` are not valid processor numbers.
    let number = |text: &str| text.parse::<i32>().ok().filter(|number| number.to_string() == text);
    match key {
        "cpu" => {
            let cpu = number(value).and_then(|cpu| usize::try_from(cpu).ok());
            cpu.map(Setting::Cpu).ok_or_else(|| {
                format!(
                    "cpu is a processor's number as lscpu shows it, such as cpu=0, not `{}`",
                    excerpt(value)
                )
            })
        }
        "dir" if value.is_empty() => Err("dir is a directory, such as dir=/var/tmp".to_owned()),
        "dir" => Ok(Setting::Dir(value.into())),
        "seccomp" => match Seccomp::read(value) {
            Ok(filter @ (Seccomp::Default | Seccomp::None)) => Ok(Setting::Seccomp(filter)),
            _ => Err(format!(
                "seccomp is default or none on the host, not `{}`; container:runtime=podman and container:runtime=docker take a \
                 profile's file, and exec:'setpriv --seccomp-filter FILE' a filter of your own",
                excerpt(value)
            )),
        },
        "setarch" if value == "-R" => Ok(Setting::SetarchR),
        "setarch" => Err(format!(
            "setarch is -R, which turns the randomization of addresses off, not `{}`",
            excerpt(value)
        )),
        "sched" => Sched::parse(key, value).map(Setting::Sched),
        "nice" => {
            let nice = number(value).filter(|nice| (-20..20).contains(nice));
            nice.map(Setting::Nice)
                .ok_or_else(|| format!("nice is a number from -20 to 19, not `{}`", excerpt(value)))
        }
        _ => match key.strip_prefix("env.") {
            Some(name) if !name.is_empty() => Ok(Setting::Variable(name.to_owned(), value.to_owned())),
            _ => Err("env. is followed by a variable's name, such as env.MALLOC_ARENA_MAX=1".to_owned()),
        },
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(cpu) => write!(f, "cpu={cpu}"),
            Self::Dir(dir) => write!(f, "dir={}", dir.display()),
            Self::Seccomp(seccomp) => write!(f, "seccomp={seccomp}"),
            Self::SetarchR => f.write_str("setarch=-R"),
            Self::Sched(sched) => write!(f, "sched={sched}"),
            Self::Nice(nice) => write!(f, "nice={nice}"),
            Self::Variable(name, value) => write!(f, "env.{name}={value}"),
        }
    }
}
