//! Instances that fail: each gets its reason, the others their measurements.

use std::time::{Duration, Instant};

use tollgate_arch::memory::huge_page;
use tollgate_model::{Measurement, Outcome, Params, Unit};
use tollgate_os::signals;

use crate::cases::benchmark::{Benchmark, Kind, PLAIN, Suite};
use crate::cases::selection::{Group, Selection};
use crate::loops::experiment::Experiment;
use crate::loops::instance::{Instance, Loop};
use crate::loops::own_process::OwnProcess;
use crate::loops::runner::{Batch, Order, Runner};
use crate::machine::mapping::Mapping;
use crate::{BenchError, Findings, Plan, rounds::measure::measure};
use crate::{loops::context::Context, loops::timed::Timed, machine::clock::Clock, refusal::Result};

/// Registered nowhere.
static SUITE: Suite = Suite {
    name: "faults",
    about: "Instances that go wrong.",
    benchmarks: &[
        &fault("faults/sound", |_, _, _| Ok(Instance::new(Spin))),
        &fault("faults/hangs", |_, _, _| Ok(Instance::new(Does(hang)))),
        &fault("faults/faults", |_, _, _| Ok(Instance::new(Does(segfault)))),
        &Benchmark {
            absence: &[(libc::SIGSEGV, "it does not exist here")],
            ..fault("faults/absent", |_, _, _| Ok(Instance::new(Does(segfault))))
        },
        &fault("faults/breaks-later", |_, _, _| Ok(Instance::new(Breaks { after: 8 }))),
        &fault("faults/wrong", |timed, _, _| {
            Ok(Loop::without_context(timed, |_| Err("returned nonsense".to_owned()))?.here())
        }),
        &fault("faults/refuses", |_, _, _| Err(skip!("not in this environment"))),
        // SAFETY: ends the bench process, which is what is tested.
        &fault("faults/exits", |_, _, _| Ok(Instance::new(Does(|| unsafe { libc::_exit(7) })))),
        &fault("faults/killed", |_, _, _| Ok(Instance::new(Does(|| signals::raise(libc::SIGKILL))))),
        &fault("faults/slow", |_, _, _| Ok(Instance::new(SlowBatch))),
        &Benchmark {
            counts: Some("drops"),
            ..fault("faults/miscounts", |_, _, _| Ok(Instance::new(Miscounts { batches: 0 })))
        },
        // Registered after the one that maps.
        &fault("faults/maps", |_, _, _| Ok(Instance::new(Maps(many_mappings()?)))),
        &Benchmark {
            unit: Unit::Bytes,
            forks: |_| true,
            ..fault("faults/mappings", |_, _, context| {
                let experiments = || Ok(vec![Box::new(OwnMappings) as Box<dyn Experiment>]);
                Ok(Instance::new(OwnProcess::start(&context.quota, experiments)?.experiment(0)))
            })
        },
        // The number of operations differs between processes.
        &fault("faults/fickle", |_, _, _| Ok(Instance::new(Spin).with_ops(u64::from(std::process::id())))),
    ],
};

const fn fault(
    name: &'static str,
    instance: fn(Timed, &Params, &mut Context) -> Result<Instance>,
) -> Benchmark {
    Benchmark { name, operation: "Formats some numbers.", kind: Kind::Instance(instance), ..PLAIN }
}

fn hang() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

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

/// A batch takes 100 ms, more than its share of a short run.
struct SlowBatch;
impl Runner for SlowBatch {
    fn batch(&mut self, clock: Clock, _: Order) -> Result<Batch> {
        let span = clock.time(|| std::thread::sleep(Duration::from_millis(100)));
        Ok(Batch::new(span.ticks, 0, true))
    }
}

/// Counts one event per operation for a while, then one too many.
struct Miscounts {
    batches: u64,
}
impl Runner for Miscounts {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        self.batches += 1;
        let counted = Some(order.iterations + self.batches / 8);
        Ok(Batch { counted, ..Spin.batch(clock, order)? })
    }
}

/// Counts the mappings of a process that was forked for an instance.
struct OwnMappings;

