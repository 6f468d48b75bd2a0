//! The programs on the MIPS machine: the published verdicts, and a mutant for each detail that the last program depends on.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at the first surprise")]

use tollgate_schedules::subject::{Group, Rival, Unfit, Wish};
use tollgate_schedules::{Checked, Counterexample, Harm, Limits, Setting, Step, Subject, Verdict, mips};

fn subject(name: &str) -> &'static dyn Subject {
    *mips::subjects().iter().find(|subject| subject.name() == name).unwrap()
}

fn check(name: &str, wish: Wish) -> Checked {
    let subject = subject(name);
    let checked = subject.check(subject.setting(wish).unwrap(), Limits::default());
    assert!(checked.complete, "{name}");
    checked
}

fn with(processes: u8, rounds: u8) -> Wish {
    Wish { processes: Some(processes), rounds: Some(rounds), ..Wish::default() }
}

fn on(processors: u8) -> Wish {
    Wish { processors: Some(processors), ..Wish::default() }
}

fn line(step: &Step) -> String {
    let who = step.process.map_or(' ', Step::name);
    format!("{who} {} {}  {}", step.place, step.what, step.changes.join(", ")).trim_end().to_owned()
}

fn lines(counterexample: &Counterexample) -> Vec<String> {
    counterexample.steps.iter().map(line).collect()
}

#[test]
fn every_verdict_is_the_one_that_was_published() {
    let names: Vec<_> = mips::subjects().iter().map(|subject| subject.name()).collect();
    let published = "figure-2 figure-4 figure-5 figure-8 figure-9 figure-11 di-ei system-call several-locks";
    let mutants = "k1-after-load no-trap k1-not-set no-refill-k1 no-handler handler-resumes-at-store \
                   argument-spoiled two-processors";
    let expected = published.split(' ').map(str::to_owned);
    let expected = expected.chain(mutants.split(' ').map(|mutant| format!("figure-11-{mutant}")));
    assert_eq!(names, expected.collect::<Vec<_>>());
    for subject in mips::subjects() {
        for (processes, rounds) in [(2, 1), (2, 2), (3, 1)] {
            let checked = check(subject.name(), with(processes, rounds));
            assert_eq!(Some(checked.verdict), subject.expected(), "{} {processes} {rounds}", subject.name());
            assert_eq!(checked.verdict == Verdict::Holds, checked.counterexamples.is_empty());
        }
        assert_eq!(subject.group() == Group::Mutant, subject.name().starts_with("figure-11-"));
    }
}

/// The number of states changes with every change of the model.
#[test]
fn states_are_counted() {
    let states = |name, processes, rounds| check(name, with(processes, rounds)).states;
    assert_eq!(states("figure-2", 2, 1), 275);
    assert_eq!(states("figure-4", 2, 1), 461);
    assert_eq!(states("figure-8", 2, 1), 2843);
    assert_eq!(states("figure-9", 2, 1), 1127);
    assert_eq!([1, 2, 3].map(|processes| states("figure-11", processes, 1)), [28, 823, 19_774]);
    assert_eq!(states("di-ei", 2, 1), 185);
    assert_eq!(states("system-call", 2, 1), 79);
}

#[test]
fn alone_nothing_goes_wrong_but_for_what_halts_by_itself() {
    for subject in mips::subjects() {
        let alone = check(subject.name(), with(1, 2)).verdict;
        match subject.expected() {
            Some(Verdict::Violated(Harm::Exclusion)) => {
                assert_eq!(alone, Verdict::Holds, "{}", subject.name())
            }
            expected => assert_eq!(Some(alone), expected, "{}", subject.name()),
        }
    }
}

#[test]
fn figure_8_loses_the_lock_and_never_lets_two_in() {
    for wish in [with(2, 1), with(3, 1), with(2, 3)] {
        let checked = check("figure-8", wish);
        assert!(checked.never(Harm::Exclusion) && checked.never(Harm::Crash));
        assert!(!checked.never(Harm::LostLock) && !checked.never(Harm::Stuck));
    }
}

#[test]
fn the_schedule_of_figure_3() {
    let counterexample = &check("figure-2", Wish::default()).counterexamples[0];
    let expected = "\
A caller calls tst  a0 = 0x10000000
A tst lw v0,(a0)  v0 = 0
A tst+0x4 li t0,1  t0 = 1
A tst+0x8 bnez v0,tst+0x14
A tst+0xc nop
  kernel timer interrupt in A, EPC = tst+0x10
  kernel B goes on
B caller calls tst  a0 = 0x10000000
B tst lw v0,(a0)  v0 = 0
B tst+0x4 li t0,1  t0 = 1
B tst+0x8 bnez v0,tst+0x14
B tst+0xc nop
B tst+0x10 sw t0,(a0)  lock = 1
B tst+0x14 jr ra
B tst+0x18 nop
B caller tst returned 0: has the lock
  kernel timer interrupt in B
  kernel A goes on at tst+0x10  k1 = 0x00200000
A tst+0x10 sw t0,(a0)  lock = 1
A tst+0x14 jr ra
A tst+0x18 nop
A caller tst returned 0: has the lock";
    assert_eq!(lines(counterexample).join("\n"), expected);
    assert_eq!(
        counterexample.so,
        "A loaded 0 at tst (lw v0,(a0)) before B stored 1 at tst+0x10 (sw t0,(a0)), and then stored 1 itself at \
         tst+0x10 (sw t0,(a0)): A and B both hold the lock."
    );
}

