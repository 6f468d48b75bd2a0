//! Calls on file names.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use tollgate_engine::Refusal;

use super::block::SMALL;
use super::data::put;
use super::data_dir::{DataDir, Names, Scratch};
use super::refusal::{checked, done, refused};
use super::single::{FINE, Operation, Verdict};

/// A new open file with 4 KiB written.
pub(super) fn written(dir: &DataDir, name: &CStr) -> Result<OwnedFd, Refusal> {
    let file = dir.create(name)?;
    put(&file, &[0xa5; SMALL], 0)?;
    Ok(file)
}

/// An existing file, opened or queried by name.
pub(super) struct There {
    dir: Rc<DataDir>,
    scratch: Scratch,
    looks: bool,
}

impl There {
    /// For openat(2).
    pub fn opened(dir: &Rc<DataDir>) -> Result<Self, Refusal> {
        Self::new(dir, c"open", false)
    }

    /// For newfstatat(2).
    pub fn looked_at(dir: &Rc<DataDir>) -> Result<Self, Refusal> {
        Self::new(dir, c"stat", true)
    }

    fn new(dir: &Rc<DataDir>, name: &'static CStr, looks: bool) -> Result<Self, Refusal> {
        dir.allows(SMALL as u64)?;
        let scratch = Scratch::new(dir, name)?;
        put(&scratch.file, &[0xa5; SMALL], 0)?;
        Ok(Self { dir: Rc::clone(dir), scratch, looks })
    }
}

impl Operation for There {
    fn warms_up(&self) -> bool {
        true
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        let (directory, name) = (self.dir.descriptor(), self.scratch.name.as_ptr());
        if self.looks {
            let mut status = mem::MaybeUninit::<libc::stat>::uninit();
            // SAFETY: an open directory, a C string, and a structure that is valid for writing.
            return checked(unsafe { libc::fstatat(directory, name, status.as_mut_ptr(), 0) });
        }
        // SAFETY: an open directory and a C string.
        checked(unsafe { libc::openat(directory, name, libc::O_RDONLY | libc::O_CLOEXEC) })
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict, Refusal> {
        let what = if self.looks { "newfstatat(2)" } else { "openat(2)" };
        let result = outcome.map_err(|error| refused(what, &error))?;
        if !self.looks {
            // SAFETY: the descriptor is new and has no other owner; it is closed here.
            drop(unsafe { OwnedFd::from_raw_fd(result as RawFd) });
        }
        Ok(FINE)
    }
}

/// A file that is created.
pub(super) struct Create {
    dir: Rc<DataDir>,
    _names: Names,
}

impl Create {
    const NAME: &CStr = c"create";

    /// A new file each time.
    pub fn new(dir: &Rc<DataDir>) -> Result<Self, Refusal> {
        dir.allows(SMALL as u64)?;
        Ok(Self { dir: Rc::clone(dir), _names: Names::free(dir, &[Self::NAME])? })
    }
}

impl Operation for Create {
    fn warms_up(&self) -> bool {
        true
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: an open directory and a C string.
        checked(unsafe { libc::openat(self.dir.descriptor(), Self::NAME.as_ptr(), flags, 0o600) })
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict, Refusal> {
        let descriptor = outcome.map_err(|error| refused("openat(2) with O_CREAT", &error))?;
        // SAFETY: the descriptor is new and has no other owner; it is closed here.
        drop(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) });
        self.dir.remove(Self::NAME)?;
        Ok(FINE)
    }
}

