//! The calls that create processes and threads. C library functions are called where programs use them; plain system calls are
//! written in instructions. These calls are measured, so fork(2) and waitpid(2) are not those of `tollgate_os`.

use std::ffi::{CStr, c_char};
use std::io;

use tollgate_arch::child::{clone3_and_leave, vfork_and_exec, vfork_and_leave};

pub(super) fn fork_and_leave() -> io::Result<libc::pid_t> {
    // SAFETY: the child only exits.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: ends the child without running the parent's destructors.
        0 => unsafe { libc::_exit(0) },
        pid => Ok(pid),
    }
}

pub(super) fn vfork() -> io::Result<libc::pid_t> {
    // SAFETY: the child runs on our stack and touches none of it, see [`vfork_and_leave`].
    made(unsafe { vfork_and_leave() })
}

/// Makes a child by clone3(2) that exits at once: a fork without the C library.
pub(super) fn clone3() -> io::Result<libc::pid_t> {
    let arguments = CloneArguments { exit_signal: libc::SIGCHLD as u64, ..CloneArguments::default() };
    // SAFETY: the arguments are live and have the given size; the child only exits.
    made(unsafe { clone3_and_leave((&raw const arguments).cast(), size_of::<CloneArguments>()) })
}

/// Starts a program by fork(3) and execve(2), as a shell does.
pub(super) fn fork_exec(path: &CStr, arguments: &[*const c_char]) -> io::Result<libc::pid_t> {
    let environment = [std::ptr::null()];
    // SAFETY: the child calls only async-signal-safe functions; path and arguments end in a null.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: as above.
        0 => unsafe {
            libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            libc::_exit(*libc::__errno_location())
        },
        pid => Ok(pid),
    }
}

pub(super) fn vfork_exec(path: &CStr, arguments: &[*const c_char]) -> io::Result<libc::pid_t> {
    let environment = [std::ptr::null()];
    // SAFETY: path, arguments and environment end in a null; the child touches none of our stack, see [`vfork_and_exec`].
    made(unsafe { vfork_and_exec(path.as_ptr(), arguments.as_ptr(), environment.as_ptr()) })
}

pub(super) fn posix_spawn(path: &CStr, arguments: &[*const c_char]) -> io::Result<libc::pid_t> {
    let environment = [std::ptr::null_mut()];
    let mut pid = 0;
    // SAFETY: path, arguments and environment end in a null; the call writes to none of them.
    let error = unsafe {
        libc::posix_spawn(
            &mut pid,
            path.as_ptr(),
            std::ptr::null(),
            std::ptr::null(),
            arguments.as_ptr().cast(),
            environment.as_ptr(),
        )
    };
    if error == 0 { Ok(pid) } else { Err(io::Error::from_raw_os_error(error)) }
}

pub(super) fn wait_for(pid: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: `status` is valid for writing.
    match unsafe { libc::waitpid(pid, &mut status, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(status),
    }
}

pub(super) fn thread() -> io::Result<libc::pthread_t> {
    extern "C" fn end(nothing: *mut libc::c_void) -> *mut libc::c_void {
        nothing
    }
    let mut handle = 0;
    // SAFETY: `handle` is valid for writing; the thread takes nothing.
    let error = unsafe { libc::pthread_create(&mut handle, std::ptr::null(), end, std::ptr::null_mut()) };
    if error == 0 { Ok(handle) } else { Err(io::Error::from_raw_os_error(error)) }
}

pub(super) fn join(handle: libc::pthread_t) -> io::Result<()> {
    // SAFETY: the caller has just made this thread and joins it once.
    let error = unsafe { libc::pthread_join(handle, std::ptr::null_mut()) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Converts the result of a raw call: a process ID, or a negative error number.
fn made(result: i64) -> io::Result<libc::pid_t> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result as i32)) } else { Ok(result as libc::pid_t) }
}

/// `struct clone_args` (clone3(2)), in its first version.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, Register};
    use tollgate_engine::{Architecture, HERE};

    use super::*;

    /// Returns the numbers of the system calls in the code.
    fn calls_of(entry: *const u8) -> Vec<u64> {
        // SAFETY: the bytes lie in this program's own code, which is longer than that.
        let bytes = unsafe { std::slice::from_raw_parts(entry, 64) };
        let mut number = 0;
        let mut calls = Vec::new();
        for instruction in Decoder::with_ip(64, bytes, entry as u64, DecoderOptions::NONE) {
            if instruction.flow_control() == FlowControl::Return {
                break;
            }
            match instruction.mnemonic() {
                Mnemonic::Mov if instruction.op0_register() == Register::EAX => {
                    number = instruction.immediate(1)
                }
                Mnemonic::Syscall => calls.push(number),
                Mnemonic::Push | Mnemonic::Pop | Mnemonic::Call => {
                    panic!("it touches the stack: {instruction}")
                }
                _ => {}
            }
        }
        calls
    }

    #[test]
    fn a_parent_makes_one_call_and_touches_no_stack() {
        if HERE != Architecture::X86_64 {
            return println!("skipped: the decoder is x86-64's");
        }
        assert_eq!(calls_of(vfork_and_leave as *const u8), [58]);
        assert_eq!(calls_of(clone3_and_leave as *const u8), [435]);
        assert_eq!(calls_of(vfork_and_exec as *const u8), [58]);
    }
}
