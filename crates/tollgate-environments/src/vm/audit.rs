//! `audit=`: a guest that audits by rules of auditctl(8). The guest executes the host's own auditctl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tollgate_model::text::{beginning, excerpt};
use tollgate_os::paths::read_regular;

use super::initramfs::Initramfs;
use super::{layout, programs};
use crate::commands;
use crate::error::{EnvironmentError, plainly, unusable};

/// The rules of this machine's kernel, in place of a file.
const LOADED: &str = "loaded";
/// Common sets of rules have a hundredth of it.
const MOST: u64 = 1 << 20;
/// Characters of a rule, and of the reason why it is refused.
const MOST_SHOWN: usize = 100;

/// Files for the guest from the host.
pub(super) struct Audit {
    /// auditctl itself is the first.
    programs: Vec<PathBuf>,
    /// A comment with the name of the file, for messages of the guest, and the rules.
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
    Ok(Audit { programs, rules: format!("# {}\n{rules}", excerpt(&of.to_string_lossy())) })
}

impl Audit {
    /// Adds the rules and what loads them, and the directories that rules name.
    pub fn write(&self, made: &mut Initramfs) -> std::io::Result<()> {
        for file in &self.programs {
            made.program(super::path_there(file)?, &mut std::fs::File::open(file)?)?;
        }
        made.link(layout::AUDITCTL, &self.programs[0])?;
        for directory in directories(self.rules.trim_start_matches(|c| c != '\n')) {
            made.directory(directory)?;
        }
        made.file(layout::RULES, self.rules.as_bytes())
    }
}

/// Begins to audit by the rules, if the guest has some. All that starts later is audited.
pub(super) fn begin() -> Result<(), String> {
    let [auditctl, file] = [layout::AUDITCTL, layout::RULES].map(|file| format!("/{file}"));
    let Ok(rules) = fs::read_to_string(&file) else { return Ok(()) };
    let execute = |words: &[&str]| match Command::new(&auditctl).args(words).env("LC_ALL", "C").output() {
        Ok(ended) if ended.status.success() => Ok(()),
        Ok(ended) => Err(String::from_utf8_lossy(&ended.stderr).into_owned()),
        Err(error) => Err(plainly(error)),
    };
    // In this order, because the rules may lock the state with -e 2.
    for words in [["-e", "1"], ["-R", &file]] {
        execute(&words).map_err(|said| refused(&rules, &said, &execute))?;
    }
    Ok(())
}

/// Names the line that auditctl refuses, and the reason. While it reads a file, auditctl sends most of both to syslog, so each line is
/// executed once more, alone, except lines with quotes, which auditctl parses by rules of its own.
fn refused(rules: &str, said: &str, execute: &dyn Fn(&[&str]) -> Result<(), String>) -> String {
    let reason = |said: &str| {
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason is given");
        beginning(last, MOST_SHOWN).into_owned()
    };
    let alone = |(number, line): (usize, &str)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_plain = !words.first()?.starts_with('#') && !line.contains(['"', '\'']);
        let said = is_plain.then(|| execute(&words).err())??;
        Some((number, beginning(line, MOST_SHOWN).into_owned(), said))
    };
    let name = rules.lines().next().unwrap_or_default().trim_start_matches("# ");
    // After -e 2 the rules are locked, so no line can be tried.
    let anew = execute(&["-e", "1"]).and_then(|()| execute(&["-D"]));
    let found = anew.ok().and_then(|()| rules.lines().enumerate().skip(1).find_map(alone));
    match found {
        Some((number, line, said)) => {
            format!("audit=: auditctl refuses line {number} of {name}, `{line}`: {}", reason(&said))
        }
        None => format!("audit={name}: auditctl: {}", reason(said)),
    }
}

/// The directories that must exist, relative to the root: for a file, the kernel watches its directory; for a tree, the top of the tree.
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

    #[test]
    fn a_refused_rule_is_named_with_its_line_and_the_reason() {
        let rules =
            format!("# /x/rules\n-b 8192\n\n-w \"/e c\" -p q\n-w /etc -p {}\u{1b}\n", "z".repeat(200));
        let alone = |words: &[&str]| match words {
            ["-w", ..] => Err("warning\npermission z unknown\u{1b}\n\n".to_owned()),
            _ => Ok(()),
        };
        let said = refused(&rules, "", &alone);
        let line = format!("-w /etc -p {}…", "z".repeat(89));
        assert_eq!(
            said,
            format!("audit=: auditctl refuses line 4 of /x/rules, `{line}`: permission z unknown\\u{{1b}}")
        );
        let none = |_: &[&str]| Ok(());
        assert_eq!(refused(&rules, "one\nThe last", &none), "audit=/x/rules: auditctl: The last");
        let locked = |_: &[&str]| Err("immutable".to_owned());
        assert_eq!(refused(&rules, "", &locked), "audit=/x/rules: auditctl: no reason is given");
    }
}
