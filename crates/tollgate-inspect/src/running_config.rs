//! The configuration of a machine's kernel, from any file that has it.

use tollgate_kconfig::{Reading, read};
use tollgate_model::Unknown;

use crate::machine::Machine;
use crate::{kernel, uname};

const MOST: u64 = 8 << 20;

/// The most reliable first: the kernel's own copy, then the files installed under its release.
const PATHS: [&str; 5] = [
    "/proc/config.gz",
    "/boot/config-RELEASE",
    "/lib/modules/RELEASE/config",
    "/usr/lib/modules/RELEASE/config",
    "/lib/modules/RELEASE/build/.config",
];

/// The configuration of a running kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningConfig {
    /// The file that it was read from.
    pub path: String,
    /// The parsed configuration.
    pub reading: Reading,
    /// The parameters that the kernel was started with, if they are readable.
    pub command_line: Option<String>,
}

/// A file that did not have it, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Path of the file.
    pub path: String,
    /// Why it gave nothing.
    pub why: Unknown,
}

/// Finds the configuration of this machine's kernel.
///
/// # Errors
/// Every file that was tried, with its answer.
pub fn running_config(machine: &Machine) -> Result<RunningConfig, Vec<Tried>> {
    let release = uname::release_text(machine).map(|found| found.value);
    let mut tried = Vec::new();
    for path in PATHS {
        let path = match &release {
            Ok(release) if is_one_name(release) => path.replace("RELEASE", release),
            _ if !path.contains("RELEASE") => path.to_owned(),
            _ => {
                tried.push(Tried { path: path.to_owned(), why: unnamed(&release) });
                continue;
            }
        };
        match at(machine, &path) {
            Ok(reading) => {
                let command_line = kernel::command_line_text(machine).ok().map(|found| found.value);
                return Ok(RunningConfig { path, reading, command_line });
            }
            Err(why) => tried.push(Tried { path, why }),
        }
    }
    Err(tried)
}

pub(crate) fn at(machine: &Machine, path: &str) -> Result<Reading, Unknown> {
    let bytes = machine.start_of(path, MOST + 1)?.value;
    if bytes.len() as u64 > MOST {
        return Err(Unknown::Unreadable(format!("{path}: larger than {} MiB", MOST >> 20)));
    }
    read(bytes.as_slice()).map_err(|error| Unknown::Unreadable(format!("{path} {error}")))
}

fn is_one_name(release: &str) -> bool {
    !release.is_empty() && !release.contains('/')
}

fn unnamed(release: &Result<String, Unknown>) -> Unknown {
    match release {
        Err(why) => why.clone(),
        Ok(release) => Unknown::Unreadable(format!("{release:?} is not a kernel release")),
    }
}
