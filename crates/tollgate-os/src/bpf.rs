//! bpf(2), whose attributes are a union of structures: include/uapi/linux/bpf.h.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// `BPF_OBJ_GET_INFO_BY_FD`.
const OBJ_INFO: u32 = 15;

/// `union bpf_attr`, as words. The largest command takes 152 bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(8))]
pub struct Attributes([u8; 160]);

impl Attributes {
    /// All zero.
    pub const EMPTY: Self = Self([0; 160]);

    /// With four bytes at an offset.
    #[must_use]
    pub fn word(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    /// With a descriptor at an offset.
    #[must_use]
    pub fn fd(self, at: usize, fd: BorrowedFd) -> Self {
        self.word(at, fd.as_raw_fd() as u32)
    }

    /// With eight bytes at an offset.
    #[must_use]
    pub fn double(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    /// With a name of up to 15 bytes at an offset.
    #[must_use]
    pub fn name(mut self, at: usize, name: &str) -> Self {
        let length = name.len().min(15);
        self.0[at..at + length].copy_from_slice(&name.as_bytes()[..length]);
        self
    }

    /// The four bytes at an offset, which the kernel may have written.
    pub fn word_at(&self, at: usize) -> u32 {
        word_at(&self.0, at)
    }

    /// Executes a command with the first `size` bytes. Returns the call's result.
    ///
    /// # Errors
    /// Those of bpf(2).
    ///
    /// # Safety
    /// Addresses among the attributes must be valid for the command.
    pub unsafe fn call(&mut self, command: u32, size: usize) -> io::Result<i32> {
        // SAFETY: the attributes have at least `size` bytes, and the caller guarantees that their addresses are valid.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.0.as_mut_ptr(), size) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
    }

    /// Executes a command that makes or opens something.
    ///
    /// # Errors
    /// Those of bpf(2).
    ///
    /// # Safety
    /// As for [`Self::call`], and the command must return a new descriptor.
    pub unsafe fn open(&mut self, command: u32, size: usize) -> io::Result<OwnedFd> {
        // SAFETY: guaranteed by the caller.
        let fd = unsafe { self.call(command, size) }?;
        // SAFETY: the kernel has just given us this descriptor.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// Reads the structure that describes an object, such as `struct bpf_prog_info`, up to the length of `info`.
///
/// # Errors
/// Those of bpf(2).
///
/// # Safety
/// Addresses in `info` must be valid for the lengths beside them.
pub unsafe fn information(object: BorrowedFd, info: &mut [u8]) -> io::Result<()> {
    let mut attributes =
        Attributes::EMPTY.fd(0, object).word(4, info.len() as u32).double(8, info.as_mut_ptr() as u64);
    // SAFETY: the kernel writes no more than the given length; the caller guarantees the rest.
    unsafe { attributes.call(OBJ_INFO, 16) }.map(drop)
}

/// Four bytes at an offset, or 0 beyond the end.
pub fn word_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// Eight bytes at an offset, or 0 beyond the end.
pub fn double_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_ne_bytes)
}
