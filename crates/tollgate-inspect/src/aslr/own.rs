//! Where tracing is refused, this program starts copies of itself, and each copy prints its addresses.

#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{io::Write, os::unix::ffi::OsStrExt, os::unix::process::CommandExt};

use super::{LARGE, NoStart, Region, SMALL, Sighting};

/// The first argument of a copy.
const NAME: &str = "tollgate-aslr";
/// The regions that a copy prints, in this order.
const PRINTED: [Region; 8] = [
    Region::Code,
    Region::Heap,
    Region::Stack,
    Region::Arguments,
    Region::Vdso,
    Region::ThreadStorage,
    Region::Mapping,
    Region::LargeMapping,
];
/// `ARCH_GET_FS` of arch_prctl(2).
const ARCH_GET_FS: libc::c_int = 0x1003;

/// To be called first in a program that measures its own address space: a copy prints its addresses and exits.
pub fn serve_if_worker() {
    if std::env::args_os().next().as_deref() == Some(OsStr::new(NAME)) {
        let words = where_we_are().map(|address| format!("{address:x}\n")).concat();
        let written = std::io::stdout().write_all(words.as_bytes());
        std::process::exit(if written.is_ok() { 0 } else { 1 });
    }
}

fn where_we_are() -> [u64; PRINTED.len()] {
    // SAFETY: getauxval(3) takes any number; 0 is "no such entry".
    let auxv = |kind| unsafe { libc::getauxval(kind) };
    let mut thread: u64 = 0;
    // SAFETY: writes one word, which is there; brk(2) of 0 moves nothing.
    let heap = unsafe {
        libc::syscall(libc::SYS_arch_prctl, ARCH_GET_FS, &raw mut thread);
        libc::syscall(libc::SYS_brk, 0)
    };
    let random = auxv(libc::AT_RANDOM);
    let (small, large) = (map(SMALL), map(LARGE));
    [
        auxv(libc::AT_ENTRY),
        heap.cast_unsigned(),
        random,
        auxv(libc::AT_EXECFN),
        auxv(libc::AT_SYSINFO_EHDR),
        thread,
        small,
        large,
    ]
}

/// The address of new memory; 0 where the kernel refuses. It is not unmapped: the process ends at once.
fn map(bytes: u64) -> u64 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory, where the kernel likes it.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes as usize, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED { 0 } else { address as u64 }
}

/// This program's own file: by the link in `/proc`, or where that is not mounted by the path it was started with.
pub(super) fn path() -> Option<PathBuf> {
    std::env::current_exe().ok().or_else(|| {
        // SAFETY: getauxval(3) takes any number; 0 is "no such entry".
        let address = unsafe { libc::getauxval(libc::AT_EXECFN) };
        let name = std::ptr::with_exposed_provenance::<libc::c_char>(usize::try_from(address).ok()?);
        // SAFETY: the kernel put a text there that ends in NUL and lives as long as the process.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
        Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
    })
}

/// Starts a copy of this program and reads its addresses.
pub(super) fn observe(own: &Path) -> Result<Sighting, NoStart> {
    let mut command = Command::new(own);
    command.arg0(NAME).stdin(Stdio::inherit()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| NoStart::Failed("execve", error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<u64> = text.lines().map_while(|line| u64::from_str_radix(line, 16).ok()).collect();
    if !output.status.success() || words.len() != PRINTED.len() {
        return Err(NoStart::Unclear("the copy of this program did not print its addresses"));
    }
    let mut sighting = Sighting::default();
    for (region, address) in PRINTED.into_iter().zip(words) {
        sighting.note(region, Some(address));
    }
    Ok(sighting)
}

/// The personality(2) of this process, which its children inherit.
pub(super) fn personality() -> Option<u32> {
    /// "Do not set": linux/personality.h.
    const ASK: libc::c_ulong = 0xffff_ffff;
    // SAFETY: asks, and changes nothing.
    u32::try_from(unsafe { libc::personality(ASK) }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_where_it_is() {
        let words = where_we_are();
        let local = std::ptr::from_ref(&words) as u64;
        let function = where_we_are as *const () as u64;
        assert!(words[0].abs_diff(function) < 1 << 30, "the code is in one piece");
        assert!(words[3] > words[2], "arguments lie above the stack");
        assert!(local != 0 && words[6].is_multiple_of(SMALL) && words[7].is_multiple_of(SMALL));
        // SAFETY: mapped above, and no reference to it is left.
        unsafe {
            libc::munmap(words[6] as *mut libc::c_void, SMALL as usize);
            libc::munmap(words[7] as *mut libc::c_void, LARGE as usize);
        }
    }
}
