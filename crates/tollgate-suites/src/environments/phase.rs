use crate::prelude::*;
use tollgate_engine::Aspect;
use tollgate_engine::aspect::Phase;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "environments/phase",
    operation: "A part of a guest's start: the monitor, from fork(2) to the first byte of the firmware (port 0x402); the firmware, to the first \
        byte of the kernel on the serial line; the kernel, to its first program; that program (init), to the agent's first message.",
    avoid: "Take a machine type without legacy devices (microvm), an uncompressed kernel with few drivers, and `quiet` on its command line.",
    source: "QEMU: docs/system/i386/microvm.rst, SeaBIOS: docs/Debugging.md, Linux: Documentation/arch/x86/boot.rst",
    crosses: &[ProcessCreation, Exec, PageFault, VmExit, KernelImage],
    crossed_in: |params, boundary| match word(params, PARAMETER) {
        "monitor" => !matches!(boundary, VmExit | KernelImage),
        "firmware" => matches!(boundary, VmExit | KernelImage),
        "kernel" => matches!(boundary, VmExit | KernelImage | PageFault),
        _ => matches!(boundary, VmExit | Exec | PageFault),
    },
    timed: |_| Timed::Whole("bytes of the firmware, of the kernel and of its first program"),
    cases: |_| each_word(PARAMETER, &Phase::ALL.map(Phase::name)),
    kind: Kind::Environment(|params| {
        Phase::ALL.into_iter().find(|of| of.name() == word(params, PARAMETER)).map(Aspect::Phase)
    }),
    ..PLAIN
};

const PARAMETER: &str = "of";
