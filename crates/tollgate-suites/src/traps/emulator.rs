//! The kernel module that emulates the invalid opcodes, in a guest that this program makes.
//!
//! `crates/tollgate-environments/src/vm/module/tollgate_emulate.c` is its source; the orders below are those of its ioctl(2). It
//! changes nothing while its device is closed.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;

use tollgate_model::text::{excerpt, plainly};

use crate::prelude::*;

const DEVICE: &str = "/dev/tollgate-emulate";
/// Files from a guest's `/init` (tollgate-environments/src/vm/layout.rs): its mark, its module, and why there is none.
const GUEST: &str = "/tollgate/guest";
const MODULE: &str = "/tollgate/emulate.ko";
const WHY_NOT: &str = "/tollgate/emulate.why";

/// Limit of iterations in a batch in ring 0 (`MOST_ITERATIONS`).
pub(super) const MOST_ITERATIONS: u64 = 4096;

/// Returns an ioctl(2) number of type `t` (asm-generic/ioctl.h).
const fn order(number: u32, reads: bool, writes: bool, size: usize) -> libc::Ioctl {
    let direction = (reads as u32) << 1 | writes as u32;
    (direction << 30 | (size as u32) << 16 | (b't' as u32) << 8 | number) as libc::Ioctl
}

const WATCH: libc::Ioctl = order(1, false, false, 0);
const UNWATCH: libc::Ioctl = order(2, true, false, size_of::<u64>());
const ONE: libc::Ioctl = order(3, true, true, size_of::<One>());
const BATCH: libc::Ioctl = order(4, true, true, size_of::<RingZero>());

/// One instruction in ring 0 (`struct one`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct One {
    opcode: u32,
    base: u32,
    exponent: u32,
    result: u32,
    emulated: u64,
}

/// A batch in ring 0 (`struct batch`). Times are ticks of the time stamp counter.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RingZero {
    /// 0 for `lock mov`, 1 for `ud1`.
    pub opcode: u32,
    /// eax after the last instruction.
    pub result: u32,
    /// Iterations of the timed loop, each of ten instructions.
    pub iterations: u64,
    pub empty_iterations: u64,
    pub empty_before: u64,
    pub work: u64,
    pub empty_after: u64,
    pub emulated: u64,
    /// The address of the timed loop's function in the kernel.
    pub entry: u64,
}

pub(super) struct Emulator(File);

impl Emulator {
    /// Opens the device; loads the module if necessary.
    pub fn open() -> Result<Self> {
        let open = || File::options().read(true).write(true).open(DEVICE);
        match open() {
            Ok(device) => return Ok(Self(device)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Refusal::new(DEVICE, &error)),
        }
        load()?;
        open().map(Self).or_refused(DEVICE)
    }

    pub fn watch(&self) -> io::Result<()> {
        watch(self.0.as_raw_fd())
    }

    /// Ends the emulation. Returns how many instructions were emulated.
    pub fn unwatch(&self) -> io::Result<u64> {
        let mut emulated = 0u64;
        // SAFETY: the order writes eight bytes through the pointer.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), UNWATCH, &raw mut emulated) })?;
        Ok(emulated)
    }

    /// Runs one instruction in ring 0. Returns its result, and how often it trapped.
    pub fn one(&self, opcode: u32, base: u32, exponent: u32) -> io::Result<(u32, u64)> {
        let mut one = One { opcode, base, exponent, ..One::default() };
        // SAFETY: the order reads and writes a structure of this size and layout.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), ONE, &raw mut one) })?;
        Ok((one.result, one.emulated))
    }

    pub fn batch(&self, mut batch: RingZero) -> io::Result<RingZero> {
        // SAFETY: as above.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), BATCH, &raw mut batch) })?;
        Ok(batch)
    }

    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Makes the module emulate for the calling process. Allocates nothing, so a forked child may call it.
pub(super) fn watch(device: RawFd) -> io::Result<()> {
    // SAFETY: the order takes no argument.
    checked(unsafe { libc::ioctl(device, WATCH) }).map(drop)
}

fn load() -> Result<()> {
    if !Path::new(GUEST).exists() {
        return Err(skip!("the module is for a guest of tollgate's own: --in vm"));
    }
    let module = match File::open(MODULE) {
        Ok(module) => module,
        Err(_) => {
            let why = fs::read_to_string(WHY_NOT).unwrap_or_else(|_| "the guest was given none".to_owned());
            return Err(skip!("there is no module: {}", excerpt(&why)));
        }
    };
    let none = CString::default();
    // SAFETY: finit_module(2) reads the file and the text, which outlive the call.
    match checked(unsafe { libc::syscall(libc::SYS_finit_module, module.as_raw_fd(), none.as_ptr(), 0) }) {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        Err(error) => Err(skip!("the module is not loaded: {}", plainly(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_have_the_numbers_of_the_modules_source() {
        // _IO('t', 1), _IOR('t', 2, u64), _IOWR('t', 3, struct one), _IOWR('t', 4, struct batch).
        let numbers = [WATCH, UNWATCH, ONE, BATCH].map(|order| order as u32);
        assert_eq!(numbers, [0x0000_7401, 0x8008_7402, 0xc018_7403, 0xc040_7404]);
    }

    #[test]
    fn outside_a_guest_of_ours_there_is_none() {
        if Path::new(GUEST).exists() {
            println!("skipped: this is a guest of tollgate's");
            return;
        }
        let refused = Emulator::open().err();
        assert_eq!(refused, Some(skip!("the module is for a guest of tollgate's own: --in vm")));
    }
}
