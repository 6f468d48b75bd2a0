//! Closures of a Rust program, or commands, compared in alternation, with the verdicts that `tollgate versus` has.
//!
//! ```
//! use std::time::Duration;
//! use tollgate_versus::Session;
//!
//! let numbers: Vec<u64> = (0..1000).collect();
//! let report = Session::new()
//!     .side("by hand", || numbers.iter().fold(0, |sum, number| sum + number))
//!     .side("sum", || numbers.iter().sum::<u64>())
//!     .max_time(Duration::from_millis(50))
//!     .run();
//! println!("{report}");
//! assert_eq!(report.others.len(), 1);
//! ```

#![forbid(unsafe_code)]

mod report;
mod side;

use std::process::Command;
use std::time::{Duration, Instant};

use tollgate_alternation::{Alternation, Halt, How, Outcome, Places, Plan, Rounds, SoFar, Trial, Turn};
use tollgate_statistics::random::Random;
use tollgate_statistics::{median, neighbours};

pub use report::{Failed, Other, Report};
pub use tollgate_statistics::{Interval, Neighbours, Verdict};

use side::Side;

/// Intervals need not be narrower than this.
const PRECISION: f64 = 0.01;
/// The default limit of a session.
const MAX_TIME: Duration = Duration::from_secs(5);

/// A comparison to be made. The first side is the base.
#[must_use = "nothing is measured before `run`"]
pub struct Session<'a> {
    sides: Vec<Side<'a>>,
    max_time: Duration,
    noise_threshold: f64,
}

impl Default for Session<'_> {
    fn default() -> Self {
        Self { sides: Vec::new(), max_time: MAX_TIME, noise_threshold: 0.0 }
    }
}

impl<'a> Session<'a> {
    /// Returns a session without sides that takes at most five seconds.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a closure. Its result counts as used, and is dropped within the timed part.
    pub fn side<T>(self, name: impl Into<String>, closure: impl FnMut() -> T + 'a) -> Self {
        self.with(Side::closure(name.into(), closure))
    }

    /// Adds a closure that consumes an input in each iteration. Making the inputs and dropping the results is not timed.
    pub fn side_with_inputs<I, T>(
        self,
        name: impl Into<String>,
        input: impl FnMut() -> I + 'a,
        closure: impl FnMut(I) -> T + 'a,
    ) -> Self {
        self.with(Side::with_inputs(name.into(), input, closure, Instant::now))
    }

    /// Adds a command, which is executed from start to end. Its input is empty and its output discarded, except standard error.
    pub fn command(self, name: impl Into<String>, command: Command) -> Self {
        self.with(Side::command(name.into(), command))
    }

    /// Sets the time after which no round begins.
    pub fn max_time(mut self, time: Duration) -> Self {
        self.max_time = time;
        self
    }

    /// Sets the threshold up to which relative differences do not count: 0.02 for 2 %. The default, also for 0, is 1 %.
    pub fn noise_threshold(mut self, threshold: f64) -> Self {
        self.noise_threshold = threshold;
        self
    }

    fn with(mut self, side: Side<'a>) -> Self {
        self.sides.push(side);
        self
    }

    /// Executes the sides in rounds, each in random order, until every comparison is decided and narrow, or the time is over.
    pub fn run(self) -> Report {
        self.seeded(Random::seed())
    }

    fn seeded(mut self, seed: u64) -> Report {
        let number = self.sides.len();
        let plan = Plan {
            until_decided: true,
            asked: self.noise_threshold,
            is_whole: self.sides.first().is_some_and(Side::is_command),
            ..Plan::new(Rounds { least: 0, most: u32::MAX }, self.max_time, PRECISION)
        };
        let sides = (0..number).collect();
        let mut rounds = Alternation::new(plan, Random::new(seed), &[sides], Places::in_turn(number, 1));
        let failed = self.measure(&mut rounds).err();
        self.report(failed, &mut rounds)
    }

