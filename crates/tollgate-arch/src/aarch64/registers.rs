//! Registers: of a stopped thread, and where the kernel keeps those of a call.

use std::{io, mem};

/// The registers of a thread that is stopped under ptrace(2).
#[derive(Clone, Copy)]
pub struct Registers {
    general: libc::user_regs_struct,
    /// The number of the call that the thread is in, or -1.
    call: i32,
    thread_storage: u64,
}

/// Sets of registers (linux/elf.h).
const NT_PRSTATUS: libc::c_int = 1;
const NT_ARM_TLS: libc::c_int = 0x401;
const NT_ARM_SYSTEM_CALL: libc::c_int = 0x404;

impl Registers {
    /// Reads the registers of a thread.
    ///
    /// # Errors
    /// The error of `PTRACE_GETREGSET`, or that the program is a 32-bit one, whose register sets differ.
    pub fn of(thread: libc::pid_t) -> io::Result<Self> {
        // SAFETY: registers are numbers, for which zeros are valid.
        let mut registers: Self = unsafe { mem::zeroed() };
        let Self { general, call, thread_storage } = &mut registers;
        if exchange(libc::PTRACE_GETREGSET, thread, NT_PRSTATUS, general)? != size_of_val(general) {
            let error = "the registers of 32-bit programs are not read on arm64";
            return Err(io::Error::new(io::ErrorKind::Unsupported, error));
        }
        exchange(libc::PTRACE_GETREGSET, thread, NT_ARM_SYSTEM_CALL, call)?;
        exchange(libc::PTRACE_GETREGSET, thread, NT_ARM_TLS, thread_storage)?;
        Ok(registers)
    }

    /// Writes the registers to a thread.
    ///
    /// # Errors
    /// The error of `PTRACE_SETREGSET`.
    pub fn set(&self, thread: libc::pid_t) -> io::Result<()> {
        let Self { mut general, mut call, .. } = *self;
        exchange(libc::PTRACE_SETREGSET, thread, NT_PRSTATUS, &mut general)?;
        exchange(libc::PTRACE_SETREGSET, thread, NT_ARM_SYSTEM_CALL, &mut call).map(drop)
    }

    /// Whether the thread runs 32-bit code, which [`Registers::of`] refuses.
    pub fn is_32_bit(&self) -> bool {
        false
    }

    /// The address of the thread's next instruction.
    pub fn instruction(&self) -> u64 {
        self.general.pc
    }

    /// Lets the thread continue at an address.
    pub fn go_to(&mut self, address: u64) {
        self.general.pc = address;
    }

    /// The thread's stack pointer.
    pub fn stack(&self) -> u64 {
        self.general.sp
    }

    /// The address of the thread-local storage.
    pub fn thread_storage(&self) -> u64 {
        self.thread_storage
    }

    /// The number of the call that the thread is in.
    pub fn call(&self) -> i64 {
        i64::from(self.call)
    }

    /// The arguments of a call; after it, the first is its result. The first is also that of a function.
    pub fn arguments(&self) -> [u64; 6] {
        let [a, b, c, d, e, f, ..] = self.general.regs;
        [a, b, c, d, e, f]
    }

    /// The result of a call.
    pub fn result(&self) -> i64 {
        self.general.regs[0].cast_signed()
    }

    /// Changes the result of a call, or of a function.
    pub fn set_result(&mut self, result: i64) {
        self.general.regs[0] = result.cast_unsigned();
    }

    /// Sets the number and the arguments that an instruction for a system call takes. The thread then counts as outside any call
    /// that the kernel might restart.
    pub fn prepare_call(&mut self, number: u64, arguments: [u64; 6]) {
        self.general.regs[..6].copy_from_slice(&arguments);
        self.general.regs[8] = number;
        self.call = -1;
    }

    /// Makes the pending call fail. No call has the number -1, so the kernel leaves the result as it is.
    pub fn refuse_call(&mut self, errno: libc::c_int) {
        self.call = -1;
        self.set_result(i64::from(-errno));
    }
}

/// Reads or writes one set. Returns its size in bytes.
fn exchange<T>(
    request: libc::c_uint,
    thread: libc::pid_t,
    set: libc::c_int,
    value: &mut T,
) -> io::Result<usize> {
    let mut place = libc::iovec { iov_base: (&raw mut *value).cast(), iov_len: size_of::<T>() };
    // SAFETY: the kernel reads or writes within the value, which holds numbers alone.
    match unsafe { libc::ptrace(request, thread, set as usize, &raw mut place) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(place.iov_len),
    }
}

/// BRK #0.
pub const BREAKPOINT: &[u8] = &0xd420_0000_u32.to_le_bytes();
/// How many bytes after the breakpoint the thread stops: BRK is a fault.
pub const AFTER_BREAKPOINT: u64 = 0;
/// SVC #0.
pub const SYSTEM_CALL: &[u8] = &0xd400_0001_u32.to_le_bytes();

/// The field of the kernel's `struct thread_info` and its bits that say that a call is of the 32-bit table (`TIF_32BIT` of
/// asm/thread_info.h).
pub const COMPAT: (&str, i32) = ("flags", 1 << 22);

/// Offsets in the kernel's `struct pt_regs` (arch/arm64/include/asm/ptrace.h).
pub mod pt_regs {
    /// The number of the call, 32 bits wide; negative if an interrupt or a fault entered the kernel.
    pub const CALL: i16 = 280;
    /// The first four arguments of a call. The kernel saves the first separately, because the result overwrites its register.
    pub const ARGUMENTS: [i16; 4] = [272, 8, 16, 24];
    /// The first two arguments of a 32-bit call.
    pub const ARGUMENTS_32: [i16; 2] = [272, 8];
}
