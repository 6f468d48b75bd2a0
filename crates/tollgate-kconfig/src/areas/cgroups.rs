use tollgate_model::Boundary::{
    BlockRead, BlockWrite, ContextSwitch, KernelAllocation, PageFault, ProcessCreation, Socket, Timer, WakeUp,
};

const INIT: &str = "init/Kconfig";

use super::Without;

entries! {
    CGROUPS [ProcessCreation] "each process is in a group of each hierarchy" ("kernel/cgroup/cgroup.c")
        .parameters(&["cgroup_disable"]);
    MEMCG [PageFault, KernelAllocation] "pages are charged to a group" ("mm/memcontrol.c")
        .parameters(&["cgroup.memory"]);
    MEMCG_KMEM [KernelAllocation] "objects of the kernel are charged to a group as well" ("mm/memcontrol.c")
        .without(&[Without::since((6, 11, 0), "newer kernels do it whenever MEMCG is set")]);
    FAIR_GROUP_SCHED [ContextSwitch, WakeUp] "time is shared among groups: each level is walked"
        ("kernel/sched/fair.c");
    CFS_BANDWIDTH [ContextSwitch] "a limited group waits when its time is used up"
        ("Documentation/scheduler/sched-bwc.rst");
    RT_GROUP_SCHED [ContextSwitch] "time of real-time threads is shared among groups" (INIT);
    UCLAMP_TASK_GROUP [ContextSwitch] "bounds of utilisation along the groups" (INIT);
    CGROUP_PIDS [ProcessCreation] "processes are counted in their group" ("kernel/cgroup/pids.c");
    CGROUP_CPUACCT [ContextSwitch, Timer] "time is added up along the groups" (INIT);
    CGROUP_PERF [ContextSwitch] "while events are counted for a group, switches exchange its counters" (INIT);
    CGROUP_BPF [Socket] "BPF programs can be asked for a group" (INIT);
    BLK_CGROUP [BlockRead, BlockWrite] "requests are accounted to a group" ("block/blk-cgroup.c");
    BLK_CGROUP_IOCOST [BlockRead, BlockWrite]
        "requests are weighed by a model of the device where it is enabled" ("block/blk-iocost.c");
    BLK_DEV_THROTTLING [BlockRead, BlockWrite] "requests of limited groups can be held up"
        ("block/blk-throttle.c");
    CPUSETS "which processors and nodes a group may use";
    CGROUP_FREEZER "stopping a whole group, in the first version";
    _ => CGROUP CPUSETS_V1 PROC_PID_CPUSET SOCK_CGROUP_DATA GROUP_SCHED PAGE_COUNTER
        NETFILTER_XT_MATCH_CGROUP NET_CLS_CGROUP
}
