use tollgate_model::Boundary::{ClockSource, Sleep, Timer, VdsoClock, VdsoGetcpu};

use crate::machine::Machine;
use crate::{calls, clock, kernel};

facts! {
    pub(super) FACTS
    "clocksource.current" Line("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        "The kernel's clock source."
        [ClockSource]
        "user mode reads the TSC, the generic timer of arm64 and the paravirtual clocks itself, other sources take a system call and a device";
    "clocksource.available" Of(clock::available) "The clock sources that the kernel can use.";
    "vdso.present" Of(clock::vdso) "Whether the kernel maps a vDSO, which answers calls without a crossing."
        [VdsoClock, VdsoGetcpu] "without a vDSO each call is a system call";
    "clocksource.in_user_mode" Of(clock::in_user_mode)
        "Whether clock_gettime(2) is answered in user mode, with this clock source and this vDSO."
        [VdsoClock]
        "a reading in user mode takes tens of nanoseconds, a system call and a device hundreds to thousands";
    "clock.resolution" Of(Machine::call, "clock_getres(2) CLOCK_MONOTONIC", || calls::resolution(libc::CLOCK_MONOTONIC))
        "The resolution of the monotonic clock in nanoseconds; 1 with high-resolution timers."
        [Timer, Sleep] "without high-resolution timers a sleep or a wait ends on a tick";
    "clock.tsc_frequency" X86(clock::tsc_frequency)
        "The frequency of the time-stamp counter in hertz, as CPUID states it.";
    "clock.counter_frequency" Arm64(clock::counter_frequency)
        "The frequency of arm64's generic timer in hertz, as CNTFRQ_EL0 states it."
        [ClockSource, VdsoClock] "no reading is finer than a tick of the counter";
    "clock.offsets" Of(clock::offsets) "The offsets that a time namespace adds to the clocks."
        [VdsoClock, ClockSource] "a time namespace adds an offset to each reading";
    "clock.parameter.tsc" X86(kernel::parameter_of, "tsc")
        "The tsc= parameter of the command line: reliable, unstable, nowatchdog.";
    "clock.parameter.vdso" Parameter("vdso") "Whether the vDSO was switched off on the command line.";
}
