//! Sessions with agents in forks of the test's program, and with programs that are not agents.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tollgate_arch::counter;
use tollgate_model::{Fact, FactValue, Facts, Measured, Outcome, Params, Provenance, Unit};
use tollgate_os::process::{self, Child};
use tollgate_os::shared::Shared;
use tollgate_os::signals;

use super::execute::tests::Fake;
use super::{EnvironmentFindings, Link, SessionFindings, Side, measure_in};
use crate::bench_process::frame;
use crate::bench_process::own::OWN_BENCHMARKS;
use crate::bench_process::record::{InstanceRecord, ProcessRecord};
use crate::bench_process::worker::{Find, InstanceOrder};
use crate::cases::benchmark::{Benchmark, Kind, PLAIN, Suite, TIME_OF_MEMORY};
use crate::cases::plan::{Ordinal, Plan};
use crate::cases::run::BenchError;
use crate::cases::selection::{Group, Selection};
use crate::loops::instance::Instance;
use crate::loops::instance::Readiness;
use crate::loops::runner::{Batch, Order, Runner};
use crate::machine::clock::Clock;
use crate::machine::ending::Ending;
use crate::machine::limits::Limits;
use crate::refusal::Result as Refused;
use crate::rounds::schedule::Schedule;
use crate::sides::agent::protocol::{Answer, Hello, Job, MAGIC, PROTOCOL, Request};
use crate::sides::agent::{Means, serve};

const fn named(name: &'static str, kind: Kind) -> Benchmark {
    Benchmark { name, operation: "Spins.", kind, ..PLAIN }
}

static SOUND: Benchmark = named("some/sound", Kind::Instance(|_, _, _| Ok(Instance::new(Spin(50)))));
static LONG: Benchmark = named("some/long", Kind::Instance(|_, _, _| Ok(Instance::new(Sleeps))));
static SUITE: Suite = Suite { name: "some", about: "Spins.", benchmarks: &[&SOUND, &LONG] };

struct Spin(u64);
impl Runner for Spin {
    fn batch(&mut self, clock: Clock, order: Order) -> Refused<Batch> {
        let span = clock.time(|| {
            (0..order.all() * self.0).for_each(|n| {
                std::hint::black_box(n);
            })
        });
        Ok(Batch::new(span.ticks.max(1), 0, true))
    }
}

struct Sleeps;
impl Runner for Sleeps {
    fn batch(&mut self, clock: Clock, _: Order) -> Refused<Batch> {
        Ok(Batch::new(clock.time(|| std::thread::sleep(Duration::from_millis(5))).ticks, 0, true))
    }
}

struct Then(u32, fn());
impl Runner for Then {
    fn batch(&mut self, clock: Clock, order: Order) -> Refused<Batch> {
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None => (self.1)(),
        }
        Spin(50).batch(clock, order)
    }
}

fn fault() {
    signals::default(&[libc::SIGSEGV]);
    signals::raise(libc::SIGSEGV);
}

fn kill_agent() {
    // SAFETY: getppid(2) has no preconditions.
    let _ = process::kill(unsafe { libc::getppid() }, libc::SIGKILL);
    std::thread::sleep(Duration::from_secs(60));
}

fn own(name: &str) -> Option<&'static Benchmark> {
    OWN_BENCHMARKS.iter().copied().find(|benchmark| benchmark.name == name)
}

pub(super) fn find(name: &str) -> Option<&'static Benchmark> {
    SUITE.benchmarks.iter().copied().find(|benchmark| benchmark.name == name).or_else(|| own(name))
}

/// Replaces the sound benchmark by another one of that name.
macro_rules! find_other {
    ($runner:expr) => {{
        static OTHER: Benchmark = named("some/sound", Kind::Instance(|_, _, _| Ok(Instance::new($runner))));
        fn other(name: &str) -> Option<&'static Benchmark> {
            if name == OTHER.name { Some(&OTHER) } else { find(name) }
        }
        other as Find
    }};
}

/// In a process of its own, because others of the test's program have children too.
pub(super) fn alone(work: impl FnOnce() -> bool) {
    let mut child = process::fork(|| i32::from(!work())).expect("a process");
    let ended = child.wait().expect("its own child");
    assert!(matches!(Ending::from(ended), Ending::Finished), "{ended:?}");
}

