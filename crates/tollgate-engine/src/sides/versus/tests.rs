use std::collections::BTreeMap;
use std::time::Duration;

use tollgate_model::traced::Ended;
use tollgate_model::versus::{LAYOUTS, REAL};
use tollgate_model::{Case, Fact, Measurement, own};

use super::Halt;
use super::*;

const MS: u64 = 1_000_000;

/// A place that executes nothing and notes its orders. The time of a program is the number that its name ends with, in milliseconds, with
/// a pace that changes from execution to execution.
#[derive(Default)]
struct Mock {
    /// The executed orders, in order: the first word of each, with `*` if it was traced.
    log: Vec<String>,
    /// How some programs end.
    ends: BTreeMap<&'static str, End>,
    /// How the execution ends that follows this many others.
    end_after: Option<(usize, End)>,
    cooled: usize,
    /// Whether a command that was executed just before is done in a tenth of its time.
    is_stateful: bool,
    /// Whether other tasks run, so that some executions of `a` take thirty times as long as others.
    is_busy: bool,
    /// Whether the start of a command takes between its time and four times as long.
    has_slow_starts: bool,
    /// The number of executions after which the environment is lost.
    lost_after: Option<usize>,
}

impl Executor for Mock {
    fn execute(&mut self, order: &Order, tick: &mut dyn FnMut()) -> Result<Execution, Halt> {
        tick();
        if self.lost_after == Some(self.log.len()) {
            return Err(Halt::Lost("it ended".to_owned()));
        }
        let name = order.words.first().map_or("start 1", String::as_str).to_owned();
        let is_traced = order.how != How::Timed;
        let is_after_itself = self.log.last().is_some_and(|last| last.trim_end_matches('*') == name);
        self.log.push(if is_traced { format!("{name}*") } else { name.clone() });
        let ms: u64 = name.rsplit(' ').next().and_then(|ms| ms.parse().ok()).unwrap_or(1);
        let ms = if self.is_stateful && is_after_itself { ms / 10 } else { ms };
        let is_slow = self.has_slow_starts && name.starts_with("start");
        let ms = if is_slow { ms * (1 + self.log.len() as u64 % 4) } else { ms };
        // The pace is up to a microsecond, and differs between neighbours.
        let pace = (self.log.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        let is_delayed = self.is_busy && name.starts_with('a') && pace.is_multiple_of(2);
        let ends_now = self.end_after.as_ref().filter(|(after, _)| self.log.len() == after + 1);
        let end = ends_now
            .map(|(_, end)| end)
            .or(self.ends.get(name.as_str()))
            .cloned()
            .unwrap_or(End::Ended(Ended::Exit(0)));
        Ok(Execution {
            end,
            wall_ns: (ms * MS + pace) * if is_delayed { 30 } else { 1 },
            user_ns: ms * MS + pace,
            sys_ns: 0,
            memory: Some(1 << 20),
            faults: 3,
            ticks: 0,
            switches: 0,
            traced: None,
            said: "its last words".to_owned(),
            left: 0,
        })
    }

    fn cool(&mut self, files: &[String]) -> Result<Cooled, Halt> {
        self.cooled += 1;
        Ok(Cooled {
            files: files.len() as u32,
            stayed: Vec::new(),
            certified_by: Some("mincore(2)".to_owned()),
        })
    }
}

fn order_of(name: &str) -> Order {
    Order { words: vec![name.to_owned()], ..Order::default() }
}

fn given(name: &str) -> Given {
    Given {
        name: name.to_owned(),
        order: order_of(name),
        layouts: Vec::new(),
        setup: None,
        prepare: None,
        conclude: None,
        cleanup: None,
    }
}

fn plan(commands: &[&str]) -> Plan {
    Plan {
        commands: commands.iter().map(|name| given(name)).collect(),
        places: vec!["host".to_owned(), "container".to_owned()],
        start: None,
        warmups: 1,
        rounds: Rounds::exactly(4),
        time: Duration::MAX,
        precision: 0.01,
        asked: 0.0,
        by_processor: false,
        until_decided: false,
        is_traced: false,
        is_cold: false,
        accepts: Accepts::Success,
        timeout: None,
        seed: 7,
    }
}

fn run(mock: &mut Mock, plan: &Plan) -> Result<Compared, NotCompared> {
    measure(&mut [mock], plan, &mut |_| {})
}

fn samples<'a>(found: &'a Found, name: &str) -> &'a [f64] {
    let is_asked = |one: &&Measurement| one.case == Case::plain(name);
    let measurement = found.measurements.iter().find(is_asked).expect("the case");
    measurement.outcome.measured().map_or(&[], |measured| &measured.samples)
}

