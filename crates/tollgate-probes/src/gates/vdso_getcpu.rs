//! The processor's number without entering the kernel.

use crate::bench::timed::timed_loop;
use crate::bench::{Loop, TimedLoop};
use crate::probe::{Probe, never_absent, one_case};

use super::{results, vdso};

timed_loop! {
    /// Word 0: the function; word 1: where the processor's number goes.
    getcpu: "lea rdi, [r13 + 8]", "xor esi, esi", "xor edx, edx", "call [r13]"
}

pub(super) static PROBE: Probe = Probe {
    name: "gates/vdso-getcpu",
    operation: "One getcpu through the vDSO, which reads it from a segment limit or IA32_TSC_AUX.",
    instruction: "call",
    timed: TimedLoop::Long(getcpu),
    against: None,
    cases: one_case,
    arm: |probe, _| {
        let words = [vdso::find(&[c"__vdso_getcpu", c"getcpu"])?, 0, 0, 0, 0, 0, 0];
        // SAFETY: the vDSO stays mapped; the function writes 4 bytes to word 1.
        Ok(unsafe { Loop::new(probe.timed, words, None, results::zero) }?.here())
    },
    absence: never_absent,
};