/// A file that is renamed back and forth.
pub(super) struct Rename {
    dir: Rc<DataDir>,
    _names: Names,
    /// The current name comes first.
    pair: [&'static CStr; 2],
}

impl Rename {
    /// A file of 4 KiB.
    pub fn new(dir: &Rc<DataDir>) -> Result<Self, Refusal> {
        dir.allows(SMALL as u64)?;
        let names = Names::free(dir, &[c"rename-1", c"rename-2"])?;
        drop(written(dir, c"rename-1")?);
        Ok(Self { dir: Rc::clone(dir), _names: names, pair: [c"rename-1", c"rename-2"] })
    }
}

impl Operation for Rename {
    fn warms_up(&self) -> bool {
        true
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        self.dir.rename(self.pair[0], self.pair[1])
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict, Refusal> {
        done("renameat(2)", outcome)?;
        self.pair.swap(0, 1);
        Ok(FINE)
    }
}

/// A file of 4 KiB that is unlinked.
pub(super) struct Unlink {
    dir: Rc<DataDir>,
    _names: Names,
}

impl Unlink {
    const NAME: &CStr = c"unlink";

    /// A new file each time.
    pub fn new(dir: &Rc<DataDir>) -> Result<Self, Refusal> {
        dir.allows(SMALL as u64)?;
        Ok(Self { dir: Rc::clone(dir), _names: Names::free(dir, &[Self::NAME])? })
    }
}

impl Operation for Unlink {
    fn warms_up(&self) -> bool {
        true
    }

    fn before(&mut self) -> Result<(), Refusal> {
        written(&self.dir, Self::NAME).map(drop)
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        // SAFETY: an open directory and a C string.
        checked(unsafe { libc::unlinkat(self.dir.descriptor(), Self::NAME.as_ptr(), 0) })
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict, Refusal> {
        done("unlinkat(2)", outcome)?;
        Ok(FINE)
    }
}

/// A file that is closed after an overwrite of 4 KiB. The file stays, so no creation or unlink disturbs the close.
pub(super) struct Close {
    dir: Rc<DataDir>,
    scratch: Scratch,
    block: [u8; SMALL],
    open: Option<OwnedFd>,
}

impl Close {
    /// The same file each time.
    pub fn new(dir: &Rc<DataDir>) -> Result<Self, Refusal> {
        dir.allows(SMALL as u64)?;
        let scratch = Scratch::new(dir, c"close")?;
        Ok(Self { dir: Rc::clone(dir), scratch, block: [0; SMALL], open: None })
    }
}

impl Operation for Close {
    fn warms_up(&self) -> bool {
        true
    }

    fn before(&mut self) -> Result<(), Refusal> {
        let file = self.dir.open(self.scratch.name, libc::O_WRONLY);
        let file = file.map_err(|error| refused("openat(2)", &error))?;
        let byte = self.block[0].wrapping_add(1);
        self.block.fill(byte);
        put(&file, &self.block, 0)?;
        self.open = Some(file);
        Ok(())
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        close(self.open.take())
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict, Refusal> {
        done("close(2)", outcome)?;
        Ok(FINE)
    }
}

/// close(2) with its result: a write error may show only here.
pub(super) fn close(file: Option<OwnedFd>) -> io::Result<usize> {
    let descriptor = file.ok_or(io::ErrorKind::NotFound)?.into_raw_fd();
    // SAFETY: the descriptor was released right above and has no other owner.
    checked(unsafe { libc::close(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::super::data_dir::tests::Own;
    use super::super::single::instance;
    use super::*;
    use tollgate_engine::{Clock, Instance, Order};

    #[test]
    fn every_call_succeeds_repeatedly_and_leaves_no_file() {
        let own = Own::new();
        type Make = fn(&Rc<DataDir>) -> Result<Instance, Refusal>;
        let all: [Make; 6] = [
            |dir| Ok(instance(There::opened(dir)?)),
            |dir| Ok(instance(There::looked_at(dir)?)),
            |dir| Ok(instance(Create::new(dir)?)),
            |dir| Ok(instance(Rename::new(dir)?)),
            |dir| Ok(instance(Unlink::new(dir)?)),
            |dir| Ok(instance(Close::new(dir)?)),
        ];
        for make in all {
            let mut instance = make(&own.dir).expect("an instance");
            for _ in 0..3 {
                let batch =
                    instance.batch(Clock::Kernel, Order { iterations: 1, extra: 0 }).expect("a batch");
                assert!(batch.work > 0);
            }
        }
        assert!(own.names().is_empty(), "{:?}", own.names());
    }
}