#[test]
fn every_command_is_executed_once_a_round_in_an_order_of_its_own() {
    let mut mock = Mock::default();
    let compared = run(&mut mock, &plan(&["a 20", "b 21", "c 22"])).expect("compared");
    assert_eq!(mock.log.len(), 3 + 4 * 3);
    let rounds: Vec<&[String]> = mock.log[3..].chunks(3).collect();
    for round in &rounds {
        let mut names = round.to_vec();
        names.sort();
        assert_eq!(names, ["a 20", "b 21", "c 22"]);
    }
    // The warm-up is not counted.
    assert!(compared.found.iter().all(|found| samples(found, REAL).len() == 4));
    let seeds: std::collections::HashSet<Vec<String>> = (0..20)
        .map(|seed| {
            let mut mock = Mock::default();
            run(&mut mock, &Plan { seed, ..plan(&["a 20", "b 21", "c 22"]) }).expect("compared");
            mock.log[3..6].to_vec()
        })
        .collect();
    assert!(seeds.len() > 3, "{seeds:?}");
    // The first command of a round predicts neither that of the next round, nor that of the one after.
    let mut mock = Mock::default();
    let most = Plan { rounds: Rounds::exactly(400), precision: 0.0, ..plan(&["a 20", "b 21"]) };
    run(&mut mock, &most).expect("compared");
    let first: Vec<bool> = mock.log[2..].chunks(2).map(|round| round[0] == "a 20").collect();
    assert_eq!(first.len(), 400);
    for apart in [1, 2] {
        let equal = first.iter().zip(&first[apart..]).filter(|(one, later)| one == later).count();
        assert!((150..250).contains(&equal), "{apart}: {equal}");
    }
}

#[test]
fn executions_of_a_command_are_of_its_layouts_in_turn() {
    let mut mock = Mock::default();
    let mut plan = Plan { rounds: Rounds::exactly(7), warmups: 0, ..plan(&["a 20", "b 21"]) };
    for command in &mut plan.commands {
        command.layouts =
            ["one", "two", "three"].map(|of| order_of(&format!("{} {of} 20", command.name))).into();
    }
    let compared = run(&mut mock, &plan).expect("compared");
    for name in ["a", "b"] {
        let own = mock.log.iter().filter(|executed| executed.starts_with(name));
        let own: Vec<&str> = own.filter_map(|executed| executed.split(' ').nth(2)).collect();
        assert_eq!(own, ["one", "two", "three", "one", "two", "three", "one"], "{name}");
    }
    assert!(
        compared.facts.contains(&(LAYOUTS.to_owned(), Fact::known(3_i64, "--layouts"))),
        "{:?}",
        compared.facts
    );
}

#[test]
fn it_ends_when_intervals_are_narrow_or_at_the_most_or_after_the_time() {
    let of = |plan: &Plan| {
        let mut mock = Mock::default();
        let compared = run(&mut mock, plan).expect("compared");
        samples(&compared.found[0], REAL).len()
    };
    let rounds = Rounds { least: 10, most: 100 };
    let usual = plan(&["a 20", "b 30"]);
    // The intervals of the mock's pace are narrow soon.
    let is_soon = |rounds: usize| (14..30).contains(&rounds);
    assert!(is_soon(of(&Plan { rounds, ..usual.clone() })));
    assert_eq!(of(&Plan { rounds, precision: 0.0, ..usual.clone() }), 100);
    assert_eq!(of(&Plan { rounds, precision: 0.0, time: Duration::ZERO, ..usual.clone() }), 10);
    assert_eq!(of(&Plan { rounds: Rounds { least: 30, most: 100 }, ..usual.clone() }), 30);
    // Within the threshold and not decided, so it continues.
    let close = Plan { rounds, precision: 0.5, until_decided: true, ..plan(&["a 20", "b 20"]) };
    assert!(is_soon(of(&close)), "equal commands are decided as the same");
    assert!(is_soon(of(&Plan { rounds, ..plan(&["a 20"]) })), "a command alone");
}

