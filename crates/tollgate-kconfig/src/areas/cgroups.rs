//! What a group of processes may take.

use super::{Entry, about, covers, moves};

const INIT: &str = "init/Kconfig";

pub(crate) static ENTRIES: &[Entry] = &[
    moves(
        "CGROUPS",
        "making a process",
        "each process is in a group of each hierarchy",
        "kernel/cgroup/cgroup.c",
    )
    .parameters(&["cgroup_disable"]),
    moves(
        "MEMCG",
        "page faults, allocation in the kernel",
        "pages are charged to a group",
        "mm/memcontrol.c",
    )
    .parameters(&["cgroup.memory"]),
    moves(
        "MEMCG_KMEM",
        "allocation in the kernel",
        "objects of the kernel are charged to a group as well",
        "mm/memcontrol.c",
    )
    .without("newer kernels do it wherever there is MEMCG"),
    moves(
        "FAIR_GROUP_SCHED",
        "context switches, waking up",
        "time is shared among groups: each level is walked",
        "kernel/sched/fair.c",
    ),
    moves(
        "CFS_BANDWIDTH",
        "context switches in limited groups",
        "a group can be held up when its time is used",
        "Documentation/scheduler/sched-bwc.rst",
    ),
    moves("RT_GROUP_SCHED", "threads of real time", "time of real-time threads is shared among groups", INIT),
    moves("UCLAMP_TASK_GROUP", "context switches", "bounds of utilisation along the groups", INIT),
    moves("CGROUP_PIDS", "making a process", "processes are counted in their group", "kernel/cgroup/pids.c"),
    moves("CGROUP_CPUACCT", "ticks and context switches", "time is added up along the groups", INIT),
    moves("CGROUP_PERF", "context switches, while it counts", "events can be counted for a group", INIT),
    moves(
        "CGROUP_BPF",
        "sockets, where programs are attached",
        "BPF programs can be asked for a group",
        INIT,
    ),
    moves("BLK_CGROUP", "storage", "requests are accounted to a group", "block/blk-cgroup.c"),
    moves(
        "BLK_CGROUP_IOCOST",
        "storage",
        "requests are weighed by a model of the device where it is enabled",
        "block/blk-iocost.c",
    ),
    moves(
        "BLK_DEV_THROTTLING",
        "storage of limited groups",
        "requests can be held up",
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
