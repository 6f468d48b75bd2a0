//! Differences between guests of the two architectures: QEMU's program and machine, and the kernel's console.

use tollgate_engine::Architecture;
use tollgate_model::Fact;

/// Names the architecture with this machine in ELF.
pub(crate) fn named(elf: u16) -> String {
    let known = Architecture::ALL.into_iter().find(|&arch| board(arch).elf == elf);
    known.map_or_else(|| format!("machine {elf} of elf(5)"), |arch| arch.to_string())
}

/// Facts of a translated guest that its kernel does not show: without CPUID, no hypervisor.
pub(crate) fn facts(arch: Architecture) -> Vec<(String, Fact)> {
    const SOURCE: &str = "QEMU's arguments";
    let layers = vec!["QEMU TCG".to_owned(), "QEMU".to_owned()];
    let all = [
        ("hypervisor.present", Fact::known(true, SOURCE)),
        ("hypervisor.layers", Fact::known(layers, SOURCE)),
    ];
    let is_unknown = arch == Architecture::Arm64;
    all.map(|(name, fact)| (name.to_owned(), fact)).into_iter().filter(|_| is_unknown).collect()
}

pub(crate) fn board(arch: Architecture) -> &'static Board {
    match arch {
        Architecture::X86_64 => &PC,
        Architecture::Arm64 => &VIRT,
    }
}

#[derive(Debug)]
pub(crate) struct Board {
    /// QEMU's program, and Debian's package of it.
    pub qemu: [&'static str; 2],
    /// The processor that the translator emulates.
    pub cpu: &'static str,
    /// The machine of `vmm=qemu`, and the same if instructions are counted.
    pub machine: &'static str,
    pub counting: &'static str,
    /// The serial line with the kernel's messages.
    pub console: &'static str,
    /// Kernel arguments under the translator, if instructions are counted, and if phases of a start are timed: then the kernel
    /// prints a word as soon as it can, which a later `quiet` silences again.
    pub translated: &'static str,
    pub counted: &'static str,
    pub early: &'static str,
    /// Debian's name of the architecture, and LLVM's.
    pub debian: &'static str,
    pub llvm: &'static str,
    /// Machine of its programs (`e_machine`, elf(5)).
    pub elf: u16,
}

static PC: Board = Board {
    qemu: ["qemu-system-x86_64", "qemu-system-x86"],
    // Linux knows that it needs its mitigations, and the translator supports most of its features (`check=off`). RDRAND and RDSEED
    // would give the guest other random numbers at each boot.
    cpu: "Skylake-Client,check=off,-rdrand,-rdseed",
    machine: "pc",
    counting: "pc,hpet=off",
    console: "ttyS0",
    // The counter is the only clock; QEMU's other timers are not used to check it.
    translated: " tsc=reliable no_timer_check",
    // The PIT ticks as often as the local APIC's timer would. To calibrate that timer, the kernel executes PAUSE for 100 ms; each PAUSE
    // leaves the translator's code, and this takes as long as a third of the boot. Tests of ciphers take as long as a fifth. `pci=noacpi`
    // would save a fifteenth, but disables the local APIC: an interrupt that the processor sends to itself then waits for a tick.
    counted: " noapictimer cryptomgr.notests",
    // arch/x86/boot/main.c
    early: "earlyprintk=serial,ttyS0,115200 debug ",
    debian: "amd64",
    llvm: "x86_64",
    elf: 62,
};

static VIRT: Board = Board {
    qemu: ["qemu-system-aarch64", "qemu-system-arm"],
    // The processor of many clouds. Its counter ticks once a nanosecond, which is once an instruction if these are counted.
    cpu: "neoverse-n1,cntfrq=1000000000",
    machine: "virt,gic-version=3",
    // The device tree has random numbers otherwise.
    counting: "virt,gic-version=3,dtb-randomness=off",
    console: "ttyAMA0",
    translated: "",
    // A random offset of the stack for each system call is taken from 96 bytes, whose refill takes longer than six calls.
    counted: " randomize_kstack_offset=off cryptomgr.notests",
    // With its fixed address (QEMU's hw/arm/virt.c), the console works before the kernel obeys `quiet`.
    early: "earlycon=pl011,0x9000000 debug ",
    debian: "arm64",
    llvm: "aarch64",
    elf: 183,
};