#[test]
fn what_is_executed_around_a_command_has_its_place() {
    let around = Given {
        setup: Some(order_of("setup")),
        prepare: Some(order_of("prepare")),
        conclude: Some(order_of("conclude")),
        cleanup: Some(order_of("cleanup")),
        ..given("a 20")
    };
    let around_both = Plan { rounds: Rounds::exactly(1), commands: vec![around.clone()], ..plan(&[]) };
    let mut mock = Mock::default();
    run(&mut mock, &around_both).expect("compared");
    let one = ["prepare", "a 20", "conclude"];
    assert_eq!(mock.log, [&["setup"][..], &one, &one, &["cleanup"]].concat());
    // An execution that fails ends the comparison; the clean-up follows.
    for (fails, before) in [("setup", 1), ("prepare", 2), ("a 20", 3), ("conclude", 4)] {
        let mut mock = Mock::default();
        mock.ends.insert(fails, End::Ended(Ended::Exit(3)));
        let error = run(&mut mock, &around_both).expect_err("it failed");
        assert_eq!(mock.log.len(), before + 1, "{:?}", mock.log);
        assert_eq!(mock.log.last().map(String::as_str), Some("cleanup"));
        let NotCompared::Failed { sentence, said } = error else { panic!("{error}") };
        assert!(sentence.ends_with("ended with exit status 3"), "{sentence}");
        assert_eq!(said, "its last words");
    }
}

