use super::vdso;
use crate::prelude::*;

timed_loop! {
    /// Word 0: the function; word 1 receives the processor's number.
    getcpu: "lea rdi, [r13 + 8]", "xor esi, esi", "xor edx, edx", "call [r13]";
    aarch64 none "the vDSO of arm64 has no getcpu"
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "entry/vdso-getcpu",
    operation: "One getcpu through the vDSO, which reads it from a segment limit or IA32_TSC_AUX.",
    avoid: "Use the cpu_id field of a registered rseq area: one load.",
    source: "getcpu(2); vdso(7)",
    crosses: &[VdsoGetcpu],
    timed: |_| Timed::once("call", TimedLoop::Long(getcpu)),
    kind: Kind::Instance(|timed, _, _| {
        let words = [vdso::find(&[c"__vdso_getcpu", c"getcpu"])?, 0, 0, 0, 0, 0, 0];
        // SAFETY: the vDSO stays mapped; the function writes 4 bytes to word 1.
        Ok(unsafe { Loop::new(timed, words, None, checks::zero) }?.here())
    }),
    ..PLAIN
};
