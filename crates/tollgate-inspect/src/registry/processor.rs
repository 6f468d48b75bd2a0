//! The processors.

use tollgate_model::Boundary::{
    CacheLine, CompatFastEntry, ContextSwitch, KernelEntry, LockContention, MemoryAccess, UserCode,
};

use super::{FactSpec, line, one};
use crate::{processor, topology};

pub(super) const FACTS: &[FactSpec] = &[
    one("cpu.vendor", processor::vendor, "The processor's vendor, from CPUID.").affects(
        &[CompatFastEntry],
        "a 32-bit program enters with SYSENTER on Intel and SYSCALL on AMD; the mitigations differ as well",
    ),
    one("cpu.model", processor::model, "The processor's brand.")
        .affects_everything("the latency of traps, serialization and cache lines belongs to the processor"),
    one("cpu.family", processor::family, "The processor's family number."),
    one("cpu.model_number", processor::model_number, "The processor's model number."),
    one("cpu.stepping", processor::stepping, "The processor's stepping."),
    one(
        "cpu.microcode",
        processor::microcode,
        "The microcode's revision as the kernel reports it; hypervisors often invent one.",
    )
    .affects(
        &[KernelEntry, ContextSwitch],
        "the microcode decides which buffers VERW clears and which predictors can be flushed",
    ),
    one("cpu.online", topology::online, "How many processors are online."),
    one("cpu.online_list", topology::online_list, "Which processors are online."),
    one("cpu.allowed", topology::allowed, "How many processors this process may run on.")
        .affects(&[CacheLine, LockContention], "with one processor no other core competes"),
    one("cpu.allowed_list", topology::allowed_list, "Which processors this process may run on."),
    one("cpu.packages", topology::packages, "How many processor packages there are.").affects(
        &[CacheLine],
        "a transfer between packages takes several times as long as one within a package",
    ),
    one("cpu.cores", topology::cores, "How many cores there are."),
    one("cpu.siblings", topology::siblings, "The processors of each core."),
    one("cpu.smt_active", topology::smt_active, "Whether several processors share a core.").affects(
        &[CacheLine, MemoryAccess, LockContention, UserCode],
        "siblings share a first-level cache, and a busy sibling takes a part of the core",
    ),
    one("cpu.isolated", topology::isolated, "The processors that are isolated from the scheduler.")
        .affects_everything("an isolated processor runs no other tasks, which narrows the spread"),
    one("cpu.nohz_full", topology::nohz_full, "The processors without a tick while one task runs.")
        .affects(&[KernelEntry], "such processors account user and system time at each crossing"),
    one("cpu.nodes", topology::nodes, "How many memory nodes there are.")
        .affects(&[CacheLine, MemoryAccess], "the memory of another node is farther away"),
    one("cpu.bugs", processor::bugs, "The vulnerabilities of this processor that the kernel lists.")
        .affects(&[KernelEntry, ContextSwitch], "the kernel mitigates only what is listed"),
    one(
        "cpu.threads_per_core",
        topology::threads_per_core,
        "How many processors share a core, as the kernel says.",
    ),
    one(
        "cpu.threads_per_core.cpuid",
        topology::threads_per_core_by_cpuid,
        "How many processors share a core, as CPUID says; hypervisors often hide it from the kernel.",
    ),
    one(
        "cpu.per_package.cpuid",
        topology::processors_per_package_by_cpuid,
        "How many processors a package has, as CPUID says.",
    ),
    line(
        "cpu.smt_control",
        "/sys/devices/system/cpu/smt/control",
        "Whether several processors may share a core: on, off, forceoff, notsupported.",
    ),
    line("cpu.possible", "/sys/devices/system/cpu/possible", "The possible processors."),
];
