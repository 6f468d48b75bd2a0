//! The order of executions, with mock sides that only list the steps that they were asked for.

#![allow(clippy::panic)] // A test may stop at the first surprise, its helpers too.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tollgate_model::traced::{Backend, Ended};
use tollgate_model::{Fact, Outcome, ParamValue, Traced};

use super::stage::{Attempt, NO_TIME};

use super::*;
use crate::cases::benchmark::{Benchmark, Kind, PLAIN, Suite, params};
use crate::cases::fixture::Repetition;
use crate::cases::run::RunContext;
use crate::refusal::Refusal;

static COMMANDS: Commands = Commands {
    usual: |cases| Duration::from_secs(cases.len() as u64),
    // There are two trees: one for the large cases, and one for the others.
    fixtures: |cases| {
        let (large, small): (Vec<usize>, Vec<usize>) =
            (0..cases.len()).partition(|&case| cases[case].1.contains_key("large"));
        [small, large].into_iter().filter(|of| !of.is_empty()).collect()
    },
    fixture: |_, _: &mut RunContext| Err(Refusal::Fail("these sides have none".to_owned()).into()),
};
static GREP: Benchmark = Benchmark { name: "fake/grep", kind: Kind::Command(&COMMANDS), ..PLAIN };
static SUITE: Suite = Suite { name: "fake", about: "", benchmarks: &[&GREP] };

/// Makes a group of `small` cases, and `large` cases on another fixture.
fn group(small: u64, large: u64) -> Group {
    let numbered = |number: u64| ("number", ParamValue::Number(number));
    let small = (0..small).map(|number| (&GREP, params(&[numbered(number)])));
    let large = (0..large).map(|number| (&GREP, params(&[numbered(number), ("large", 1.into())])));
    Group { suite: &SUITE, cases: small.chain(large).collect() }
}

/// The steps of all sides in order: the side, the step, and the case among all.
type Told = RefCell<Vec<(usize, &'static str, u64)>>;

struct Fake<'a> {
    side: usize,
    told: &'a Told,
    cases: Vec<u64>,
    /// The result of an execution, by case and repetition.
    execute: Box<dyn FnMut(u64, usize) -> Result<Attempt, Halt> + 'a>,
    executed: BTreeMap<u64, usize>,
    refuses: Vec<u64>,
    /// The tracer there.
    tracer: Backend,
    /// Whether the present execution is traced.
    is_traced: bool,
}

impl<'a> Fake<'a> {
    fn new(
        side: usize,
        told: &'a Told,
        execute: impl FnMut(u64, usize) -> Result<Attempt, Halt> + 'a,
    ) -> Self {
        let execute = Box::new(execute);
        Self {
            side,
            told,
            cases: Vec::new(),
            execute,
            executed: BTreeMap::new(),
            refuses: Vec::new(),
            tracer: Backend::Bpf,
            is_traced: false,
        }
    }
}

impl Stage for Fake<'_> {
    fn prepare(&mut self, cases: &[Chosen], _: Instant) -> Result<Vec<Option<Refusal>>, Halt> {
        let number = |(_, params): &Chosen| match params["number"] {
            ParamValue::Number(number) => number + 100 * u64::from(params.contains_key("large")),
            _ => panic!("a number"),
        };
        self.cases = cases.iter().map(number).collect();
        self.told.borrow_mut().push((self.side, "prepare", self.cases[0]));
        let refusal = |case| self.refuses.contains(case).then(|| Refusal::Skip("not here".to_owned()));
        Ok(self.cases.iter().map(refusal).collect())
    }

    fn pass(&mut self, case: usize, phase: Phase, _: Instant) -> Result<Attempt, Halt> {
        let case = self.cases[case];
        match phase {
            Phase::Reset => {
                self.told.borrow_mut().push((self.side, "reset", case));
                return Ok(Attempt::Passed);
            }
            Phase::Run { is_traced } => {
                self.told.borrow_mut().push((self.side, if is_traced { "trace" } else { "run" }, case));
                self.is_traced = is_traced;
                return Ok(Attempt::Passed);
            }
            Phase::Check if self.is_traced => {
                self.told.borrow_mut().push((self.side, "look", case));
                return executed(self.tracer, 7);
            }
            Phase::Check => self.told.borrow_mut().push((self.side, "check", case)),
        }
        let repetition = self.executed.entry(case).or_default();
        *repetition += 1;
        (self.execute)(case, *repetition - 1)
    }

    fn finish(&mut self) -> Result<Vec<(String, Fact)>, Halt> {
        self.told.borrow_mut().push((self.side, "finish", 0));
        Ok(vec![("workloads.grep".to_owned(), Fact::known("3.8", "grep --version"))])
    }
}

