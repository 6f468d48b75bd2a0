//! Context switches between two threads that pass a token back and forth.

use std::thread::{self, JoinHandle};
use std::{sync::mpsc, time::Duration};

use super::{raw, trial::tried};
use crate::prelude::*;

mod files;
mod futex;
mod semop;
mod yielding;

/// Round trips in one iteration: tens of microseconds on one processor.
const TRIPS: u64 = 32;
/// The same if an idle processor must be woken each time, which takes ten times as long in a virtual machine.
const TRIPS_APART: u64 = 4;
const SWITCHES: u64 = 2;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/switch",
    operation: "One one-way switch between two threads that pass a token back and forth and sleep until it returns, including the calls; by=yield has no token, and both threads are always runnable.",
    avoid: "Keep threads that talk together on processors that share a cache, batch messages, and spin before sleeping.",
    source: "futex(2); sched_setaffinity(2); Linux kernel/sched/core.c, try_to_wake_up()",
    crosses: &[
        ContextSwitch,
        WakeUp,
        KernelEntry,
        SystemCall,
        KernelCode,
        UserCopy,
        CacheLine,
        InterProcessorInterrupt,
        IdleExit,
    ],
    crossed_in: |params, boundary| match boundary {
        WakeUp => word(params, "by") != "yield",
        UserCopy => matches!(word(params, "by"), "eventfd" | "pipe" | "semop"),
        CacheLine | InterProcessorInterrupt | IdleExit => word(params, "placement") == "other-cpu",
        _ => true,
    },
    timed: |params| {
        By::try_from(params).map_or(NOT_TIMED, |by| {
            let (code, times) = by.value();
            Timed::Loop { code, instruction: "syscall/svc", times }
        })
    },
    counts: Some("switches"),
    cases: |_| cases(),
    in_everything: |params, _| word(params, "by") != "semop",
    headlines: &[
        Headline::of(
            Section::Processes,
            "context switch, same CPU",
            &[("by", "futex"), ("placement", "same-cpu")],
        ),
        Headline::of(
            Section::Processes,
            "wake-up on another CPU",
            &[("by", "futex"), ("placement", "other-cpu")],
        ),
    ],
    kind: Kind::Instance(|_, params, context| {
        context.home()?;
        let means = means(params)?;
        let (elsewhere, note) = match Placement::try_from(params)? {
            Placement::OtherCpu => Some(other_processor(context)?).unzip(),
            Placement::SameCpu => (None, None),
        };
        let mut switch = Switch::new(means, elsewhere, &context.quota)?;
        tried(SWITCHES * TRIPS_APART, &context.heartbeat, || switch.run(Clock::Kernel, TRIPS_APART))?;
        let ops = SWITCHES * switch.trips();
        let instance = Instance::new(switch).with_ops(ops).with_notes(note);
        // The other cases' batches are as long, with many more handovers.
        Ok(if elsewhere.is_some() { instance.with_most(1) } else { instance })
    }),
    ..PLAIN
};

words! {
    /// The loop and its calls in an iteration.
    enum By("by"): (TimedLoop, usize) {
        Futex = "futex" => (futex::LOOP, 2),
        Yield = "yield" => (yielding::LOOP, 1),
        Semop = "semop" => (semop::LOOP, 2),
        Eventfd = "eventfd" => (files::LOOP, 2),
        Pipe = "pipe" => (files::LOOP, 2),
    }
}

words! {
    enum Placement("placement") { SameCpu = "same-cpu", OtherCpu = "other-cpu" }
}

fn cases() -> Vec<Params> {
    let case = |by: &str, placement: &str| params(&[("by", by.into()), ("placement", placement.into())]);
    // A thread that is alone on a processor continues after sched_yield(2).
    let mut cases = vec![case("yield", "same-cpu"), case("semop", "same-cpu")];
    for placement in Placement::WORDS {
        cases.extend(["futex", "eventfd", "pipe"].map(|by| case(by, placement)));
    }
    cases
}

/// Threads of each case, besides the timed one.
pub(super) fn partners() -> impl Iterator<Item = u64> {
    cases().into_iter().map(|_| 1)
}

fn means(params: &Params) -> Result<Means> {
    match By::try_from(params)? {
        By::Futex => Ok(futex::words()),
        By::Yield => Ok(yielding::yielding()),
        By::Semop => semop::semaphores(),
        By::Eventfd => files::counters(),
        By::Pipe => files::pipes(),
    }
}

