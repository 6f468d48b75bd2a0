use super::bounded_buffer::{COUNTERS, ITEMS, Setting};
use super::{handover, lock::Reach, method::Method, semaphore};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "locks/producer-consumer",
    operation: "One item from a producer to a consumer through a bounded buffer of sixteen slots; this many threads of each, with semaphores made from the lock.",
    avoid: "Hand over several items at a time; a ring of one producer and one consumer needs no lock.",
    source: "sem_overview(7); futex(7)",
    crosses: handover::BENCHMARK.crosses,
    crossed_in: |params, boundary| match boundary {
        CacheLine => Cpus::try_from(params) == Ok(Cpus::All),
        UserCopy | Atomic => Method::from_params(params).is_ok_and(|by| by.crosses(boundary)),
        _ => true,
    },
    timed: |_| Timed::Whole("sched_yield(2) and the lock"),
    counters: COUNTERS,
    cases: |_| cases("one", &[2, 4, 8, 16, 32, 64]).into_iter().chain(cases("all", &[2, 16])).collect(),
    thorough_cases: |_| cases("all", &[4, 8, 32, 64]),
    baseline: Baseline::Case(|case| Some(Method::by_system_call(case))),
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    ..PLAIN
};

words! {
    enum Cpus("cpus") { One = "one", All = "all" }
}

fn cases(cpus: &str, threads: &[u64]) -> Vec<Params> {
    let case = |by: Method, threads: u64| {
        params(&[("by", by.name().into()), ("threads", threads.into()), ("cpus", cpus.into())])
    };
    threads.iter().flat_map(|&threads| Method::LOCKS.into_iter().map(move |by| case(by, threads))).collect()
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let method = Method::from_params(params)?;
    let reach = match Cpus::try_from(params)? {
        Cpus::One => Reach::On(context.home()?),
        Cpus::All => several(&context.processors)?,
    };
    if let (Reach::Anywhere, Some(why)) = (reach, method.bound_to_its_processor()) {
        return Err(Refusal::Skip(why.to_owned()));
    }
    if method == Method::Semop {
        // One namespace for all runs, so that no run needs to make its own.
        semaphore::in_a_namespace_of_its_own();
    }
    let pairs = number(params, "threads") as usize;
    let (processors, quota) = (context.processors.clone(), context.quota.clone());
    let setting = Setting { method, pairs, reach, processors, quota };
    Ok(Instance::new(FreshProcess(setting, context.heartbeat.clone())).with_ops(ITEMS))
}

fn several(processors: &[usize]) -> Result<Reach> {
    match processors.len() {
        0 | 1 => Err(skip!("there is only one processor")),
        _ => Ok(Reach::Anywhere),
    }
}

/// Runs each batch in a fresh process, as the published comparison did for each run.
struct FreshProcess(Setting, Heartbeat);

impl Runner for FreshProcess {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        until_undisturbed(&self.1, || self.run(clock, order))
    }
}

impl FreshProcess {
    fn run(&self, clock: Clock, order: Order) -> Result<Batch> {
        let own = OwnProcess::start(&self.0.quota, || Ok(vec![Box::new(self.0.clone())]))?;
        own.experiment(0).batch(clock, order)
    }
}