/// A child with these two descriptors as its standard input and output.
pub(super) fn child(life: impl FnOnce() -> i32) -> (Child, File, File) {
    let ((input, to), (from, output)) = (io::pipe().expect("a pipe"), io::pipe().expect("a pipe"));
    let child = process::fork_bound(|| {
        // SAFETY: the descriptors are this copy's own. Those of other tests are closed; they would keep their pipes open.
        unsafe {
            libc::dup2(input.as_raw_fd(), 0);
            libc::dup2(output.as_raw_fd(), 1);
            libc::close_range(3, u32::MAX, 0);
        }
        life()
    });
    (child.expect("a process"), OwnedFd::from(to).into(), OwnedFd::from(from).into())
}

pub(super) fn agent(find: Find) -> i32 {
    let facts = &mut |_| Facts::from([("kernel.release".to_owned(), Fact::known("6.1", "uname(2)"))]);
    let limits = &Limits::default;
    let storage = &mut || Err("no directory".to_owned());
    serve(Means { version: "1", find, executes: false, facts, limits, storage, executor: &mut Fake })
}

pub(super) fn link((child, to, from): (Child, File, File)) -> Link {
    // The child ends with the link.
    let said = move || {
        let _ = &child;
        None
    };
    Link { to: to.into(), from: from.into(), said: Box::new(said) }
}

pub(super) fn side(name: &str, start: impl FnMut() -> Result<Link, String> + 'static) -> Side<'static> {
    let start = Box::new(start);
    Side {
        name: name.to_owned(),
        start,
        starts: 1,
        wake: None,
        cpu: None,
        is_paired: true,
        is_counting: false,
        has_disk: false,
        outside: None,
        life: None,
    }
}

pub(super) fn side_of(find: Find) -> Side<'static> {
    side("host", move || Ok(link(child(move || agent(find)))))
}

fn session(mut sides: Vec<Side<'_>>, processes: usize) -> Result<SessionFindings, BenchError> {
    let cases = SUITE.benchmarks.iter().map(|benchmark| (*benchmark, Params::new())).collect();
    let selection = Selection { groups: vec![Group { suite: &SUITE, cases }], find };
    measure_in(&mut sides, &selection, &Plan::of_processes(processes), &mut |_| {})
}

fn outcome<'a>(found: &'a EnvironmentFindings, name: &str) -> &'a Outcome {
    let mut all = found.findings.measurements.iter();
    &all.find(|measurement| measurement.case.benchmark == name).expect("a row for every case").outcome
}

/// Returns the first of ten sessions for which this holds, with up to 16 times as many processes, as other work shortens each.
fn session_where(
    processes: usize,
    sides: impl Fn() -> Vec<Side<'static>>,
    holds: impl Fn(&SessionFindings) -> bool,
) -> SessionFindings {
    let mut tried = (0..10).map(|tried| session(sides(), processes << (tried / 2)).expect("measured"));
    tried.find(holds).expect("one of ten")
}

fn measured<'a>(found: &'a EnvironmentFindings, name: &str) -> &'a Measured {
    outcome(found, name)
        .measured()
        .unwrap_or_else(|| panic!("{name}: {:?} {:?}", outcome(found, name), found.lost))
}

#[test]
fn turns_of_two_environments_stand_at_the_same_place_in_both() {
    let samples = |found: &SessionFindings, name| measured(&found.found[0], name).samples.len();
    let is_seldom = |found: &SessionFindings| samples(found, "some/sound") > 2 * samples(found, "some/long");
    let found = session_where(8, || vec![side_of(find), side_of(find)], is_seldom);
    let [one, other] = found.found.as_slice() else { panic!("two sides") };
    assert_eq!((&one.lost, &other.lost), (&None, &None));
    for name in ["some/sound", "some/long"] {
        let (one, other) = (measured(one, name), measured(other, name));
        assert_eq!(one.processes.len(), other.processes.len());
        assert_eq!(one.ops_per_sample, other.ops_per_sample, "{name}");
        assert!(
            one.processes
                .iter()
                .map(|process| process.rounds)
                .eq(other.processes.iter().map(|process| process.rounds))
        );
        assert!(
            one.processes
                .iter()
                .map(|process| &process.ran)
                .eq(other.processes.iter().map(|process| &process.ran))
        );
    }
    assert!(found.facts.iter().any(|(name, fact)| name == "run.pairs" && fact.value().is_some()));
    assert_eq!(one.facts["kernel.release"], Fact::known("6.1", "uname(2)"));
    assert!(one.findings.facts.iter().any(|(name, _)| name == "run.clock"));
}

