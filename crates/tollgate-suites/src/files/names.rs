use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::{any::Any, ffi::CStr, io, rc::Rc};

use super::data_dir::{DataDir, Scratch};
use super::refusal::refused;
use super::single::{FINE, Operation, Verdict, timed_as};
use super::{block::SMALL, data::put};
use crate::prelude::*;

pub(super) fn scratch(dir: &Rc<DataDir>, name: &'static CStr) -> Result<Box<dyn Any>> {
    let scratch = Scratch::new(dir, name)?;
    put(&scratch.file, &[0xa5; SMALL], 0)?;
    Ok(Box::new(scratch))
}

pub(super) fn written(dir: &DataDir, name: &CStr) -> Result<OwnedFd> {
    let file = dir.create(name)?;
    put(&file, &[0xa5; SMALL], 0)?;
    Ok(file)
}

/// A call on names, between an untimed preparation and its undoing.
pub(super) struct OnNames<B, C, A> {
    pub what: &'static str,
    pub before: B,
    pub call: C,
    pub after: A,
    /// Names or a file that are unlinked on drop.
    pub _kept: Box<dyn Any>,
}

impl<B, C, A> Operation for OnNames<B, C, A>
where
    B: FnMut() -> Result<()>,
    C: FnMut() -> io::Result<usize>,
    A: FnMut(usize) -> Result<()>,
{
    fn before(&mut self) -> Result<()> {
        (self.before)()
    }

    #[inline(always)]
    fn call(&mut self) -> io::Result<usize> {
        (self.call)()
    }

    fn after(&mut self, outcome: io::Result<usize>, _: u64) -> Result<Verdict> {
        (self.after)(outcome.map_err(|error| refused(self.what, &error))?)?;
        Ok(FINE)
    }
}

/// Makes the instance of a call on names. `make` gets the data directory, which has space for a small file.
pub(super) fn on_names<O: Operation + 'static>(
    params: &Params,
    context: &mut Context,
    make: impl FnOnce(Rc<DataDir>) -> Result<O>,
) -> Result<Instance> {
    let dir = DataDir::of(context)?;
    dir.allows(SMALL as u64)?;
    timed_as(params, make(dir)?)
}

pub(super) fn close_result(descriptor: usize) -> Result<()> {
    // SAFETY: the descriptor is new and has no other owner; it is closed here.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) });
    Ok(())
}

/// close(2) with its result, because a write error may appear only here.
pub(super) fn close(file: Option<OwnedFd>) -> io::Result<usize> {
    let descriptor = file.ok_or(io::ErrorKind::NotFound)?.into_raw_fd();
    // SAFETY: the descriptor was released right above and has no other owner.
    checked(unsafe { libc::close(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::super::data_dir::tests::Own;
    use super::super::single::{in_batches, instance};
    use super::super::{close_after_write, open, rename, stat, unlink};
    use super::*;

    #[test]
    fn every_call_succeeds_repeatedly_and_leaves_no_file() {
        let own = Own::new();
        let dir = || Rc::clone(&own.dir);
        let all = [
            open::call(dir(), open::NAMES[0]).map(instance),
            stat::call(dir(), stat::NAMES[0]).map(instance),
            rename::call(dir()).map(instance),
            unlink::call(dir()).map(instance),
            close_after_write::call(dir()).map(instance),
            open::call(dir(), open::NAMES[1]).and_then(|call| timed_as(&in_batches(Params::new()), call)),
        ];
        for made in all {
            let mut instance = made.expect("an instance");
            for _ in 0..3 {
                let batch = instance.batch(Clock::Kernel, Order::new(1));
                assert!(batch.expect("a batch").work > 0);
            }
        }
        assert!(own.names().is_empty(), "{:?}", own.names());
    }
}
