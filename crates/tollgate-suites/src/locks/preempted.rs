use std::{cell::RefCell, rc::Rc};

use super::stress::{Team, WORKERS};
use super::{lock::Reach, method::Method};
use crate::prelude::*;

pub(super) static BENCHMARK: Benchmark = Benchmark {
    name: "locks/preempted",
    operation: "One acquisition and release of a lock that four threads of one processor contend for; a timer preempts each after 50 to 100 µs; a violation of mutual exclusion is a failure.",
    avoid: "Run no more threads than processors, and keep critical sections shorter than a time slice.",
    source: "sched(7); futex(7)",
    crosses: &[
        LockContention,
        ContextSwitch,
        Timer,
        Signal,
        KernelEntry,
        SystemCall,
        KernelCode,
        UserCopy,
        Atomic,
    ],
    crossed_in: |params, boundary| match boundary {
        Atomic => Method::from_params(params).is_ok_and(|by| by.crosses(boundary)),
        _ => true,
    },
    timed: |_| Timed::Whole("timer_create(2), sched_yield(2)"),
    counters: &["forced switches", "acquisitions restarted", "holders preempted", "failed attempts"],
    cases: |_| each_word("by", &Method::LOCKS.map(Method::name)),
    forks: |_| true,
    kind: Kind::Instance(|_, params, context| instance(params, context)),
    uncounted: Some("a guest under QEMU's translator has no times, and a timer is a part of this operation"),
    ..PLAIN
};

/// Acquisitions in a batch, for 1 to 3 ms and tens of switches. Each process of a run needs the same number.
const fn takes(method: Method) -> u64 {
    match method {
        Method::Rseq | Method::RseqCpu | Method::LamportUp | Method::Plain => 1 << 18,
        Method::Xchg | Method::Cmpxchg => 1 << 17,
        Method::PthreadTrylock | Method::SemTrywait => 1 << 16,
        Method::Lamport => 1 << 15,
        Method::FutexTrylockPi => 1 << 13,
        Method::Eventfd | Method::Semop => 1 << 12,
    }
}

fn instance(params: &Params, context: &mut Context) -> Result<Instance> {
    let method = Method::from_params(params)?;
    let index = Method::LOCKS.iter().position(|other| *other == method).unwrap_or_default();
    let stressed =
        Stressed(Box::new(process_for(method, index, context)?.experiment(index)), context.heartbeat.clone());
    Ok(Instance::new(stressed).with_ops(takes(method)).with_most(1))
}

fn tried(experiment: &mut impl Experiment, heartbeat: &Heartbeat) -> Result<()> {
    const TRIALS: usize = 16;
    for _ in 0..TRIALS {
        heartbeat.beat();
        let batches = experiment.run(Clock::Kernel, Order::new(1))?;
        if batches.iter().any(|batch| batch.counters[0] > 0) {
            return Ok(());
        }
    }
    Err(skip!("no switch was forced in {TRIALS} batches: sched_yield(2) does not switch here"))
}

/// Kinds of locks that can share a process.
#[derive(Debug)]
enum Sharing {
    /// The threads must be made after the lock: its semaphore may be in a namespace (ipc_namespaces(7)).
    Semaphore,
    Other,
}

/// Returns the process whose threads use this lock as its experiment number `index`; starts and tries it on first use.
/// Replaces one that has died, such as by a filter's SIGSYS.
fn process_for(method: Method, index: usize, context: &mut Context) -> Result<OwnProcess> {
    type Process = (OwnProcess, Rc<Taken>);
    let kind = if method == Method::Semop { Sharing::Semaphore } else { Sharing::Other };
    let start = |context: &mut Context| -> Result<Process> {
        let (home, quota) = (context.home()?, context.quota.clone());
        let taken = quota.take_processes(1 + WORKERS as u64)?;
        let own = OwnProcess::start(&quota, || {
            let team = Team::new(Reach::On(home), &[home], quota.clone())?;
            let team = Rc::new(RefCell::new(team));
            let of = |method| -> Box<dyn Experiment> { Box::new(Takes { team: Rc::clone(&team), method }) };
            Ok(Method::LOCKS.map(of).into_iter().collect())
        })?;
        tried(&mut own.experiment(index), &context.heartbeat)?;
        Ok((own, Rc::new(taken)))
    };
    let answers = |(own, _): &Process| own.answers();
    context.shared_while(&format!("preempted {kind:?}"), answers, start).map(|(own, _)| own)
}

struct Takes {
    team: Rc<RefCell<Team>>,
    method: Method,
}

impl Experiment for Takes {
    fn run(&mut self, clock: Clock, order: Order) -> Result<Vec<Batch>> {
        let takes = order.all() * takes(self.method);
        Ok(vec![self.team.borrow_mut().batch(clock, self.method, takes)?])
    }
}

struct Stressed(Box<dyn Runner>, Heartbeat);

impl Runner for Stressed {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        until_undisturbed(&self.1, || self.0.batch(clock, order))
    }
}
