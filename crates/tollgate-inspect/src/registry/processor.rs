use tollgate_model::Boundary::{
    CacheLine, CompatFastEntry, ContextSwitch, KernelEntry, LockContention, MemoryAccess, UserCode,
};

use crate::machine::Machine;
use crate::processor::Version;
use crate::{midr, processor, topology};

facts! {
    pub(super) FACTS
    "cpu.architecture" Of(Machine::architecture) "The kernel's architecture, as uname -m shows it."
        * "another architecture has other instructions and other ways into the kernel";
    "cpu.vendor" Of(processor::vendor_text) "The processor's vendor, from CPUID or MIDR_EL1."
        [CompatFastEntry]
        "a 32-bit program of x86-64 enters with SYSENTER on Intel and SYSCALL on AMD; the mitigations differ as well";
    "cpu.model" Of(processor::model) "The processor's brand; on arm64 the maker and the part, with several kinds of cores the number of each."
        * "the latency of traps, serialization and cache lines belongs to the processor";
    "cpu.midr" Arm64(midr::values)
        "MIDR_EL1 of each kind of core, with its part, its variant and revision, and its processors."
        * "latency depends on the kind of core, and errata on its revision";
    "cpu.family" X86(processor::version_part, Version::family, "cpu family") "The processor's family number.";
    "cpu.model_number" X86(processor::version_part, Version::model, "model") "The processor's model number.";
    "cpu.stepping" X86(processor::version_part, Version::stepping, "stepping") "The processor's stepping.";
    "cpu.microcode" X86(processor::cpuinfo, "microcode")
        "The microcode's revision as the kernel reports it; hypervisors often invent one."
        [KernelEntry, ContextSwitch]
        "the microcode decides which buffers VERW clears and which predictors can be flushed";
    "cpu.online" Of(topology::count_of, "online") "How many processors are online.";
    "cpu.online_list" Of(topology::list_of, "online") "Which processors are online.";
    "cpu.allowed" Of(topology::count_of, "allowed") "How many processors this process may run on."
        [CacheLine, LockContention] "with one processor no other core competes";
    "cpu.allowed_list" Of(topology::list_of, "allowed") "Which processors this process may run on.";
    "cpu.packages" Of(topology::number_of_groups, topology::PACKAGES) "How many processor packages there are."
        [CacheLine] "a transfer between packages takes several times as long as one within a package";
    "cpu.cores" Of(topology::number_of_groups, topology::CORES) "How many cores there are.";
    "cpu.siblings" Of(topology::siblings) "The processors of each core.";
    "cpu.smt_active" Flag("/sys/devices/system/cpu/smt/active") "Whether several processors share a core."
        [CacheLine, MemoryAccess, LockContention, UserCode]
        "siblings share a first-level cache, and a busy sibling takes a part of the core";
    "cpu.isolated" Of(topology::list_of, "isolated") "The processors that are isolated from the scheduler."
        * "an isolated processor runs no other tasks, which narrows the spread";
    "cpu.nohz_full" Of(topology::list_of, "nohz_full") "The processors without a tick while one task runs."
        [KernelEntry] "such processors account user and system time at each crossing";
    "cpu.nodes" Of(topology::nodes) "How many memory nodes there are."
        [CacheLine, MemoryAccess] "the memory of another node is farther away";
    "cpu.node_processors" Of(topology::node_processors) "The processors of each memory node.";
    "cpu.node_distances" Of(topology::node_distances)
        "How far each memory node is from each, as the firmware says: 10 is the node itself."
        [CacheLine, MemoryAccess] "the memory of a node that is farther away takes longer";
    "cpu.bugs" X86(processor::bugs) "The vulnerabilities of this processor that the kernel lists."
        [KernelEntry, ContextSwitch] "the kernel mitigates only what is listed";
    "cpu.threads_per_core" Of(topology::threads_per_core)
        "How many processors share a core, as the kernel says.";
    "cpu.threads_per_core.cpuid" X86(topology::shared_by_cpuid, |(threads, _)| threads)
        "How many processors share a core, as CPUID says; hypervisors often hide it from the kernel.";
    "cpu.per_package.cpuid" X86(topology::shared_by_cpuid, |(_, package)| package)
        "How many processors a package has, as CPUID says.";
    "cpu.smt_control" Line("/sys/devices/system/cpu/smt/control")
        "Whether several processors may share a core: on, off, forceoff, notsupported.";
    "cpu.possible" Line("/sys/devices/system/cpu/possible") "The possible processors.";
}
