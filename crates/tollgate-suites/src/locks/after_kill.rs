//! The state of a lock after its owner was killed, by trial.

use super::killed::{self, Left};
use super::lock::Reach;
use super::method::Method;
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "locks/killed",
    operation: "One process that is killed while it holds the lock, or at a random moment of a loop that acquires and releases it; another process then tries to acquire it.",
    avoid: "Use robust mutexes where processes share memory: the next owner learns of the death (EOWNERDEAD).",
    source: "pthread_mutexattr_setrobust(3); get_robust_list(2)",
    crosses: &[
        ProcessCreation,
        AddressSpaceCopy,
        ProcessExit,
        Signal,
        SignalSend,
        ContextSwitch,
        WakeUp,
        PageFault,
        KernelAllocation,
        KernelCode,
    ],
    timed: |_| Timed::Whole("fork(2), kill(2), waitpid(2) and the lock"),
    counters: &["free", "stayed held", "recoverable (EOWNERDEAD)", "acquisitions block"],
    cases: |_| {
        let case = |by: Method, at: &str| params(&[("by", by.name().into()), ("at", at.into())]);
        let of = |at: &'static str| Method::LOCKS.into_iter().map(move |by| case(by, at));
        At::WORDS.iter().copied().flat_map(of).collect()
    },
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    uncounted: Some("a process is killed at some moment, and what it has not executed is not counted"),
    ..PLAIN
};

words! {
    enum At("at") { Holding = "holding", Random = "random" }
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let method = Method::from_params(params)?;
    let reach = Reach::new(method, context)?;
    // One process is killed, and one checks the lock.
    let taken = context.quota.take_processes(2)?;
    let at = match At::try_from(params)? {
        At::Holding => Moment::Holding,
        At::Random => Moment::Random(Random::new(Random::seed())),
    };
    let (quota, heartbeat) = (context.quota.clone(), context.heartbeat.clone());
    let trial = Trial { method, reach, at, quota, heartbeat, _taken: taken };
    Ok(Instance::new(trial).with_notes([killed::stays(method)]))
}

enum Moment {
    Holding,
    Random(Random),
}

struct Trial {
    method: Method,
    reach: Reach,
    at: Moment,
    quota: Quota,
    heartbeat: Heartbeat,
    _taken: Taken,
}

impl Trial {
    fn once(&mut self) -> Result<Left> {
        self.heartbeat.beat();
        match &mut self.at {
            Moment::Holding => killed::left_behind(self.method, self.reach, &self.quota),
            Moment::Random(random) => killed::left_at_random(self.method, self.reach, random, &self.quota),
        }
    }
}

impl Runner for Trial {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        let mut counters = Counters::default();
        let mut work = 0;
        for _ in 0..order.all() {
            let mut left = Ok(Left::Free);
            work += clock.time(|| left = self.once()).ticks;
            counters[left? as usize] += 1;
        }
        // The lock's state is the result; other processes change only the time.
        Ok(Batch { counters, ..Batch::new(work, 0, true) })
    }
}