/// Figure 10: A is preempted before its store, the store faults, and tst restarts.
#[test]
fn the_schedule_of_figure_10() {
    let counterexample = subject("figure-11").play(7, Rival::GivesBack).unwrap();
    let lines = lines(&counterexample);
    let resumed =
        lines.iter().position(|line| line == "  kernel A goes on at tst+0x1c  k1 = 0x00200000").unwrap();
    let expected = [
        "A tst+0x1c sw t0,(k1)  fault",
        "  kernel SEGV: write to 0x00200000, EPC = tst+0x1c",
        "  kernel handler: A goes on at tst  k1 = 0x00200000",
        "A tst move k1,a0  k1 = 0x10000000",
        "A tst+0x4 lw v0,(a0)  v0 = 0",
    ];
    assert_eq!(lines[resumed + 1..resumed + 6], expected);
    assert_eq!(lines.last().unwrap(), "A caller is done");
    assert_eq!((counterexample.harm, counterexample.back_to), (None, None));
}

#[test]
fn an_interrupt_in_a_delay_slot_goes_back_to_the_branch() {
    let lines = lines(&subject("figure-11").play(6, Rival::GivesBack).unwrap());
    let interrupted = "  kernel timer interrupt in A, EPC = tst+0x14, the branch";
    assert!(lines.iter().any(|line| line == interrupted), "{lines:#?}");
    let resumed =
        lines.iter().position(|line| line == "  kernel A goes on at tst+0x14  k1 = 0x00200000").unwrap();
    assert_eq!(lines[resumed + 1], "A tst+0x14 bne k1,a0,tst  taken");
}

#[test]
fn mutants_are_caught_for_the_right_reason() {
    let counterexample =
        |mutant: &str| check(&format!("figure-11-{mutant}"), Wish::default()).counterexamples.remove(0);
    let has = |mutant: &str, wanted: &[&str]| {
        let lines = lines(&counterexample(mutant));
        let mut rest = lines.iter();
        for wanted in wanted {
            assert!(rest.any(|line| line == wanted), "{mutant}: {wanted}\n{lines:#?}");
        }
    };
    has(
        "k1-after-load",
        &[
            "A tst lw v0,(a0)  v0 = 0",
            "  kernel timer interrupt in A, EPC = tst+0x4",
            "  kernel A goes on at tst+0x4  k1 = 0x00200000",
            "A tst+0x4 move k1,a0  k1 = 0x10000000",
            "A tst+0x1c sw t0,(k1)  lock = 1",
        ],
    );
    has(
        "no-trap",
        &[
            "  kernel timer interrupt in A, EPC = tst+0x1c",
            "  kernel A goes on at tst+0x1c  k1 = 0x00200000",
            "A tst+0x1c sw t0,(a0)  lock = 1",
        ],
    );
    has(
        "k1-not-set",
        &["  kernel A goes on at tst+0x1c  k1 still 0x10000000", "A tst+0x1c sw t0,(k1)  lock = 1"],
    );
    has(
        "no-refill-k1",
        &[
            "  kernel TLB refill in A, EPC = tst+0x1c",
            "B tst+0x1c sw t0,(k1)  lock = 1",
            "  kernel A goes on at tst+0x1c  k1 still 0x10000000",
            "A tst+0x1c sw t0,(k1)  lock = 1",
        ],
    );
    has("no-handler", &["  kernel SEGV: write to 0x00200000, EPC = tst+0x1c", "  kernel A is killed"]);
    has(
        "argument-spoiled",
        &["A tst+0x18 li a0,1  a0 = 1", "A tst+0x4 lw v0,(a0)  fault", "  kernel A is killed"],
    );
    let livelock = counterexample("handler-resumes-at-store");
    assert_eq!(livelock.back_to, Some(10));
    assert_eq!(
        lines(&livelock)[10..],
        [
            "A tst+0x1c sw t0,(k1)  fault",
            "  kernel SEGV: write to 0x00200000, EPC = tst+0x1c",
            "  kernel handler: A goes on at tst+0x1c  k1 = 0x00200000"
        ]
    );
    // No process was interrupted.
    let beside = counterexample("two-processors");
    assert!(beside.steps.iter().all(|step| step.process.is_some()));
    assert!((0..2).all(|processor| beside.steps.iter().any(|step| step.processor == processor)));
}

