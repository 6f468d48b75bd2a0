//! Limits of groups of processes.

use tollgate_model::Boundary::{
    BlockRead, BlockWrite, ContextSwitch, KernelAllocation, PageFault, ProcessCreation, Socket, Timer, WakeUp,
};

use super::{Entry, about, affects, covers};

const INIT: &str = "init/Kconfig";

pub(crate) static ENTRIES: &[Entry] = &[
    affects(
        "CGROUPS",
        &[ProcessCreation],
        "each process is in a group of each hierarchy",
        "kernel/cgroup/cgroup.c",
    )
    .parameters(&["cgroup_disable"]),
    affects("MEMCG", &[PageFault, KernelAllocation], "pages are charged to a group", "mm/memcontrol.c")
        .parameters(&["cgroup.memory"]),
    affects(
        "MEMCG_KMEM",
        &[KernelAllocation],
        "objects of the kernel are charged to a group as well",
        "mm/memcontrol.c",
    )
    .without("newer kernels do it wherever there is MEMCG"),
    affects(
        "FAIR_GROUP_SCHED",
        &[ContextSwitch, WakeUp],
        "time is shared among groups: each level is walked",
        "kernel/sched/fair.c",
    ),
    affects(
        "CFS_BANDWIDTH",
        &[ContextSwitch],
        "a limited group waits when its time is used up",
        "Documentation/scheduler/sched-bwc.rst",
    ),
    affects("RT_GROUP_SCHED", &[ContextSwitch], "time of real-time threads is shared among groups", INIT),
    affects("UCLAMP_TASK_GROUP", &[ContextSwitch], "bounds of utilisation along the groups", INIT),
    affects(
        "CGROUP_PIDS",
        &[ProcessCreation],
        "processes are counted in their group",
        "kernel/cgroup/pids.c",
    ),
    affects("CGROUP_CPUACCT", &[ContextSwitch, Timer], "time is added up along the groups", INIT),
    affects(
        "CGROUP_PERF",
        &[ContextSwitch],
        "while events are counted for a group, switches exchange its counters",
        INIT,
    ),
    affects("CGROUP_BPF", &[Socket], "BPF programs can be asked for a group", INIT),
    affects(
        "BLK_CGROUP",
        &[BlockRead, BlockWrite],
        "requests are accounted to a group",
        "block/blk-cgroup.c",
    ),
    affects(
        "BLK_CGROUP_IOCOST",
        &[BlockRead, BlockWrite],
        "requests are weighed by a model of the device where it is enabled",
        "block/blk-iocost.c",
    ),
    affects(
        "BLK_DEV_THROTTLING",
        &[BlockRead, BlockWrite],
        "requests of limited groups can be held up",
        "block/blk-throttle.c",
    ),
    about("CPUSETS", "which processors and nodes a group may use"),
    about("CGROUP_FREEZER", "stopping a whole group, in the first version"),
    covers("CGROUP"),
    covers("CPUSETS_V1"),
    covers("PROC_PID_CPUSET"),
    covers("SOCK_CGROUP_DATA"),
    covers("GROUP_SCHED"),
    covers("PAGE_COUNTER"),
    covers("NETFILTER_XT_MATCH_CGROUP"),
    covers("NET_CLS_CGROUP"),
];
