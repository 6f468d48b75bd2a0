//! Checks whether an affinity binds. A sandbox such as gVisor may accept sched_setaffinity(2) and place threads freely.
//!
//! Two threads pinned to one processor hand a word to each other and spin until it comes back. On one processor a thread spins
//! until it is switched out, before the other runs at all. On two processors the word is back within a microsecond whenever both
//! run. Spins are counted, because a clock read may take longer in a sandbox.
//!
//! A quick return alone shows nothing, because a wake-up of a third thread on the processor may swap the two: a thread that wakes
//! ten thousand times a second causes as many returns. So a return counts only if the kernel has not switched the thread out
//! since it handed the word over. If a kernel counts no switches, preemptions are still rare ([`OFTEN`]).

use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};
use std::time::{Duration, Instant};
use std::{io, thread};

use serde::{Deserialize, Serialize};

use crate::machine::cpu;

/// Some microseconds: far less than a time slice.
const FEW_SPINS: u64 = 1000;
/// The threads stop after this many quick returns. Uncounted preemptions directly after a handover do not explain that many.
const OFTEN: u64 = 100;
const LONGEST: Duration = Duration::from_millis(12);
/// Pairs of threads to try: on a busy machine, two that are not bound may still share a processor.
const PAIRS: usize = 8;
/// A pause, because the scheduler places a thread anew when it wakes up.
const REST: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Observed {
    pub pinned: usize,
    /// The processors that they ran on, by getcpu(2).
    pub ran_on: [Option<usize>; 2],
    /// How often the word came back within [`FEW_SPINS`] to a thread that was not switched out.
    pub quick: u64,
    pub over: Duration,
}

impl Observed {
    /// Observes new threads and the calling one, pinned to `cpu`, for a tenth of a second if it binds. Fails as pthread_create(3) does.
    pub fn here(cpu: usize) -> io::Result<Self> {
        let mut pair = Self::pair(cpu)?;
        for _ in 1..PAIRS {
            if pair.binds().is_err() {
                break;
            }
            thread::sleep(REST);
            pair = Self::pair(cpu)?;
        }
        Ok(pair)
    }

    fn pair(cpu: usize) -> io::Result<Self> {
        let game = Game { word: AtomicU64::new(0), quick: AtomicU64::new(0), began: Instant::now() };
        let ran_on = thread::scope(|scope| {
            // It inherits the affinity.
            let other = thread::Builder::new().spawn_scoped(scope, || game.play(1))?;
            let mine = game.play(0);
            Ok::<_, io::Error>([mine, other.join().unwrap_or_default()])
        })?;
        Ok(Self { pinned: cpu, ran_on, quick: game.quick.into_inner(), over: game.began.elapsed() })
    }

    pub fn binds(&self) -> Result<(), String> {
        let elsewhere = self.ran_on.iter().flatten().find(|&&on| on != self.pinned);
        let why = match elsewhere {
            Some(on) => format!("a thread pinned to processor {} ran on processor {on}", self.pinned),
            None if self.quick >= OFTEN => {
                format!("two threads pinned to processor {} ran at the same time", self.pinned)
            }
            None => return Ok(()),
        };
        Err(format!("sched_setaffinity(2) succeeds but has no effect: {why}"))
    }

    pub fn describe(&self) -> String {
        format!(
            "two threads pinned to processor {}: a word came back {} times within {FEW_SPINS} spins and without a switch, in {} ms",
            self.pinned,
            self.quick,
            self.over.as_millis()
        )
    }
}

struct Game {
    /// Even: it is the first thread's turn.
    word: AtomicU64,
    quick: AtomicU64,
    began: Instant,
}

