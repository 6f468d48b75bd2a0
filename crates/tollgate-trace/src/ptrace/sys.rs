#![allow(unsafe_code)] // System calls without a safe wrapper in any crate.

use std::{io, mem, ptr};

use tollgate_arch::{abi::AUDIT_ARCH_32, memory::page_size, registers::Registers};

/// The signal of a system call stop (`PTRACE_O_TRACESYSGOOD`).
pub const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;
/// The event of stops without a signal (`PTRACE_EVENT_STOP`): the first one, and group stops.
pub const EVENT_STOP: i32 = 128;

/// The result of `PTRACE_GET_SYSCALL_INFO` (linux/ptrace.h).
#[repr(C)]
struct RawInfo {
    op: u8,
    pad: [u8; 3],
    arch: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    data: [u64; 8],
}

#[derive(Debug, Clone, Copy)]
pub enum Info {
    Entry { number: i64, is_32_bit: bool, arguments: [u64; 6] },
    Exit { result: i64, is_error: bool },
    None,
}

/// Makes the call that a thread is about to make fail with ENOSYS, like a filter's `SECCOMP_RET_TRACE` without a tracer
/// (seccomp(2)).
///
/// # Errors
/// ESRCH for a thread that was killed in the meantime.
pub fn refuse_call(pid: libc::pid_t) -> io::Result<()> {
    let mut registers = Registers::of(pid)?;
    registers.refuse_call(libc::ENOSYS);
    registers.set(pid)
}

fn request(what: libc::c_uint, pid: libc::pid_t, address: usize, data: usize) -> io::Result<libc::c_long> {
    // SAFETY: callers pass memory that the kernel may write to, or numbers.
    match unsafe { libc::ptrace(what, pid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

pub fn seize(pid: libc::pid_t, options: libc::c_int) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, pid, 0, options as usize).map(|_| ())
}

pub fn interrupt(pid: libc::pid_t) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, pid, 0, 0).map(|_| ())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// To the entry or exit of its next call.
    ToCall,
    /// To any other event.
    Free,
    /// It stays stopped with its whole process, and a SIGCONT is reported.
    Listening,
    Alone,
}

/// Resumes a stopped thread, with a signal or 0. If it was killed in the meantime, the next wait reports that.
pub fn resume(pid: libc::pid_t, on: On, signal: libc::c_int) {
    let what = match on {
        On::ToCall => libc::PTRACE_SYSCALL,
        On::Free => libc::PTRACE_CONT,
        On::Listening => libc::PTRACE_LISTEN,
        On::Alone => libc::PTRACE_DETACH,
    };
    let _ = request(what, pid, 0, signal as usize);
}

/// Returns the message of a thread's current event: the id of a new thread, or its own id before execve(2).
pub fn event_message(pid: libc::pid_t) -> io::Result<libc::pid_t> {
    let mut message: libc::c_ulong = 0;
    request(libc::PTRACE_GETEVENTMSG, pid, 0, &raw mut message as usize)?;
    libc::pid_t::try_from(message).map_err(io::Error::other)
}

/// Returns whether this is the id of a thread other than the leader of its process.
pub fn is_further_thread(tid: libc::pid_t) -> bool {
    // SAFETY: signal 0 only checks for existence.
    unsafe { libc::syscall(libc::SYS_tgkill, tid, tid, 0) != 0 }
}

/// Returns whether a thread is stopped at the entry or exit of a call. `inside` is used on kernels before 5.3, which do not tell.
pub fn info(pid: libc::pid_t, inside: bool) -> io::Result<Info> {
    // SAFETY: zeroes are a valid answer.
    let mut raw: RawInfo = unsafe { mem::zeroed() };
    match request(libc::PTRACE_GET_SYSCALL_INFO, pid, size_of::<RawInfo>(), &raw mut raw as usize) {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Err(error),
        Err(_) => return registers(pid, inside),
    }
    let [first, arguments @ .., _] = raw.data;
    Ok(match raw.op {
        1 | 3 => Info::Entry { number: first as i64, is_32_bit: raw.arch == AUDIT_ARCH_32, arguments },
        2 => Info::Exit { result: first as i64, is_error: raw.data[1] & 0xff != 0 },
        _ => Info::None,
    })
}

fn registers(pid: libc::pid_t, inside: bool) -> io::Result<Info> {
    let registers = Registers::of(pid)?;
    if inside {
        let result = registers.result();
        return Ok(Info::Exit { result, is_error: (-4095..0).contains(&result) });
    }
    let (number, is_32_bit) = (registers.call(), registers.is_32_bit());
    Ok(Info::Entry { number, is_32_bit, arguments: registers.arguments() })
}

/// Reads the memory of a process up to the next page, at most the length of `buffer`. Returns the number of bytes.
pub fn read_memory(pid: libc::pid_t, address: u64, buffer: &mut [u8]) -> usize {
    let to_page = page_size() - address as usize % page_size();
    let length = to_page.min(buffer.len());
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length };
    let remote =
        libc::iovec { iov_base: ptr::with_exposed_provenance_mut(address as usize), iov_len: length };
    // As wide as the kernel takes them: the last one is passed on the stack.
    let (one, flags): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the kernel writes to `buffer`, and checks the other address.
    let read = unsafe {
        libc::syscall(libc::SYS_process_vm_readv, pid, &raw const local, one, &raw const remote, one, flags)
    };
    usize::try_from(read).unwrap_or(0)
}
