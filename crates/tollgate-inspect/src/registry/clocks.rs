//! What time is read from.

use super::{FactSpec, one, parameter};
use crate::clock;

pub(super) const FACTS: &[FactSpec] = &[
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
    one(
        "clocksource.in_user_mode",
        clock::in_user_mode,
        "Whether clock_gettime(2) is answered in user mode, with this clock source and this \
         vDSO.",
    )
    .moves(
        "clocks: a reading in user mode costs tens of nanoseconds, a system call and a device \
         hundreds to thousands",
    ),
    one(
        "clock.resolution",
        clock::resolution,
        "The steps of the monotonic clock in nanoseconds; 1 with timers of high resolution.",
    )
    .moves(
        "sleeping and waiting with a time limit: without timers of high resolution they end \
         on a tick",
    ),
    one("clock.offsets", clock::offsets, "What a time namespace adds to the clocks.")
        .moves("clocks: in a time namespace each reading adds an offset"),
    parameter(
        "clock.parameter.tsc",
        "tsc",
        "What the command line says of the time-stamp counter: reliable, unstable, \
         nowatchdog.",
    ),
    parameter("clock.parameter.vdso", "vdso", "Whether the vDSO was switched off on the command line."),
];
