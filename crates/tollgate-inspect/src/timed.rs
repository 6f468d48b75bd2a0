//! The time of CPUID, which shows whether a hypervisor intercepts it, even a hidden one. It is a fact, not a latency: the
//! minimum of some dozens only has to fall into one of three classes that are far apart.

#![allow(unsafe_code)]

use std::sync::OnceLock;

use tollgate_arch::counter;
use tollgate_arch::cpuid::{CPUID, Cpuid};

use crate::machine::{Answer, Machine, found};
use crate::{calls, hypervisor};

const CALL: &str = "CPUID between two RDTSC after LFENCE";
const TIMES: std::ops::RangeInclusive<u32> = 6..=64;
/// Ticks after which executions end: some hundred microseconds.
const BUDGET: u64 = 600_000;
/// No processor takes this many ticks to execute CPUID itself, and no hypervisor can leave a guest, answer and return in fewer:
/// the first takes 100 to 300, the second more than 1000.
const AN_EXIT: u64 = 700;
/// A hypervisor on hardware answers within some 3000 ticks. It takes longer if the exit goes through another hypervisor, a
/// program, or the module that guards a confidential guest, or if it flushes caches.
const A_SLOW_EXIT: u64 = 5_000;

pub(crate) fn execution(machine: &Machine) -> Answer<&'static str> {
    /// Measured once: a time near the border of two classes must not change the fact.
    static TICKS: OnceLock<Result<u64, i32>> = OnceLock::new();
    let ticks = machine.call(CALL, || *TICKS.get_or_init(least_ticks));
    ticks.and_then(|ticks| {
        if hypervisor::is_translator(machine) {
            return found("translated", "QEMU TCG executes every instruction in software");
        }
        found(class(ticks.value), ticks.source)
    })
}

fn class(ticks: u64) -> &'static str {
    match ticks {
        0..AN_EXIT => "native",
        AN_EXIT..A_SLOW_EXIT => "exit",
        A_SLOW_EXIT.. => "slow exit",
    }
}

pub(crate) fn ticks(machine: &Machine) -> Answer<i64> {
    let ticks: Answer<u64> = machine.call(CALL, least_ticks);
    ticks.map(|found| found.map(|ticks| i64::try_from(ticks).unwrap_or(i64::MAX)))
}

/// The minimum of some dozens: interrupts and other guests only add time.
fn least_ticks() -> Result<u64, i32> {
    let cpuid = CPUID.ok_or(libc::ENOSYS)?;
    calls::expect_tsc()?;
    let mut least = u64::MAX;
    let mut spent = 0_u64;
    for time in 1..=*TIMES.end() {
        let ticks = one(cpuid);
        least = least.min(ticks);
        spent = spent.saturating_add(ticks);
        if spent > BUDGET && time >= *TIMES.start() {
            break;
        }
    }
    Ok(least)
}

/// One execution. Subtracting the two counter readings around it would not change the class.
fn one(cpuid: Cpuid) -> u64 {
    // SAFETY: whether RDTSC is allowed here was checked before.
    let read = || unsafe { counter::fenced() };
    let before = read();
    std::hint::black_box(cpuid(0, 0));
    read().saturating_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_lie_apart() {
        assert_eq!([0, 150, 699].map(class), ["native"; 3]);
        assert_eq!([700, 1200, 2600, 4_999].map(class), ["exit"; 4]);
        assert_eq!([5_000, 50_000, u64::MAX].map(class), ["slow exit"; 3]);
    }

    #[test]
    fn here_it_takes_some_time_and_the_class_stays() {
        let machine = Machine::here();
        let first = execution(&machine);
        assert_eq!(first, execution(&machine));
        println!("{first:?} {:?}", ticks(&machine));
        if first.is_ok() {
            assert!(ticks(&machine).is_ok_and(|ticks| ticks.value > 0));
        }
    }
}
