//! The interrupt gate, for a call that does something.

use tollgate_model::Boundary::{CompatEntry, Exception, KernelCode, KernelEntry, SystemCall};

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, Refusal, Timed, TimedLoop};
use crate::probe::{PLAIN, Probe};

use super::{int80, results};

timed_loop! {
    /// Number 20 in the 32-bit table, which INT 80h uses also from 64-bit code.
    getpid: "mov eax, 20", "int 0x80"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/int80-getpid",
    operation: "One getpid by INT 80h (number 20 in the 32-bit table), from 64-bit code.",
    crosses: &[KernelEntry, SystemCall, KernelCode, CompatEntry, Exception],
    timed: |_| Timed::once("int", TimedLoop::Long(getpid)),
    arm: |probe, params| {
        // SAFETY: the loop needs nothing from its context.
        let mut trial = unsafe { Loop::new((probe.timed)(params), [0; 7], None, results::any) }?;
        // Some sandboxes let the gate through and know no call behind it.
        match trial.try_once() as i32 {
            refused if refused == -libc::ENOSYS => Err(Refusal::Skip(
                "int 0x80 is answered, but every 32-bit call is refused (ENOSYS)".to_owned(),
            )),
            // SAFETY: as above.
            _ => Ok(unsafe { Loop::new((probe.timed)(params), [0; 7], None, results::own_pid) }?.here()),
        }
    },
    absence: int80::absence,
    ..PLAIN
};
