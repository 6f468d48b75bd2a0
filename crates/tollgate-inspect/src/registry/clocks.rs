//! What time is read from.

use tollgate_model::Boundary::{ClockSource, Sleep, Timer, VdsoClock, VdsoGetcpu};

use super::{FactSpec, one, parameter};
use crate::clock;

pub(super) const FACTS: &[FactSpec] = &[
    one("clocksource.current", clock::current, "What the kernel reads time from.").affects(&[ClockSource], "user mode reads the TSC and the paravirtual clocks itself, other sources take a system call and a device"),
    one("clocksource.available", clock::available, "What the kernel could read time from."),
    one(
        "vdso.present",
        clock::vdso,
        "Whether the kernel maps its shared object for calls without a crossing.",
    )
    .affects(&[VdsoClock, VdsoGetcpu], "without a vDSO each call is a system call"),
    one(
        "clocksource.in_user_mode",
        clock::in_user_mode,
        "Whether clock_gettime(2) is answered in user mode, with this clock source and this \
         vDSO.",
    )
    .affects(&[VdsoClock], "a reading in user mode takes tens of nanoseconds, a system call and a device hundreds to thousands"),
    one(
        "clock.resolution",
        clock::resolution,
        "The steps of the monotonic clock in nanoseconds; 1 with timers of high resolution.",
    )
    .affects(&[Timer, Sleep], "without high-resolution timers a sleep or a wait ends on a tick"),
    one("clock.offsets", clock::offsets, "What a time namespace adds to the clocks.")
        .affects(&[VdsoClock, ClockSource], "a time namespace adds an offset to each reading"),
    parameter(
        "clock.parameter.tsc",
        "tsc",
        "What the command line says of the time-stamp counter: reliable, unstable, \
         nowatchdog.",
    ),
    parameter("clock.parameter.vdso", "vdso", "Whether the vDSO was switched off on the command line."),
];
