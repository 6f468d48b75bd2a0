//! Sleeps of a given time: lmbench's lat_usleep.

use tollgate_os::rusage::Usage;

use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "processes/sleep",
    operation: "One clock_nanosleep(CLOCK_MONOTONIC) of this many µs, from the call until it returns; slack is the time by which the kernel may delay the timer (50 µs by default).",
    avoid: "Wait for the event itself; where a deadline matters, lower the slack (PR_SET_TIMERSLACK), or sleep less and spin for the rest.",
    source: "clock_nanosleep(2); PR_SET_TIMERSLACK(2const); lmbench, lat_usleep.c; kernel/time/hrtimer.c",
    crosses: &[KernelEntry, SystemCall, KernelCode, Timer, Sleep, ContextSwitch, WakeUp, IdleExit],
    timed: |_| Timed::Whole("clock_nanosleep(2)"),
    counters: &["context switches"],
    cases: |_| rows(&[1, 100]),
    thorough_cases: |_| rows(&[10, 1000]),
    in_everything: |_, _| false,
    kind: Kind::Instance(|_, params, _| Ok(Instance::new(Sleeps::from_params(params)?).with_most(64))),
    uncounted: Some("an idle processor executes nothing"),
    absence: &[KILLED_BY_FILTER],
    ..PLAIN
};

words! {
    /// In nanoseconds (PR_SET_TIMERSLACK): 0 is the kernel's default, and 1 the minimum.
    enum Slack("slack"): u64 { Default = "default" => 0, Minimum = "1ns" => 1 }
}

fn rows(times: &[u64]) -> Vec<Params> {
    let case = |us: u64, slack: &str| params(&[("us", us.into()), ("slack", slack.into())]);
    times.iter().flat_map(|&us| Slack::WORDS.iter().map(move |slack| case(us, slack))).collect()
}

struct Sleeps {
    time: libc::timespec,
    /// In nanoseconds; 0 is the default.
    slack: u64,
}

impl Sleeps {
    fn from_params(params: &Params) -> Result<Self> {
        let time = libc::timespec { tv_sec: 0, tv_nsec: 1_000 * number(params, "us") as i64 };
        Ok(Self { time, slack: Slack::try_from(params)?.value() })
    }

    /// Sleeps repeatedly. Returns the kernel's results, combined by OR.
    fn sleep(&self, times: u64) -> i64 {
        let time = &raw const self.time as u64;
        (0..times).fold(0, |results, _| {
            // SAFETY: the kernel reads the time and does not write the remaining time.
            results | unsafe { call(libc::SYS_clock_nanosleep, [libc::CLOCK_MONOTONIC as u64, 0, time, 0]) }
        })
    }
}

/// Sets this thread's timer slack in nanoseconds and returns the previous one. 0 sets its creator's slack, the default.
fn set_slack(nanoseconds: u64) -> u64 {
    // SAFETY: both calls take numbers.
    unsafe {
        let before = libc::prctl(libc::PR_GET_TIMERSLACK);
        libc::prctl(libc::PR_SET_TIMERSLACK, nanoseconds);
        u64::try_from(before).unwrap_or(0)
    }
}

impl Runner for Sleeps {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        let before = set_slack(self.slack);
        let emptied = clock.time(|| ());
        let usage = Usage::of_thread();
        let began = std::time::Instant::now();
        let mut results = 0;
        let span = clock.time(|| results = self.sleep(order.all()));
        let passed = began.elapsed();
        let later = Usage::of_thread();
        let emptied_again = clock.time(|| ());
        set_slack(before);
        let least = self.time.tv_nsec as u128 * u128::from(order.all());
        if results != 0 || passed.as_nanos() < least {
            let times = order.all();
            return Err(fail!("{times} sleeps took {} ns, and {least} were asked for", passed.as_nanos()));
        }
        // Each sleep switches; only preemption disturbs.
        let undisturbed = span.same_processor && usage.nivcsw == later.nivcsw;
        let batch = Batch::new(span.ticks, emptied.ticks.min(emptied_again.ticks), undisturbed);
        Ok(Batch { counters: [later.switches() - usage.switches(), 0, 0, 0], ..batch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_takes_at_least_the_time_asked_for_and_the_slack_is_restored() {
        let before = set_slack(30_000);
        for case in BENCHMARK.cases_in(Extent::Thorough, &Topology::default()) {
            let batch = Sleeps::from_params(&case)
                .expect("a slack")
                .batch(Clock::Kernel, Order::new(3))
                .expect("a batch");
            assert!(batch.work >= 3_000 * number(&case, "us"), "{case:?}: {batch:?}");
            assert!(batch.counters[0] <= 100, "{case:?}: {batch:?}");
            assert_eq!(set_slack(30_000), 30_000, "{case:?}");
        }
        set_slack(before);
    }

    #[test]
    fn a_sleep_that_fails_or_ends_early_is_none() {
        let mut sleeps = Sleeps::from_params(&rows(&[1])[0]).expect("a slack");
        sleeps.time.tv_nsec = 2_000_000_000;
        assert!(sleeps.batch(Clock::Kernel, Order::new(1)).is_err());
    }
}
