//! The processors.

use super::{FactSpec, line, one};
use crate::{processor, topology};

pub(super) const FACTS: &[FactSpec] = &[
    one("cpu.vendor", processor::vendor, "The maker of the processor, as it signs itself.")
        .moves("32-bit entry: Intel enters with sysenter, AMD with syscall; mitigations differ as well"),
    one("cpu.model", processor::model, "The processor's brand.")
        .moves("every price: the cost of traps, serialization and cache lines is the processor's own"),
    one("cpu.family", processor::family, "The processor's family number."),
    one("cpu.model_number", processor::model_number, "The processor's model number."),
    one("cpu.stepping", processor::stepping, "The processor's stepping."),
    one(
        "cpu.microcode",
        processor::microcode,
        "The microcode's revision as the kernel tells it; hypervisors often invent one.",
    )
    .moves("mitigations: whether a buffer is cleared or a predictor can be flushed depends on it"),
    one("cpu.online", topology::online, "How many processors are online."),
    one("cpu.online_list", topology::online_list, "Which processors are online."),
    one("cpu.allowed", topology::allowed, "How many processors this process may run on.")
        .moves("lines and locks: with one there is no other core to race with"),
    one("cpu.allowed_list", topology::allowed_list, "Which processors this process may run on."),
    one("cpu.packages", topology::packages, "How many processor packages there are.")
        .moves("lines: crossing between packages costs several times what it costs within one"),
    one("cpu.cores", topology::cores, "How many cores there are."),
    one("cpu.siblings", topology::siblings, "The processors of each core."),
    one("cpu.smt_active", topology::smt_active, "Whether several processors share a core.")
        .moves("lines: siblings share a first-level cache; and every price, when the sibling is busy"),
    one("cpu.isolated", topology::isolated, "The processors that the scheduler leaves alone.")
        .moves("the spread of every price: an isolated processor is not shared"),
    one("cpu.nohz_full", topology::nohz_full, "The processors without a tick while one task runs.")
        .moves("kernel entry: such processors keep account of user and system time at each crossing"),
    one("cpu.nodes", topology::nodes, "How many memory nodes there are.")
        .moves("lines and memory: another node's memory is farther away"),
    one("cpu.bugs", processor::bugs, "What the kernel believes this processor to be vulnerable to.")
        .moves("mitigations: only what is listed is mitigated"),
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
    line("cpu.possible", "/sys/devices/system/cpu/possible", "The processors that there may come to be."),
];
