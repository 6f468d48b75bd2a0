//! Calls on files and descriptors: what they share is the directory's entry, the file, and the table of descriptors.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use tollgate_engine::users::{Operation, Seat, Work};

use super::cases::{SCALED, each_with, every_kind, has_others, numbers, threads_at_both_ends};
use super::work::{both, calls};
use crate::descriptor::owned;
use crate::files::data_dir::DataDir;
use crate::prelude::*;
use crate::syscall::call;

/// The file that all users have in common.
const SHARED: &CStr = c"scaling-shared";
/// The bytes of each file.
const BYTES: usize = 4096;

/// The operations that need the directory of files, by their numbers.
pub const NEED_FILES: [usize; 5] = [1, 2, 3, 17, 18];

pub const OPEN: Benchmark = Benchmark {
    name: "scaling/open",
    operation: "openat and close of a cached file by each user: all of one file, or each of a file of its own.",
    avoid: "Keep files open, and have each worker work on files and directories of its own.",
    source: "open(2); will-it-scale, open1.c and open3.c; Documentation/filesystems/path-lookup.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("openat(2), close(2)"),
    cases: |machine| each_with(every_kind(&numbers(machine).0), "file", &FILES),
    thorough_cases: |machine| each_with(every_kind(&numbers(machine).1), "file", &FILES),
    in_everything: threads_at_both_ends,
    ..SCALED
};

/// Of all users, or of each.
const FILES: [&str; 2] = ["shared", "own"];

/// For the words of a case: whether each user has a file of its own.
pub fn variant(params: &Params) -> u64 {
    u64::from(word(params, "file") == FILES[1])
}

pub const STAT: Benchmark = Benchmark {
    name: "scaling/stat",
    operation: "newfstatat of the same cached file by each user.",
    avoid: "Ask an open file (fstat), or keep the answer.",
    source: "stat(2); Documentation/filesystems/path-lookup.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, UserCopy, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("newfstatat(2)"),
    ..SCALED
};

pub const READ: Benchmark = Benchmark {
    name: "scaling/read",
    operation: "pread64 of the same cached page of 4 KiB by each user, who has opened the file.",
    avoid: "Map the file, or read larger pieces.",
    source: "pread(2); will-it-scale, pread2.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, PageCache, UserCopy, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("pread64(2)"),
    ..SCALED
};

pub const DUP: Benchmark = Benchmark {
    name: "scaling/dup",
    operation: "dup and close of a descriptor of its own by each user; threads share the table of descriptors.",
    avoid: "Give workers that open and close much a table of their own (unshare(CLONE_FILES)), or make them processes.",
    source: "dup(2); will-it-scale, dup1.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("dup(2), close(2)"),
    ..SCALED
};

pub const PIPE: Benchmark = Benchmark {
    name: "scaling/pipe",
    operation: "A write of one byte into a pipe of its own and the read of it by each user.",
    avoid: "Do not send data to the same thread through a pipe; keep it in memory.",
    source: "pipe(7); will-it-scale, pipe1.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, UserCopy, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("write(2), read(2)"),
    ..SCALED
};

pub const WRITE: Benchmark = Benchmark {
    name: "scaling/write",
    operation: "pwrite64 of a page of its own in the page cache by each user: all of one file, or each of a file of its own.",
    avoid: "Give each writer a file of its own: writes to one file wait for each other (inode lock).",
    source: "pwrite(2); will-it-scale, pwrite1.c and pwrite3.c; Documentation/filesystems/locking.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, PageCache, UserCopy, FileSystem, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("pwrite64(2)"),
    cases: |machine| each_with(every_kind(&numbers(machine).0), "file", &FILES),
    thorough_cases: |machine| each_with(every_kind(&numbers(machine).1), "file", &FILES),
    ..SCALED
};

pub const CREATE: Benchmark = Benchmark {
    name: "scaling/create",
    operation: "openat that creates an empty file, close and unlinkat of it by each user, all in one directory.",
    avoid: "Give each worker a directory of its own: changes of one directory wait for each other.",
    source: "open(2); unlink(2); will-it-scale, unlink1.c; Documentation/filesystems/directory-locking.rst",
    crosses: &[KernelEntry, SystemCall, KernelCode, PathLookup, FileSystem, CacheLine],
    crossed_in: |params, boundary| boundary != CacheLine || has_others(params),
    timed: |_| Timed::Whole("openat(2), close(2), unlinkat(2)"),
    ..SCALED
};

pub const DOES_OPEN: Operation = Operation { prepare: opens, switches: false };
pub const DOES_STAT: Operation = Operation { prepare: stats, switches: false };
pub const DOES_READ: Operation = Operation { prepare: reads, switches: false };
pub const DOES_DUP: Operation = Operation { prepare: dups, switches: false };
pub const DOES_WRITE: Operation = Operation { prepare: writes, switches: false };
pub const DOES_CREATE: Operation = Operation { prepare: creates, switches: false };
pub const DOES_PIPE: Operation = Operation { prepare: pipes, switches: false };

fn directory(seat: Seat) -> RawFd {
    seat.words[0] as RawFd
}

/// Makes the file of all users, if it is not there.
pub fn make_shared_file(directory: &DataDir) -> Result<()> {
    make_file(directory.descriptor(), SHARED).or_refused("a file cannot be made").map(drop)
}

