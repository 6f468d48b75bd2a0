//! The table of all facts: what each is, which prices it is known to move, and who reads it. There is no
//! other list of their names; help and documentation are made from this one.

use std::path::Path;

use tollgate_model::{Environment, Fact};

use crate::leaves::{Bit, Register};
use crate::machine::Machine;
use crate::storage::{self};
use crate::{
    cgroup, clock, container, hypervisor, kernel, memory, mitigation, moments, power, process, processor,
    sandbox, topology,
};

/// One fact, or a family of facts whose members the machine decides.
#[derive(Debug)]
pub struct FactSpec {
    /// Dotted and stable, such as `kernel.release`. A family ends in `.*`.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// Which prices it is known to move, and how.
    pub moves: Option<&'static str>,
    reader: Reader,
}

#[derive(Debug)]
enum Reader {
    One(fn(&Machine) -> Fact),
    Feature(Bit),
    Family(fn(&Machine) -> Vec<(String, Fact)>),
    /// Reads which of the `cpu.feature.*` facts, by the last part of their names, it is true of.
    Features(fn(&Machine, &[&str]) -> Fact),
    /// Reads it of a directory.
    Beneath(fn(&Machine, &Path) -> Fact),
}

impl FactSpec {
    /// Reads it: one fact, or the members of the family. A family that could not be listed gives one fact,
    /// under the name without `.*`, that says why.
    pub fn read(&self, machine: &Machine) -> Vec<(String, Fact)> {
        match self.reader {
            Reader::One(read) => vec![(self.name.to_owned(), read(machine))],
            Reader::Feature(bit) => vec![(self.name.to_owned(), processor::feature(machine, bit))],
            Reader::Family(read) => read(machine),
            Reader::Features(read) => {
                let names = FACTS.iter().filter_map(|spec| spec.name.strip_prefix("cpu.feature."));
                vec![(self.name.to_owned(), read(machine, &names.collect::<Vec<_>>()))]
            }
            Reader::Beneath(_) => vec![(self.name.to_owned(), Fact::absent("no directory was named"))],
        }
    }

