//! Places programs of builds in other pages of memory for each execution.
//!
//! A file stays where it is in the page cache, and the place of its pages decides which of its lines share sets of the caches.
//! One of two equal files was 2.8 % faster in a bench of Go's package sort, in all executions, until either was rewritten. So an
//! execution is of a fresh copy, and the noise of places is within each side.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use tollgate_os::paths;

/// Copying larger programs would take longer than executing them.
const LARGEST: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct Copies {
    contents: Vec<u8>,
    /// The copy. For a moment there are two, so that the new one has other pages.
    path: PathBuf,
    next: PathBuf,
}

impl Copies {
    /// For this program, into this directory. `None` if the program itself must be executed: it is large or not an ELF file,
    /// looks for libraries next to itself (`$ORIGIN`), or nothing can be executed in the directory.
    pub fn new(program: &Path, directory: &Path, number: usize) -> Option<Self> {
        let contents = paths::read_regular(&fs::canonicalize(program).ok()?, LARGEST).ok()?;
        let looks_beside = contents.windows(7).any(|bytes| bytes == b"$ORIGIN");
        if !contents.starts_with(b"\x7fELF") || looks_beside {
            return None;
        }
        let path = directory.join(format!("fresh-{number:03}"));
        let mut copies = Self { contents, path, next: directory.join(format!("other-{number:03}")) };
        copies.renew().ok()?;
        access(&copies.path, Access::EXEC_OK).ok()?;
        Some(copies)
    }

    /// Replaces the copy by one in other pages. If that fails, the old one is still there.
    pub fn renew(&mut self) -> io::Result<&Path> {
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(&self.next)
            .and_then(|mut file| file.write_all(&self.contents));
        if let Err(error) = written.and_then(|()| fs::rename(&self.next, &self.path)) {
            let _ = fs::remove_file(&self.next);
            return Err(error);
        }
        Ok(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn each_copy_is_another_file_that_can_be_executed() {
        let directory = tollgate_os::private::PrivateDirectory::temporary().unwrap();
        let program = fs::canonicalize("/bin/true").unwrap();
        let Some(mut copies) = Copies::new(&program, directory.path(), 0) else {
            return println!("skipped: /bin/true is no program that can be copied");
        };
        let first = fs::metadata(&copies.path).unwrap().ino();
        let path = copies.renew().unwrap().to_owned();
        assert_ne!(fs::metadata(&path).unwrap().ino(), first);
        assert!(Command::new(&path).status().unwrap().success());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn scripts_and_what_looks_beside_itself_are_executed_as_they_lie() {
        let directory = tollgate_os::private::PrivateDirectory::temporary().unwrap();
        for (name, contents) in [("script", &b"#!/bin/sh\n"[..]), ("beside", b"\x7fELF\0 $ORIGIN/../lib\0")] {
            let path = directory.path().join(name);
            fs::write(&path, contents).unwrap();
            assert!(Copies::new(&path, directory.path(), 0).is_none(), "{name}");
        }
        assert!(Copies::new(Path::new("/no/such/program"), directory.path(), 0).is_none());
    }
}