fn make_file(directory: RawFd, name: &CStr) -> io::Result<OwnedFd> {
    let file = open(directory, name, libc::O_RDWR | libc::O_CREAT)?;
    let bytes = [1_u8; BYTES];
    // SAFETY: the kernel reads so many bytes.
    checked(unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), BYTES, 0) } as i64)?;
    Ok(file)
}

fn open(directory: RawFd, name: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a C string; the mode is read only for a new file.
    owned(unsafe { libc::openat(directory, name.as_ptr(), flags, 0o600) })
}

fn close(descriptor: i64) -> i64 {
    // SAFETY: the descriptor is this user's, and was opened for this.
    unsafe { call(libc::SYS_close, [descriptor as u64, 0, 0, 0]) }
}

fn opens(seat: Seat) -> io::Result<Box<dyn Work>> {
    let directory = directory(seat);
    let name = match seat.words[1] {
        0 => SHARED.to_owned(),
        _ => CString::new(format!("scaling-own-{}", seat.user))?,
    };
    drop(make_file(directory, &name)?);
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
    calls(move || {
        // SAFETY: an open directory and a C string.
        let opened = unsafe { call(libc::SYS_openat, [directory as u64, name.as_ptr() as u64, flags, 0]) };
        if opened < 0 { opened } else { close(opened) }
    })
}

fn stats(seat: Seat) -> io::Result<Box<dyn Work>> {
    let directory = directory(seat);
    let mut status = Box::new(std::mem::MaybeUninit::<libc::stat>::uninit());
    calls(move || {
        let arguments = [directory as u64, SHARED.as_ptr() as u64, status.as_mut_ptr() as u64, 0];
        // SAFETY: an open directory, a C string, and a structure that is valid for writing.
        unsafe { call(libc::SYS_newfstatat, arguments) }
    })
}

fn reads(seat: Seat) -> io::Result<Box<dyn Work>> {
    let file = open(directory(seat), SHARED, libc::O_RDONLY)?;
    let mut bytes = vec![0_u8; BYTES];
    calls(move || {
        let arguments = [file.as_raw_fd() as u64, bytes.as_mut_ptr() as u64, BYTES as u64, 0];
        // SAFETY: the kernel writes at most so many bytes.
        match unsafe { call(libc::SYS_pread64, arguments) } {
            read if read == BYTES as i64 || read < 0 => read,
            _ => -i64::from(libc::EIO),
        }
    })
}

fn writes(seat: Seat) -> io::Result<Box<dyn Work>> {
    let (name, page) = match seat.words[1] {
        // A page for each user.
        0 => (c"scaling-written".to_owned(), seat.user as u64),
        _ => (CString::new(format!("scaling-written-{}", seat.user))?, 0),
    };
    let file = open(directory(seat), &name, libc::O_RDWR | libc::O_CREAT)?;
    let bytes = vec![2_u8; BYTES];
    calls(move || {
        let arguments = [file.as_raw_fd() as u64, bytes.as_ptr() as u64, BYTES as u64, page * BYTES as u64];
        // SAFETY: the kernel reads so many bytes.
        match unsafe { call(libc::SYS_pwrite64, arguments) } {
            written if written == BYTES as i64 || written < 0 => written,
            _ => -i64::from(libc::EIO),
        }
    })
}

fn creates(seat: Seat) -> io::Result<Box<dyn Work>> {
    let directory = directory(seat) as u64;
    let name = CString::new(format!("scaling-created-{}", seat.user))?;
    let flags = (libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC) as u64;
    calls(move || {
        // SAFETY: an open directory and a C string.
        let opened = unsafe { call(libc::SYS_openat, [directory, name.as_ptr() as u64, flags, 0o600]) };
        if opened < 0 {
            return opened;
        }
        let closed = close(opened);
        // SAFETY: as above; the file is this user's.
        both(closed, unsafe { call(libc::SYS_unlinkat, [directory, name.as_ptr() as u64, 0, 0]) })
    })
}

fn dups(_: Seat) -> io::Result<Box<dyn Work>> {
    // A descriptor of the user's own, so that the file is not what they share.
    let own = io::pipe()?;
    calls(move || {
        // SAFETY: the call takes a number.
        let copy = unsafe { call(libc::SYS_dup, [own.0.as_raw_fd() as u64, 0, 0, 0]) };
        if copy < 0 { copy } else { close(copy) }
    })
}

fn pipes(_: Seat) -> io::Result<Box<dyn Work>> {
    const MESSAGE: usize = 1;
    let (take, give) = io::pipe()?;
    let mut bytes = [0_u8; MESSAGE];
    calls(move || {
        let buffer = bytes.as_mut_ptr() as u64;
        // SAFETY: the kernel reads so many bytes.
        let wrote = unsafe { call(libc::SYS_write, [give.as_raw_fd() as u64, buffer, MESSAGE as u64, 0]) };
        // SAFETY: the kernel writes at most so many bytes.
        let read = unsafe { call(libc::SYS_read, [take.as_raw_fd() as u64, buffer, MESSAGE as u64, 0]) };
        if read >= 0 && read != wrote { -i64::from(libc::EIO) } else { both(wrote, read) }
    })
}
