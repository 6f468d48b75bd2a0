//! Whole commands over pipes: agents in threads of this process, with a fixture that only counts.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{LazyLock, Mutex, PoisonError};

use tollgate_model::Traced;

use super::*;
use crate::bench_process::frame::{self, Inbox};
use crate::cases::benchmark::{self, Benchmark, Kind, PLAIN, Suite, params};
use crate::cases::fixture::{self, Fixture, Repetition};
use crate::cases::plan::Plan;
use crate::cases::run::RunContext;
use crate::rounds::commands::Served;
use crate::sides::agent::commands::AgentLine;
use crate::sides::agent::protocol::{Hello, MAGIC, PROTOCOL};
use crate::sides::agent::streams::Streams;
use crate::sides::session::{Link, Side};

/// Commands that run now, on all sides.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// The most of them at a time.
static TOGETHER: AtomicUsize = AtomicUsize::new(0);

struct Shelf;

impl Fixture for Shelf {
    fn make_ready(&mut self, case: usize, _: &mut RunContext) -> fixture::Step<()> {
        if case == 1 { Err(Refusal::Skip("no\ngit".to_owned()).into()) } else { Ok(()) }
    }

    fn reset(&mut self, _: usize, _: &mut RunContext) -> fixture::Step<()> {
        Ok(())
    }

    fn run(&mut self, _: usize, _: bool, context: &mut RunContext) -> fixture::Step<()> {
        TOGETHER.fetch_max(RUNNING.fetch_add(1, SeqCst) + 1, SeqCst);
        context.say("grep");
        std::thread::sleep(Duration::from_millis(2));
        RUNNING.fetch_sub(1, SeqCst);
        Ok(())
    }

    fn check(&mut self, _: usize, _: &mut RunContext) -> fixture::Step<Repetition> {
        let traced = r#"{"command":["grep"],"backend":"bpf","ended":{"exit":0},"processors":1,"wall_ns":2000000,
            "user_ns":0,"sys_ns":0,"processes":1,"threads":1,"calls":[]}"#;
        let traced: Traced = serde_json::from_str(traced).expect("a trace");
        Ok(Repetition { traced: Some(traced), notes: vec!["checked".to_owned()] })
    }

    fn facts(&self) -> Vec<(String, Fact)> {
        vec![("workloads.grep".to_owned(), Fact::known("3.8", "grep --version"))]
    }
}

static COMMANDS: benchmark::Commands = benchmark::Commands {
    usual: |_| Duration::from_secs(1),
    fixtures: |cases| vec![(0..cases.len()).collect()],
    fixture: |_, _| Ok(Box::new(Shelf)),
};
static GREP: Benchmark = Benchmark { name: "fake/grep", kind: Kind::Command(&COMMANDS), ..PLAIN };
static SUITE: Suite = Suite { name: "fake", about: "", benchmarks: &[&GREP] };

/// An agent that ends after `requests`.
fn agent(mut streams: Streams, requests: usize) -> io::Result<()> {
    io::Write::write_all(&mut streams.output, &MAGIC)?;
    let hello = Hello { protocol: PROTOCOL, version: String::new(), allowed: vec![0], usual: None };
    frame::write(&mut streams.output, &hello)?;
    let (mut inbox, mut served) = (Inbox::default(), Served::default());
    let find = |name: &str| (name == GREP.name).then_some(&GREP);
    for _ in 0..requests {
        let request = loop {
            match inbox.next::<Request>().map_err(io::Error::other)? {
                Some(Request::Command(request)) => break request,
                Some(other) => return Err(io::Error::other(format!("{other:?}"))),
                None if !streams.read_to(&mut inbox)? => return Ok(()),
                None => {}
            }
        };
        let mut line = AgentLine { streams: &mut streams, inbox: &mut inbox };
        line.work(|say| {
            let none = Err("none".to_owned());
            served.meet(request, none, find, &mut |progress| say(&progress.what)).map(Answer::Command)
        })?;
    }
    Ok(())
}

