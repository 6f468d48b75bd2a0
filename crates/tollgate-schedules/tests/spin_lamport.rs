//! Lamport's algorithm on store buffers, checked by SPIN in a separately written model (lamport.pml).
//!
//! The two programs share only the algorithm, so they must give the same verdict and the same number of states. Source of
//! the tool: Holzmann, "The SPIN Model Checker", 2003.

use std::path::Path;
use std::process::{Command, Output};

use tollgate_schedules::subject::Wish;
use tollgate_schedules::tso::{Fences, with_fences};
use tollgate_schedules::{Harm, Limits, Setting, Subject, Verdict};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lamport.pml");

/// The result of either program.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    holds: bool,
    /// All states, even if the lock does not hold.
    states: usize,
}

#[test]
#[ignore = "slow: .ci/weekly runs it"]
fn spin_gives_the_same_verdicts_and_counts_the_same_states() {
    if Command::new("spin").arg("-V").output().is_err() {
        eprintln!("skipped: spin is not installed");
        return;
    }
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no cc to compile what spin writes");
        return;
    }
    let mut questions: Vec<(Fences, Setting)> =
        every_combination().map(|fences| (fences, setting(2, 2, 2))).collect();
    let needed = Fences { x: true, y: true, ..Fences::default() };
    questions.extend([
        (Fences::default(), setting(2, 2, 1)),
        (needed, setting(2, 4, 2)),
        (needed, setting(2, 2, 1)),
        (Fences::default(), setting(3, 1, 1)),
        (needed, setting(3, 1, 2)),
        (Fences { x: false, ..needed }, setting(3, 1, 2)),
        (needed, setting(3, 1, 3)),
        (needed, setting(4, 1, 1)),
    ]);
    // The C compiler takes most of the time.
    let (some, others) = questions.split_at(questions.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| some.iter().for_each(compare));
        others.iter().for_each(compare);
    });
}

fn every_combination() -> impl Iterator<Item = Fences> {
    let bit = |n: u8, at: u8| n >> at & 1 == 1;
    (0..16).map(move |n| Fences { b_set: bit(n, 0), x: bit(n, 1), y: bit(n, 2), b_clear: bit(n, 3) })
}

fn setting(processes: u8, rounds: u8, processors: u8) -> Setting {
    Setting::new(processes, rounds, processors)
}

fn compare(&(fences, setting): &(Fences, Setting)) {
    let (own, spins) = (own_answer(fences, setting), spins_answer(fences, setting));
    eprintln!("{setting:?} {fences:?}: {own:?}");
    assert_eq!(own, spins, "{fences:?} {setting:?}");
}

fn own_answer(fences: Fences, wanted: Setting) -> Answer {
    let Setting { processes, rounds, processors, .. } = wanted;
    let subject = with_fences(fences);
    let wish = Wish {
        processes: Some(processes),
        rounds: Some(rounds),
        processors: Some(processors),
        preempted: None,
    };
    let checked = subject.check(subject.setting(wish).expect("a setting"), Limits::default());
    assert!(
        checked.complete && [Verdict::Holds, Verdict::Violated(Harm::Exclusion)].contains(&checked.verdict)
    );
    Answer { holds: checked.never(Harm::Exclusion), states: checked.states }
}

fn spins_answer(fences: Fences, setting: Setting) -> Answer {
    let Setting { processes, rounds, processors, .. } = setting;
    let numbers = [("N", processes), ("P", processors), ("ROUNDS", rounds)];
    let mut macros: Vec<String> = numbers.iter().map(|(name, number)| format!("-D{name}={number}")).collect();
    let given = [("B_SET", fences.b_set), ("X", fences.x), ("Y", fences.y), ("B_CLEAR", fences.b_clear)];
    macros.extend(given.iter().filter(|(_, is)| *is).map(|(name, _)| format!("-DFENCE_{name}")));
    // A directory for the files of both, which the next run may reuse.
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("spin-lamport{}", macros.concat()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let in_it = |program: &str| {
        let mut command = Command::new(program);
        command.current_dir(&directory);
        command
    };
    succeed(in_it("spin").arg("-a").args(&macros).arg(MODEL));
    // No partial-order reduction, so that every state is visited.
    succeed(in_it("cc").args(["-w", "-O1", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"]));
    let pan = directory.join("pan");
    // First to the first violation, then past all of them.
    let first = explore(&pan, &directory, &[]);
    let whole = explore(&pan, &directory, &["-A"]);
    assert!(!whole.contains("not completed") && figure(&whole, "errors:") == 0, "{whole}");
    let holds = figure(&first, "errors:") == 0;
    assert!(holds || first.contains("assertion violated"), "{first}");
    Answer { holds, states: states_stored(&whole) }
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().expect("started");
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

fn explore(pan: &Path, directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(pan);
    command.current_dir(directory).arg("-m1000000").args(arguments);
    let text = String::from_utf8(succeed(&mut command).stdout).expect("text");
    assert!(!text.contains("max search depth too small"), "{text}");
    text
}

/// Returns the number after a word.
fn figure(text: &str, word: &str) -> usize {
    let (_, behind) = text.split_once(word).expect(word);
    number(behind)
}

/// Parses ` 5933 states, stored`.
fn states_stored(text: &str) -> usize {
    number(text.lines().find(|line| line.trim_end().ends_with("states, stored")).expect("a number of states"))
}

/// Parses the number at the beginning of a text.
fn number(text: &str) -> usize {
    let word = text.split_whitespace().next().expect("a word");
    word.parse().expect("a number")
}
