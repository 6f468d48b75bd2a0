//! The settings of `host`: what the measured processes have that others have not.

use std::fmt;
use std::path::{Path, PathBuf};

use tollgate_model::text::excerpt;

use super::text::{one_of, pairs};

/// `host[:key=value,…]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    settings: Vec<Setting>,
}

/// One setting of the agent, which its bench processes inherit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// The processor that is measured on.
    Cpu(usize),
    /// The directory in which files are measured.
    Dir(PathBuf),
    /// A filter of system calls (seccomp(2)).
    Seccomp(Seccomp),
    /// Addresses are not randomized (ADDR_NO_RANDOMIZE of personality(2), `setarch -R`).
    SetarchR,
    /// The scheduling policy (sched(7)).
    Sched(Sched),
    /// The nice value, from -20 to 19.
    Nice(i32),
    /// A variable of the environment: its name and value.
    Variable(String, String),
}

/// A filter of system calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Seccomp {
    /// That of containers: the calls that Docker's documentation lists as blocked are refused.
    #[default]
    Default,
    /// None.
    None,
    /// A profile in a file.
    File(PathBuf),
}

impl Seccomp {
    pub(super) fn of(value: &str) -> Result<Self, String> {
        match value {
            "" => Err("seccomp is default, none or a profile's file".to_owned()),
            "default" => Ok(Self::Default),
            "none" => Ok(Self::None),
            file => Ok(Self::File(file.into())),
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

/// A scheduling policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sched {
    /// SCHED_BATCH.
    Batch,
    /// SCHED_OTHER.
    Other,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_FIFO, with priority 1.
    Fifo,
    /// SCHED_RR, with priority 1.
    Rr,
}

impl Sched {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Batch, Self::Other, Self::Idle, Self::Fifo, Self::Rr];

    /// Its value of the key `sched`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Other => "other",
            Self::Idle => "idle",
            Self::Fifo => "fifo",
            Self::Rr => "rr",
        }
    }
}

const KEYS: [&str; 7] = ["cpu", "dir", "env.", "nice", "sched", "seccomp", "setarch"];

impl Host {
    /// Its settings, in the order in which they were given. No key but `env.` is there twice.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The processor that is measured on, where one is named.
    pub fn cpu(&self) -> Option<usize> {
        self.settings.iter().find_map(|setting| match setting {
            Setting::Cpu(cpu) => Some(*cpu),
            _ => None,
        })
    }

    /// The directory in which files are measured, where one is named.
    pub fn dir(&self) -> Option<&Path> {
        self.settings.iter().find_map(|setting| match setting {
            Setting::Dir(dir) => Some(dir.as_path()),
            _ => None,
        })
    }

    /// The variables of the agent process.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings.iter().filter_map(|setting| match setting {
            Setting::Variable(name, value) => Some((name.as_str(), value.as_str())),
            _ => None,
        })
    }

    pub(super) fn of(rest: Option<&str>) -> Result<Self, String> {
        let settings = pairs("host", &KEYS, rest)?.into_iter().map(|(key, value)| setting(key, value));
        Ok(Self { settings: settings.collect::<Result<_, _>>()? })
    }
}

fn setting(key: &str, value: &str) -> Result<Setting, String> {
    // `+3` and `03` are numbers of no processor.
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
        "seccomp" => Seccomp::of(value).map(Setting::Seccomp),
        "setarch" if value == "-R" => Ok(Setting::SetarchR),
        "setarch" => Err(format!(
            "setarch is -R, which turns the randomization of addresses off, not `{}`",
            excerpt(value)
        )),
        "sched" => {
            let known = Sched::ALL.into_iter().find(|sched| sched.name() == value);
            known.map(Setting::Sched).ok_or_else(|| one_of("sched", value, &Sched::ALL.map(Sched::name)))
        }
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
            Self::Sched(sched) => write!(f, "sched={}", sched.name()),
            Self::Nice(nice) => write!(f, "nice={nice}"),
            Self::Variable(name, value) => write!(f, "env.{name}={value}"),
        }
    }
}
