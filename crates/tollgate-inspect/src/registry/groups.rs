use tollgate_model::Boundary::{
    BlockRead, BlockWrite, ContextSwitch, DeviceFlush, KernelAllocation, PageFault, ProcessCreation,
};

use crate::cgroup;

facts! {
    pub(super) FACTS
    "cgroup.cpu_max" Of(cgroup::cpu_max)
        "The processor quota of the control groups, in processors; the lowest."
        * "a process that has used up the quota waits for the next period";
    "cgroup.memory_max" Of(cgroup::memory_max)
        "The memory limit of the control groups in bytes; the lowest."
        [PageFault] "near the limit a fault may reclaim memory first";
    "cgroup.pids_max" Of(cgroup::pids_max) "The task limit of the control groups; the lowest.";
    "cgroup.depth" Of(cgroup::depth)
        "How many control groups are between the visible root and this process, with its own."
        [PageFault, KernelAllocation, ProcessCreation, ContextSwitch]
        "pages, tasks and processor time are charged to each group up to the root";
    "cgroup.controllers" Of(cgroup::controllers)
        "The controllers of the control groups of this process."
        [PageFault, KernelAllocation, ProcessCreation, ContextSwitch]
        "each controller accounts what it limits";
    "cgroup.version" Of(cgroup::version) "The version of control groups: 1, 2, or both.";
    "cgroup.cpu_weight" Of(cgroup::cpu_weight)
        "The weight of the control group under contention: the default is 100 in version 2, 1024 in version 1."
        * "the weight sets the share of processor time while other groups want it too";
    "cgroup.processors" Of(cgroup::processors) "The processors that the control group may use.";
    "cgroup.memory_high" Of(cgroup::memory_high)
        "The bytes of memory beyond which the control groups throttle; the lowest."
        [PageFault] "beyond the limit a fault makes the task wait";
    "cgroup.io_max" Of(cgroup::io_max) "The I/O limits of the control group, by device."
        [BlockRead, BlockWrite, DeviceFlush] "requests beyond the limit wait";
}