impl Game {
    /// Hands the word on at each turn. Returns the processor that the thread ran on.
    fn play(&self, turn: u64) -> Option<usize> {
        /// Between clock reads.
        const SPINS: usize = 1 << 12;
        let mut handed_over: Option<HandedOver> = None;
        while self.quick.load(Acquire) < OFTEN && self.began.elapsed() < LONGEST {
            for _ in 0..SPINS {
                if self.word.load(Acquire) % 2 == turn {
                    let is_quick = handed_over.is_some_and(|before| before.is_back_at_once(cpu::switches));
                    self.quick.fetch_add(u64::from(is_quick), AcqRel);
                    // Read before the handover, so that a switch directly after it counts.
                    handed_over = Some(HandedOver { spins: 0, switches: cpu::switches() });
                    self.word.fetch_add(1, AcqRel);
                }
                if let Some(before) = &mut handed_over {
                    before.spins += 1;
                }
                std::hint::spin_loop();
            }
        }
        cpu::current()
    }
}

struct HandedOver {
    spins: u64,
    switches: u64,
}

impl HandedOver {
    /// Whether the other thread ran while this one spun. `switches` is called only if it may have.
    fn is_back_at_once(&self, switches: impl FnOnce() -> u64) -> bool {
        self.spins < FEW_SPINS && switches() == self.switches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(ran_on: [Option<usize>; 2], quick: u64) -> Result<(), String> {
        Observed { pinned: 1, ran_on, quick, over: Duration::from_millis(12) }.binds()
    }

    #[test]
    fn threads_that_run_at_once_are_not_bound_to_one_processor() {
        let there = [Some(1), Some(1)];
        assert_eq!(observed(there, 0), Ok(()));
        // Preemptions directly after a handover are rare, but possible.
        assert_eq!(observed(there, 3), Ok(()));
        let why = observed(there, 100).expect_err("at the same time");
        assert!(why.ends_with("two threads pinned to processor 1 ran at the same time"), "{why}");
        assert!(observed([None; 2], 100).is_err(), "without getcpu(2)");
    }

    #[test]
    fn a_thread_on_another_processor_is_not_bound() {
        for ran_on in [[Some(0), Some(1)], [Some(1), Some(0)], [None, Some(0)]] {
            let why = observed(ran_on, 0).expect_err("elsewhere");
            assert!(why.ends_with("a thread pinned to processor 1 ran on processor 0"), "{why}");
        }
    }

    #[test]
    fn a_word_that_a_switch_brought_back_is_no_sign_of_two_processors() {
        let after = |spins| HandedOver { spins, switches: 7 };
        assert!(after(0).is_back_at_once(|| 7));
        assert!(!after(0).is_back_at_once(|| 8), "switched out and in again");
        assert!(!after(FEW_SPINS).is_back_at_once(|| 7), "late");
    }

    #[test]
    fn a_third_thread_that_wakes_often_makes_two_bound_ones_look_no_less_bound() {
        let all = cpu::allowed();
        let Some(&last) = all.last() else { panic!("no processor allowed") };
        cpu::pin(last).expect("an allowed processor");
        let before = cpu::switches();
        thread::sleep(REST);
        let counts_switches = cpu::switches() > before;
        let over = std::sync::atomic::AtomicBool::new(false);
        let pair = thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: PR_SET_TIMERSLACK takes a number (prctl(2)).
                unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
                while !over.load(Acquire) {
                    thread::sleep(Duration::from_micros(20));
                }
            });
            let pair = Observed::pair(last);
            over.store(true, std::sync::atomic::Ordering::Release);
            pair
        });
        cpu::allow(&all);
        let pair = pair.expect("a thread");
        if counts_switches {
            assert_eq!(pair.quick, 0, "{pair:?}")
        } else {
            println!("skipped: the kernel counts no switches here")
        }
    }

    #[test]
    fn two_unpinned_threads_are_seen_and_two_pinned_ones_bind() {
        let all = cpu::allowed();
        let Some(&last) = all.last() else { panic!("no processor allowed") };
        cpu::pin(last).expect("an allowed processor");
        let pinned = Observed::here(last).expect("a thread");
        cpu::allow(&all);
        println!("{}", pinned.describe());
        assert_eq!(pinned.binds(), Ok(()), "{pinned:?}");
        if all.len() < 2 {
            return println!("skipped: one processor only");
        }
        // As if pinning had no effect. On a busy machine they may have to share a processor for a while.
        let observed = || Observed { ran_on: [None; 2], ..Observed::here(last).expect("a thread") };
        assert!((0..1000).any(|_| observed().binds().is_err()));
    }
}
