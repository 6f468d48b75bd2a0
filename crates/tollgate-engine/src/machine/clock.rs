//! The clock: the fenced time stamp counter if it can be trusted, else the kernel's.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tollgate_arch::counter;

use crate::machine::cpu;

/// The clock that times batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clock {
    /// The time stamp counter.
    Tsc {
        /// Ticks per second.
        hz: u64,
    },
    /// `clock_gettime(CLOCK_MONOTONIC_RAW)`, in nanoseconds.
    Kernel,
}

/// Two clock reads around a stretch of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Ticks between the readings.
    pub ticks: u64,
    /// Whether both came from the same processor, as far as the clock shows.
    pub same_processor: bool,
}

/// Why the time stamp counter cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TscFault {
    /// CPUID.80000001H:EDX\[27\] is clear.
    #[error("the processor has no rdtscp")]
    NoRdtscp,
    /// CPUID.80000007H:EDX\[8\] is clear: the counter's rate may change with the processor's.
    #[error("the counter is not invariant (CPUID.80000007H:EDX[8])")]
    NotInvariant,
    /// `prctl(PR_SET_TSC, PR_TSC_SIGSEGV)` is in force.
    #[error("this process may not read it (prctl PR_TSC_SIGSEGV)")]
    Refused,
    /// A read takes this time, in ns: a hypervisor or the kernel must emulate it.
    #[error("a reading takes {0} ns: it is trapped and emulated")]
    Trapped(u64),
    /// Reads on two processors are not in the order in which they were made.
    #[error("processors {0} and {1} disagree by at least {2} ticks")]
    Offset(usize, usize, u64),
    /// It does not run at a steady rate by the kernel's clock.
    #[error("its rate is not steady: {0} and {1} Hz in two trials")]
    Unsteady(u64, u64),
}

/// The source of the counter's frequency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FrequencySource {
    /// The processor's own statement: crystal frequency and ratio (CPUID leaf 15H), or CNTFRQ_EL0.
    Stated,
    /// CPUID leaf 4000_0010H: the hypervisor's value, in kHz.
    Hypervisor,
    /// Calibrated by CLOCK_MONOTONIC_RAW.
    Calibrated,
    /// QEMU's `-icount shift=0`: each instruction is a tick.
    Instructions,
}

impl FrequencySource {
    /// Describes it for a fact's source.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Stated => counter::RATE,
            Self::Hypervisor => "CPUID.40000010H",
            Self::Calibrated => "calibrated against CLOCK_MONOTONIC_RAW",
            Self::Instructions => "QEMU -icount shift=0: one tick an instruction",
        }
    }
}

/// In ns. A slower read is emulated: bare rdtscp takes 10 to 30 ns.
const TRAPPED: u64 = 400;

impl Clock {
    /// Returns the time stamp counter if it can be trusted here. Takes about 40 ms if its frequency must be calibrated.
    pub fn tsc() -> Result<(Self, FrequencySource), TscFault> {
        check_features()?;
        let nanoseconds = reading_takes(monotonic_raw, || {
            tsc_end();
        });
        if nanoseconds > TRAPPED {
            return Err(TscFault::Trapped(nanoseconds));
        }
        check_offsets()?;
        let calibrated = calibrate()?;
        let (hz, source) = match stated_frequency() {
            // A hypervisor can declare a wrong frequency, so calibration must agree with it.
            Some((stated, source)) if stated.abs_diff(calibrated) < calibrated / 500 => (stated, source),
            _ => (calibrated, FrequencySource::Calibrated),
        };
        Ok((Self::Tsc { hz }, source))
    }

    /// Returns the time stamp counter of a guest under QEMU's translator with `-icount shift=0`: it ticks once per instruction,
    /// and a second has a thousand million ticks. The caller must check that.
    pub fn of_instructions() -> Result<(Self, FrequencySource), TscFault> {
        check_readable()?;
        Ok((Self::Tsc { hz: 1_000_000_000 }, FrequencySource::Instructions))
    }

    /// Returns ticks per second.
    pub fn hz(self) -> u64 {
        match self {
            Self::Tsc { hz } => hz.max(1),
            Self::Kernel => 1_000_000_000,
        }
    }

    /// Returns the ticks by which it advances. For a counter they are the greatest common divisor of the differences of many readings, since
    /// a counter may advance by several ticks at once (Arm ARM, D12.1.2); for the kernel's clock, the least difference.
    pub fn step(self) -> u64 {
        const READINGS: usize = 2_000;
        let readings: Vec<u64> = (0..READINGS).map(|_| self.moment()).collect();
        let differences = readings.windows(2).map(|two| two[1].wrapping_sub(two[0])).filter(|by| *by != 0);
        let step = match self {
            Self::Tsc { .. } => differences.reduce(common_divisor),
            Self::Kernel => differences.min(),
        };
        step.unwrap_or(1)
    }