#[test]
fn one_environment_is_measured_in_whole_processes() {
    let found = session(vec![side_of(find)], 3).expect("measured");
    assert!(measured(&found.found[0], "some/sound").processes.len() > 2);
    assert!(!found.facts.iter().any(|(name, _)| name == "run.pairs"));
}

#[test]
fn an_environment_without_pairs_alternates_in_whole_processes_and_one_is_started_several_times() {
    let far = Side { is_paired: false, ..side_of(find) };
    let often = Side { starts: 3, ..side_of(find) };
    let found = session(vec![side_of(find), often, far], 6).expect("measured");
    assert!(found.found.iter().all(|found| !measured(found, "some/sound").samples.is_empty()));
    let starts = |found: &EnvironmentFindings| {
        found.findings.facts.iter().find(|(name, _)| name == "run.starts").map(|(_, fact)| fact.clone())
    };
    let often = starts(&found.found[1]).and_then(|fact| fact.value().and_then(FactValue::as_f64));
    assert!(often.is_some_and(|often| often >= 2.0), "{often:?}");
    assert_eq!(starts(&found.found[0]), None);
}

#[test]
fn an_agent_that_dies_keeps_what_it_gave_and_the_others_go_on() {
    let dies = || side_of(find_other!(Then(30, kill_agent)));
    let found = session_where(12, || vec![side_of(find), dies()], |found| found.found[1].lost.is_some());
    assert_eq!(found.found[1].lost.as_deref(), Some("its agent ended"));
    assert_eq!(found.found[0].lost, None);
    let base = measured(&found.found[0], "some/sound").processes.len();
    let other = outcome(&found.found[1], "some/sound");
    // Its calibration takes some of the batches.
    match other {
        Outcome::Measured(other) => assert!(other.processes.len() < base),
        Outcome::NotMeasured { why } => assert_eq!(why, "its agent ended"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_case_that_fails_in_one_environment_stays_measured_in_the_other() {
    let others = [
        (find_other!(Then(0, fault)), "SIGSEGV"),
        (find_other!(Then(12, fault)), "SIGSEGV"),
        ((|name| if name == "some/sound" { None } else { find(name) }) as Find, "no such benchmark"),
    ];
    for (other, expected) in others {
        let has_failed = |found: &SessionFindings| outcome(&found.found[1], "some/sound").why().is_some();
        let found = session_where(4, || vec![side_of(find), side_of(other)], has_failed);
        measured(&found.found[0], "some/sound");
        measured(&found.found[1], "some/long");
        let outcome = outcome(&found.found[1], "some/sound");
        assert!(outcome.why().is_some_and(|why| why.contains(expected)), "{outcome:?}");
    }
}

/// Batches of 209 instructions an iteration and 70 before, with a tick in every `every`-th.
struct Steps {
    every: u64,
    batches: u64,
}
impl Runner for Steps {
    fn batch(&mut self, _: Clock, order: Order) -> Refused<Batch> {
        self.batches += 1;
        let tick = if self.batches.is_multiple_of(self.every) { 5_000 } else { 0 };
        Ok(Batch::new(70 + 209 * order.all() + tick, 0, true))
    }
}

fn counting(find: Find) -> Side<'static> {
    Side { is_paired: false, is_counting: true, ..side_of(find) }
}

#[test]
fn a_counting_environment_keeps_the_batches_that_agree_and_the_others_are_timed_after_it() {
    let steps = find_other!(Steps { every: 13, batches: 0 });
    let found = session(vec![side_of(find), counting(steps)], 1).expect("measured");
    let [timed, counted] = found.found.as_slice() else { panic!("two sides") };
    assert_eq!((&timed.lost, &counted.lost), (&None, &None));
    let of_timed = measured(timed, "some/sound");
    assert_eq!((of_timed.unit, of_timed.provenance), (Unit::Nanoseconds, Provenance::Hardware));
    let of_counted = measured(counted, "some/sound");
    assert_eq!((of_counted.unit, of_counted.provenance), (Unit::Instructions, Provenance::QemuIcount));
    assert!(of_counted.samples.iter().all(|&sample| sample == 209.0), "{:?}", of_counted.samples);
    // Two batches are a sample, and one in thirteen has a tick.
    let [process] = of_counted.processes.as_slice() else { panic!("one process") };
    assert_eq!(of_counted.samples.len() as u64 + of_counted.discarded, u64::from(process.rounds));
    // If other work had the processor, a batch took long and there are fewer samples.
    assert!(process.rounds < 25 || of_counted.discarded == 4, "{process:?}");
    assert_eq!(of_counted.clock_hz, 1_000_000_000);
    // Each case has one row. The engine's own ones are times.
    let names: Vec<&str> =
        counted.findings.measurements.iter().map(|row| row.case.benchmark.as_str()).collect();
    assert_eq!(names, ["some/sound", "some/long"]);
    assert_eq!(counted.facts["kernel.release"], Fact::known("6.1", "uname(2)"));
    let clock = counted.findings.facts.iter().find(|(name, _)| name == "run.clock").map(|(_, fact)| fact);
    assert_eq!(clock, Some(&Fact::known(counter::NAME, "QEMU -icount shift=0: one tick an instruction")));
}

#[test]
fn environments_are_counted_at_the_same_time_and_one_that_is_lost_costs_itself() {
    let steps = find_other!(Steps { every: 13, batches: 0 });
    let lost = || Side { start: Box::new(|| Err("it does not start".to_owned())), ..counting(steps) };
    let ends = Side { start: Box::new(|| Ok(link(child(|| 0)))), ..counting(steps) };
    let dies = counting(find_other!(Then(0, kill_agent)));
    // More than many a machine has processors.
    let sides = vec![counting(steps), lost(), ends, counting(steps), dies, counting(steps), lost()];
    let found = session(sides, 1).expect("counted");
    let medians: Vec<Result<f64, String>> = (found.found.iter())
        .map(|side| match &side.lost {
            Some(why) => Err(why.clone()),
            None => Ok(measured(side, "some/sound").samples[0]),
        })
        .collect();
    let lost = |why: &str| Err(why.to_owned());
    let [starts_not, ended] = ["it does not start", "its agent ended"].map(lost);
    let counted = Ok(209.0);
    let of_each = [&counted, &starts_not, &ended, &counted, &ended, &counted, &starts_not];
    assert_eq!(medians.iter().collect::<Vec<_>>(), of_each);
}

#[test]
fn a_case_that_dies_while_it_is_counted_costs_itself_and_one_of_memory_is_not_counted() {
    static LINE: Benchmark = Benchmark {
        uncounted: Some(TIME_OF_MEMORY),
        ..named("memory/line", Kind::Instance(|_, _, _| Ok(Instance::new(Spin(50)))))
    };
    static MEMORY: Suite = Suite { name: "memory", about: "Spins.", benchmarks: &[&LINE] };
    let steps = find_other!(Steps { every: 20, batches: 0 });
    for (other, expected) in [
        (find_other!(Then(2, fault)), "SIGSEGV"),
        (find_other!(Then(0, || std::thread::sleep(Duration::from_secs(600)))), "no progress for 5.0 s"),
        (steps, ""),
    ] {
        let groups = [&SUITE, &MEMORY].map(|suite| {
            let cases = suite.benchmarks.iter().map(|benchmark| (*benchmark, Params::new())).collect();
            Group { suite, cases }
        });
        let selection = Selection { groups: groups.to_vec(), find: other };
        let plan = Plan::of_processes(1);
        let found = measure_in(&mut [counting(other)], &selection, &plan, &mut |_| {}).expect("counted");
        let [found] = found.found.as_slice() else { panic!("one side") };
        match expected {
            "" => {
                let samples = &measured(found, "some/sound").samples;
                assert!(!samples.is_empty() && samples.iter().all(|&sample| sample == 209.0), "{samples:?}");
            }
            expected => {
                let why = outcome(found, "some/sound").why().unwrap_or_default();
                assert!(why.contains(expected), "{why}");
            }
        }
        assert!(measured(found, "some/long").unit == Unit::Instructions);
        let of_memory = outcome(found, "memory/line");
        assert_eq!(*of_memory, Outcome::NotMeasured { why: TIME_OF_MEMORY.to_owned() });
    }
}

/// Writes these bytes instead of an agent, and ends or stays.
fn impostor(bytes: Vec<u8>, stays: bool) -> Side<'static> {
    side("other", move || {
        let bytes = bytes.clone();
        Ok(link(child(move || {
            let _ = io::stdout().write_all(&bytes).and_then(|()| io::stdout().flush());
            std::thread::sleep(Duration::from_secs(if stays { 600 } else { 0 }));
            0
        })))
    })
}

fn greeting(protocol: u32) -> Vec<u8> {
    let hello = Hello { protocol, version: "9.9".to_owned(), allowed: vec![0, 1], usual: Some(0) };
    [MAGIC.to_vec(), frame::framed(&hello).expect("short")].concat()
}

#[test]
fn a_program_that_is_no_agent_is_named_by_what_it_did_and_the_other_environment_is_measured() {
    let answers = |answer: &Answer| [greeting(PROTOCOL), frame::framed(answer).expect("short")].concat();
    let garbage = |length: usize| (0..length).map(|at| (at * 7919 % 251) as u8).collect::<Vec<u8>>();
    for (bytes, stays, expected) in [
        (
            b"Welcome to X\nmore\n".to_vec(),
            true,
            "it printed \"Welcome to X\" before its agent's first message",
        ),
        (b"\x89PNG".to_vec(), false, "it printed \"\u{fffd}PNG\" before its agent's first message"),
        (Vec::new(), false, "its agent ended"),
        (MAGIC[..5].to_vec(), false, "its agent ended"),
        (greeting(7), true, "its agent of version 9.9 speaks protocol 7, this tollgate speaks 2"),
        (greeting(PROTOCOL), false, "its agent ended"),
        (
            [greeting(PROTOCOL), vec![255; 70_000]].concat(),
            true,
            "its agent announced a message of 4294967295 bytes",
        ),
        (
            [&MAGIC[..], &(62_u32 << 20).to_le_bytes()].concat(),
            true,
            "its agent announced a message of 65011712 bytes; the limit is 65536",
        ),
        (
            [greeting(PROTOCOL), (17_u32 << 20).to_le_bytes().to_vec()].concat(),
            true,
            "its agent announced a message of 17825792 bytes; the limit is 16777216",
        ),
        (
            [greeting(PROTOCOL), vec![3, 0, 0, 0, b'x', b'y', b'z']].concat(),
            true,
            "its agent sent a message that cannot be read",
        ),
        (answers(&Answer::Done), true, "its agent sent an unexpected answer"),
        (answers(&Answer::Failed("no\u{1b}[1m memory".into())), true, "no [1m memory"),
        (garbage(1), false, "it printed"),
        (garbage(300_000), true, "it printed"),
    ] {
        let found = session(vec![side_of(find), impostor(bytes, stays)], 1).expect("measured");
        let why = found.found[1].lost.clone().unwrap_or_default();
        assert!(why.contains(expected), "{why:?}, not {expected:?}");
        assert!(!measured(&found.found[0], "some/sound").samples.is_empty());
        assert_eq!(outcome(&found.found[1], "some/sound").why(), Some(why.as_str()));
    }
}

#[test]
fn a_program_that_never_answers_is_given_up_and_nothing_measured_is_an_error() {
    let began = Instant::now();
    let none = side("none", || Err("there is no such runtime".to_owned()));
    // Silent from the first byte on, and after its greeting.
    let sides = vec![impostor(Vec::new(), true), impostor(greeting(PROTOCOL), true), none];
    let error = session(sides, 1).expect_err("nothing to measure");
    assert!(began.elapsed() < Duration::from_secs(300));
    let silent = "other: its agent did not answer for 6 s";
    let why = format!("nothing was measured: {silent}; {silent}; none: there is no such runtime");
    assert_eq!(error.to_string(), why);
}

#[test]
fn a_setting_that_cannot_be_changed_ends_the_session_with_what_there_is() {
    let mut left = 60;
    let wake = move || {
        left -= 1;
        if left > 0 { Ok(()) } else { Err("/proc/sys/x cannot be written".to_owned()) }
    };
    let awake = Side { wake: Some(Box::new(wake)), ..side_of(find) };
    let found = session(vec![side_of(find), awake], 100).expect("measured");
    assert_eq!(found.found[1].lost.as_deref(), Some("/proc/sys/x cannot be written"));
    measured(&found.found[0], "some/sound");
}

/// Set when a bench process begins to hang.
static HANGS: OnceLock<Shared<1>> = OnceLock::new();

#[test]
fn an_agent_ends_with_its_input_and_its_bench_process_with_it() {
    let hangs = find_other!(Then(0, || {
        if let Some(hangs) = HANGS.get() {
            hangs[0].store(1, Release);
        }
        std::thread::sleep(Duration::from_secs(3600))
    }));
    let hang = HANGS.get_or_init(|| Shared::new().expect("memory"));
    let (mut child, mut to, from) = child(move || agent(hangs));
    let order = InstanceOrder {
        benchmark: "some/sound".to_owned(),
        params: Params::new(),
        ops: 1,
        iterations: 1,
        stride: 1,
    };
    let job =
        Job::Calibration { clock: Clock::Kernel, instances: vec![order], within: Duration::from_secs(3600) };
    let (stall, most) = (Duration::from_secs(3600), Duration::from_secs(3600));
    frame::write(&mut to, &Request::Settle { cpu: None }).expect("an agent");
    frame::write(&mut to, &Request::Start { job, stall, most }).expect("an agent");
    let began = Instant::now();
    while hang[0].load(Acquire) == 0 {
        assert!(matches!(child.try_wait(), Ok(None)));
        assert!(began.elapsed() < Duration::from_secs(300), "it does not hang");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(to);
    child.wait().expect("its end");
    // The bench process holds a copy of the output: with it the pipe would stay open.
    let mut rest = Vec::new();
    io::Read::read_to_end(&mut { from }, &mut rest).expect("the end of the output");
    assert!(began.elapsed() < Duration::from_secs(600) && rest.starts_with(&MAGIC));
}

fn instance() -> impl Strategy<Value = InstanceRecord> {
    let time = || (any::<u64>(), any::<u32>()).prop_map(|(s, ns)| Duration::new(s, ns % 1_000_000_000));
    let ready =
        (time(), time(), time(), any::<u64>(), any::<u64>()).prop_map(|(cost, whole, setup, ops, most)| {
            Readiness { cost, whole, setup, ops, most, ..Readiness::default() }
        });
    let rounds = || proptest::collection::vec(0_u32..6, 0..4);
    let ticks = proptest::collection::vec(any::<i64>(), 0..5);
    (proptest::option::of(ready), proptest::option::of(rounds()), rounds(), ticks, any::<[u64; 23]>())
        .prop_map(|(ready, ran, discarded, ticks, events)| InstanceRecord {
            state: ready.map(Ok),
            ran,
            discarded,
            ticks,
            events,
        })
}

proptest! {
    #[test]
    fn any_record_of_an_agent_is_refused_or_does_no_harm(
        rounds in 0_usize..6,
        current in proptest::option::of(0_usize..6),
        instances in proptest::collection::vec(instance(), 6),
        hz in any::<u64>(),
    ) {
        let cases = SUITE.benchmarks.iter().map(|benchmark| (*benchmark, Params::new())).collect();
        let group = Group { suite: &SUITE, cases };
        let mut schedule = Schedule::new(&group, Ordinal::default(), None);
        let record = ProcessRecord { rounds, current, instances, ..ProcessRecord::default() };
        let bytes = serde_json::to_vec(&record).expect("JSON");
        let record: ProcessRecord = serde_json::from_slice(&bytes).expect("the same");
        // A record without batches always fits, so that calibrations are tried too.
        let bare = |record: &ProcessRecord| ProcessRecord {
            rounds: 0,
            instances: record.instances.iter().map(|instance| InstanceRecord { state: instance.state.clone(), ..Default::default() }).collect(),
            ..record.clone()
        };
        let number = schedule.number();
        prop_assert_eq!(number, 6);
        prop_assert!(record.clone().checked(number + 1).is_err());
        if let Ok(calibrated) = bare(&record).checked(number) {
            let batch_order = schedule.waiting();
            schedule.record_calibration(&batch_order, &calibrated, Ending::Finished, Duration::ZERO);
            schedule.count_operations();
            schedule.need();
            let batch_order = schedule.running(Duration::from_millis(60)).0;
            if let Ok(record) = record.checked(batch_order.orders.len()) {
                schedule.collect(&batch_order, &record.within(rounds), Ending::Finished, Duration::ZERO);
            }
        }
        for measurement in schedule.conclude(Clock::Tsc { hz }, None) {
            if let Outcome::Measured(measured) = measurement.outcome {
                prop_assert!(measured.samples.iter().all(|sample| sample.is_finite()));
            }
        }
    }
}
