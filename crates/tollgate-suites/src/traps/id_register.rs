use super::handler::TRAP;
use crate::prelude::*;

timed_loop! {
    /// Word 0: the register's value; 1: how reads differed from it, combined by OR, which is the result too.
    read: called none "programs of x86-64 read features by CPUID, without the kernel: entry/vm-exit has it";
    aarch64
        "mrs x0, id_aa64isar0_el1",
        "ldr x9, [x20]", "eor x0, x0, x9", "ldr x9, [x20, #8]", "orr x0, x0, x9", "str x0, [x20, #8]"
}

tollgate_arch::code! {
    fn value() -> u64 { "ud2" } aarch64 { "mrs x0, id_aa64isar0_el1", "ret" }
}

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "traps/id-register",
    operation: "One read of ID_AA64ISAR0_EL1, which is undefined outside the kernel: the exception makes the kernel decode it and give the value that programs may see.",
    avoid: "Ask getauxval(3) AT_HWCAP, once.",
    source: "Linux Documentation/arch/arm64/cpu-feature-registers.rst; try_emulate_mrs(), arch/arm64/kernel/cpufeature.c",
    crosses: &[KernelEntry, Exception, KernelCode],
    beside: &[("traps/breakpoint", "an exception that a handler of the program answers")],
    timed: |_| Timed::once("mrs", TimedLoop::Long(read)),
    kind: Kind::Instance(|timed, _, _| {
        if !tollgate_arch::features::emulates_id_registers() {
            return Err(skip!("the kernel emulates no reads of ID registers (HWCAP_CPUID)"));
        }
        // SAFETY: the kernel executes it.
        let expected = unsafe { value() };
        let check = |differences: u64| match differences {
            0 => Ok(()),
            _ => Err(format!("two reads differed in the bits {differences:#x}")),
        };
        // SAFETY: the loop uses two words of its context.
        Ok(unsafe { Loop::new(timed, [expected, 0, 0, 0, 0, 0, 0], None, check) }?.here())
    }),
    ..TRAP
};
