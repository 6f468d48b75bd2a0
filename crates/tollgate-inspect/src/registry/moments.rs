//! Facts that change from moment to moment.

use tollgate_model::Boundary::{BlockRead, BlockWrite, DeviceFlush, Exception, PageFault, VmExit};

use super::{FactSpec, one};
use crate::{cgroup, moments, timed};

/// Facts that change from moment to moment: read before and after a run, see [`super::strain`].
pub static MOMENTS: &[FactSpec] = &[
    one("load", moments::load, "The load average over one minute.")
        .affects_everything("other tasks run in between and leave the caches cold, which widens the spread"),
    one("running", moments::running, "The runnable tasks at this moment."),
    one(
        "pressure.cpu",
        |m| moments::pressure(m, "cpu"),
        "The percentage of ten seconds in which some task waited for a processor.",
    )
    .affects_everything("other tasks run in between, which widens the spread"),
    one(
        "pressure.memory",
        |m| moments::pressure(m, "memory"),
        "The percentage of ten seconds in which some task waited for memory.",
    )
    .affects(&[PageFault], "a fault reclaims memory first"),
    one(
        "pressure.io",
        |m| moments::pressure(m, "io"),
        "The percentage of ten seconds in which some task waited for storage.",
    )
    .affects(&[BlockRead, BlockWrite, DeviceFlush], "other tasks use the device"),
    one(
        "stalled.cpu",
        |m| moments::stalled(m, "cpu"),
        "Microseconds since boot in which some task waited for a processor.",
    ),
    one(
        "stalled.memory",
        |m| moments::stalled(m, "memory"),
        "Microseconds since boot in which some task waited for memory.",
    ),
    one(
        "stalled.io",
        |m| moments::stalled(m, "io"),
        "Microseconds since boot in which some task waited for storage.",
    ),
    one(
        "steal",
        moments::steal,
        "Ticks since boot that the hypervisor took away (steal), of all processors.",
    )
    .affects_everything("the hypervisor takes the processor away, which widens the spread"),
    one("switches", moments::switches, "Context switches since boot, of all processors."),
    one("throttled", cgroup::throttled, "How often this process's control group was throttled.")
        .affects_everything("the group waits for its next period"),
    one(
        "cpuid.ticks",
        timed::ticks,
        "The fewest ticks of the time-stamp counter that CPUID took in some dozens of executions.",
    )
    .affects(&[VmExit, Exception, PageFault], "an exit takes at least this long"),
    one("frequency", moments::frequency, "The frequency of processor 0 in kHz.")
        .affects_everything("a lower frequency makes every instruction slower"),
];