#[test]
fn on_several_processors_only_links_and_the_kernel_hold() {
    for name in ["figure-4", "system-call"] {
        assert_eq!(check(name, on(2)).verdict, Verdict::Holds, "{name}");
        assert_eq!(check(name, Wish { processes: Some(3), ..on(3) }).verdict, Verdict::Holds, "{name}");
    }
    for name in ["figure-2", "figure-8", "figure-9", "figure-11", "di-ei", "several-locks"] {
        assert_eq!(check(name, on(2)).verdict, Verdict::Violated(Harm::Exclusion), "{name}");
    }
}

/// Question 20 of the paper. Without preemption figure 2 holds without protection. So do all programs with correct or
/// omitted protection, except for interrupts that return to the same process.
#[test]
fn without_preemption_in_user_mode_what_protects_nothing_holds() {
    let without = Wish { preempted: Some(false), ..Wish::default() };
    let fails = |name: &str| match name {
        "figure-5" | "figure-11-handler-resumes-at-store" => Some(Harm::Stuck),
        "figure-8" => Some(Harm::LostLock),
        "figure-11-no-handler" | "figure-11-argument-spoiled" => Some(Harm::Crash),
        "figure-11-two-processors" => Some(Harm::Exclusion),
        _ => None,
    };
    for subject in mips::subjects() {
        let name = subject.name();
        for processes in [2, 3] {
            let checked = check(name, Wish { processes: Some(processes), ..without });
            let expected = fails(name).map_or(Verdict::Holds, Verdict::Violated);
            assert_eq!(checked.verdict, expected, "{name}, {processes} processes");
        }
    }
    assert!(check("figure-2", without).states < check("figure-2", Wish::default()).states);
    // Several processors run processes at the same time.
    let two = Wish { processors: Some(2), ..without };
    assert_eq!(check("figure-2", two).verdict, Verdict::Violated(Harm::Exclusion));
}

#[test]
fn the_work_of_a_lock_is_counted_for_each_preemption() {
    let preempted = |name: &str| {
        let cost = subject(name).cost().unwrap();
        assert_eq!(cost.preempted.len(), subject(name).points(), "{name}");
        (cost.alone.instructions, cost.preempted.iter().map(|work| work.entries).collect::<Vec<_>>())
    };
    // Figure 9 faults whenever it is preempted between the first instruction and the store; the test of figure 11 avoids
    // all but one of these faults.
    assert_eq!(preempted("figure-9"), (9, vec![0, 1, 1, 1, 1, 1, 1, 0, 0]));
    assert_eq!(preempted("figure-11"), (10, vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0]));
    assert_eq!(preempted("system-call"), (3, vec![1, 1, 1]));
    // A program that halts the machine never takes the lock.
    assert!(subject("figure-5").cost().is_none());
}

#[test]
fn lines_are_short() {
    for subject in mips::subjects() {
        let checked = check(subject.name(), Wish::default());
        let played = (0..subject.points()).map(|point| subject.play(point, Rival::GivesBack).unwrap());
        for counterexample in checked.counterexamples.into_iter().chain(played) {
            assert!(counterexample.back_to.is_none_or(|step| step < counterexample.steps.len()));
            for step in &counterexample.steps {
                let width = step.place.len() + step.what.len() + step.changes.join(", ").len();
                assert!(width <= 66, "{}: {step:?}", subject.name());
            }
        }
    }
}

#[test]
fn the_published_words() {
    let words = [
        "0080d821", "8c820000", "24080001", "14400004", "00000000", "1764fffa", "00000000", "af680000",
        "03e00008", "00000000",
    ];
    let listing = subject("figure-11").listing();
    let listed: Vec<_> = listing.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(listed, words);
    assert_eq!(listing.lines().nth(5), Some("tst+0x14 1764fffa  bne k1,a0,tst"));
}

#[test]
fn a_setting_that_the_machine_has_not_is_refused() {
    let subject = subject("figure-11");
    let two = Setting::new(2, 1, 1);
    assert_eq!(subject.setting(Wish::default()), Ok(two));
    for wish in [with(0, 1), with(5, 1), with(2, 0), with(2, 5), on(0), on(4)] {
        assert!(matches!(subject.setting(wish), Err(Unfit::OutOfRange { .. })), "{wish:?}");
    }
    let beside = self::subject("figure-11-two-processors");
    assert_eq!(beside.setting(Wish::default()), Ok(Setting { processors: 2, ..two }));
    assert!(matches!(beside.play(0, Rival::GivesBack), Err(Unfit::NotPlayed { .. })));
    assert!(matches!(
        subject.play(10, Rival::GivesBack),
        Err(Unfit::NoSuchPoint { points: 10, asked: 10, .. })
    ));
}

#[test]
fn a_search_that_runs_out_says_so() {
    let subject = subject("figure-11");
    let setting = subject.setting(with(3, 2)).unwrap();
    let few = subject.check(setting, Limits { states: 1000, ..Limits::default() });
    assert!(matches!(few.verdict, Verdict::NotDecided(_)) && !few.complete && few.states == 1000);
    assert!(!few.never(Harm::Exclusion));
}