impl Experiment for OwnMappings {
    fn run(&mut self, _: Clock, order: Order) -> Result<Vec<Batch>> {
        let maps = std::fs::read_to_string("/proc/self/maps").map_err(|error| skip!("no maps: {error}"))?;
        Ok(vec![Batch::new(maps.lines().count() as u64 * order.iterations, 0, true)])
    }
}

/// Has many mappings. Neighbours with equal access would be merged.
struct Maps(#[expect(dead_code, reason = "they are held")] Vec<Mapping>);

impl Runner for Maps {
    fn batch(&mut self, clock: Clock, order: Order) -> Result<Batch> {
        Spin.batch(clock, order)
    }
}

/// Many more than other tests of this program make at once.
const MANY: i32 = 400;

fn many_mappings() -> Result<Vec<Mapping>> {
    let access = |number: i32| if number % 2 == 0 { libc::PROT_READ } else { libc::PROT_NONE };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let mapped = |number| Mapping::aligned(huge_page(), access(number), flags, -1);
    (0..MANY).map(mapped).collect::<std::io::Result<_>>().map_err(|error| skip!("no mappings: {error}"))
}

fn tried(names: &[&str], plan: &Plan) -> Result<Findings, BenchError> {
    let cases = SUITE.benchmarks.iter().filter(|benchmark| names.contains(&benchmark.name));
    let cases = cases.map(|benchmark| (*benchmark, Params::new())).collect();
    let find = |name: &str| {
        let all = SUITE.benchmarks.iter().chain(crate::OWN_BENCHMARKS);
        all.copied().find(|benchmark| benchmark.name == name)
    };
    let selection = Selection { groups: vec![Group { suite: &SUITE, cases }], find };
    measure(&selection, plan, &mut |_| {})
}

/// Measures each case in `processes` processes. A busy machine starves a process for less than the stall of 3 s.
fn run(names: &[&str], processes: usize) -> Vec<Measurement> {
    run_until(Duration::from_secs(120), names, processes)
}

/// The same; a process without progress for so long is ended.
fn run_until(stall: Duration, names: &[&str], processes: usize) -> Vec<Measurement> {
    let plan = Plan { stall, ..Plan::of_processes(processes) };
    tried(names, &plan).expect("an environment that can measure").measurements
}

fn outcome<'a>(measurements: &'a [Measurement], name: &str) -> &'a Outcome {
    &measurements
        .iter()
        .find(|measurement| measurement.case.benchmark == name)
        .expect("a row for every case")
        .outcome
}

#[test]
fn a_run_ends_about_when_its_time_is_over_whatever_hangs() {
    let budget = Duration::from_secs(2);
    let began = Instant::now();
    let outcome = tried(&["faults/sound", "faults/hangs"], &Plan::within(budget));
    assert!(matches!(outcome, Ok(_) | Err(BenchError::NoTime { .. })), "{outcome:?}");
    // A busy machine makes the end late, and the instance that hangs would make it endless.
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
}

#[test]
fn a_time_that_is_over_before_the_calibration_is_an_error_that_names_the_time() {
    let error =
        tried(&["faults/sound"], &Plan::within(Duration::from_millis(1))).expect_err("nothing is measured");
    let why = "nothing was measured in 0.001 s: faults/sound: the run's time ended before its calibration; give more time, or select cases by a pattern";
    assert_eq!(error.to_string(), why);
    // A missing operation is not a lack of time.
    let found = tried(&["faults/absent"], &Plan::of_processes(1)).expect("a run of what is skipped");
    assert!(matches!(outcome(&found.measurements, "faults/absent"), Outcome::Skipped { .. }));
}