fn took(ns: u64) -> Result<Attempt, Halt> {
    executed(Backend::Rusage, ns)
}

fn executed(backend: Backend, ns: u64) -> Result<Attempt, Halt> {
    let traced =
        Traced { command: vec!["grep".to_owned()], ended: Some(Ended::Exit(0)), ..Traced::new(backend, ns) };
    Ok(Attempt::Executed(Box::new(Repetition { traced: Some(traced), notes: vec!["checked".to_owned()] })))
}

fn terms(ms: u64, precision: f64) -> Terms {
    let deadline = Instant::now() + Duration::from_millis(ms);
    Terms { deadline, precision, most: usize::MAX, seed: 7, now: Instant::now }
}

fn samples(side: &OnSide, case: usize) -> Vec<f64> {
    side.findings.measurements[case]
        .outcome
        .measured()
        .map(|measured| measured.samples.clone())
        .unwrap_or_default()
}

#[test]
fn sides_alternate_and_one_works_at_a_time() {
    let told = Told::default();
    // Both sides get slower together: only the ratio is narrow.
    let pace = |_: u64, repetition: usize| took(1_000_000 * (1 + repetition as u64));
    let (mut one, mut other) = (Fake::new(0, &told, pace), Fake::new(1, &told, pace));
    let found = measure(&group(3, 0), &mut [&mut one, &mut other], &terms(60_000, 0.005)).expect("measured");
    let told = told.borrow();
    let executed: Vec<_> = told.iter().filter(|(_, step, _)| *step == "run").collect();
    assert_eq!(told.iter().filter(|(_, step, _)| *step == "prepare").count(), 2);
    assert_eq!(told[0].1, told[1].1, "both are prepared before the first execution");
    // The ratio became narrow well before the greatest number of pairs.
    assert!((3 * 2 * 8..3 * 2 * 30).contains(&executed.len()), "{}", executed.len());
    let phases: Vec<_> = told.iter().filter(|(_, step, _)| !["prepare", "finish"].contains(step)).collect();
    for six in phases.chunks(6) {
        let phases: Vec<&str> = six.iter().map(|told| told.1).collect();
        let timed = ["reset", "reset", "run", "run", "check", "check"];
        let traced = ["reset", "reset", "trace", "trace", "look", "look"];
        assert!(phases == timed || phases == traced, "one command follows the other: {phases:?}");
        assert!(six.chunks(2).all(|two| (two[0].0, two[1].0) == (six[0].0, six[1].0)));
    }
    for pair in executed.chunks(2) {
        assert_eq!(pair[0].2, pair[1].2, "a case is executed on both sides before another is");
        assert_ne!(pair[0].0, pair[1].0);
    }
    let mut firsts = Vec::new();
    for case in 0..3 {
        let order: Vec<usize> = executed.iter().filter(|told| told.2 == case).map(|told| told.0).collect();
        firsts.extend(order.chunks_exact(2).map(|two| two[0]));
    }
    // Each order is drawn anew, so an order is not always the reverse of the one before it.
    let changes = firsts.windows(2).filter(|two| two[0] != two[1]).count();
    assert!((firsts.len() / 5..firsts.len() * 4 / 5).contains(&changes), "{firsts:?}");
    assert_eq!((found.len(), found[0].findings.measurements.len()), (2, 3));
    for case in 0..3 {
        assert!(samples(&found[0], case).len() >= 8);
        assert_eq!(samples(&found[0], case), samples(&found[1], case));
    }
    assert_eq!(found[1].findings.facts.len(), 1);
}

