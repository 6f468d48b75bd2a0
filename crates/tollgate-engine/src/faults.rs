//! Instances that fail: each gets its reason, the others their measurements.

use std::time::{Duration, Instant};

use tollgate_model::{Measurement, Outcome};
use tollgate_os::signals;

use super::instance::{Instance, Loop};
use super::runner::{Batch, Order, Runner};
use super::{Plan, measure};
use super::{clock::Clock, refusal::Result};
use crate::benchmark::{Benchmark, Kind, PLAIN, Suite};
use crate::selection::{Group, Selection};

/// Registered nowhere.
static SUITE: Suite = Suite {
    name: "faults",
    about: "Instances that go wrong.",
    benchmarks: &[
        &SOUND,
        &HANGS,
        &FAULTS,
        &FAULTS_WHERE_ABSENT,
        &BREAKS_LATER,
        &WRONG,
        &REFUSES,
        &EXITS,
        &KILLED,
        &SLOW,
        &MISCOUNTS,
        &FICKLE,
    ],
    control: None,
};

const BASE: Benchmark = Benchmark {
    name: "faults/sound",
    operation: "Formats some numbers.",
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(Spin))),
    ..PLAIN
};
static SOUND: Benchmark = BASE;
static HANGS: Benchmark = Benchmark {
    name: "faults/hangs",
    kind: Kind::Instance(|_, _, _| {
        Ok(Instance::new(Does(|| {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        })))
    }),
    ..BASE
};
static FAULTS: Benchmark = Benchmark {
    name: "faults/faults",
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(Does(segfault)))),
    ..BASE
};
static FAULTS_WHERE_ABSENT: Benchmark = Benchmark {
    name: "faults/absent",
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(Does(segfault)))),
    absence: |signal| (signal == libc::SIGSEGV).then_some("it does not exist here"),
    ..BASE
};
static BREAKS_LATER: Benchmark = Benchmark {
    name: "faults/breaks-later",
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(Breaks { after: 30 }))),
    ..BASE
};
static WRONG: Benchmark = Benchmark {
    name: "faults/wrong",
    kind: Kind::Instance(|timed, _, _| {
        let wrong = |_| Err("returned nonsense".to_owned());
        Ok(Loop::without_context(timed, wrong)?.here())
    }),
    ..BASE
};
static REFUSES: Benchmark = Benchmark {
    name: "faults/refuses",
    kind: Kind::Instance(|_, _, _| Err(skip!("not in this environment"))),
    ..BASE
};
static EXITS: Benchmark = Benchmark {
    name: "faults/exits",
    // SAFETY: ends the bench process, which is what is tested.
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(Does(|| unsafe { libc::_exit(7) })))),
    ..BASE
};
static KILLED: Benchmark = Benchmark {
    name: "faults/killed",
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(Does(|| signals::raise(libc::SIGKILL))))),
    ..BASE
};

static SLOW: Benchmark =
    Benchmark { name: "faults/slow", kind: Kind::Instance(|_, _, _| Ok(Instance::new(SlowBatch))), ..BASE };
static MISCOUNTS: Benchmark = Benchmark {
    name: "faults/miscounts",
    counts: Some("drops"),
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(Miscounts { batches: 0 }))),
    ..BASE
};
/// The number of operations differs from process to process.
static FICKLE: Benchmark = Benchmark {
    name: "faults/fickle",
    kind: Kind::Instance(|_, _, _| Ok(Instance::new(Spin).with_ops(u64::from(std::process::id())))),
    ..BASE
};

fn segfault() {
    signals::default(&[libc::SIGSEGV]);
    signals::raise(libc::SIGSEGV);
}

struct Spin;
impl Runner for Spin {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        let span = clock
            .time(|| (0..order.iterations * 100).for_each(|n| drop(std::hint::black_box(n).to_string())));
        Ok(Batch::new(span.ticks, 0, true))
    }
}

struct Does(fn());
impl Runner for Does {
    fn batch(&mut self, _: Clock, _: Order) -> Result<Batch> {
        (self.0)();
        Ok(Batch::new(0, 0, true))
    }
}

struct Breaks {
    after: u32,
}
impl Runner for Breaks {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.after = self.after.checked_sub(1).ok_or_else(|| fail!("broke in a later round"))?;
        Spin.batch(clock, order)
    }
}

/// A batch takes 100 ms, more than a share of a short run.
struct SlowBatch;
impl Runner for SlowBatch {
    fn batch(&mut self, clock: Clock, _: Order) -> Result<Batch> {
        let span = clock.time(|| std::thread::sleep(Duration::from_millis(100)));
        Ok(Batch::new(span.ticks, 0, true))
    }
}

/// Counts one event an operation for a while, then one too many.
struct Miscounts {
    batches: u64,
}
impl Runner for Miscounts {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.batches += 1;
        let counted = Some(order.iterations + self.batches / 40);
        Ok(Batch { counted, ..Spin.batch(clock, order)? })
    }
}

