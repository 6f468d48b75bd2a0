//! Limits of the control groups.

use tollgate_model::Boundary::{BlockRead, BlockWrite, DeviceFlush, PageFault};

use super::{FactSpec, one};
use crate::cgroup;

pub(super) const FACTS: &[FactSpec] = &[
    one(
        "cgroup.cpu_max",
        cgroup::cpu_max,
        "The processor quota of the control groups, in processors; the lowest.",
    )
    .affects_everything("a process that has used up the quota waits for the next period"),
    one(
        "cgroup.memory_max",
        cgroup::memory_max,
        "The memory limit of the control groups in bytes; the lowest.",
    )
    .affects(&[PageFault], "near the limit a fault may reclaim memory first"),
    one("cgroup.pids_max", cgroup::pids_max, "The task limit of the control groups; the lowest."),
    one("cgroup.version", cgroup::version, "The version of control groups: 1, 2, or both."),
    one(
        "cgroup.cpu_weight",
        cgroup::cpu_weight,
        "The weight of the control group under contention: the default is 100 in version 2, 1024 in version 1.",
    )
    .affects_everything("the weight sets the share of processor time while other groups want it too"),
    one("cgroup.processors", cgroup::processors, "The processors that the control group may use."),
    one(
        "cgroup.memory_high",
        cgroup::memory_high,
        "The bytes of memory beyond which the control groups throttle; the lowest.",
    )
    .affects(&[PageFault], "beyond the limit a fault makes the task wait"),
    one("cgroup.io_max", cgroup::io_max, "The I/O limits of the control group, by device.")
        .affects(&[BlockRead, BlockWrite, DeviceFlush], "requests beyond the limit wait"),
];