#[test]
fn what_is_timed_is_not_traced() {
    let slow = |_: u64, repetition: usize| took(1_000_000 * (1 + repetition as u64 % 3));
    for (tracers, most) in [
        ([Backend::Bpf, Backend::Bpf], 25),
        ([Backend::Bpf, Backend::Ptrace], 3),
        ([Backend::Rusage, Backend::Bpf], 25),
        ([Backend::Rusage, Backend::Rusage], 0),
    ] {
        let told = Told::default();
        let [mut one, mut other] =
            [0, 1].map(|side| Fake { tracer: tracers[side], ..Fake::new(side, &told, slow) });
        let terms = Terms { most: 12, ..terms(3_600_000, 1e-9) };
        let found = measure(&group(2, 0), &mut [&mut one, &mut other], &terms).expect("measured");
        let first = |step: &str| told.borrow().iter().position(|told| told.1 == step);
        assert!(first("run") < first("trace"), "there may be no time for more than a round");
        for (side, backend) in tracers.into_iter().enumerate() {
            for measurement in &found[side].findings.measurements {
                let measured = measurement.outcome.measured().expect("measured");
                assert_eq!((measured.samples.len(), measured.traced.len()), (12, 12));
                assert!(measured.traced.iter().all(|timed| timed.backend == Backend::Rusage));
                let is_traced = backend != Backend::Rusage;
                assert_eq!(!measured.traced_apart.is_empty(), is_traced);
                assert!(measured.traced_apart.len() <= most);
                assert!(measured.traced_apart.iter().all(|apart| apart.wall_ns == 7));
                let is_said =
                    measured.notes.iter().any(|note| note == "not traced: nothing can trace it here");
                assert_eq!(is_said, !is_traced, "{:?}", measured.notes);
            }
        }
    }
}

#[test]
fn a_case_that_cannot_be_traced_is_timed() {
    let ready = || {
        let mut record = ExecutedCase::default();
        record.prepared(None);
        record.add(took(1000).expect("executed"), Duration::ZERO);
        record
    };
    let why = "its traced execution took longer than the time that was left";
    let refused = Attempt::Refused(Refusal::Fail("its tracer ended".to_owned()));
    for (attempt, note) in [(Attempt::OutOfTime, why), (refused, "its tracer ended")] {
        let mut record = ready();
        record.add_traced(attempt);
        assert!(record.is_open() && record.is_untraced());
        let measurement = record.conclude(&group(1, 0).cases[0], None);
        let notes = &measurement.outcome.measured().expect("measured").notes;
        assert_eq!(notes.last(), Some(&format!("not traced: {note}")));
    }
}

#[test]
fn a_discarded_repetition_stays_in_its_place() {
    let told = Told::default();
    let discards = |_: u64, repetition: usize| match repetition {
        2 | 5 => Ok(Attempt::Executed(Box::new(Repetition { traced: None, notes: Vec::new() }))),
        _ => took(1000 + repetition as u64),
    };
    let mut one = Fake::new(0, &told, |_, repetition| took(1000 + repetition as u64));
    let mut other = Fake::new(1, &told, discards);
    let found = measure(&group(1, 0), &mut [&mut one, &mut other], &terms(60_000, 0.5)).expect("measured");
    let measured = |side: usize| found[side].findings.measurements[0].outcome.measured().expect("measured");
    let number = measured(0).processes.len();
    assert!((12..40).contains(&number) && number == measured(1).processes.len(), "{number}");
    assert_eq!((measured(1).discarded, measured(1).samples.len()), (2, number - 2));
    for (one, other) in measured(0).by_round().zip(measured(1).by_round()) {
        let (one, other): (Vec<_>, Vec<_>) = (one.collect(), other.collect());
        assert!(other.is_empty() || one == other, "{one:?} beside {other:?}");
    }
    assert_eq!(measured(1).processes[5].discarded, [0]);
}

#[test]
fn a_case_that_one_side_refuses_is_measured_on_the_other() {
    let told = Told::default();
    let mut one = Fake { refuses: vec![1], ..Fake::new(0, &told, |_, _| took(1000)) };
    // The check of the third repetition fails.
    let mut other = Fake::new(1, &told, |case, repetition| match (case, repetition) {
        (2, 2) => Ok(Attempt::Refused(Refusal::Fail("other contents".to_owned()))),
        _ => took(1000),
    });
    let found = measure(&group(3, 0), &mut [&mut one, &mut other], &terms(60_000, 0.1)).expect("measured");
    let outcome = |side: usize, case: usize| &found[side].findings.measurements[case].outcome;
    assert_eq!(outcome(0, 1), &Outcome::Skipped { why: "not here".to_owned() });
    assert_eq!(outcome(1, 2), &Outcome::Failed { error: "other contents".to_owned() });
    for (side, case) in [(0, 0), (1, 0), (1, 1), (0, 2)] {
        assert!(samples(&found[side], case).len() >= 8, "{side} {case}");
    }
    assert_eq!(found[0].lost, None);
}