    /// Converts ticks to nanoseconds.
    pub fn nanoseconds(self, ticks: f64) -> f64 {
        ticks * 1e9 / self.hz() as f64
    }

    /// Times `work`.
    #[inline(always)]
    pub fn time(self, work: impl FnOnce()) -> Span {
        match self {
            Self::Tsc { .. } => {
                let (start, on) = tsc_start();
                work();
                let (end, still_on) = tsc_end();
                Span { ticks: end.wrapping_sub(start), same_processor: on == still_on }
            }
            Self::Kernel => {
                let start = monotonic_raw();
                work();
                let end = monotonic_raw();
                Span { ticks: end.saturating_sub(start), same_processor: true }
            }
        }
    }

    /// Returns the current time in ticks, after all earlier instructions; comparable between threads, as [`Clock::tsc`] checked.
    pub fn moment(self) -> u64 {
        match self {
            Self::Tsc { .. } => tsc_end().0,
            Self::Kernel => monotonic_raw(),
        }
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// See [`counter::start`].
#[inline(always)]
fn tsc_start() -> (u64, u32) {
    // SAFETY: `Clock::tsc` found the instruction present and permitted before any `Clock::Tsc` existed.
    unsafe { counter::start() }
}

/// See [`counter::end`].
#[inline(always)]
fn tsc_end() -> (u64, u32) {
    // SAFETY: as in `tsc_start`.
    unsafe { counter::end() }
}

/// CLOCK_MONOTONIC_RAW in nanoseconds, which NTP does not steer.
pub(crate) fn monotonic_raw() -> u64 {
    kernels(libc::CLOCK_MONOTONIC_RAW)
}

/// CLOCK_MONOTONIC in nanoseconds, which is the same in every process of the machine.
pub(crate) fn monotonic() -> u64 {
    kernels(libc::CLOCK_MONOTONIC)
}

#[inline(always)]
fn kernels(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; on failure it stays zero.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Reads the counter, for comparison with another processor's loop. Valid only after [`Clock::tsc`] returned a clock.
pub(crate) fn stamp() -> u64 {
    tsc_start().0
}

fn check_features() -> Result<(), TscFault> {
    check_readable()?;
    if counter::is_invariant() { Ok(()) } else { Err(TscFault::NotInvariant) }
}

fn check_readable() -> Result<(), TscFault> {
    if !counter::is_there() {
        return Err(TscFault::NoRdtscp);
    }
    let mut mode: libc::c_int = libc::PR_TSC_ENABLE;
    // SAFETY: PR_GET_TSC writes one int through the pointer (prctl(2)).
    unsafe { libc::prctl(libc::PR_GET_TSC, &mut mode) };
    if mode == libc::PR_TSC_SIGSEGV { Err(TscFault::Refused) } else { Ok(()) }
}

/// Returns the nanoseconds of one `reading` by the kernel's clock: the extra time of twice as many readings, divided by their number.
/// The difference of two minima excludes the calls of the kernel's clock, which take microseconds if a sandbox emulates it.
fn reading_takes(kernels: impl Fn() -> u64, reading: impl Fn()) -> u64 {
    const READINGS: u64 = 32;
    const TRIALS: usize = 32;
    let takes = |readings: u64| {
        let before = kernels();
        (0..readings).for_each(|_| reading());
        kernels().saturating_sub(before)
    };
    let least = (0..TRIALS)
        .fold([u64::MAX; 2], |[few, many], _| [few.min(takes(READINGS)), many.min(takes(2 * READINGS))]);
    least[1].saturating_sub(least[0]) / READINGS
}

/// Moves from processor to processor and back, and checks that later reads are larger. A migration takes microseconds, so only
/// larger offsets show; smaller ones do not matter to batches that stay on one processor.
fn check_offsets() -> Result<(), TscFault> {
    const MOST: usize = 16;
    let allowed = cpu::allowed();
    let (Some(&home), true) = (allowed.first(), allowed.len() > 1) else { return Ok(()) };
    let step = allowed.len().div_ceil(MOST);
    let outcome = allowed.iter().skip(1).step_by(step).try_for_each(|&other| {
        let mut earlier = 0;
        for on in [home, other, home] {
            if cpu::pin(on).is_err() {
                return Ok(());
            }
            let (reading, _) = tsc_start();
            if reading < earlier {
                return Err(TscFault::Offset(home, other, earlier - reading));
            }
            earlier = reading;
        }
        Ok(())
    });
    cpu::allow(&allowed);
    outcome
}

fn stated_frequency() -> Option<(u64, FrequencySource)> {
    let processors = counter::stated_rate().map(|hz| (hz, FrequencySource::Stated));
    processors.or_else(|| counter::hypervisors_rate().map(|hz| (hz, FrequencySource::Hypervisor)))
}

fn calibrate() -> Result<u64, TscFault> {
    const TRIALS: usize = 3;
    let mut previous = None;
    let mut last = (0, 0);
    for _ in 0..TRIALS {
        let hz = calibrate_once(Duration::from_millis(20));
        if let Some(before) = previous {
            if hz.abs_diff(before) <= before / 2000 {
                return Ok(hz / 2 + before / 2);
            }
            last = (before, hz);
        }
        previous = Some(hz);
    }
    Err(TscFault::Unsteady(last.0, last.1))
}

fn calibrate_once(over: Duration) -> u64 {
    let (tsc_0, ns_0) = simultaneous();
    let until = Instant::now() + over;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    let (tsc_1, ns_1) = simultaneous();
    let nanoseconds = u128::from((ns_1 - ns_0).max(1));
    (u128::from(tsc_1.wrapping_sub(tsc_0)) * 1_000_000_000 / nanoseconds) as u64
}

/// Reads both clocks as close together as 16 tries allow: the pair in the tightest bracket.
fn simultaneous() -> (u64, u64) {
    let reading = || {
        let (before, _) = tsc_start();
        let nanoseconds = monotonic_raw();
        let (after, _) = tsc_end();
        (after.wrapping_sub(before), before.wrapping_add(after.wrapping_sub(before) / 2), nanoseconds)
    };
    let (_, tsc, nanoseconds) = (0..16).map(|_| reading()).min().unwrap_or_else(reading);
    (tsc, nanoseconds)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_tsc_agrees_with_the_kernels_clock() {
        let Ok((clock, source)) = Clock::tsc() else {
            eprintln!("skipped: no usable TSC here: {}", Clock::tsc().expect_err("just seen"));
            return;
        };
        // Other work may come between the two clocks, but not always.
        let differences = (0..100).map(|_| {
            let before = monotonic_raw();
            let span = clock.time(|| std::thread::sleep(Duration::from_millis(30)));
            let kernel = (monotonic_raw() - before) as f64;
            (clock.nanoseconds(span.ticks as f64) / kernel - 1.0).abs()
        });
        let least = differences.inspect(|by| println!("{by}")).find(|by| *by < 0.02);
        assert!(least.is_some(), "{source:?}");
    }

    #[test]
    fn what_passes_is_a_number_of_steps() {
        assert_eq!([(12, 18), (26, 0), (1, 7)].map(|(a, b)| common_divisor(a, b)), [6, 26, 1]);
        let clock = Clock::tsc().map_or(Clock::Kernel, |(clock, _)| clock);
        let step = clock.step();
        assert!(step > 0);
        if clock != Clock::Kernel {
            let spans = (0..1_000).map(|_| clock.time(|| ())).filter(|span| span.same_processor);
            assert!(spans.into_iter().all(|span| span.ticks % step == 0), "{step}");
        }
    }

    /// The time found for a read if the kernel's clock and the counter take this long; every 701st step is interrupted for 50 µs.
    fn found(kernels_ns: u64, reading_ns: u64) -> u64 {
        let (now, steps) = (Cell::new(0_u64), Cell::new(0_u64));
        let pass = |ns: u64| {
            steps.set(steps.get() + 1);
            now.set(now.get() + ns + if steps.get().is_multiple_of(701) { 50_000 } else { 0 });
        };
        let kernels = || {
            pass(kernels_ns / 2);
            let read = now.get();
            pass(kernels_ns / 2);
            read
        };
        reading_takes(kernels, || pass(reading_ns))
    }

    #[test]
    fn a_slow_clock_of_the_kernel_is_not_charged_to_the_counter() {
        // Natively; in gVisor, whose CLOCK_MONOTONIC_RAW is a call of the sandbox; and if that is slower still.
        for kernels_ns in [20, 4_500, 60_000] {
            assert_eq!(found(kernels_ns, 44), 44, "{kernels_ns}");
        }
    }

    #[test]
    fn a_counter_that_is_trapped_is_found_beside_any_clock_of_the_kernel() {
        for kernels_ns in [20, 4_500, 60_000] {
            for reading_ns in [TRAPPED + 1, 1_200, 25_000] {
                assert_eq!(found(kernels_ns, reading_ns), reading_ns, "{kernels_ns}");
            }
        }
    }

    #[test]
    fn the_kernels_clock_measures_a_sleep() {
        let span = Clock::Kernel.time(|| std::thread::sleep(Duration::from_millis(5)));
        assert!(span.ticks >= 5_000_000);
    }
}
