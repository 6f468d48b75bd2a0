//! What the bench does about arms that go wrong: each ends in its reason, the others in their prices.

use std::time::{Duration, Instant};

use tollgate_model::{Measurement, Outcome};

use super::arm::{Arm, Loop};
use super::clock::Clock;
use super::station::{Block, Order, Refusal, Station};
use super::{Plan, measure};
use crate::probe::{Means, PLAIN, Probe, Suite};
use crate::registry;
use crate::selection::{Group, Selection};

/// Registered nowhere.
static SUITE: Suite = Suite {
    name: "faults",
    about: "Arms that go wrong.",
    probes: &[
        &SOUND,
        &HANGS,
        &FAULTS,
        &FAULTS_WHERE_ABSENT,
        &BREAKS_LATER,
        &WRONG,
        &REFUSES,
        &EXITS,
        &KILLED,
        &DEAR,
        &MISCOUNTS,
        &FICKLE,
    ],
    twin: None,
    means: Means::Rounds,
};

const BASE: Probe = Probe {
    name: "faults/sound",
    operation: "Sleeps for a microsecond or so.",
    arm: |_, _| Ok(Arm::new(Spin)),
    ..PLAIN
};
static SOUND: Probe = BASE;
static HANGS: Probe = Probe {
    name: "faults/hangs",
    arm: |_, _| {
        Ok(Arm::new(Does(|| {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        })))
    },
    ..BASE
};
static FAULTS: Probe = Probe { name: "faults/faults", arm: |_, _| Ok(Arm::new(Does(segfault))), ..BASE };
static FAULTS_WHERE_ABSENT: Probe = Probe {
    name: "faults/absent",
    arm: |_, _| Ok(Arm::new(Does(segfault))),
    absence: |signal| (signal == libc::SIGSEGV).then_some("it does not exist here"),
    ..BASE
};
static BREAKS_LATER: Probe =
    Probe { name: "faults/breaks-later", arm: |_, _| Ok(Arm::new(Breaks { after: 30 })), ..BASE };
static WRONG: Probe = Probe {
    name: "faults/wrong",
    arm: |probe, params| {
        // SAFETY: the empty loop only writes its context's result.
        Ok(unsafe {
            Loop::new((probe.timed)(params), [0; 7], None, |_| Err("returned nonsense".to_owned()))
        }?
        .here())
    },
    ..BASE
};
static REFUSES: Probe =
    Probe { name: "faults/refuses", arm: |_, _| Err(Refusal::Skip("not in this place".to_owned())), ..BASE };
static EXITS: Probe = Probe {
    name: "faults/exits",
    // SAFETY: ends the bench process, which is what is tested.
    arm: |_, _| Ok(Arm::new(Does(|| unsafe { libc::_exit(7) }))),
    ..BASE
};
static KILLED: Probe = Probe {
    name: "faults/killed",
    arm: |_, _| {
        // SAFETY: kills the bench process, which is what is tested.
        Ok(Arm::new(Does(|| unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
        })))
    },
    ..BASE
};

static DEAR: Probe = Probe { name: "faults/dear", arm: |_, _| Ok(Arm::new(Dear)), ..BASE };
static MISCOUNTS: Probe = Probe {
    name: "faults/miscounts",
    counts: Some("drops"),
    arm: |_, _| Ok(Arm::new(Miscounts { blocks: 0 })),
    ..BASE
};
/// In every process it makes another number of operations.
static FICKLE: Probe = Probe {
    name: "faults/fickle",
    arm: |_, _| Ok(Arm::new(Spin).with_ops(u64::from(std::process::id()))),
    ..BASE
};

fn segfault() {
    // SAFETY: raises the signal's default action in the bench process, which is what is tested.
    unsafe {
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        libc::raise(libc::SIGSEGV);
    }
}

struct Spin;
impl Station for Spin {
    fn block(&mut self, clock: Clock, order: Order) -> Result<Block, Refusal> {
        let span = clock
            .time(|| (0..order.iterations * 100).for_each(|n| drop(std::hint::black_box(n).to_string())));
        Ok(Block {
            work: span.ticks,
            empty: 0,
            undisturbed: true,
            counted: None,
            tallies: Default::default(),
        })
    }
}

struct Does(fn());
impl Station for Does {
    fn block(&mut self, _: Clock, _: Order) -> Result<Block, Refusal> {
        (self.0)();
        Ok(Block { work: 0, empty: 0, undisturbed: true, counted: None, tallies: Default::default() })
    }
}

