//! Creation of a file, in a directory without deleted files, and after deletions.
//!
//! The case states what was deleted before (see [`super::placement`]). Each instance has its own directory, in its own block
//! group if the file system has groups. It keeps its files, because an unlink after each creation would be such a deletion.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::{io, rc::Rc, time::Duration};

use super::data_dir::DataDir;
use super::placement::{has_groups, inode, spread_directories};
use super::refusal::{FILE, done, refused};
use super::single::{Operation, Verdict, instance};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "files/create",
    operation: "One openat that creates an empty file (O_CREAT, O_EXCL) without the close: in a directory in which nothing was deleted, or in which 1,024 files were deleted more than a second ago.",
    avoid: "Create fewer and larger files; O_TMPFILE needs no name. On ext4 without a journal reuse files instead of deleting them: for minutes each creation looks at every inode that was deleted in its block group.",
    source: "open(2), O_CREAT and O_TMPFILE; Linux fs/ext4/ialloc.c, recently_deleted",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem, KernelAllocation],
    timed: |_| Timed::Whole("openat(2)"),
    cases: |_| each_word("after", &["nothing"]),
    // Each process deletes files and waits for more than a second.
    thorough_cases: |_| each_word("after", &["deletes"]),
    baseline: Baseline::Case(|_| Some(params(&[("after", "nothing".into())]))),
    kind: Kind::Instance(|_, params, context| {
        make(&DataDir::of(context)?, After::try_from(params)? == After::Deletes)
    }),
    ..FILE
};

words! {
    enum After("after") { Nothing = "nothing", Deletes = "deletes" }
}

const DELETED: u64 = 1024;
/// The kernel compares whole seconds, and does not hold back an inode that was deleted in the current one.
const NEXT_SECOND: Duration = Duration::from_millis(1100);