#[test]
fn every_fault_ends_in_its_reason_and_the_sound_instance_in_its_estimate() {
    let names = SUITE.benchmarks.iter().map(|benchmark| benchmark.name);
    let names: Vec<&str> = names.filter(|name| *name != "faults/hangs").collect();
    let measurements = run(&names, 2);
    let reason = |name: &str| match outcome(&measurements, name) {
        Outcome::Measured(measured) => format!("measured {} samples", measured.samples.len()),
        outcome => format!("{}: {}", outcome.status().name(), outcome.why().unwrap_or_default()),
    };
    if let Outcome::Measured(sound) = outcome(&measurements, "faults/sound") {
        // A round that another instance aborted is repeated, and discards nothing of the sound one.
        assert_eq!(sound.discarded, 0);
    }
    for (name, expected) in [
        ("sound", "measured"),
        ("faults", "SIGSEGV"),
        ("absent", "skipped: it does not exist here"),
        ("breaks-later", "failed: broke in a later round"),
        ("wrong", "failed: returned nonsense"),
        ("refuses", "skipped: not in this environment"),
        ("exits", "failed: its process ended with status 7"),
        ("killed", "SIGKILL"),
        ("slow", "measured"),
        ("fickle", "in the calibration"),
        ("miscounts", " drops were counted in "),
    ] {
        let reason = reason(&format!("faults/{name}"));
        assert!(reason.contains(expected), "{name}: {reason}");
    }
}

#[test]
fn an_instance_that_hangs_ends_in_its_reason_and_the_sound_one_does_not() {
    let measurements = run_until(Duration::from_secs(3), &["faults/sound", "faults/hangs"], 2);
    let why = outcome(&measurements, "faults/hangs").why().unwrap_or_default();
    assert!(why.starts_with("no progress for"), "{why}");
    // A busy machine may starve it for as long.
    let sound = outcome(&measurements, "faults/sound");
    assert!(sound.measured().is_some() || sound.why().is_some_and(|why| why.starts_with("no progress for")));
}

#[test]
fn a_slow_batch_runs_in_few_rounds_and_the_others_in_all() {
    let measurements = run(&["faults/sound", "faults/slow"], 3);
    let measured = |name| match outcome(&measurements, name) {
        Outcome::Measured(measured) => measured,
        other => panic!("{name}: {other:?}"),
    };
    let (sound, slow) = (measured("faults/sound"), measured("faults/slow"));
    assert!(!slow.samples.is_empty());
    // It is due in the first round of each process, and then rarely.
    let rounds: u32 = slow.processes.iter().map(|process| process.rounds).sum();
    assert!(slow.samples.len() <= slow.processes.len() + rounds as usize / 10, "{rounds} rounds");
    // Rounds in which it was not due do not count as discarded, and processes stay aligned.
    assert_eq!((sound.discarded, slow.discarded), (0, 0));
    assert_eq!(sound.processes.len(), slow.processes.len());
    for (of_sound, of_slow) in sound.processes.iter().zip(&slow.processes) {
        assert_eq!(of_sound.rounds, of_slow.rounds);
        // Both are due in the first round, and a busy machine may leave no time for another.
        let ran_less = of_slow.ran.as_ref().is_some_and(|ran| ran.len() < of_sound.rounds as usize);
        assert!(of_sound.rounds == 1 || ran_less);
    }
}

#[test]
fn samples_and_rounds_add_up() {
    let measurements = run(&["faults/sound"], 5);
    let measured = outcome(&measurements, "faults/sound").measured().expect("measured");
    let kept: usize = measured.processes.iter().map(tollgate_model::ProcessRounds::kept).sum();
    assert_eq!(kept, measured.samples.len());
    let with_samples = measured.processes.iter().filter(|process| process.kept() > 0).count();
    assert_eq!(with_samples, 5, "as many as were asked for");
}

#[test]
fn a_process_that_is_forked_for_an_instance_holds_nothing_of_the_others() {
    let most = |names: &[&str]| {
        let measurements = run(names, 2);
        match outcome(&measurements, "faults/mappings") {
            Outcome::Measured(measured) => measured.samples.iter().copied().fold(0.0, f64::max),
            outcome => panic!("{outcome:?}"),
        }
    };
    // Other tests' threads have a stack and a heap each.
    let (alone, beside) = (most(&["faults/mappings"]), most(&["faults/maps", "faults/mappings"]));
    assert!(
        alone > 0.0 && beside < alone + f64::from(MANY / 2),
        "{alone} mappings alone, {beside} beside {MANY}"
    );
}
