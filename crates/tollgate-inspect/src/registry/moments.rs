//! What changes from moment to moment.

use super::{FactSpec, one};
use crate::{cgroup, moments, timed};

/// What changes from moment to moment: read before and after a run, see [`super::strain`].
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
    one(
        "cpuid.ticks",
        timed::ticks,
        "The least ticks of the time-stamp counter that CPUID took, of some dozens.",
    )
    .moves("traps and page faults in a virtual machine: an exit costs so much at the least"),
    one("frequency", moments::frequency, "The frequency of processor 0 in kHz.").moves("every price in time"),
];