fn make(dir: &Rc<DataDir>, after_deletes: bool) -> Result<Instance> {
    let place = TestDirectory::new(dir)?;
    let rule = if after_deletes { place.after_deletes(dir)? } else { place.after_nothing() };
    let note = rule.note();
    let create = Create { place, rule, name: CString::default() };
    Ok(instance(create).with_notes([note]))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// It follows the previous file's inode, which has this number.
    Follows(u64),
    /// It lies after the inodes of the deleted files, the last of which has this number.
    Behind(u64),
    /// The file system has no block groups, or reuses the inodes of deleted files.
    Nothing(&'static str),
}

impl Rule {
    fn note(self) -> String {
        match self {
            Self::Follows(_) => "a block group of its own: each new file's inode follows the last one, so no deleted one is passed over".to_owned(),
            Self::Behind(_) => format!("inodes of {DELETED} files deleted 1.1 s and more before are held back (ext4 without a journal): each new file's inode lies after them"),
            Self::Nothing(why) => why.to_owned(),
        }
    }

    /// Returns whether the file's inode is as expected, and updates the expectation for the next file.
    fn holds(&mut self, inode: Option<u64>) -> bool {
        /// Tolerance for inodes that another program may have taken in between.
        const OTHERS: u64 = 4;
        let (rule, Some(inode)) = (*self, inode) else { return true };
        match rule {
            Self::Follows(last) => {
                *self = Self::Follows(inode);
                (last + 1..=last + 1 + OTHERS).contains(&inode)
            }
            Self::Behind(last) => inode > last,
            Self::Nothing(_) => true,
        }
    }
}

struct TestDirectory {
    parent: Rc<DataDir>,
    name: CString,
    directory: OwnedFd,
    files: u64,
}

impl TestDirectory {
    fn new(dir: &Rc<DataDir>) -> Result<Self> {
        const TRIES: usize = 16;
        let parent = dir.open(c".", libc::O_RDONLY | libc::O_DIRECTORY);
        let parent = parent.map_err(|error| refused("openat(2)", &error))?;
        // ext4 chooses the group by a hash of the name, so another name has another group.
        spread_directories(&parent);
        let mut random = Random::new(Random::seed());
        for _ in 0..TRIES {
            let name = named(&format!("create-{:016x}", random.next_u64()))?;
            // SAFETY: an open directory and a C string.
            match checked(unsafe { libc::mkdirat(dir.descriptor(), name.as_ptr(), 0o700) }) {
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
                made => {
                    done("mkdirat(2)", made)?;
                    let directory = dir.open(&name, libc::O_RDONLY | libc::O_DIRECTORY);
                    let directory = directory.map_err(|error| refused("openat(2)", &error))?;
                    return Ok(Self { parent: Rc::clone(dir), name, directory, files: 0 });
                }
            }
        }
        Err(fail!("every name for a directory is taken"))
    }

    /// Expects a group in which nothing was deleted: the first file's inode follows the directory's.
    fn after_nothing(&self) -> Rule {
        let own = inode(&self.directory).filter(|_| has_groups(&self.directory));
        own.map_or(
            Rule::Nothing("the file system has no block groups: what was deleted before does not matter"),
            Rule::Follows,
        )
    }

    fn after_deletes(&self, dir: &DataDir) -> Result<Rule> {
        let mut last = 0;
        for number in 0..DELETED {
            let file = self.create(&named(&format!("deleted-{number}"))?);
            let file = file.map_err(|error| refused("openat(2) with O_CREAT", &error))?;
            last = last.max(inode(&file).unwrap_or(u64::MAX));
        }
        dir.heartbeat.beat();
        for number in 0..DELETED {
            self.remove(&named(&format!("deleted-{number}"))?);
        }
        std::thread::sleep(NEXT_SECOND);
        dir.heartbeat.beat();
        let probe = named("probe")?;
        let file = self.create(&probe).map_err(|error| refused("openat(2) with O_CREAT", &error))?;
        let is_behind = has_groups(&self.directory) && inode(&file).is_some_and(|inode| inode > last);
        self.remove(&probe);
        Ok(if is_behind {
            Rule::Behind(last)
        } else {
            Rule::Nothing("the file system uses the inodes of deleted files again at once")
        })
    }

    #[inline(always)]
    fn open_new(&self, name: &CStr) -> io::Result<usize> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: an open directory and a C string.
        checked(unsafe { libc::openat(self.directory.as_raw_fd(), name.as_ptr(), flags, 0o600) })
    }

    fn create(&self, name: &CStr) -> io::Result<OwnedFd> {
        let file = self.open_new(name)?;
        // SAFETY: the descriptor is new and has no other owner.
        Ok(unsafe { OwnedFd::from_raw_fd(file as RawFd) })
    }

    fn remove(&self, name: &CStr) {
        // SAFETY: an open directory and a C string.
        unsafe { libc::unlinkat(self.directory.as_raw_fd(), name.as_ptr(), 0) };
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        // The maker of the parent directory removes what remains.
        for number in 0..self.files {
            if let Ok(name) = named(&number.to_string()) {
                self.remove(&name);
            }
        }
        // SAFETY: an open directory and a C string.
        unsafe { libc::unlinkat(self.parent.descriptor(), self.name.as_ptr(), libc::AT_REMOVEDIR) };
    }
}

fn named(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| fail!("a name holds a zero byte"))
}

struct Create {
    place: TestDirectory,
    rule: Rule,
    name: CString,
}

impl Operation for Create {
    fn before(&mut self) -> Result<()> {
        self.name = named(&self.place.files.to_string())?;
        self.place.files += 1;
        Ok(())
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        self.place.open_new(&self.name)
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict> {
        let descriptor = outcome.map_err(|error| refused("openat(2) with O_CREAT", &error))?;
        // SAFETY: the descriptor is new and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) };
        Ok(Verdict { counted: None, kept: self.rule.holds(inode(&file)) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::data_dir::tests::Own;
    use super::*;

    #[test]
    fn the_state_of_each_creation_is_the_cases_and_nothing_is_left() {
        let own = Own::new();
        for after_deletes in [false, true] {
            let mut instance = make(&own.dir, after_deletes).expect("an instance");
            for _ in 0..5 {
                let batch = instance.batch(Clock::Kernel, Order::new(1)).expect("a batch");
                assert!(batch.work > 0);
            }
            assert_eq!(own.names().len(), 1);
            drop(instance);
            assert!(own.names().is_empty(), "{:?}", own.names());
        }
    }

    #[test]
    fn an_inode_elsewhere_is_another_state() {
        let mut rule = Rule::Follows(10);
        let judged = [11, 12, 14, 400, 401, 12].map(|inode| rule.holds(Some(inode)));
        assert_eq!(judged, [true, true, true, false, true, false]);
        let mut rule = Rule::Behind(10);
        assert_eq!([9, 10, 11, 5000].map(|inode| rule.holds(Some(inode))), [false, false, true, true]);
        assert!(Rule::Nothing("").holds(Some(1)) && Rule::Follows(1).holds(None));
    }
}