#[test]
fn ends_that_are_accepted_are_counted_and_others_are_named() {
    let ends = |end: End| BTreeMap::from([("b 21", end)]);
    let with = |end: &End, accepts: &Accepts| {
        let mut mock = Mock { ends: ends(end.clone()), ..Mock::default() };
        run(&mut mock, &Plan { accepts: accepts.clone(), ..plan(&["a 20", "b 21"]) })
    };
    let failed = with(&End::Ended(Ended::Exit(2)), &Accepts::All).expect("accepted").found[1].failed.clone();
    assert_eq!(failed.len(), 4);
    assert_eq!((failed[3].execution, failed[3].ended), (3, Ended::Exit(2)));
    let only = Accepts::Statuses(vec![2]);
    assert!(with(&End::Ended(Ended::Exit(2)), &only).is_ok());
    assert!(with(&End::Ended(Ended::Signal(9)), &Accepts::All).is_ok());
    for (end, accepts, said) in [
        (End::Ended(Ended::Exit(1)), &only, "b 21 ended with exit status 1"),
        (End::Ended(Ended::Signal(11)), &only, "b 21 was killed by SIGSEGV"),
        (End::KilledGroup(15), &Accepts::Success, "b 21 killed its process group by SIGTERM"),
        (
            End::NotStarted("b: no such program".to_owned()),
            &Accepts::All,
            "b 21 was not started: b: no such program",
        ),
        (End::OutOfTime, &Accepts::All, "b 21 was ended: it took longer than"),
    ] {
        let error = with(&end, accepts).expect_err("not accepted").to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn a_later_execution_that_fails_is_numbered() {
    let fails = |after: usize, rounds: Rounds| {
        let end_after = Some((after, End::Ended(Ended::Exit(1))));
        let plan = Plan { rounds, ..plan(&["a 20"]) };
        run(&mut Mock { end_after, ..Mock::default() }, &plan).expect_err("it failed").to_string()
    };
    // A warm-up precedes them.
    let said = |sentence: &str, after, rounds| {
        let error = fails(after, rounds);
        assert_eq!(error.lines().next(), Some(sentence), "{error}");
    };
    said("a 20 ended with exit status 1 in its execution 5 of 8", 5, Rounds::exactly(8));
    said("a 20 ended with exit status 1 in its execution 5", 5, Rounds { least: 8, most: 9 });
    said("a 20 ended with exit status 1", 1, Rounds::exactly(8));
    said("a 20 ended with exit status 1", 0, Rounds::exactly(8));
}

#[test]
fn short_commands_are_corrected_for_their_start_and_long_ones_are_not() {
    let start = Some(order_of("start 2"));
    let after = |rounds: u32, has_slow_starts: bool, commands: &[&str]| {
        let mut mock = Mock { has_slow_starts, ..Mock::default() };
        let rounds = Rounds::exactly(rounds);
        run(&mut mock, &Plan { start: start.clone(), rounds, ..plan(commands) }).expect("compared")
    };
    let of = |commands: &[&str]| after(20, false, commands);
    let short = of(&["a 6", "b 40"]);
    assert!(short.found.iter().all(|found| found.is_corrected));
    let median =
        |found: &Found| tollgate_model::stats::median(samples(found, REAL)).expect("samples") / MS as f64;
    assert!((median(&short.found[0]) - 4.0).abs() < 0.01 && (median(&short.found[1]) - 38.0).abs() < 0.01);
    assert_eq!(samples(&short.found[0], own::START).len(), 20);
    let long = of(&["a 8", "b 40"]);
    assert!(long.found.iter().all(|found| !found.is_corrected));
    assert!((median(&long.found[0]) - 8.0).abs() < 0.01);
    assert!(long.found[0].measurements.iter().all(|one| one.case != Case::plain(own::START)));
    // A start that other work prolongs says nothing about the commands, and neither do a few starts.
    let note = |found: &Found| {
        let real = found.measurements.iter().find(|one| one.case == Case::plain(REAL)).expect("the case");
        real.outcome.measured().map(|measured| measured.notes.concat()).unwrap_or_default()
    };
    let starts = |compared: &Compared| samples(&compared.found[1], own::START).len();
    for (compared, number, said) in [
        (after(20, true, &["a 6", "b 40"]), 20, "is wide compared with the shortest command"),
        (after(4, false, &["a 6", "b 40"]), 4, "4 executions of it are too few"),
    ] {
        assert!(compared.found.iter().all(|found| !found.is_corrected));
        assert_eq!((median(&compared.found[0]).round(), starts(&compared)), (6.0, number));
        let note = note(&compared.found[0]);
        assert!(note.contains("is not subtracted") && note.contains(said), "{note}");
    }
}

#[test]
fn a_place_that_is_lost_takes_its_pairs_with_it_and_the_others_go_on() {
    let (mut one, mut other) = (Mock::default(), Mock { lost_after: Some(3), ..Mock::default() });
    let compared = measure(&mut [&mut one, &mut other], &plan(&["a 20"]), &mut |_| {}).expect("compared");
    assert_eq!(compared.lost, [None, Some("it ended".to_owned())]);
    assert_eq!(samples(&compared.found[0], REAL).len(), 4);
    let mut alone = Mock { lost_after: Some(0), ..Mock::default() };
    let error = run(&mut alone, &plan(&["a 20"])).expect_err("nothing is left").to_string();
    assert_eq!(error, "nothing was measured: it ended");
}

#[test]
fn cold_needs_to_know_the_files() {
    let mut mock = Mock::default();
    let error =
        run(&mut mock, &Plan { is_cold: true, ..plan(&["a 20"]) }).expect_err("not traced").to_string();
    assert_eq!(error, "a 20: --cold needs the list of files that it reads, but it cannot be traced here");
    assert_eq!(mock.cooled, 0);
}

#[test]
fn a_later_execution_may_take_twenty_times_the_slowest_and_some() {
    let plan = plan(&["a 20"]);
    assert_eq!(plan.patience(None), None);
    assert_eq!(plan.patience(Some(Duration::from_secs(2))), Some(Duration::from_secs(70)));
    let given = Plan { timeout: Some(Duration::from_secs(1)), ..plan };
    assert_eq!(given.patience(None), Some(Duration::from_secs(1)));
}

#[test]
fn commands_that_find_what_another_left_are_executed_in_turn() {
    let checkouts = Plan { rounds: Rounds { least: 1, most: 40 }, precision: 0.0, ..plan(&["a 20", "b 30"]) };
    let order = |compared: &Compared| {
        let is_order = |(name, _): &&(String, Fact)| name == "run.order";
        compared.facts.iter().find(is_order).expect("the order").1.clone()
    };
    let random = Fact::known("random", "the schedule");
    let mut mock = Mock { is_stateful: true, ..Mock::default() };
    let compared = run(&mut mock, &checkouts).expect("compared");
    assert_eq!(order(&compared), Fact::known("in turn", "the schedule"));
    for (found, ms) in compared.found.iter().zip([20.0, 30.0]) {
        let times = samples(found, REAL);
        assert_eq!(times.len(), 40);
        assert!(times.iter().all(|time| (time / MS as f64 - ms).abs() < 0.01), "{times:?}");
    }
    let mut mock = Mock::default();
    let compared = run(&mut mock, &checkouts).expect("compared");
    assert_eq!(order(&compared), random);
    // With a preparation, the state does not depend on the previous command.
    let prepare = |given: &Given| Given { prepare: Some(order_of("prepare")), ..given.clone() };
    let prepared = Plan { commands: checkouts.commands.iter().map(prepare).collect(), ..checkouts };
    let mut mock = Mock { is_stateful: true, ..Mock::default() };
    let compared = run(&mut mock, &prepared).expect("compared");
    assert_eq!(order(&compared), random);
}

#[test]
fn processor_times_end_a_comparison_that_real_times_would_not() {
    let rounds = |by_processor: bool| {
        let rounds = Rounds { least: 1, most: 60 };
        let plan = Plan { rounds, by_processor, until_decided: true, ..plan(&["a 20", "b 200"]) };
        let mut mock = Mock { is_busy: true, ..Mock::default() };
        samples(&run(&mut mock, &plan).expect("compared").found[1], REAL).len()
    };
    assert_eq!((rounds(true), rounds(false)), (tollgate_alternation::LEAST_PAIRS, 60));
}

/// Records the executed orders and the results, over lengths, lost places, states, starts and failures.
#[test]
fn orders_and_documents_are_as_recorded() {
    crate::recorded::hold("versus", |seed| {
        let rounds = Rounds { least: 3, most: 60 };
        let usual = Plan { seed, rounds, ..plan(&["a 20", "b 30", "c 20"]) };
        let traced = Plan { is_traced: true, start: Some(order_of("start 2")), ..plan(&["a 4", "b 6"]) };
        let plans = [
            Plan { rounds: Rounds::exactly(4), ..usual.clone() },
            Plan { until_decided: true, ..usual.clone() },
            Plan { commands: vec![given("a 20")], ..usual.clone() },
            Plan { seed, rounds: Rounds { least: 1, most: 20 }, time: Duration::ZERO, ..traced.clone() },
            Plan { seed, rounds, ..traced },
            Plan { by_processor: true, precision: 0.0, ..usual },
        ];
        let lost_after = |after: u64| Mock { lost_after: Some(after as usize), ..Mock::default() };
        let mut recorded = String::new();
        let mut record = |mocks: &mut [&mut Mock], plan: &Plan| {
            let compared = {
                let mut places: Vec<&mut dyn Executor> =
                    mocks.iter_mut().map(|mock| -> &mut dyn Executor { &mut **mock }).collect();
                measure(&mut places, plan, &mut |_| {})
            };
            let orders = mocks.iter().map(|mock| mock.log.join(", ") + "\n").collect::<String>();
            recorded += &match compared {
                Ok(Compared { found, facts, lost, interrupted }) => {
                    let documents = found.iter().map(|found| {
                        let document = serde_json::to_string(&found.measurements).expect("a document");
                        format!("{document} {} {:?} {:?}\n", found.is_corrected, found.failed, found.cold)
                    });
                    let documents = documents.collect::<String>();
                    format!("{orders}{documents}{facts:?} {lost:?} {interrupted:?}\n")
                }
                Err(why) => format!("{orders}{why}\n"),
            };
        };
        for plan in &plans {
            record(&mut [&mut Mock::default()], plan);
            record(&mut [&mut Mock { is_stateful: true, ..Mock::default() }], plan);
            record(&mut [&mut Mock::default(), &mut lost_after(20 + seed)], plan);
        }
        record(&mut [&mut lost_after(9)], &plans[0]);
        let ends = Some((11, End::Ended(Ended::Exit(1))));
        record(&mut [&mut Mock { end_after: ends, ..Mock::default() }], &plans[0]);
        recorded
    });
}
