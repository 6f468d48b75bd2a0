//! Registers: of a stopped thread, and where the kernel keeps those of a call.

use std::{io, mem};

/// The code segment of 32-bit programs: `__USER32_CS` of arch/x86/include/asm/segment.h.
const USER32_CS: u64 = 0x23;

/// The registers of a thread that is stopped under ptrace(2).
#[derive(Clone, Copy)]
pub struct Registers(libc::user_regs_struct);

impl Registers {
    /// Reads the registers of a thread.
    ///
    /// # Errors
    /// The error of `PTRACE_GETREGS`.
    pub fn of(thread: libc::pid_t) -> io::Result<Self> {
        // SAFETY: registers are numbers, for which zeros are valid.
        let mut registers: libc::user_regs_struct = unsafe { mem::zeroed() };
        // SAFETY: the kernel writes the structure.
        let answer = unsafe { libc::ptrace(libc::PTRACE_GETREGS, thread, 0, &raw mut registers) };
        if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(Self(registers)) }
    }

    /// Writes the registers to a thread.
    ///
    /// # Errors
    /// The error of `PTRACE_SETREGS`.
    pub fn set(&self, thread: libc::pid_t) -> io::Result<()> {
        // SAFETY: the kernel reads the structure.
        let answer = unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, 0, &raw const self.0) };
        if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Whether the thread runs 32-bit code.
    pub fn is_32_bit(&self) -> bool {
        self.0.cs == USER32_CS
    }

    /// The address of the thread's next instruction.
    pub fn instruction(&self) -> u64 {
        self.0.rip
    }

    /// Lets the thread continue at an address.
    pub fn go_to(&mut self, address: u64) {
        self.0.rip = address;
    }

    /// The thread's stack pointer.
    pub fn stack(&self) -> u64 {
        self.0.rsp
    }

    /// The address of the thread-local storage.
    pub fn thread_storage(&self) -> u64 {
        if self.is_32_bit() { self.0.gs_base } else { self.0.fs_base }
    }

    /// The number of the call that the thread is in.
    pub fn call(&self) -> i64 {
        i64::from(self.0.orig_rax as i32)
    }

    /// The arguments of a call. The first is also that of a function.
    pub fn arguments(&self) -> [u64; 6] {
        let r = &self.0;
        if self.is_32_bit() {
            [r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.rbp]
        } else {
            [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]
        }
    }

    /// The result of a call.
    pub fn result(&self) -> i64 {
        if self.is_32_bit() { i64::from(self.0.rax as i32) } else { self.0.rax.cast_signed() }
    }

    /// Changes the result of a call, or of a function.
    pub fn set_result(&mut self, result: i64) {
        self.0.rax = result.cast_unsigned();
    }

    /// Sets the number and the arguments that an instruction for a system call takes. The thread then counts as outside any call
    /// that the kernel might restart.
    pub fn prepare_call(&mut self, number: u64, [a, b, c, d, e, f]: [u64; 6]) {
        let is_32_bit = self.is_32_bit();
        let r = &mut self.0;
        if is_32_bit {
            (r.rbx, r.rcx, r.rdx) = (a, b, c);
            (r.rsi, r.rdi, r.rbp) = (d, e & u64::from(u32::MAX), f);
        } else {
            (r.rdi, r.rsi, r.rdx) = (a, b, c);
            (r.r10, r.r8, r.r9) = (d, e, f);
        }
        (r.rax, r.orig_rax) = (number, u64::MAX);
    }

    /// Makes the pending call fail. No call has the number -1, so the kernel leaves the result as it is.
    pub fn refuse_call(&mut self, errno: libc::c_int) {
        self.0.orig_rax = u64::MAX;
        self.set_result(i64::from(-errno));
    }
}

/// INT3.
pub const BREAKPOINT: &[u8] = &[0xcc];
/// How many bytes after the breakpoint the thread stops: INT3 is a trap.
pub const AFTER_BREAKPOINT: u64 = 1;
/// SYSCALL.
pub const SYSTEM_CALL: &[u8] = &[0x0f, 0x05];

/// The field of the kernel's `struct thread_info` and its bits that say that a call came through an entry of the 32-bit table
/// (`TS_COMPAT` of asm/thread_info.h).
pub const COMPAT: (&str, i32) = ("status", 2);

/// Offsets in the kernel's `struct pt_regs` (arch/x86/include/asm/ptrace.h).
pub mod pt_regs {
    /// The number of the call, 32 bits wide; negative if an interrupt or a fault entered the kernel.
    pub const CALL: i16 = 120;
    /// The first four arguments of a call.
    pub const ARGUMENTS: [i16; 4] = [112, 104, 96, 56];
    /// The first two arguments of a 32-bit call.
    pub const ARGUMENTS_32: [i16; 2] = [40, 88];
}