/// Runs the partner's half of a handover: also a loop in instructions, which ends itself by setting its counter.
///
/// # Safety
/// The words must be what the loop's documentation says, and what they point to must outlive the call.
unsafe fn follow(code: LongLoop, words: [u64; 7]) {
    debug_assert!(code.is_called(), "each side has a call and a return in a trip");
    let mut context = LoopContext { words, result: 0 };
    // SAFETY: by the caller's contract.
    unsafe { code.run(u64::MAX, &mut context) };
}

fn other_processor(context: &Context) -> Result<(usize, String)> {
    let other = context.other_processor()?;
    // SAFETY: sched_getcpu(3) has no preconditions.
    let home = unsafe { libc::sched_getcpu() };
    Ok((other, format!("processors {home} and {other}")))
}

struct Means {
    code: TimedLoop,
    side: Box<dyn Side>,
    partner: Box<dyn FnOnce() + Send>,
}

trait Side {
    fn words(&self) -> [u64; 7];

    fn begin(&mut self, context: &mut LoopContext);

    /// Checks the number of handovers since `begin`.
    fn check(&self, context: &LoopContext, trips: u64) -> Result<()>;

    fn end(&mut self) {}

    fn part(&mut self);
}

/// Two threads, of which the calling one is timed.
///
/// The partner sleeps between batches. It is a thread of this process, so it cannot die alone.
struct Switch {
    code: LongLoop,
    context: Box<LoopContext>,
    side: Box<dyn Side>,
    other_cpu: bool,
    threads: [libc::pid_t; 2],
    partner: Option<JoinHandle<()>>,
    _taken: Taken,
}

impl Switch {
    fn new(means: Means, elsewhere: Option<usize>, quota: &Quota) -> Result<Self> {
        let taken = quota.take_processes(1)?;
        let Means { code, side, partner: hand_back } = means;
        let TimedLoop::Long(code) = code else {
            return Err(fail!("only a 64-bit loop can be called in a 64-bit process"));
        };
        let (ready, placed) = mpsc::channel();
        let body = move || {
            let outcome = elsewhere.map_or(Ok(()), cpu::pin);
            let usable = outcome.is_ok();
            if ready.send(outcome.map(|()| raw::own_thread())).is_ok() && usable {
                hand_back();
            }
        };
        let partner = thread::Builder::new()
            .stack_size(STACK)
            .spawn(body)
            .map_err(|error| quota.refused("a thread", &error))?;
        let context = Box::new(LoopContext { words: side.words(), result: 0 });
        let mut switch = Self {
            code,
            context,
            side,
            other_cpu: elsewhere.is_some(),
            threads: [raw::own_thread(), 0],
            partner: Some(partner),
            _taken: taken,
        };
        match placed.recv() {
            Ok(Ok(partner)) => {
                switch.threads[1] = partner;
                Ok(switch)
            }
            Ok(Err(error)) => Err(Refusal::new("the other processor is refused (sched_setaffinity)", &error)),
            Err(_) => Err(fail!("the partner thread did not start")),
        }
    }

    fn trips(&self) -> u64 {
        if self.other_cpu { TRIPS_APART } else { TRIPS }
    }

    fn run(&mut self, clock: Clock, trips: u64) -> Result<Batch> {
        let mut nothing = LoopContext::default();
        let mut empty = || clock.time(|| run_empty(trips, &mut nothing));
        let (code, context): (_, *mut LoopContext) = (self.code, &mut *self.context);

        let asleep = raw::switches_of_process();
        self.side.begin(&mut self.context);
        let warm_up = (trips / 16).max(1);
        // SAFETY: the words are what this loop requires, and `side` keeps what they point to.
        unsafe { code.run(warm_up, context) };
        self.side.check(&self.context, warm_up)?;
        self.side.begin(&mut self.context);
        let mut counting = Counting::begin(Of::Process);
        let emptied = counting.empty(&mut empty);
        let before = self.count(asleep + SWITCHES * warm_up);
        let queued = self.queued();
        let cpu_share = cpu::CpuShare::begin();
        // SAFETY: as above.
        let worked = counting.work(|| clock.time(|| unsafe { code.run(trips, context) }));
        let tally = counting.end();
        // Disturbance is time that neither thread used on one processor; on two, time in which either was runnable and waited.
        let passed = Duration::from_nanos(clock.nanoseconds(worked.ticks as f64) as u64);
        let alone = if self.other_cpu {
            cpu::were_free(self.queued().saturating_sub(queued), passed, trips)
        } else {
            cpu_share.was_full()
        };
        let counted = self.count(before + SWITCHES * trips).saturating_sub(before);
        let emptied_again = empty();
        self.side.check(&self.context, trips)?;
        self.side.end();

        let undisturbed = alone && counted == SWITCHES * trips;
        let batch = Batch::between([emptied, worked, emptied_again], undisturbed);
        Ok(Batch { counted: Some(counted), tally: tally.with_switches(counted), ..batch })
    }