#[test]
fn a_side_that_ends_keeps_what_it_gave_and_the_others_go_on() {
    let told = Told::default();
    let mut one = Fake::new(0, &told, |_, _| took(1000));
    let mut other = Fake::new(1, &told, |case, repetition| match (case, repetition) {
        (0, 3) => Err(Halt::Lost("killed by SIGKILL".to_owned())),
        _ => took(1000),
    });
    let found = measure(&group(1, 1), &mut [&mut one, &mut other], &terms(60_000, 0.1)).expect("measured");
    assert_eq!(found[1].lost.as_deref(), Some("killed by SIGKILL"));
    assert_eq!((samples(&found[1], 0).len(), samples(&found[0], 0).len() >= 8), (3, true));
    assert!(samples(&found[0], 1).len() >= 8, "the next fixture is measured, too");
    let why = found[1].findings.measurements[1].outcome.why().map(str::to_owned);
    assert_eq!(why.as_deref(), Some("killed by SIGKILL"));
    let told = told.borrow();
    let last = told.iter().rposition(|(side, ..)| *side == 1).expect("told");
    assert_eq!((told[last].1, told[last].2), ("check", 0), "it is told nothing more");
}

thread_local! {
    /// A clock that only executions move on.
    static NOW: Cell<Instant> = Cell::new(Instant::now());
}

#[test]
fn executions_end_with_the_time_of_their_fixture() {
    let told = Told::default();
    let slow = |_: u64, repetition: usize| {
        NOW.set(NOW.get() + Duration::from_millis(10));
        took(10_000_000 * (1 + repetition as u64 % 3))
    };
    let terms = |ms, precision| {
        let deadline = NOW.get() + Duration::from_millis(ms);
        Terms { deadline, now: || NOW.get(), ..terms(0, precision) }
    };
    let (mut one, mut other) = (Fake::new(0, &told, slow), Fake::new(1, &told, slow));
    let began = NOW.get();
    let sides: &mut [&mut dyn Stage] = &mut [&mut one, &mut other];
    let found = measure(&group(1, 1), sides, &terms(400, 1e-9)).expect("measured");
    // Half of the time for each of two fixtures, 20 ms for a pair.
    assert_eq!(NOW.get() - began, Duration::from_millis(400));
    for side in &found {
        assert_eq!([0, 1].map(|case| samples(side, case).len()), [10, 10]);
    }
    // Without time no case is executed, and each says so.
    let told = Told::default();
    let (mut one, mut other) = (Fake::new(0, &told, slow), Fake::new(1, &told, slow));
    let found = measure(&group(1, 1), &mut [&mut one, &mut other], &terms(0, 0.1)).expect("measured");
    let why = |side: &OnSide| side.findings.measurements[1].outcome.why() == Some(NO_TIME);
    assert!(found.iter().all(why));
}

#[test]
fn executions_end_with_as_many_repetitions_as_were_asked_for() {
    let told = Told::default();
    let wide = |_: u64, repetition: usize| took(1_000_000 * (1 + repetition as u64 % 3));
    let mut one = Fake::new(0, &told, wide);
    let terms = Terms { most: 3, ..terms(60_000, 1e-9) };
    let found = measure(&group(1, 1), &mut [&mut one], &terms).expect("measured");
    assert_eq!([0, 1].map(|case| samples(&found[0], case).len()), [3, 3]);
}