    fn measure(&mut self, rounds: &mut Alternation) -> Result<(), Failed> {
        let iterations = match self.sides.iter_mut().find(|side| !side.is_command()) {
            Some(side) => side.iterations()?,
            None => 1,
        };
        let mut turns = Turns { sides: &mut self.sides, iterations, began: Instant::now() };
        // The first round finds caches cold.
        let ended = rounds.pass(&mut turns, How::Warm, 0).and_then(|()| rounds.run(&mut turns));
        match ended {
            Err(Halt::Run(failed)) => Err(failed),
            // All sides are here, so no place can be lost.
            Ok(()) | Err(Halt::Lost(_)) => Ok(()),
        }
    }

    fn report(&self, failed: Option<Failed>, rounds: &mut Alternation) -> Report {
        let figures = |at: usize| rounds.figures(0, at);
        let ns = |at: usize| median(figures(at)).unwrap_or_default();
        let number = self.sides.len();
        let compared = |at: usize| {
            let is_whole = self.sides[0].is_command() && self.sides[at].is_command();
            neighbours(figures(0), figures(at), number - 1, self.noise_threshold, is_whole)
        };
        let other = |at: usize| {
            let compared = compared(at).filter(|_| failed.is_none());
            Other { name: self.sides[at].name.clone(), ns: ns(at), compared }
        };
        let mut others: Vec<Other> = (1..number).map(other).collect();
        let base = self.sides.first().map(|base| (base.name.clone(), ns(0))).unwrap_or_default();
        let of_base = if number > 0 { figures(0).to_vec() } else { Vec::new() };
        let halves = self.halves(&of_base, &mut rounds.random);
        if halves.is_some_and(|halves| halves.verdict.is_beyond_margin()) {
            let all = others.iter_mut().filter_map(|other| other.compared.as_mut());
            all.for_each(|compared| compared.verdict = Verdict::Inconclusive);
        }
        Report { base, others, pairs: of_base.len(), halves, failed }
    }

    /// Splits the base's turns into halves: chance puts one of each two neighbours into one half.
    fn halves(&self, of_base: &[f64], random: &mut Random) -> Option<Neighbours> {
        let (one, other): (Vec<f64>, Vec<f64>) = of_base
            .chunks_exact(2)
            .map(|pair| match random.next_u64() >> 63 {
                0 => (pair[0], pair[1]),
                _ => (pair[1], pair[0]),
            })
            .unzip();
        neighbours(&one, &other, 1, self.noise_threshold, false)
    }
}

struct Turns<'s, 'a> {
    sides: &'s mut [Side<'a>],
    /// The iterations of a batch of a closure.
    iterations: u64,
    began: Instant,
}

