//! The experiment that finds neighbours: benchmarks whose batches affect those of others.
//!
//! Each case has trios of processes, in turn. The first runs the controls alone. The second runs a batch of the case before each
//! batch of a control. The third starts right after it and runs the controls alone again. If the second process affects a
//! control, the control has a neighbour. If the third is affected too, the neighbour's effect outlasts its process. A trio's
//! processes follow each other within a tenth of a second, so other work on the machine affects both sides of a ratio equally.
//!
//! `cargo test -p tollgate-suites --lib -- --ignored --nocapture moves_controls` prints what every default case affects, in half
//! an hour; `NEIGHBOURS=entry` selects as `tollgate run` does.

use tollgate_model::stats::median;
use tollgate_os::workdir::Workdir;

use crate::prelude::*;
use crate::testing::{Directory, pinned};

/// The most frequent operations of programs: a call, a system call, a load, a page fault.
const CONTROLS: [(&str, &[(&str, &str)]); 4] = [
    ("entry/call", &[]),
    ("entry/syscall", &[]),
    ("memory/latency", &[("kib", "4"), ("page", "4k")]),
    ("traps/minor-fault", &[("page", "4k")]),
];
/// Trios of processes for each case.
const TRIOS: usize = 9;
/// Batches of each control in a process.
const ROUNDS: u64 = 30;
/// A control is affected if its median ratio is this far from 1, and all its ratios lie on that side.
const MOVED: f64 = 0.04;
/// Length of a batch in nanoseconds, as in a run.
const BATCH: f64 = 50_000.0;