#[test]
fn an_interrupted_session_keeps_what_it_has() {
    let told = Told::default();
    let mut one = Fake::new(0, &told, |_, _| took(1000));
    let mut other = Fake::new(1, &told, |case, repetition| match (case, repetition) {
        (0, 3) => Err(Halt::Run(BenchError::Interrupted(libc::SIGINT))),
        _ => took(1000),
    });
    let found = measure(&group(2, 1), &mut [&mut one, &mut other], &terms(60_000, 0.1)).expect("kept");
    for side in &found {
        assert_eq!(side.findings.interrupted, Some(libc::SIGINT));
        assert!(!samples(side, 0).is_empty() && !samples(side, 1).is_empty());
        assert_eq!(side.findings.measurements[2].outcome.why(), Some("interrupted"));
    }
    // Both fixtures were removed.
    assert_eq!(told.borrow().iter().filter(|(_, step, _)| *step == "finish").count(), 2);
}

#[test]
fn a_case_that_hangs_on_one_side_leaves_time_for_the_rest() {
    let cases = group(3, 0).cases;
    let ready = || {
        let mut record = ExecutedCase::default();
        record.prepared(None);
        record
    };
    let mut run = Run {
        cases: &cases,
        of: vec![0, 1, 2],
        sides: &mut [],
        records: (0..2).map(|_| cases.iter().map(|_| ready()).collect()).collect(),
        facts: Vec::new(),
        repetition: None,
        given: Duration::ZERO,
        took: Vec::new(),
        now: Instant::now,
        began: Instant::now(),
        deadline: Instant::now(),
    };
    let left = Duration::from_secs(12);
    assert_eq!(run.patience(0, left), left / 4);
    run.records[1][0].prepared(Some(Refusal::Skip("not here".to_owned())));
    assert_eq!(run.patience(0, left), left / 2);
    run.of = vec![0];
    assert_eq!(run.patience(0, left), left);
    (run.of, run.records[1][0]) = (vec![0, 1, 2], ready());
    run.records[0][0].add(took(1).expect("executed"), left);
    assert_eq!(run.patience(0, left), left / 2);
    // One that took longer than there was time for is not repeated.
    run.records[0][0].add(Attempt::OutOfTime, left);
    assert!(!run.records[0][0].is_open());
    assert_eq!(run.patience(0, left), left);
}

#[test]
fn orders_and_documents_are_as_recorded() {
    crate::recorded::hold("workloads", |seed| {
        let mut recorded = String::new();
        for (sides, refuses, precision) in
            [(1, 9, 0.01), (2, 9, 0.0001), (2, 1, 0.05), (3, 9, 0.02), (3, 1, 1e-9)]
        {
            let told = Told::default();
            let mut noise = Random::new(seed);
            let noise = RefCell::new(&mut noise);
            let mut fakes: Vec<Fake> = (0..sides)
                .map(|side| {
                    let lost = (side == 2).then_some((seed % 3, seed as usize % 7));
                    let noise = &noise;
                    let mut fake = Fake::new(side, &told, move |case, repetition| {
                        let noise = noise.borrow_mut().next_u64() >> 54;
                        match (case, repetition) {
                            now if lost == Some(now) => Err(Halt::Lost("it ended".to_owned())),
                            (2, 4) if seed % 5 == 1 => Ok(Attempt::OutOfTime),
                            (100, 2) if seed % 8 == 3 => {
                                Err(Halt::Run(BenchError::Interrupted(libc::SIGINT)))
                            }
                            _ => {
                                let ns = 1_000_000 * (1 + case % 3) + noise;
                                NOW.set(NOW.get() + Duration::from_nanos(ns));
                                took(ns)
                            }
                        }
                    });
                    fake.refuses = vec![refuses];
                    fake
                })
                .collect();
            let mut executors: Vec<&mut dyn Stage> =
                fakes.iter_mut().map(|fake| -> &mut dyn Stage { fake }).collect();
            let most = if precision < 1e-6 { 12 } else { usize::MAX };
            let deadline = NOW.get() + Duration::from_secs(3600);
            let terms = Terms { seed, most, deadline, now: || NOW.get(), ..terms(0, precision) };
            let found = measure(&group(3, 2), &mut executors, &terms).expect("measured");
            for (side, step, case) in told.borrow().iter() {
                recorded += &format!("{step} {case} on {side}, ");
            }
            for OnSide { findings, lost, is_over } in &found {
                let measurements = serde_json::to_string(&findings.measurements).expect("a document");
                let facts = (&findings.facts, findings.interrupted, &findings.out_of_time);
                recorded += &format!("\n{measurements} {facts:?} {lost:?} {is_over}");
            }
            recorded += "\n";
        }
        recorded
    });
}
