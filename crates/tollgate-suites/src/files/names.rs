//! Calls on names: what is usually hidden in the use of a file.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use tollgate_engine::Refusal;

use super::block::SMALL;
use super::data::put;
use super::place::{Names, Place, Scratch};
use super::refusal::{checked, done, refused};
use super::single::{FINE, Operation, Verdict};

/// A new file with 4 KiB written, still open.
///
/// # Errors
/// As [`refused`].
pub(super) fn written(place: &Place, name: &CStr) -> Result<OwnedFd, Refusal> {
    let file = place.create(name)?;
    put(&file, &[0xa5; SMALL], 0)?;
    Ok(file)
}

/// A file that is there, found by its name: opened, or looked at.
pub(super) struct There {
    place: Rc<Place>,
    scratch: Scratch,
    looks: bool,
}

impl There {
    /// One that is opened.
    ///
    /// # Errors
    /// As [`refused`].
    pub fn opened(place: &Rc<Place>) -> Result<Self, Refusal> {
        Self::new(place, c"open", false)
    }

    /// One that is looked at.
    ///
    /// # Errors
    /// As [`refused`].
    pub fn looked_at(place: &Rc<Place>) -> Result<Self, Refusal> {
        Self::new(place, c"stat", true)
    }

    fn new(place: &Rc<Place>, name: &'static CStr, looks: bool) -> Result<Self, Refusal> {
        place.allows(SMALL as u64)?;
        let scratch = Scratch::new(place, name)?;
        put(&scratch.file, &[0xa5; SMALL], 0)?;
        Ok(Self { place: Rc::clone(place), scratch, looks })
    }
}

impl Operation for There {
    fn warms_up(&self) -> bool {
        true
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        let (directory, name) = (self.place.descriptor(), self.scratch.name.as_ptr());
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
            // SAFETY: the descriptor was just made and belongs to nobody else; it is closed here.
            drop(unsafe { OwnedFd::from_raw_fd(result as RawFd) });
        }
        Ok(FINE)
    }
}

/// A file that is made.
pub(super) struct Create {
    place: Rc<Place>,
    _names: Names,
}

impl Create {
    const NAME: &CStr = c"create";

    /// Each time anew.
    ///
    /// # Errors
    /// As [`refused`].
    pub fn new(place: &Rc<Place>) -> Result<Self, Refusal> {
        place.allows(SMALL as u64)?;
        Ok(Self { place: Rc::clone(place), _names: Names::free(place, &[Self::NAME])? })
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
        checked(unsafe { libc::openat(self.place.descriptor(), Self::NAME.as_ptr(), flags, 0o600) })
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict, Refusal> {
        let descriptor = outcome.map_err(|error| refused("openat(2) with O_CREAT", &error))?;
        // SAFETY: the descriptor was just made and belongs to nobody else; it is closed here.
        drop(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) });
        self.place.remove(Self::NAME)?;
        Ok(FINE)
    }
}

/// A file that gets another name, and its old one back the next time.
pub(super) struct Rename {
    place: Rc<Place>,
    _names: Names,
    /// The first is the one that it has.
    pair: [&'static CStr; 2],
}

impl Rename {
    /// One of 4 KiB.
    ///
    /// # Errors
    /// As [`refused`].
    pub fn new(place: &Rc<Place>) -> Result<Self, Refusal> {
        place.allows(SMALL as u64)?;
        let names = Names::free(place, &[c"rename-1", c"rename-2"])?;
        drop(written(place, c"rename-1")?);
        Ok(Self { place: Rc::clone(place), _names: names, pair: [c"rename-1", c"rename-2"] })
    }
}

impl Operation for Rename {
    fn warms_up(&self) -> bool {
        true
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        self.place.rename(self.pair[0], self.pair[1])
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict, Refusal> {
        done("renameat(2)", outcome)?;
        self.pair.swap(0, 1);
        Ok(FINE)
    }
}

/// A file of 4 KiB that is taken away.
pub(super) struct Unlink {
    place: Rc<Place>,
    _names: Names,
}

impl Unlink {
    const NAME: &CStr = c"unlink";

    /// Each time another one.
    ///
    /// # Errors
    /// As [`refused`].
    pub fn new(place: &Rc<Place>) -> Result<Self, Refusal> {
        place.allows(SMALL as u64)?;
        Ok(Self { place: Rc::clone(place), _names: Names::free(place, &[Self::NAME])? })
    }
}

impl Operation for Unlink {
    fn warms_up(&self) -> bool {
        true
    }

    fn before(&mut self) -> Result<(), Refusal> {
        written(&self.place, Self::NAME).map(drop)
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        // SAFETY: an open directory and a C string.
        checked(unsafe { libc::unlinkat(self.place.descriptor(), Self::NAME.as_ptr(), 0) })
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict, Refusal> {
        done("unlinkat(2)", outcome)?;
        Ok(FINE)
    }
}

/// A file in which 4 KiB were written again, that is closed. It stays: no file is made and taken away for it.
pub(super) struct Close {
    place: Rc<Place>,
    scratch: Scratch,
    block: [u8; SMALL],
    open: Option<OwnedFd>,
}

impl Close {
    /// Each time the same.
    ///
    /// # Errors
    /// As [`refused`].
    pub fn new(place: &Rc<Place>) -> Result<Self, Refusal> {
        place.allows(SMALL as u64)?;
        let scratch = Scratch::new(place, c"close")?;
        Ok(Self { place: Rc::clone(place), scratch, block: [0; SMALL], open: None })
    }
}

impl Operation for Close {
    fn warms_up(&self) -> bool {
        true
    }

    fn before(&mut self) -> Result<(), Refusal> {
        let file = self.place.open(self.scratch.name, libc::O_WRONLY);
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

/// close(2), with what it says: an error of a write may come as late as this.
pub(super) fn close(file: Option<OwnedFd>) -> io::Result<usize> {
    let descriptor = file.ok_or(io::ErrorKind::NotFound)?.into_raw_fd();
    // SAFETY: the descriptor was given up right above and belongs to nobody else.
    checked(unsafe { libc::close(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::super::place::tests::Own;
    use super::super::single::instance;
    use super::*;
    use tollgate_engine::clock::Clock;
    use tollgate_engine::{Instance, Order};

    #[test]
    fn every_call_goes_well_again_and_again_and_leaves_no_file() {
        let own = Own::new();
        type Make = fn(&Rc<Place>) -> Result<Instance, Refusal>;
        let all: [Make; 6] = [
            |place| Ok(instance(There::opened(place)?)),
            |place| Ok(instance(There::looked_at(place)?)),
            |place| Ok(instance(Create::new(place)?)),
            |place| Ok(instance(Rename::new(place)?)),
            |place| Ok(instance(Unlink::new(place)?)),
            |place| Ok(instance(Close::new(place)?)),
        ];
        for make in all {
            let mut instance = make(&own.place).expect("an instance");
            for _ in 0..3 {
                let block =
                    instance.batch(Clock::Kernel, Order { iterations: 1, extra: 0 }).expect("a block");
                assert!(block.work > 0);
            }
        }
        assert!(own.names().is_empty(), "{:?}", own.names());
    }
}
