//! Whether two builds execute the same files.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tollgate_os::paths::open_regular;
use tollgate_os::programs;

/// The files of a build that a command executes.
#[derive(Debug)]
pub struct Executed {
    directory: PathBuf,
    /// Those that the command names, by their paths in the build.
    pub named: BTreeSet<PathBuf>,
    /// Shared libraries anywhere in the build: a program may load one by a path that it computes.
    libraries: BTreeSet<PathBuf>,
}

/// More entries of a build are not looked through for shared libraries.
const MOST_ENTRIES: usize = 1_000_000;
const ELF: &[u8] = b"\x7fELF";
const PART: usize = 1 << 16;

impl Executed {
    /// The files that a command names by `{dir}/PATH`. `None` if more of the build may have part in it than is known: a directory, a
    /// script, or no program.
    pub fn of_command(directory: &Path, line: &str) -> Option<Self> {
        Self::of_files(directory, named(line)?)
    }

    /// The files of a program of a build.
    pub fn of_program(directory: &Path, program: &Path) -> Option<Self> {
        let path = program.strip_prefix(directory).ok()?;
        Self::of_files(directory, BTreeSet::from([path.to_owned()]))
    }

    fn of_files(directory: &Path, named: BTreeSet<PathBuf>) -> Option<Self> {
        let (mut has_program, mut is_known) = (false, true);
        for path in &named {
            let found = fs::metadata(directory.join(path)).ok().filter(fs::Metadata::is_file)?;
            if found.permissions().mode() & 0o111 != 0 {
                has_program = true;
                is_known &= begins_as_elf(&directory.join(path));
            }
        }
        let libraries = (has_program && is_known).then(|| libraries(directory))??;
        Some(Self { directory: directory.to_owned(), named, libraries })
    }

    /// Whether both consist of the same files, with equal bytes.
    pub fn is_equal(&self, other: &Self) -> bool {
        let is_one =
            |path: &PathBuf| have_equal_bytes(&self.directory.join(path), &other.directory.join(path));
        let [own, theirs] = [self, other].map(|one| (&one.named, &one.libraries));
        own == theirs && self.named.iter().chain(&self.libraries).all(is_one)
    }
}

/// The files of a build that a command names by `{dir}/PATH`. `None` if it names the directory alone.
pub fn named(line: &str) -> Option<BTreeSet<PathBuf>> {
    let ends = |c: char| c.is_whitespace() || "'\"`;|&<>()$*?[]{}\\=,:".contains(c);
    let path = |part: &str| {
        let end = part.find(ends).unwrap_or(part.len());
        Some(PathBuf::from(part[..end].strip_prefix('/')?))
    };
    line.split("{dir}").skip(1).map(path).collect()
}

/// The numbers of two commands that execute one file with equal arguments, by their words.
pub fn commands(all: &[Vec<String>]) -> Vec<[usize; 2]> {
    let program = |words: &[String]| programs::find(words.first()?);
    pairs(all.len(), |one, other| {
        let [one, other] = [&all[one], &all[other]];
        let have_one_program = || Some(have_equal_bytes(&program(one)?, &program(other)?));
        one.get(1..) == other.get(1..) && have_one_program() == Some(true)
    })
}

/// The numbers of two builds that are copies of one file.
pub fn builds(all: &[PathBuf]) -> Vec<[usize; 2]> {
    pairs(all.len(), |one, other| all[one] != all[other] && have_equal_bytes(&all[one], &all[other]))
}

fn pairs(number: usize, are_equal: impl Fn(usize, usize) -> bool) -> Vec<[usize; 2]> {
    let first = |other: usize| (0..other).find(|one| are_equal(*one, other)).map(|one| [one, other]);
    (1..number).filter_map(first).collect()
}

fn begins_as_elf(path: &Path) -> bool {
    let mut beginning = [0; ELF.len()];
    open_regular(path).is_ok_and(|mut file| file.read_exact(&mut beginning).is_ok()) && beginning == ELF
}

/// Whether both are files with equal bytes.
pub fn have_equal_bytes(one: &Path, other: &Path) -> bool {
    let equal = || {
        let [one, other] = [open_regular(one).ok()?, open_regular(other).ok()?];
        let length = one.metadata().ok()?.len();
        if length != other.metadata().ok()?.len() {
            return Some(false);
        }
        let (mut one, mut other) = (one.take(length), other.take(length));
        let [mut part, mut beside] = [(); 2].map(|()| Vec::with_capacity(PART));
        loop {
            part.clear();
            beside.clear();
            one.by_ref().take(PART as u64).read_to_end(&mut part).ok()?;
            other.by_ref().take(PART as u64).read_to_end(&mut beside).ok()?;
            if part != beside || part.is_empty() {
                return Some(part == beside);
            }
        }
    };
    equal().unwrap_or(false)
}

fn libraries(directory: &Path) -> Option<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut left = vec![directory.to_owned()];
    let mut seen = 0;
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).ok()? {
            let entry = entry.ok()?;
            seen += 1;
            let (kind, name) = (entry.file_type().ok()?, entry.file_name());
            let name = name.to_string_lossy();
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_file() && (name.ends_with(".so") || name.contains(".so.")) {
                found.insert(entry.path().strip_prefix(directory).ok()?.to_owned());
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
            let [base, other] = [&base, other].map(|one| Executed::of_command(one.path(), line));
            base.zip(other).is_some_and(|(base, other)| base.is_equal(&other))
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
            assert!(Executed::of_command(one.path(), line).is_none(), "{line}");
        }
        assert!(Executed::of_program(one.path(), &one.path().join("tool")).is_some());
    }
}
