//! bpf(2): programs, links, and the kernel's types; for maps see [`memory`]. Each lives as long as its descriptor.

#![allow(unsafe_code)] // bpf(2) takes addresses in a union, and the memory of maps is shared with the kernel.

mod memory;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use tollgate_os::bpf::{Attributes, double_at, information, word_at};

pub(super) use memory::{MOST_PROCESSORS, Map, MapKind, Mapped, Shared};

// Commands, and the type of our programs: include/uapi/linux/bpf.h.
const PROG_LOAD: u32 = 5;
const RAW_TRACEPOINT_OPEN: u32 = 17;
const BTF_BY_ID: u32 = 19;
const LINK_CREATE: u32 = 28;
const ITER_CREATE: u32 = 33;
const PROG_TYPE_TRACING: u32 = 26;
/// The id of vmlinux's own types: the first that the kernel registers.
const VMLINUX_BTF: u32 = 1;

#[derive(Debug, Clone, Copy)]
pub(super) struct ToLoad<'a> {
    pub name: &'a str,
    pub words: &'a [u64],
    pub attach_type: u32,
    /// The BTF id of the type of the program's context.
    pub attach_id: u32,
}

pub(super) const TRACE_RAW_TRACEPOINT: u32 = 23;
pub(super) const TRACE_ITERATOR: u32 = 28;

#[derive(Debug)]
pub(super) struct Refused {
    pub error: io::Error,
    pub log: String,
}

/// Loads a program; if the verifier refuses it, loads it again with a log.
pub(super) fn load(program: ToLoad) -> Result<OwnedFd, Refused> {
    let error = match load_with_log(program, &mut []) {
        Ok(fd) => return Ok(fd),
        Err(error) => error,
    };
    let mut log = vec![0u8; 1 << 20];
    let error = match load_with_log(program, &mut log) {
        Ok(fd) => return Ok(fd),
        // A log that is too short is not the reason.
        Err(again) if again.raw_os_error() == Some(libc::ENOSPC) => error,
        Err(again) => again,
    };
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    Err(Refused { error, log: String::from_utf8_lossy(&log[..end]).into_owned() })
}

fn load_with_log(program: ToLoad, log: &mut [u8]) -> io::Result<OwnedFd> {
    const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";
    let mut attributes = Attributes::EMPTY
        .word(0, PROG_TYPE_TRACING)
        .word(4, program.words.len() as u32)
        .double(8, program.words.as_ptr() as u64)
        .double(16, LICENSE.as_ptr() as u64)
        .name(48, program.name)
        .word(68, program.attach_type)
        .word(108, program.attach_id);
    if !log.is_empty() {
        attributes = attributes.word(24, 1).word(28, log.len() as u32).double(32, log.as_mut_ptr() as u64);
    }
    // SAFETY: instructions, license and log are valid for their lengths during the call.
    unsafe { attributes.open(PROG_LOAD, 144) }
}

pub(super) fn attach(program: &OwnedFd) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::EMPTY.fd(8, program.as_fd());
    // SAFETY: there are no addresses, and a link is a descriptor.
    unsafe { attributes.open(RAW_TRACEPOINT_OPEN, 16) }
}

pub(super) fn iterate(program: &OwnedFd) -> io::Result<()> {
    let mut attributes = Attributes::EMPTY.fd(0, program.as_fd()).word(8, TRACE_ITERATOR);
    // SAFETY: there are no addresses, and a link is a descriptor.
    let link = unsafe { attributes.open(LINK_CREATE, 48) }?;
    let mut attributes = Attributes::EMPTY.fd(0, link.as_fd());
    // SAFETY: as above; an iterator is a descriptor.
    let iterator = unsafe { attributes.open(ITER_CREATE, 8) }?;
    let mut buffer = [0u8; 64];
    while rustix::io::read(&iterator, &mut buffer)? > 0 {}
    Ok(())
}

/// Returns how many runs of a program were skipped because it was active on the same processor.
pub(super) fn misses(program: &OwnedFd) -> io::Result<u64> {
    let mut info = [0u8; 232];
    // SAFETY: the structure of a program has no addresses yet.
    unsafe { information(program.as_fd(), &mut info) }?;
    // recursion_misses of struct bpf_prog_info.
    Ok(double_at(&info, 208))
}

/// Reads the kernel's types by bpf(2), for a system without /sys; needs CAP_SYS_ADMIN.
pub(super) fn vmlinux_types() -> io::Result<Vec<u8>> {
    let mut attributes = Attributes::EMPTY.word(0, VMLINUX_BTF);
    // SAFETY: there are no addresses, and the result is a descriptor.
    let fd = unsafe { attributes.open(BTF_BY_ID, 16) }?;
    let length = word_at(&types_info(&fd, &mut [])?, 8) as usize;
    let mut bytes = vec![0u8; length.min(64 << 20)];
    types_info(&fd, &mut bytes)?;
    Ok(bytes)
}

/// Returns `struct bpf_btf_info`, and the types themselves in `bytes`.
fn types_info(fd: &OwnedFd, bytes: &mut [u8]) -> io::Result<[u8; 32]> {
    let mut info = [0u8; 32];
    info[..8].copy_from_slice(&(bytes.as_mut_ptr() as u64).to_ne_bytes());
    info[8..12].copy_from_slice(&(bytes.len() as u32).to_ne_bytes());
    // SAFETY: the kernel writes no more bytes than the structure says.
    unsafe { information(fd.as_fd(), &mut info) }?;
    Ok(info)
}