    /// Returns how long both threads have waited for their processors; zero if unknown.
    fn queued(&self) -> Duration {
        let both = || self.threads.iter().filter_map(|&thread| raw::queued("self", thread)).sum();
        Duration::from_nanos(if self.other_cpu { both() } else { 0 })
    }

    /// Returns the switches of both threads so far. Waits a while for the expected number: a partner elsewhere may not sleep yet.
    fn count(&self, expected: u64) -> u64 {
        const LOOKS: usize = 64;
        let looks = if self.other_cpu { LOOKS } else { 1 };
        let mut count = 0;
        for _ in 0..looks {
            count = raw::switches_of_process();
            if count >= expected {
                break;
            }
        }
        count
    }
}

const STACK: usize = 64 << 10;

impl Runner for Switch {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.run(clock, order.all() * self.trips())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.side.part();
        if let Some(partner) = self.partner.take() {
            // The thread ends by itself; a panic shows in the results.
            let _ = partner.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::raw::tests::{comes_to_threads, in_a_process_of_its_own, threads};
    use crate::testing::{preferred, undisturbed};

    fn every(test: impl Fn(&str, Switch)) {
        let all = cpu::allowed();
        let context = Context::here();
        cpu::pin(*all.last().expect("a processor")).expect("an allowed processor");
        for case in cases() {
            let means = means(&case).expect("means");
            let elsewhere = match word(&case, "placement") {
                "other-cpu" if all.len() < 2 => {
                    eprintln!("skipped: one processor only");
                    continue;
                }
                "other-cpu" => Some(other_processor(&context).expect("another").0),
                _ => None,
            };
            test(
                &BENCHMARK.case(case).to_string(),
                Switch::new(means, elsewhere, &context.quota).expect("two threads"),
            );
        }
    }

    #[test]
    fn the_kernel_counts_one_switch_per_handover() {
        in_a_process_of_its_own(|| {
            preferred();
            every(|name, mut switch| {
                for trips in [1, TRIPS_APART] {
                    if let Some(batch) = undisturbed(|| switch.run(Clock::Kernel, trips).expect("a batch")) {
                        assert_eq!(batch.counted, Some(SWITCHES * trips), "{name}");
                    }
                }
            });
        });
    }

    #[test]
    fn other_work_in_a_batch_is_detected() {
        in_a_process_of_its_own(|| {
            every(|name, mut switch| {
                let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
                // It inherits the timed thread's affinity, and runs and sleeps on its processor.
                let other = {
                    let stop = std::sync::Arc::clone(&stop);
                    thread::spawn(move || {
                        while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                            raw::sched_yield();
                            thread::sleep(Duration::from_micros(1));
                        }
                    })
                };
                let batches: Vec<Batch> =
                    (0..20).map(|_| switch.run(Clock::Kernel, 512).expect("a batch")).collect();
                stop.store(true, std::sync::atomic::Ordering::SeqCst);
                other.join().expect("no panic");
                assert!(batches.iter().any(|batch| !batch.undisturbed), "{name}: {batches:?}");
            });
        });
    }

    #[test]
    fn the_partner_ends_with_the_instance() {
        in_a_process_of_its_own(|| {
            let Some(before) = threads() else { return eprintln!("skipped: no /proc") };
            every(|name, mut switch| {
                switch.run(Clock::Kernel, 4).expect("a batch");
                assert_eq!(threads(), Some(before + 1), "{name}");
                drop(switch);
                comes_to_threads(before, name);
            });
        });
    }

    #[test]
    fn an_unused_instance_leaves_no_thread() {
        in_a_process_of_its_own(|| {
            let Some(before) = threads() else { return eprintln!("skipped: no /proc") };
            every(|name, switch| {
                drop(switch);
                comes_to_threads(before, name);
            });
        });
    }
}
