//! Whether two builds execute the same files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The files that a command executes, by their paths in the build.
#[derive(Debug, PartialEq, Eq)]
pub struct Executed {
    /// Those that the command names.
    pub named: BTreeMap<PathBuf, Content>,
    /// Shared libraries of the build.
    libraries: BTreeMap<PathBuf, Content>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content(Vec<u8>);

/// More bytes are not compared but measured.
const MOST: u64 = 1 << 30;
/// Entries of a build that are looked at for shared libraries.
const MOST_ENTRIES: usize = 1_000_000;
const ELF: &[u8] = b"\x7fELF";

/// The files that a command names by `{dir}/PATH`. `None` if the build has more part in it than files that are known: a directory, a
/// script, or no program.
pub fn of_command(directory: &Path, line: &str) -> Option<Executed> {
    let mut named = BTreeMap::new();
    for part in line.split("{dir}").skip(1) {
        let end = part
            .find(|c: char| c.is_whitespace() || "'\"`;|&<>()$*?[]{}\\=,:".contains(c))
            .unwrap_or(part.len());
        let path = PathBuf::from(part[..end].strip_prefix('/')?);
        let content = content(&directory.join(&path))?;
        named.insert(path, content);
    }
    of_files(directory, named)
}

/// The numbers of two commands without anything for a shell that execute one file with equal arguments, by their words.
pub fn commands(all: &[Vec<String>]) -> Vec<[usize; 2]> {
    let program = |words: &[String]| tollgate_os::programs::find(words.first()?);
    pairs(all.len(), |one, other| {
        let [one, other] = [&all[one], &all[other]];
        one.get(1..) == other.get(1..)
            && program(one).zip(program(other)).is_some_and(|(one, other)| are_one(&one, &other))
    })
}

/// The numbers of two builds that are one file.
pub fn builds(all: &[PathBuf]) -> Vec<[usize; 2]> {
    pairs(all.len(), |one, other| are_one(&all[one], &all[other]))
}

fn pairs(number: usize, are_equal: impl Fn(usize, usize) -> bool) -> Vec<[usize; 2]> {
    let first = |other: usize| (0..other).find(|one| are_equal(*one, other)).map(|one| [one, other]);
    (1..number).filter_map(first).collect()
}

/// Whether two paths lead to one file, or to files that are equal to the byte.
fn are_one(one: &Path, other: &Path) -> bool {
    one == other || content(one).is_some_and(|bytes| Some(bytes) == content(other))
}

/// The files of a program of the build.
pub fn of_program(directory: &Path, program: &Path) -> Option<Executed> {
    let path = program.strip_prefix(directory).ok()?.to_owned();
    of_files(directory, BTreeMap::from([(path, content(program)?)]))
}

fn of_files(directory: &Path, named: BTreeMap<PathBuf, Content>) -> Option<Executed> {
    let is_known = |(path, content): (&PathBuf, &Content)| {
        let is_program = is_executable(&directory.join(path));
        !is_program || content.0.starts_with(ELF)
    };
    let has_program = named
        .iter()
        .any(|(path, content)| is_executable(&directory.join(path)) && content.0.starts_with(ELF));
    if !has_program || !named.iter().all(is_known) {
        return None;
    }
    Some(Executed { libraries: libraries(directory)?, named })
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

fn content(path: &Path) -> Option<Content> {
    let file = File::open(path).ok()?;
    let found = file.metadata().ok()?;
    if !found.is_file() || found.len() > MOST {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(Content(bytes))
}

/// Shared libraries anywhere in the build, which a program may load by a path that it computes.
fn libraries(directory: &Path) -> Option<BTreeMap<PathBuf, Content>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    let mut seen = 0;
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).ok()? {
            let entry = entry.ok()?;
            seen += 1;
            let kind = entry.file_type().ok()?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_file() && (name.ends_with(".so") || name.contains(".so.")) {
                found.insert(entry.path().strip_prefix(directory).ok()?.to_owned(), content(&entry.path())?);
            }
        }
        if seen > MOST_ENTRIES {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn build(files: &[(&str, &[u8], u32)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, content, mode) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        directory
    }

    #[test]
    fn programs_their_data_and_libraries_decide() {
        let tool = ("bin/tool", &b"\x7fELF1"[..], 0o755);
        let base = build(&[tool, ("data", b"1", 0o644), ("lib/libx.so.1", b"\x7fELF", 0o644)]);
        let same = |other: &tempfile::TempDir, line: &str| {
            let [base, other] = [&base, other].map(|one| of_command(one.path(), line));
            base.is_some() && base == other
        };
        let line = "'{dir}/bin/tool' < {dir}/data; {dir}/bin/tool -n";
        let equal = build(&[
            tool,
            ("data", b"1", 0o644),
            ("lib/libx.so.1", b"\x7fELF", 0o644),
            ("README", b"", 0o644),
        ]);
        assert!(same(&equal, line));
        let others = [
            build(&[
                ("bin/tool", b"\x7fELF2", 0o755),
                ("data", b"1", 0o644),
                ("lib/libx.so.1", b"\x7fELF", 0o644),
            ]),
            build(&[tool, ("data", b"2", 0o644), ("lib/libx.so.1", b"\x7fELF", 0o644)]),
            build(&[tool, ("data", b"1", 0o644), ("lib/libx.so.1", b"\x7fELF2", 0o644)]),
            build(&[tool, ("data", b"1", 0o644)]),
        ];
        assert!(others.iter().all(|other| !same(other, line)));
        // Without the data the second differs in nothing.
        assert!(same(&others[1], "{dir}/bin/tool"));
    }

    #[test]
    fn what_may_read_more_is_measured() {
        let one =
            build(&[("tool", b"\x7fELF", 0o755), ("run.sh", b"#!/bin/sh\n", 0o755), ("data", b"", 0o644)]);
        for line in [
            "cd {dir} && ./tool",
            "{dir}/run.sh",
            "{dir}/data",
            "{dir}",
            "{dir}/none",
            "{dir}/tool {dir}/run.sh",
            "tool",
        ] {
            assert_eq!(of_command(one.path(), line), None, "{line}");
        }
        assert!(of_program(one.path(), &one.path().join("tool")).is_some());
    }
}
