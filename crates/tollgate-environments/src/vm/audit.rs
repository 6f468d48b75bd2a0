//! `audit=`: a guest that audits by rules of auditctl(8). The guest executes the host's own auditctl.

use std::path::{Path, PathBuf};

use tollgate_os::paths::read_regular;

use super::initramfs::Initramfs;
use super::{layout, programs};
use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};

/// The rules of this machine's kernel, in place of a file.
const LOADED: &str = "loaded";
/// Common sets of rules have a hundredth of it.
const MOST: u64 = 1 << 20;

/// Files for the guest from the host.
pub(super) struct Audit {
    /// auditctl itself is the first.
    programs: Vec<PathBuf>,
    rules: String,
}

/// Finds auditctl, and reads the rules. An error says what is missing, with its package.
pub(super) fn prepare(of: &Path, stop: &dyn Fn() -> bool) -> Result<Audit, EnvironmentError> {
    let programs = programs::files("auditctl", "auditd", stop)?;
    let rules = if of == Path::new(LOADED) {
        let loaded = commands::output(&programs[0], &["-l"], stop)?;
        if loaded.starts_with("No rules") { String::new() } else { loaded }
    } else {
        let wrong = |why: String| unusable!("vm: audit={}: {why}", of.display());
        let bytes = read_regular(of, MOST).map_err(|error| wrong(plainly(error)))?;
        String::from_utf8(bytes)
            .map_err(|_| wrong("it is not text; rules of auditctl would be right".to_owned()))?
    };
    Ok(Audit { programs, rules })
}

impl Audit {
    /// Adds the rules and what loads them, and the directories that rules name.
    pub fn write(&self, made: &mut Initramfs) -> std::io::Result<()> {
        for file in &self.programs {
            made.program(super::path_there(file)?, &mut std::fs::File::open(file)?)?;
        }
        made.link(layout::AUDITCTL, &self.programs[0])?;
        for directory in directories(&self.rules) {
            made.directory(directory)?;
        }
        made.file(layout::RULES, self.rules.as_bytes())
    }
}

/// The directories that must exist, relative to the root: the kernel watches the one of a file, and a tree itself.
fn directories(rules: &str) -> impl Iterator<Item = &str> {
    let of = |word| {
        let (field, path): (&str, &str) = str::rsplit_once(word, '=').unwrap_or(("", word));
        let path = path.strip_prefix('/')?;
        if field == "dir" { Some(path) } else { Some(path.rsplit_once('/')?.0) }
    };
    rules.split_whitespace().filter_map(of).map(|path| path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_has_the_directories_that_rules_name() {
        let rules =
            "-w /etc/audit/audit.rules -p wa\n-a always,exit -F dir=/var/spool/ -F exe=/usr/bin/su -w /x\n";
        assert_eq!(directories(rules).collect::<Vec<_>>(), ["etc/audit", "var/spool", "usr/bin"]);
    }
}
