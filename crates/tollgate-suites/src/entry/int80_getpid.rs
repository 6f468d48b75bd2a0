use super::{int80, results};
use crate::prelude::*;

timed_loop! {
    /// Number 20 in the 32-bit table, which INT 80h also uses from 64-bit code.
    getpid: called "mov eax, 20", "int 0x80"; aarch64 none "INT 80h is an instruction of x86"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/int80-getpid",
    operation: "One getpid by INT 80h (number 20 in the 32-bit table), from 64-bit code.",
    avoid: "Use SYSCALL from 64-bit code: INT goes through a gate of the IDT and returns by IRET.",
    source: "Intel SDM vol. 2, INT n; getpid(2)",
    crosses: &[KernelEntry, SystemCall, KernelCode, CompatEntry, Exception],
    beside: &[
        ("entry/int80", "a call that the kernel refuses at once"),
        ("entry/syscall-getpid", "the same call by SYSCALL"),
    ],
    timed: |_| Timed::once("int", TimedLoop::Long(getpid)),
    kind: Kind::Instance(|timed, _, _| {
        let mut timed = Loop::without_context(timed, results::own_pid)?;
        // Some sandboxes allow the gate but refuse every call that enters through it.
        match timed.try_once() as i32 {
            refused if refused == -libc::ENOSYS => {
                Err(skip!("int 0x80 works, but every 32-bit call fails (ENOSYS)"))
            }
            _ => Ok(timed.here()),
        }
    }),
    absence: int80::ABSENCE,
    ..PLAIN
};