    /// Whether `name` is this fact or a member of this family.
    fn covers(&self, name: &str) -> bool {
        match self.name.strip_suffix(".*") {
            Some(family) => {
                name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
            None => name == self.name,
        }
    }

    const fn moves(self, moves: &'static str) -> Self {
        Self { moves: Some(moves), ..self }
    }
}

const fn one(name: &'static str, read: fn(&Machine) -> Fact, about: &'static str) -> FactSpec {
    FactSpec { name, about, moves: None, reader: Reader::One(read) }
}

const fn family(
    name: &'static str,
    read: fn(&Machine) -> Vec<(String, Fact)>,
    about: &'static str,
) -> FactSpec {
    FactSpec { name, about, moves: None, reader: Reader::Family(read) }
}

const fn beneath(name: &'static str, read: fn(&Machine, &Path) -> Fact, about: &'static str) -> FactSpec {
    FactSpec { name, about, moves: None, reader: Reader::Beneath(read) }
}

const fn feature(name: &'static str, bit: Bit, about: &'static str) -> FactSpec {
    FactSpec { name, about, moves: None, reader: Reader::Feature(bit) }
}

const fn bit(leaf: u32, subleaf: u32, register: Register, number: u32) -> Bit {
    Bit { leaf, subleaf, register, number }
}

/// Everything that is known of a place, in the order in which it is best read.
pub static FACTS: &[FactSpec] = &[
    // The kernel.
    one("kernel.release", kernel::release, "The kernel's release, as uname -r shows it.")
        .moves("everything that enters the kernel: releases change entry code, mitigations and defaults"),
    one("kernel.version", kernel::version, "The kernel's build, as uname -v shows it."),
    one("kernel.command_line", kernel::command_line, "The parameters that the kernel was started with.")
        .moves("kernel entry: mitigations=, nopti, spectre_v2= and others switch what each crossing does"),
    one(
        "kernel.preempt_dynamic",
        kernel::preempt_dynamic,
        "Whether the kernel can change its preemption model while it runs.",
    ),
    one(
        "kernel.preemption",
        kernel::preemption,
        "The preemption model: none, voluntary, full, lazy or rt; two of them where only the \
         build is told.",
    )
    .moves(
        "locks and context switches: full preemption counts in every lock and switches in the \
         middle of calls",
    ),
    FactSpec {
        name: "kernel.entry_features",
        about: "The processor's features of the cpu.feature facts that this kernel lists among its flags.",
        moves: None,
        reader: Reader::Features(processor::used_by_kernel),
    }
    .moves("kernel entry: what the processor has and the kernel does not use changes nothing"),
    one("kernel.lsm", kernel::security_modules, "The security modules that are active, in their order.")
        .moves("opening, executing, sockets and signals: each module's hook is called in turn"),
    one(
        "kernel.io_uring_disabled",
        kernel::io_uring_disabled,
        "Who may not use io_uring: 0 nobody, 1 those without privilege or group, 2 anybody.",
    ),
    one(
        "kernel.unprivileged_userfaultfd",
        kernel::unprivileged_userfaultfd,
        "Whether userfaultfd handles kernel faults without privilege.",
    ),
    one(
        "kernel.unprivileged_bpf_disabled",
        kernel::unprivileged_bpf_disabled,
        "Whether bpf(2) is refused without privilege: 0 no, 1 yes for good, 2 yes.",
    ),
    one(
        "kernel.perf_event_paranoid",
        kernel::perf_event_paranoid,
        "How much of perf_event_open(2) is refused without privilege; -1 nothing, 2 all but \
         one's own user mode.",
    ),
    one(
        "kernel.ptrace_scope",
        kernel::ptrace_scope,
        "Whom Yama lets trace: 0 any of one's own processes, 1 one's descendants, 2 \
         administrators, 3 nobody.",
    ),
    one(
        "kernel.randomize_va_space",
        kernel::randomize_va_space,
        "What is placed at random in address spaces: 0 nothing, 1 all but the heap, 2 all.",
    ),
    one(
        "abi.ia32",
        kernel::ia32,
        "Whether 32-bit system calls work: enabled or disabled by the command line, or built in.",
    )
    .moves("int 0x80 and 32-bit gates: where it is disabled they fault"),
    // The processor.
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
    feature("cpu.feature.fred", bit(7, 1, Register::Eax, 17), "Flexible return and event delivery.").moves(
        "kernel entry and traps: events are delivered without the interrupt table's walk and \
         return without IRET",
    ),
    feature("cpu.feature.lkgs", bit(7, 1, Register::Eax, 18), "Loading the kernel's GS base without SWAPGS."),
    feature(
        "cpu.feature.fsgsbase",
        bit(7, 0, Register::Ebx, 0),
        "Reading and writing FS and GS bases in user mode.",
    )
    .moves("context switches and paranoid entries: bases are written without an MSR write"),
    feature(
        "cpu.feature.pcid",
        bit(1, 0, Register::Ecx, 17),
        "Process-context identifiers in page-table switches.",
    )
    .moves("context switches, and kernel entry under PTI: without it each switch empties the TLB"),
    feature(
        "cpu.feature.invpcid",
        bit(7, 0, Register::Ebx, 10),
        "Invalidating TLB entries of a chosen context.",
    ),
    feature("cpu.feature.smep", bit(7, 0, Register::Ebx, 7), "The kernel cannot execute user pages."),
    feature(
        "cpu.feature.smap",
        bit(7, 0, Register::Ebx, 20),
        "The kernel cannot touch user pages unless it says so.",
    )
    .moves("kernel entry: STAC and CLAC around each copy from or to user memory, CLAC on each entry"),
    feature(
        "cpu.feature.umip",
        bit(7, 0, Register::Ecx, 2),
        "User mode cannot read descriptor-table registers.",
    )
    .moves("SGDT, SIDT, SLDT, STR and SMSW: each faults and is emulated or killed"),
    feature(
        "cpu.feature.rdtscp",
        bit(0x8000_0001, 0, Register::Edx, 27),
        "Reading the time-stamp counter together with the processor's number.",
    )
    .moves("clocks in the vDSO: without it the counter is read behind a fence"),
    feature("cpu.feature.rdpid", bit(7, 0, Register::Ecx, 22), "Reading the processor's number alone.")
        .moves("getcpu in the vDSO: without it the number is read out of a segment limit"),
    feature(
        "cpu.feature.invariant_tsc",
        bit(0x8000_0007, 0, Register::Edx, 8),
        "The time-stamp counter ticks at one rate in all states.",
    )
    .moves("clocks: without it the kernel may read time from a slow device"),
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
    one("cache.line", topology::cache_line, "The size of a cache line in bytes."),
    family(
        "cache.*",
        topology::caches,
        "A cache's size in bytes, the processors that share it, and what CPUID says where that differs.",
    )
    .moves("lines and memory: what fits in a level costs that level's latency"),
    // Mitigations. Those with an entry of their own are known to move prices.
    one("mitigation.meltdown", |m| mitigation::named(m, "meltdown"), "What is done about Meltdown.")
        .moves("kernel entry: PTI switches page tables at every crossing"),
    one(
        "mitigation.spectre_v1",
        |m| mitigation::named(m, "spectre_v1"),
        "What is done about Spectre variant 1.",
    )
    .moves("kernel entry: fences after SWAPGS and masks at user copies"),
    one(
        "mitigation.spectre_v2",
        |m| mitigation::named(m, "spectre_v2"),
        "What is done about Spectre variant 2.",
    )
    .moves(
        "kernel entry, context switches and every indirect call: retpolines, IBRS written on \
         entry, IBPB on switches",
    ),
    one("mitigation.retbleed", |m| mitigation::named(m, "retbleed"), "What is done about Retbleed.")
        .moves("kernel entry: predictors untrained on AMD, IBRS written on Intel, at every crossing"),
    one(
        "mitigation.spec_rstack_overflow",
        |m| mitigation::named(m, "spec_rstack_overflow"),
        "What is done about Inception on AMD.",
    )
    .moves(
        "kernel entry and every return in the kernel: safe returns, or a predictor flush at \
         each crossing",
    ),
    one(
        "mitigation.spec_store_bypass",
        |m| mitigation::named(m, "spec_store_bypass"),
        "What is done about speculative store bypass.",
    )
    .moves("loads after stores, where a process asks for it or runs under a filter that does"),
    one(
        "mitigation.mds",
        |m| mitigation::named(m, "mds"),
        "What is done about microarchitectural data sampling.",
    )
    .moves("kernel exit: VERW clears buffers on each return to user mode"),
    one(
        "mitigation.tsx_async_abort",
        |m| mitigation::named(m, "tsx_async_abort"),
        "What is done about TSX asynchronous abort.",
    )
    .moves("kernel exit: VERW clears buffers on each return to user mode"),
    one(
        "mitigation.mmio_stale_data",
        |m| mitigation::named(m, "mmio_stale_data"),
        "What is done about stale data of device memory.",
    )
    .moves("kernel exit or guest entry: VERW clears buffers"),
    one(
        "mitigation.reg_file_data_sampling",
        |m| mitigation::named(m, "reg_file_data_sampling"),
        "What is done about register file data sampling.",
    )
    .moves("kernel exit: VERW clears buffers on each return to user mode"),
    one(
        "mitigation.tsa",
        |m| mitigation::named(m, "tsa"),
        "What is done about transient scheduler attacks on AMD.",
    )
    .moves("kernel exit: VERW clears buffers on each return to user mode"),
    one(
        "mitigation.indirect_target_selection",
        |m| mitigation::named(m, "indirect_target_selection"),
        "What is done about indirect target selection.",
    )
    .moves("indirect calls and returns in the kernel: they go through aligned thunks"),
    one("mitigation.l1tf", |m| mitigation::named(m, "l1tf"), "What is done about L1 terminal fault.")
        .moves("guest entry: the first-level data cache is flushed"),
    one("mitigation.vmscape", |m| mitigation::named(m, "vmscape"), "What is done about VMScape.")
        .moves("returning to user mode after a guest exit: IBPB first"),
    one(
        "mitigation.srbds",
        |m| mitigation::named(m, "srbds"),
        "What is done about special register buffer data sampling.",
    )
    .moves("RDRAND and RDSEED: each locks the bus while it reads"),
    one(
        "mitigation.gather_data_sampling",
        |m| mitigation::named(m, "gather_data_sampling"),
        "What is done about gather data sampling.",
    )
    .moves("gather instructions: they no longer speculate"),
    // Those above are named because they are known to move prices: on a kernel that does not know them they
    // are absent, not missing. This one has the rest, and them once more.
    family("mitigation.*", mitigation::all, "What is done about a vulnerability that the kernel names."),
    one("process.store_bypass", process::store_bypass, "Whether this process speculates past stores.")
        .moves("loads after stores: where it is mitigated each waits"),
    one(
        "process.indirect_branch",
        process::indirect_branch,
        "Whether this process speculates at indirect branches.",
    )
    .moves("context switches and indirect calls: IBPB and STIBP where it is mitigated"),
    // What is below the kernel.
    one("hypervisor.present", hypervisor::present, "Whether the processor says that a hypervisor is there.")
        .moves("traps, CPUID, page faults and devices: what the hypervisor intercepts is an exit"),
    one("hypervisor.signatures", hypervisor::signatures, "The names that hypervisors sign CPUID with."),
    one("hypervisor.layers", hypervisor::layers, "Every hypervisor that left a mark.")
        .moves("traps, CPUID, page faults and devices: each nested layer multiplies the price of an exit"),
    one(
        "hypervisor.nesting",
        hypervisor::nesting,
        "What hints at a hypervisor that is itself in a virtual machine.",
    )
    .moves(
        "traps and page faults: an exit goes through the outer hypervisor and back, often ten \
         times the price",
    ),
    one("machine.vendor", hypervisor::vendor, "Who made the machine, as its firmware says."),
    one("machine.product", hypervisor::product, "What the machine is, as its firmware says."),
    // What is around the process.
    one("sandbox.kernel", sandbox::kernel, "The kernel that plays Linux's part in user space.").moves(
        "every system call, trap and fault: they are handled by another process or a guest, \
         not by Linux",
    ),
    one("container.layers", container::layers, "The containers whose marks are to be believed.")
        .moves("system calls: container managers add seccomp filters and control groups, see those facts"),
    one("container.files", container::files, "The files of container managers that are in the root."),
    one(
        "container.groups",
        container::groups,
        "The container managers that this process's control groups are named after.",
    ),
    one("container.init", container::init, "What the first process was told of its container manager."),
    one(
        "container.environment",
        container::environment,
        "What this process was told of its container manager.",
    ),
    one(
        "container.namespaces",
        container::namespaces,
        "The kinds of namespace in which this process is apart from the machine's first.",
    ),
    one("container.root", container::root_file_system, "The kind of file system that the root is on.")
        .moves("files: an overlay looks names up in each of its layers"),
    one(
        "cgroup.cpu_max",
        cgroup::cpu_max,
        "The processors' worth of time that the control groups allow; the tightest.",
    )
    .moves("every price, when the quota is used up: the process then waits for the next period"),
    one(
        "cgroup.memory_max",
        cgroup::memory_max,
        "The bytes of memory that the control groups allow; the tightest.",
    )
    .moves("page faults near the limit: each may have to reclaim first"),
    one("cgroup.pids_max", cgroup::pids_max, "The tasks that the control groups allow; the tightest."),
    one(
        "seccomp.mode",
        process::seccomp_mode,
        "Whether this process's system calls are filtered: disabled, strict or filter.",
    )
    .moves("system calls: with a filter each runs it, and leaves the fast path"),
    one("seccomp.filters", process::seccomp_filters, "How many seccomp filters each system call runs.")
        .moves("system calls: every filter runs, unless its answer for a call is cached"),
    one(
        "process.no_new_privileges",
        process::no_new_privileges,
        "Whether executing can no longer gain privileges.",
    ),
    one("process.tracer", process::tracer, "The process that traces this one; 0 is nobody.")
        .moves("system calls and signals: a tracer may stop each of them, two switches every time"),
    one("process.user", process::user, "The user that this process acts as."),
    one(
        "process.capabilities",
        process::capabilities,
        "The privileges in effect, a bit for each capability.",
    ),
    one(
        "process.personality",
        process::personality,
        "The bits of personality(2), such as 40000 for no address randomization.",
    ),
    // Time, memory, power.
    one("clocksource.current", clock::current, "What the kernel reads time from.").moves(
        "clocks: tsc and the paravirtual clocks are read in user mode, others by system call \
         and device",
    ),
    one("clocksource.available", clock::available, "What the kernel could read time from."),
    one(
        "vdso.present",
        clock::vdso,
        "Whether the kernel maps its shared object for calls without a crossing.",
    )
    .moves("clocks and getcpu: without it each is a system call"),
    one("memory.total", memory::total, "The bytes of memory that the kernel manages."),
    one("memory.swap", memory::swap, "The bytes of swap space."),
    one("memory.thp", memory::huge_pages, "When memory comes in huge pages: always, madvise or never.")
        .moves("page faults and memory: a huge page is one fault and one TLB entry instead of 512"),
    one("power.governor", power::governor, "Who chooses the processor's frequency, on processor 0.")
        .moves("every price in time: a slow governor measures a slow processor"),
    one("power.driver", power::driver, "Who sets the processor's frequency, on processor 0."),
    one(
        "power.preference",
        power::preference,
        "The processor's own preference between performance and energy, on processor 0.",
    )
    .moves("every price in time: how fast and how far the frequency rises"),
    one("power.boost", power::boost, "Whether processors may run above their nominal frequency.").moves(
        "every price in time, and its spread: the frequency depends on heat and on the other \
         cores",
    ),
    one("power.idle_driver", power::idle_driver, "Who puts idle processors to sleep.")
        .moves("waking another processor: deep states and halts in a virtual machine cost microseconds"),
    one("power.idle_governor", power::idle_governor, "Who chooses how deep an idle processor sleeps.")
        .moves("waking another processor: haltpoll spins before it halts"),
    one("uptime", moments::uptime, "Seconds since the kernel started."),
];

/// What changes from moment to moment: read before and after a run, see [`strain`].
pub static MOMENTS: &[FactSpec] = &[
    one("load", moments::load, "The average number of tasks that ran or waited to, over one minute.")
        .moves("the spread of every price: others run in between and leave the caches cold"),
    one("running", moments::running, "The tasks that run or wait to at this moment."),
    one(
        "pressure.cpu",
        |m| moments::pressure(m, "cpu"),
        "The percentage of ten seconds in which some task waited for a processor.",
    )
    .moves("the spread of every price: others run in between"),
    one(
        "pressure.memory",
        |m| moments::pressure(m, "memory"),
        "The percentage of ten seconds in which some task waited for memory.",
    )
    .moves("page faults: memory is reclaimed first"),
    one(
        "pressure.io",
        |m| moments::pressure(m, "io"),
        "The percentage of ten seconds in which some task waited for storage.",
    )
    .moves("files: others use the device"),
    one(
        "stalled.cpu",
        |m| moments::stalled(m, "cpu"),
        "Microseconds since the start in which some task waited for a processor.",
    ),
    one(
        "stalled.memory",
        |m| moments::stalled(m, "memory"),
        "Microseconds since the start in which some task waited for memory.",
    ),
    one(
        "stalled.io",
        |m| moments::stalled(m, "io"),
        "Microseconds since the start in which some task waited for storage.",
    ),
    one(
        "steal",
        moments::steal,
        "Ticks since the start that a hypervisor gave to others, of all processors.",
    )
    .moves("the spread of every price: the processor was away"),
    one("switches", moments::switches, "Context switches since the start, of all processors."),
    one(
        "throttled",
        cgroup::throttled,
        "How often this process's control group has used up its processor time.",
    )
    .moves("every price: the group waited for its next period"),
];

/// What lies under the directory in which files are measured.
pub static STORAGE: &[FactSpec] = &[
    beneath("files.dir", storage::directory, "The directory in which files were measured."),
    beneath("files.fs", storage::file_system, "The type of the file system under that directory.")
        .moves("everything in files: each file system has its own way to names, blocks and the journal"),
    beneath("files.mount", storage::mount_point, "Where that file system is mounted."),
    beneath("files.options", storage::options, "The options it is mounted with.")
        .moves("opening, writing and fsync of files: access times, barriers, journal mode, discard, quota"),
    beneath("files.source", storage::source, "What was mounted there."),
    beneath("files.free", storage::free, "Bytes that are free there for those who are not root."),
    beneath("files.device", storage::device, "The block device that the file system is on.")
        .moves("uncached reads, direct reads and writes, and fsync of files: they wait for the device"),
    beneath("files.device.model", storage::model, "The model of its disk.")
        .moves("uncached reads, direct reads and writes, and fsync of files: they wait for the device"),
    beneath("files.device.rotational", storage::rotational, "Whether the disk says that it turns.")
        .moves("uncached reads and fsync of files: a head that moves takes milliseconds"),
    beneath("files.device.scheduler", storage::scheduler, "The scheduler of the disk's queue.")
        .moves("uncached reads, direct reads and writes of files: each request goes through it"),
    beneath("files.device.logical_block", storage::logical_block, "The smallest request in bytes."),
    beneath("files.device.physical_block", storage::physical_block, "Bytes that the disk writes at once.")
        .moves("small direct writes of files: less than a block is read, changed and written back"),
    beneath("files.device.write_cache", storage::write_cache, "`write back` or `write through`.")
        .moves("fsync and fdatasync of files: a cache that is written back has to be flushed"),
    beneath("files.device.dax", storage::dax, "Whether the device is memory that can be mapped.")
        .moves("reads and writes of files: with DAX there is no page cache between"),
];

/// Reads all of [`STORAGE`] of a directory.
pub fn storage(machine: &Machine, directory: &Path) -> Vec<(String, Fact)> {
    let read = |spec: &FactSpec| match spec.reader {
        Reader::Beneath(read) => vec![(spec.name.to_owned(), read(machine, directory))],
        _ => spec.read(machine),
    };
    STORAGE.iter().flat_map(read).collect()
}

/// Reads all of [`FACTS`].
pub fn environment(machine: &Machine) -> Environment {
    FACTS.iter().flat_map(|spec| spec.read(machine)).collect()
}

/// Reads all of [`MOMENTS`] under their names with `when` after them: `load.before`, `load.after`.
pub fn strain(machine: &Machine, when: &str) -> Vec<(String, Fact)> {
    let facts = MOMENTS.iter().flat_map(|spec| spec.read(machine));
    facts.map(|(name, fact)| (format!("{name}.{when}"), fact)).collect()
}

/// Which prices a fact is known to move, and how; for one of [`MOMENTS`], whenever it was read.
pub fn movers(name: &str) -> Option<&'static str> {
    let own = FACTS.iter().chain(STORAGE).find(|spec| spec.covers(name));
    let momentary = || {
        let name = name.rsplit_once('.').map_or(name, |(name, _when)| name);
        MOMENTS.iter().find(|spec| spec.covers(name))
    };
    own.or_else(momentary)?.moves
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> impl Iterator<Item = &'static FactSpec> {
        FACTS.iter().chain(MOMENTS).chain(STORAGE)
    }

    #[test]
    fn names_are_dotted_and_there_once() {
        let mut seen = BTreeSet::new();
        for spec in all() {
            let name = spec.name.strip_suffix(".*").unwrap_or(spec.name);
            let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c);
            assert!(
                name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(allowed),
                "{name}"
            );
            assert!(seen.insert(spec.name), "{name} is there twice");
            assert_eq!(matches!(spec.reader, Reader::Family(_)), spec.name.ends_with(".*"), "{name}");
        }
    }

    #[test]
    fn each_says_what_it_is_in_a_sentence() {
        for spec in all() {
            assert!(spec.about.ends_with('.') && spec.about.len() > 10, "{}", spec.name);
            assert!(
                spec.moves.is_none_or(|moves| !moves.is_empty() && !moves.ends_with('.')),
                "{}",
                spec.name
            );
        }
    }

    #[test]
    fn movers_are_found_by_any_name_that_a_fact_can_have() {
        assert!(movers("mitigation.meltdown").is_some_and(|moves| moves.contains("PTI")));
        assert_eq!(movers("mitigation.unheard_of"), None);
        assert!(movers("cache.l1d").is_some_and(|moves| moves.contains("latency")));
        assert!(movers("load.before").is_some());
        assert!(movers("pressure.cpu.after").is_some());
        assert!(movers("files.device.scheduler").is_some());
        assert_eq!(movers("pressure"), None);
        assert_eq!(movers("cached"), None, "not of the family of caches");
        assert_eq!(movers("kernel.version"), None);
        assert_eq!(movers(""), None);
    }

    #[test]
    fn the_place_is_told_by_facts_that_exist() {
        for name in ["sandbox.kernel", "container.layers", "hypervisor.layers"] {
            assert!(FACTS.iter().any(|spec| spec.name == name), "{name}");
        }
    }
}
