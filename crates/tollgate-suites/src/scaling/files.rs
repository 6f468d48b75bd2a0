//! The directory of the files on which operations are made, and what their preparations make there.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;

use tollgate_engine::parallel::{Seat, Words};

use crate::descriptor::owned;
use crate::files::data_dir::DataDir;
use crate::prelude::*;

/// The file that all tasks have in common.
pub const SHARED: &CStr = c"scaling-shared";
/// The bytes of each file.
pub const BYTES: usize = 4096;

/// The parameter that says whose file it is: of all tasks, or of each.
const FILE: &str = "file";
const FILES: [&str; 2] = ["shared", "own"];

/// Each case with the file of all tasks, then each with files of their own.
pub fn of_shared_and_own(cases: Vec<Params>) -> Vec<Params> {
    let with = |case: &Params, value: &str| {
        let mut case = case.clone();
        case.insert(FILE.to_owned(), value.into());
        case
    };
    FILES.iter().flat_map(|value| cases.iter().map(move |case| with(case, value))).collect()
}

/// The directory, with the file of all tasks in it.
pub fn opened(context: &mut Context) -> Result<Rc<DataDir>> {
    context.shared("scaling directory", |context| {
        let directory = DataDir::of(context)?;
        make(directory.descriptor(), SHARED).or_refused("a file cannot be made").map(drop)?;
        Ok(directory)
    })
}

/// What a case says to its tasks: [`directory`] and [`has_own_file`].
pub fn words(directory: &DataDir, params: &Params) -> Words {
    [directory.descriptor() as u64, u64::from(word(params, FILE) == FILES[1]), 0, 0]
}

pub fn directory(seat: Seat) -> RawFd {
    seat.words[0] as RawFd
}

/// Whether each task has a file of its own.
pub fn has_own_file(seat: Seat) -> bool {
    seat.words[1] != 0
}

/// Makes a file, if it is not there.
pub fn make(directory: RawFd, name: &CStr) -> io::Result<OwnedFd> {
    let file = open(directory, name, libc::O_RDWR | libc::O_CREAT)?;
    let bytes = [1_u8; BYTES];
    // SAFETY: the kernel reads so many bytes.
    checked(unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), BYTES, 0) } as i64)?;
    Ok(file)
}

pub fn open(directory: RawFd, name: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a C string; the mode is read only for a new file.
    owned(unsafe { libc::openat(directory, name.as_ptr(), flags, 0o600) })
}

pub fn close(descriptor: i64) -> i64 {
    // SAFETY: the descriptor is this task's, and was opened for this.
    unsafe { call(libc::SYS_close, [descriptor as u64, 0, 0, 0]) }
}
