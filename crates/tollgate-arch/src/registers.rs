//! Registers: of a stopped thread, and where the kernel keeps those of a call.

pub use crate::chosen::registers::{AFTER_BREAKPOINT, BREAKPOINT, COMPAT, Registers, SYSTEM_CALL, pt_regs};

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::call::call6;

    /// A child makes two calls, of which the second is refused; it exits with the number of the error.
    #[test]
    fn a_call_is_read_and_refused_by_its_registers() {
        const GIVEN: [u64; 6] = [1, 2, 3, 4, 5, 6];
        // SAFETY: the child makes system calls alone, and getppid(2) ignores its arguments.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above.
            unsafe {
                if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == -1 {
                    libc::_exit(0);
                }
                libc::raise(libc::SIGSTOP);
                call6(libc::SYS_getppid, GIVEN);
                libc::_exit(-call6(libc::SYS_getppid, GIVEN) as libc::c_int);
            }
        }
        assert!(child > 0, "{}", io::Error::last_os_error());
        let mut status = 0;
        let mut wait = || {
            // SAFETY: the status is valid for writing.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            status
        };
        if libc::WIFEXITED(wait()) {
            return eprintln!("skipped: ptrace(2) is refused");
        }
        let mut step = || {
            // SAFETY: the child is stopped, and the request takes numbers.
            assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SYSCALL, child, 0, 0) }, 0);
            wait()
        };
        let in_call = |registers: &Registers| (registers.call(), registers.arguments());
        step();
        let entered = Registers::of(child).expect("registers");
        assert_eq!((in_call(&entered), entered.is_32_bit()), ((libc::SYS_getppid, GIVEN), false));
        step();
        let left = Registers::of(child).expect("registers");
        assert_eq!(left.result(), i64::from(std::process::id()));
        assert_eq!(left.instruction(), entered.instruction());
        step();
        let mut again = Registers::of(child).expect("registers");
        assert_eq!(in_call(&again), (libc::SYS_getppid, GIVEN));
        again.refuse_call(libc::ENOSYS);
        again.set(child).expect("set");
        step();
        // Its exit.
        step();
        assert_eq!(libc::WEXITSTATUS(step()), libc::ENOSYS);
    }
}