fn run(names: &[&str], budget: Duration) -> (Vec<Measurement>, Duration) {
    let cases = SUITE.benchmarks.iter().filter(|benchmark| names.contains(&benchmark.name));
    let cases = cases.map(|benchmark| (*benchmark, tollgate_model::Params::new())).collect();
    let find = |name: &str| {
        SUITE
            .benchmarks
            .iter()
            .copied()
            .find(|benchmark| benchmark.name == name)
            .or_else(|| super::OWN_BENCHMARKS.iter().copied().find(|benchmark| benchmark.name == name))
    };
    let selection = Selection { groups: vec![Group { suite: &SUITE, cases }], find };
    let began = Instant::now();
    let findings =
        measure(&selection, &Plan::within(budget), &mut |_| {}).expect("an environment that can measure");
    (findings.measurements, began.elapsed())
}

fn outcome<'a>(measurements: &'a [Measurement], name: &str) -> &'a Outcome {
    &measurements
        .iter()
        .find(|measurement| measurement.case.benchmark == name)
        .expect("a row for every case")
        .outcome
}

#[test]
fn every_fault_ends_in_its_reason_and_the_sound_instance_in_its_estimate_within_the_budget() {
    let names: Vec<&str> = SUITE.benchmarks.iter().map(|benchmark| benchmark.name).collect();
    let budget = Duration::from_secs(4);
    let (measurements, took) = run(&names, budget);
    assert!(took < budget.mul_f64(1.1), "took {took:?}");
    let reason = |name: &str| match outcome(&measurements, name) {
        Outcome::Failed { error } => format!("failed: {error}"),
        Outcome::Skipped { why } => format!("skipped: {why}"),
        Outcome::Measured(measured) => format!("measured {} samples", measured.samples.len()),
    };
    assert!(reason("faults/sound").starts_with("measured"), "{}", reason("faults/sound"));
    if let Outcome::Measured(sound) = outcome(&measurements, "faults/sound") {
        // A round that another instance aborted is run again and discards nothing of the sound one.
        assert_eq!(sound.discarded, 0);
    }
    assert!(reason("faults/hangs").starts_with("failed: no progress for"), "{}", reason("faults/hangs"));
    assert!(reason("faults/faults").contains("SIGSEGV"), "{}", reason("faults/faults"));
    assert_eq!(reason("faults/absent"), "skipped: it does not exist here");
    assert_eq!(reason("faults/breaks-later"), "failed: broke in a later round");
    assert_eq!(reason("faults/wrong"), "failed: returned nonsense");
    assert_eq!(reason("faults/refuses"), "skipped: not in this environment");
    assert_eq!(reason("faults/exits"), "failed: its process ended with status 7");
    assert!(reason("faults/killed").contains("SIGKILL"), "{}", reason("faults/killed"));
    assert!(reason("faults/slow").starts_with("measured"), "{}", reason("faults/slow"));
    assert!(reason("faults/fickle").contains("in the calibration"), "{}", reason("faults/fickle"));
    let miscounted = reason("faults/miscounts");
    assert!(miscounted.contains(" drops were counted in "), "{miscounted}");
}

#[test]
fn a_slow_batch_runs_in_few_rounds_and_the_others_in_all() {
    let (measurements, took) = run(&["faults/sound", "faults/slow"], Duration::from_secs(2));
    assert!(took < Duration::from_millis(2200), "took {took:?}");
    let measured = |name| match outcome(&measurements, name) {
        Outcome::Measured(measured) => measured,
        other => panic!("{name}: {other:?}"),
    };
    let (sound, slow) = (measured("faults/sound"), measured("faults/slow"));
    assert!(!slow.samples.is_empty());
    assert!(sound.samples.len() > 10 * slow.samples.len());
    // Rounds in which it was not due do not count as discarded, and processes stay aligned.
    assert_eq!((sound.discarded, slow.discarded), (0, 0));
    assert_eq!(sound.processes.len(), slow.processes.len());
    for (of_sound, of_slow) in sound.processes.iter().zip(&slow.processes) {
        assert_eq!(of_sound.rounds, of_slow.rounds);
        // Both are due in the first round, and a busy machine may leave time for no other.
        let ran_less = of_slow.ran.as_ref().is_some_and(|ran| ran.len() < of_sound.rounds as usize);
        assert!(of_sound.rounds == 1 || ran_less);
    }
}

#[test]
fn samples_and_rounds_add_up() {
    let (measurements, _) = run(&["faults/sound"], Duration::from_secs(1));
    let Outcome::Measured(measured) = outcome(&measurements, "faults/sound") else { panic!("not measured") };
    let kept: usize = measured.processes.iter().map(tollgate_model::ProcessRounds::kept).sum();
    assert_eq!(kept, measured.samples.len());
    assert!(measured.processes.len() >= 5, "{} processes", measured.processes.len());
}