fn side(requests: usize) -> Side<'static> {
    let start = move || {
        let ((input, to), (from, output)) = (io::pipe().unwrap(), io::pipe().unwrap());
        let file = |descriptor: OwnedFd| File::from(descriptor);
        let streams = Streams { input: file(input.into()), output: file(output.into()) };
        std::thread::spawn(move || agent(streams, requests));
        Ok(Link { to: to.into(), from: from.into(), said: Box::new(|| None) })
    };
    Side {
        name: "host".to_owned(),
        start: Box::new(start),
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

/// Returns a time that each look moves on by a millisecond: the time that repetitions take decides which of them are traced.
fn scripted() -> Instant {
    static LOOKS: AtomicU64 = AtomicU64::new(0);
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    *BEGAN + Duration::from_millis(LOOKS.fetch_add(1, SeqCst))
}

/// The measurements of each side, why each was lost, and why the executions ended early.
type Found = (Vec<Vec<Measurement>>, Vec<Option<String>>, Result<(), Stop>);

/// Measures two cases on these sides.
fn found(sides: &mut [Side<'_>]) -> Found {
    /// Otherwise the commands of two sessions would run at the same time.
    static ONE: Mutex<()> = Mutex::new(());
    let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let cases = (0..2).map(|number: u64| (&GREP, params(&[("number", number.into())]))).collect();
    let group = Group { suite: &SUITE, cases };
    let mut sides: Vec<AgentSide> = sides.iter_mut().map(|side| AgentSide::new(side, Vec::new())).collect();
    sides.iter_mut().for_each(|side| side.start().expect("greeted"));
    let mut all = Commands::new(vec![(&group, Ordinal::default())]);
    let deadline = Instant::now() + Duration::from_secs(60);
    let terms = Terms { deadline, precision: 0.1, most: usize::MAX, seed: 3, now: scripted };
    let mut watch = |_: &crate::cases::run::Progress| ();
    let ended =
        all.measure(&mut sides, &terms, &mut Teller::new(&mut watch, &Plan::within(Duration::from_secs(60))));
    let measured = (0..sides.len()).map(|at| all.measurements(Some(at), None)).collect();
    (measured, sides.iter().map(|side| side.lost.clone()).collect(), ended)
}

#[test]
fn two_agents_alternate_and_one_that_ends_keeps_what_it_gave() {
    let (measured, lost, ended) = found(&mut [side(1000), side(1000)]);
    assert_eq!((lost, ended), (vec![None, None], Ok(())));
    for of_side in &measured {
        let measured = of_side[0].outcome.measured().expect("measured");
        let number = measured.processes.len();
        assert!((8..30).contains(&number), "{number}");
        assert_eq!((measured.samples.len(), measured.traced.len()), (number, number));
        assert_eq!(of_side[1].outcome, Outcome::Skipped { why: "no git".to_owned() });
    }
    // A preparation, three repetitions of three phases, and another of which the first is traced.
    let (measured, lost, ended) = found(&mut [side(1000), side(1 + 4 * 3)]);
    assert_eq!((lost, ended), (vec![None, Some("its agent ended".to_owned())], Ok(())));
    let processes = |side: usize| measured[side][0].outcome.measured().expect("measured").processes.len();
    assert_eq!((processes(0) >= 8, processes(1)), (true, 3), "the other goes on alone");
    assert_eq!(TOGETHER.load(SeqCst), 1, "two commands ran at the same time");
}

#[test]
fn a_setting_that_cannot_be_made_ends_the_executions() {
    let mut switched = 0;
    let wake = || {
        switched += 1;
        if switched > 4 { Err("the file is read-only".to_owned()) } else { Ok(()) }
    };
    let other = Side { wake: Some(Box::new(wake)), ..side(1000) };
    let (measured, lost, ended) = found(&mut [side(1000), other]);
    assert_eq!(ended, Err(Stop::Over));
    assert_eq!(lost[1].as_deref(), Some("the file is read-only"));
    // Earlier executions are kept.
    assert!(measured.iter().all(|of_side| of_side[0].outcome.measured().is_some()));
}
