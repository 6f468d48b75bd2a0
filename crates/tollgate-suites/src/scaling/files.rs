//! The directory for operations on files, and the files that their preparations make.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use tollgate_engine::parallel::{Seat, Words};

use crate::descriptor::owned;
use crate::files::data_dir::DataDir;
use crate::prelude::*;

pub const SHARED: &CStr = c"scaling-shared";
pub const BYTES: usize = 4096;

words! {
    /// Whether all tasks share a file, for operations for which that matters.
    enum Whose("file") { Any = "", Shared = "shared", Own = "own" }
}

/// Returns each case with the shared file, then each with own files.
pub fn of_shared_and_own(cases: Vec<Params>) -> Vec<Params> {
    let with = |case: &Params, whose: Whose| {
        let mut case = case.clone();
        case.insert("file".to_owned(), whose.word().into());
        case
    };
    [Whose::Shared, Whose::Own]
        .into_iter()
        .flat_map(|whose| cases.iter().map(move |case| with(case, whose)))
        .collect()
}

pub fn opened(context: &mut Context) -> Result<Rc<DataDir>> {
    context.shared("scaling directory", |context| {
        let directory = DataDir::of(context)?;
        make(directory.descriptor(), SHARED).or_refused("a file cannot be made").map(drop)?;
        Ok(directory)
    })
}

/// The words that a case passes to its tasks: [`directory`] and [`has_own_file`].
pub fn words(directory: &DataDir, params: &Params) -> Result<Words> {
    Ok([directory.descriptor() as u64, u64::from(Whose::try_from(params)? == Whose::Own), 0, 0])
}

pub fn directory(seat: Seat) -> RawFd {
    seat.words[0] as RawFd
}

pub fn has_own_file(seat: Seat) -> bool {
    seat.words[1] != 0
}

pub fn make(directory: RawFd, name: &CStr) -> io::Result<OwnedFd> {
    let file = open(directory, name, libc::O_RDWR | libc::O_CREAT)?;
    let bytes = [1_u8; BYTES];
    // SAFETY: the buffer has `BYTES` bytes.
    checked(unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), BYTES, 0) } as i64)?;
    Ok(file)
}

pub fn open(directory: RawFd, name: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a C string; the mode is read only for a new file.
    owned(unsafe { libc::openat(directory, name.as_ptr(), flags, 0o600) })
}

pub fn close(descriptor: i64) -> i64 {
    // SAFETY: the descriptor belongs to this task, and was opened for this.
    unsafe { call(libc::SYS_close, [descriptor as u64, 0, 0, 0]) }
}