struct Breaks {
    after: u32,
}
impl Station for Breaks {
    fn block(&mut self, clock: Clock, order: Order) -> Result<Block, Refusal> {
        self.after =
            self.after.checked_sub(1).ok_or_else(|| Refusal::Fail("broke in a later round".to_owned()))?;
        Spin.block(clock, order)
    }
}

/// A block takes 100 ms, more than a share of a short run.
struct Dear;
impl Station for Dear {
    fn block(&mut self, clock: Clock, _: Order) -> Result<Block, Refusal> {
        let span = clock.time(|| std::thread::sleep(Duration::from_millis(100)));
        Ok(Block {
            work: span.ticks,
            empty: 0,
            undisturbed: true,
            counted: None,
            tallies: Default::default(),
        })
    }
}

/// Counts one event an operation for a while, then one too many.
struct Miscounts {
    blocks: u64,
}
impl Station for Miscounts {
    fn block(&mut self, clock: Clock, order: Order) -> Result<Block, Refusal> {
        self.blocks += 1;
        let counted = Some(order.iterations + self.blocks / 40);
        Ok(Block { counted, ..Spin.block(clock, order)? })
    }
}

fn run(names: &[&str], budget: Duration) -> (Vec<Measurement>, Duration) {
    let cases = SUITE.probes.iter().filter(|probe| names.contains(&probe.name));
    let cases = cases.map(|probe| (*probe, tollgate_model::Params::new())).collect();
    let find =
        |name: &str| SUITE.probes.iter().copied().find(|probe| probe.name == name).or(registry::find(name));
    let selection = Selection { groups: vec![Group { suite: &SUITE, cases }], find };
    let began = Instant::now();
    let findings = measure(&selection, &Plan::within(budget), &mut |_| {}).expect("a place that can measure");
    (findings.measurements, began.elapsed())
}

fn outcome<'a>(measurements: &'a [Measurement], name: &str) -> &'a Outcome {
    &measurements
        .iter()
        .find(|measurement| measurement.case.probe == name)
        .expect("a row for every case")
        .outcome
}

#[test]
fn every_fault_ends_in_its_reason_and_the_sound_arm_in_its_price_within_the_budget() {
    let names: Vec<&str> = SUITE.probes.iter().map(|probe| probe.name).collect();
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
        // A round that another arm broke off is run again, not counted against the sound one.
        assert_eq!(sound.dropped, 0);
    }
    assert!(reason("faults/hangs").starts_with("failed: no progress for"), "{}", reason("faults/hangs"));
    assert!(reason("faults/faults").contains("SIGSEGV"), "{}", reason("faults/faults"));
    assert_eq!(reason("faults/absent"), "skipped: it does not exist here");
    assert_eq!(reason("faults/breaks-later"), "failed: broke in a later round");
    assert_eq!(reason("faults/wrong"), "failed: returned nonsense");
    assert_eq!(reason("faults/refuses"), "skipped: not in this place");
    assert_eq!(reason("faults/exits"), "failed: its process ended with status 7");
    assert!(reason("faults/killed").contains("SIGKILL"), "{}", reason("faults/killed"));
    assert!(reason("faults/dear").starts_with("measured"), "{}", reason("faults/dear"));
    assert!(reason("faults/fickle").contains("when it was tried"), "{}", reason("faults/fickle"));
    let miscounted = reason("faults/miscounts");
    assert!(miscounted.contains(" drops were counted in "), "{miscounted}");
}

#[test]
fn a_block_that_takes_long_has_few_rounds_and_the_others_all() {
    let (measurements, took) = run(&["faults/sound", "faults/dear"], Duration::from_secs(2));
    assert!(took < Duration::from_millis(2200), "took {took:?}");
    let measured = |name| match outcome(&measurements, name) {
        Outcome::Measured(measured) => measured,
        other => panic!("{name}: {other:?}"),
    };
    let (sound, dear) = (measured("faults/sound"), measured("faults/dear"));
    assert!(!dear.samples.is_empty());
    assert!(sound.samples.len() > 10 * dear.samples.len());
    // Rounds that it was not due in are not rounds that were dropped, and processes stay side by side.
    assert_eq!((sound.dropped, dear.dropped), (0, 0));
    assert_eq!(sound.processes.len(), dear.processes.len());
    for (of_sound, of_dear) in sound.processes.iter().zip(&dear.processes) {
        assert_eq!(of_sound.rounds, of_dear.rounds);
        assert!(of_dear.ran.as_ref().is_some_and(|ran| ran.len() < of_sound.rounds as usize));
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