type Subject = (&'static Benchmark, Params);

/// A process that runs the controls, each batch after one of the neighbour's.
struct Beside {
    controls: Vec<(Instance, Order)>,
    neighbour: Option<(Instance, Order)>,
    random: Random,
}

impl Beside {
    fn prepare(clock: Clock, neighbour: Option<Subject>, directory: &Directory) -> Result<Self> {
        let workdir = Workdir::find(&directory.0).map_err(|why| fail!("{why}"))?;
        let storage = Storage { directory: workdir, limit: 64 << 20, by: "the experiment".to_owned() };
        let mut context = Context::here().with_storage(storage);
        let mut ready =
            |(benchmark, params): Subject| sized(clock, benchmark.instance(&params, &mut context)?);
        // The neighbour comes first: it holds its resources when the controls are made, as in a run.
        let neighbour = neighbour.map(&mut ready).transpose()?;
        let controls = controls().into_iter().map(ready).collect::<Result<_>>()?;
        Ok(Self { controls, neighbour, random: Random::new(1) })
    }
}

impl Experiment for Beside {
    /// Returns a batch for each control: the median of its batches, per million iterations.
    fn run(&mut self, clock: Clock, order: Order) -> Result<Vec<Batch>> {
        let mut times = vec![Vec::new(); self.controls.len()];
        let mut turns: Vec<usize> = (0..self.controls.len()).collect();
        for _ in 0..order.iterations {
            self.random.shuffle(&mut turns);
            for &at in &turns {
                if let Some((neighbour, order)) = &mut self.neighbour {
                    neighbour.batch(clock, *order)?;
                }
                let (control, order) = &mut self.controls[at];
                let batch = control.batch(clock, *order)?;
                let net = batch.work.saturating_sub(batch.empty) as f64;
                times[at].push(net * 1e6 / order.iterations as f64);
            }
        }
        let batch = |times: Vec<f64>| Batch::new(median(&times).unwrap_or_default() as u64, 0, true);
        Ok(times.into_iter().map(batch).collect())
    }
}

fn controls() -> Vec<Subject> {
    let case = |(name, wanted): &(&str, &[(&str, &str)])| {
        let benchmark = crate::find(name)?;
        let fits = |params: &Params| {
            wanted.iter().all(|(name, value)| params.get(*name).is_some_and(|own| own.to_string() == *value))
        };
        (benchmark.cases)(&Topology::here()).into_iter().find(fits).map(|params| (benchmark, params))
    };
    CONTROLS.iter().filter_map(case).collect()
}

/// Finds the number of iterations that fills a batch.
fn sized(clock: Clock, mut instance: Instance) -> Result<(Instance, Order)> {
    let most = instance.limits().1.min(1 << 14);
    let mut iterations = 1;
    while iterations < most {
        let batch = instance.batch(clock, Order::new(iterations))?;
        if clock.nanoseconds(batch.work as f64) >= BATCH {
            break;
        }
        iterations = (iterations * 2).min(most);
    }
    Ok((instance, Order::new(iterations)))
}

/// Returns the medians of the controls in their own process.
fn in_a_process(clock: Clock, neighbour: Option<Subject>, directory: &Directory) -> Result<Vec<f64>> {
    let prepare = || {
        let beside = Beside::prepare(clock, neighbour, directory)?;
        Ok(vec![Box::new(beside) as Box<dyn Experiment>])
    };
    let own = OwnProcess::start(&Quota::default(), prepare)?;
    let batches = own.experiment(0).run(clock, Order::new(ROUNDS))?;
    Ok(batches.into_iter().map(|batch| batch.work as f64).collect())
}

/// Returns for each control the ratios of the trios: next to the neighbour, and after its process.
fn ratios(clock: Clock, subject: &Subject, directory: &Directory) -> Result<Vec<[Vec<f64>; 2]>> {
    let mut ratios = vec![[Vec::new(), Vec::new()]; controls().len()];
    for _ in 0..TRIOS {
        let alone = in_a_process(clock, None, directory)?;
        let beside = in_a_process(clock, Some(subject.clone()), directory)?;
        let behind = in_a_process(clock, None, directory)?;
        for (at, [of_beside, of_behind]) in ratios.iter_mut().enumerate() {
            of_beside.push(beside[at] / alone[at]);
            of_behind.push(behind[at] / alone[at]);
        }
    }
    Ok(ratios)
}

/// Returns the median of the ratios if all lie far on one side of 1.
fn moved(ratios: &[f64]) -> Option<f64> {
    let median = median(ratios)?;
    let same_side = |ratio: &f64| (*ratio > 1.0) == (median > 1.0);
    ((median - 1.0).abs() > MOVED && ratios.iter().all(same_side)).then_some(median)
}

#[test]
#[ignore = "an experiment of half an hour, to be read: what moves what"]
fn what_moves_controls() {
    let pattern = std::env::var("NEIGHBOURS").unwrap_or_else(|_| "*".to_owned());
    let (clock, home) = (Clock::tsc().map_or(Clock::Kernel, |(clock, _)| clock), pinned());
    let names: Vec<&str> = controls().iter().map(|(benchmark, _)| benchmark.name).collect();
    println!("processor {home}, controls {names:?}: beside / alone, and behind / alone where it stays");
    let chosen = crate::select(&Topology::here(), &[pattern], Extent::Usual, crate::Size::Small)
        .expect("a known pattern");
    for subject in chosen.groups.into_iter().flat_map(|group| group.cases) {
        if !matches!(subject.0.kind, Kind::Instance(_)) {
            continue;
        }
        let case = subject.0.case(subject.1.clone());
        let directory = Directory::new();
        match ratios(clock, &subject, &directory) {
            Err(refusal) => println!("{case:60} skipped: {}", refusal.why()),
            Ok(ratios) => {
                let cell = |[beside, behind]: &[Vec<f64>; 2]| match (moved(beside), moved(behind)) {
                    (None, _) => "     –".to_owned(),
                    (Some(beside), None) => format!("{beside:6.2}"),
                    (Some(beside), Some(behind)) => format!("{beside:6.2} behind {behind:.2}"),
                };
                println!("{case:60} {}", ratios.iter().map(cell).collect::<Vec<_>>().join(" "));
            }
        }
    }
}
