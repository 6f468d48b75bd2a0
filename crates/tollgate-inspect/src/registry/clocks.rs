//! Clock sources and the vDSO.

use tollgate_model::Boundary::{ClockSource, Sleep, Timer, VdsoClock, VdsoGetcpu};

use super::{FactSpec, one, parameter};
use crate::clock;

pub(super) const FACTS: &[FactSpec] = &[
    one("clocksource.current", clock::current, "The kernel's clock source.").affects(
        &[ClockSource],
        "user \
         mode reads the TSC and the paravirtual clocks itself, other sources take a system call and a device",
    ),
    one("clocksource.available", clock::available, "The clock sources that the kernel can use."),
    one(
        "vdso.present",
        clock::vdso,
        "Whether the kernel maps a vDSO, which answers calls without a crossing.",
    )
    .affects(&[VdsoClock, VdsoGetcpu], "without a vDSO each call is a system call"),
    one(
        "clocksource.in_user_mode",
        clock::in_user_mode,
        "Whether clock_gettime(2) is answered in user mode, with this clock source and this \
         vDSO.",
    )
    .affects(
        &[VdsoClock],
        "a reading in user mode takes tens of nanoseconds, a system call and a device hundreds to thousands",
    ),
    one(
        "clock.resolution",
        clock::resolution,
        "The resolution of the monotonic clock in nanoseconds; 1 with high-resolution timers.",
    )
    .affects(&[Timer, Sleep], "without high-resolution timers a sleep or a wait ends on a tick"),
    one("clock.offsets", clock::offsets, "The offsets that a time namespace adds to the clocks.")
        .affects(&[VdsoClock, ClockSource], "a time namespace adds an offset to each reading"),
    parameter(
        "clock.parameter.tsc",
        "tsc",
        "The tsc= parameter of the command line: reliable, unstable, nowatchdog.",
    ),
    parameter("clock.parameter.vdso", "vdso", "Whether the vDSO was switched off on the command line."),
];