impl Trial for Turns<'_, '_> {
    type Stop = Failed;

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn execute(&mut self, turn: &Turn, _: &SoFar) -> Result<Outcome, Halt<Failed>> {
        self.sides[turn.side].turn(self.iterations).map(Outcome::Figure).map_err(Halt::Run)
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    fn work(iterations: u64) -> impl FnMut() -> u64 {
        move || (0..iterations).fold(1_u64, |sum, next| black_box(sum.wrapping_mul(31)) ^ next)
    }

    #[test]
    fn a_side_that_does_more_is_slower_and_an_equal_one_is_not() {
        let mut session = Session::new().max_time(Duration::from_secs(3600)).noise_threshold(0.1);
        for (name, ns) in [("old", 1000), ("more", 2000), ("equal", 1000)] {
            let mut noise = Random::new(ns);
            session.sides.push(Side::scripted(name.to_owned(), move |iterations| {
                Duration::from_nanos(iterations * ns + (noise.next_u64() >> 50))
            }));
        }
        let report = session.seeded(7);
        let verdict = |at: usize| report.others[at].compared.map(|found| found.verdict);
        assert_eq!(verdict(0), Some(Verdict::Slower), "{report}");
        assert!(verdict(1).is_some_and(|verdict| !verdict.is_beyond_margin()), "{report}");
        assert!(report.to_string().starts_with("more is slower than old: "), "{report}");
    }

    #[test]
    fn closures_are_executed_and_timed() {
        let calls = std::cell::Cell::new(0_u64);
        let mut counted = work(100);
        let closure = || {
            calls.set(calls.get() + 1);
            counted()
        };
        let report = Session::new()
            .side("work", closure)
            .side("more", work(400))
            .max_time(Duration::from_millis(20))
            .run();
        assert!(report.base.1 >= 0.0 && report.others.len() == 1 && calls.get() > 0, "{report:?}");
    }

    /// FNV-1a of 64 bits (Fowler, Noll and Vo; RFC 9923).
    fn hash(text: &str) -> u64 {
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }

    /// The executions with a seed, in order, and the report, for closures with scripted times.
    fn record(seed: u64) -> String {
        let told = std::cell::RefCell::new(Vec::new());
        let mut noise = Random::new(seed);
        let noise = std::cell::RefCell::new(&mut noise);
        let mut session = Session::new().max_time(Duration::from_secs(3600));
        for (at, ns) in
            [(0, 1000), (1, 1000 + 2 * (seed % 30)), (2, 1000)].into_iter().take(1 + seed as usize % 3)
        {
            let (told, noise) = (&told, &noise);
            session.sides.push(Side::scripted(format!("side {at}"), move |iterations| {
                told.borrow_mut().push(at);
                Duration::from_nanos(iterations * ns + (noise.borrow_mut().next_u64() >> 50))
            }));
        }
        let report = session.seeded(seed);
        format!("{:?}\n{report:?}\n{report}\n", told.borrow())
    }

    #[test]
    fn orders_and_reports_are_as_recorded() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/recordings/closures");
        let mut found = record(2);
        (1..=40).for_each(|seed| found += &format!("{seed} {:016x}\n", hash(&record(seed))));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &found).expect("the recording is written");
        }
        let kept = std::fs::read_to_string(path).expect("the recording");
        let differs = found.lines().zip(kept.lines()).find(|(found, kept)| found != kept);
        assert_eq!((differs, found.len()), (None, kept.len()));
    }

    /// By a clock that only inputs, iterations and the end of what they return move on.
    #[test]
    fn making_inputs_and_dropping_results_takes_none_of_the_time() {
        struct Slow<'a>(&'a dyn Fn(u64));
        impl Drop for Slow<'_> {
            fn drop(&mut self) {
                (self.0)(1_000_000);
            }
        }
        let now = std::cell::Cell::new(Instant::now());
        let pass = |ns| now.set(now.get() + Duration::from_nanos(ns));
        let (input, closure) = (
            || pass(1_000),
            |()| {
                pass(10);
                Slow(&pass)
            },
        );
        let mut side = Side::with_inputs("made slowly".to_owned(), input, closure, || now.get());
        assert_eq!(side.turn(3), Ok(10.0));
        // More than are in memory at a time.
        assert_eq!(side.turn(10_000), Ok(10.0));
    }

    #[test]
    fn commands_are_compared_and_one_that_fails_ends_the_session() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        let logs = |name: &str| shell(&format!("echo {name} >> '{}'", log.display()));
        let session = || Session::new().max_time(Duration::from_millis(100));
        let report = session().command("one", logs("one")).command("other", logs("other")).run();
        assert!(report.failed.is_none(), "{report}");
        // A round that is not measured, and as many as there was time for, each with one execution of both.
        let text = std::fs::read_to_string(&log).expect("the log");
        let executed: Vec<&str> = text.lines().collect();
        assert_eq!(executed.len(), 2 * (1 + report.pairs), "{executed:?}");
        assert!(executed.chunks(2).all(|round| round[0] != round[1]), "{executed:?}");
        let report = session().command("short", shell("true")).command("fails", shell("exit 3")).run();
        assert_eq!(report.failed.as_ref().map(|failed| failed.side.as_str()), Some("fails"));
        assert!(report.others[0].compared.is_none());
        assert_eq!(
            report.to_string(),
            "fails failed: sh ended with exit status: 3; a command must succeed to be compared"
        );
        let report = session().command("none", Command::new("/no/such/program")).run();
        assert!(report.to_string().starts_with("none failed: /no/such/program: "), "{report}");
    }

    #[test]
    fn nothing_and_one_side_have_no_comparison() {
        assert!(Session::new().max_time(Duration::ZERO).run().others.is_empty());
        let alone = Session::new().side("alone", work(1)).max_time(Duration::ZERO).run();
        assert!(alone.others.is_empty() && alone.to_string().is_empty());
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Page;
