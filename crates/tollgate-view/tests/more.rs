//! Counts of which a command has more than the first, or than a budget allows.

use crate::{commands, versus_counted};
use commands::{Side, runs, side};
use tollgate_model::versus::{FAULTS, INSTRUCTIONS, KERNEL_INSTRUCTIONS, USER_INSTRUCTIONS};
use tollgate_model::{Case, Measured, Run, own};
use tollgate_view::compare::condition::Answer;
use tollgate_view::session::Session;
use tollgate_view::versus::more::{Asked, Budget, more};
use versus_counted::counted;

const MORE: Asked = Asked { is_more: true, budgets: &[], is_traced: true, threshold: 0.0 };

fn measured<'r>(run: &'r mut Run, case: &str) -> &'r mut Measured {
    let found = run.measurements.iter_mut().find(|one| one.case == Case::plain(case)).expect("the case");
    match &mut found.outcome {
        tollgate_model::Outcome::Measured(measured) => measured,
        other => unreachable!("{other:?}"),
    }
}

/// Two commands with these page faults in each execution, and these calls of unlink(2) in each traced one.
fn of(faults: [&[f64]; 2], unlinks: [&[u64]; 2]) -> Vec<Run> {
    let mut all = runs(&[side("a", 20.0), side("b", 20.0)]);
    for (run, (faults, unlinks)) in all.iter_mut().zip(faults.iter().zip(unlinks)) {
        measured(run, FAULTS).samples = faults.to_vec();
        let traced = &mut measured(run, own::TRACED).traced;
        traced.truncate(unlinks.len());
        for (traced, unlinks) in traced.iter_mut().zip(unlinks) {
            traced
                .calls
                .iter_mut()
                .filter(|call| call.name == "unlink")
                .for_each(|call| call.count = *unlinks);
        }
    }
    all
}

fn answer(runs: &[Run], asked: Asked) -> (Answer, Vec<String>) {
    more(&Session::of(runs).expect("a session"), asked)
}

fn met(sentence: &str) -> (Answer, Vec<String>) {
    (Answer::Met(sentence.to_owned()), Vec::new())
}

const NOTHING: (Answer, Vec<String>) = (Answer::NotMet, Vec::new());
const SAME: [&[f64]; 2] = [&[99.0; 40]; 2];
const CALLS: [&[u64]; 2] = [&[100; 3]; 2];

#[test]
fn one_call_or_fault_more_is_more_where_counts_repeat() {
    assert_eq!(answer(&of(SAME, CALLS), MORE), NOTHING);
    assert_eq!(answer(&of(SAME, [&[100; 3], &[99; 3]]), MORE), NOTHING);
    assert_eq!(
        answer(&of(SAME, [&[100; 3], &[101; 3]]), MORE),
        met("B does more than A: calls 621 (A 620) and unlink 101 (A 100)")
    );
    assert_eq!(
        answer(&of([&[99.0; 3], &[100.0; 3]], CALLS), MORE),
        met("B does more than A: faults 100 (A 99)")
    );
    // A difference of a percent is not one of two.
    let asked = Asked { threshold: 0.02, ..MORE };
    assert_eq!(answer(&of([&[99.0; 3], &[100.0; 3]], CALLS), asked), NOTHING);
    // A call that the base never makes.
    let mut runs = of(SAME, CALLS);
    measured(&mut runs[0], own::TRACED)
        .traced
        .iter_mut()
        .for_each(|it| it.calls.retain(|call| call.name != "unlink"));
    assert_eq!(answer(&runs, MORE), met("B does more than A: calls 620 (A 520) and unlink 100 (A 0)"));
}

#[test]
fn spreads_that_overlap_are_no_difference_and_few_executions_of_counts_that_vary_decide_nothing() {
    let many = [[90.0, 95.0, 99.0], [95.0, 99.0, 120.0]].map(|counts| counts.repeat(10));
    let overlapping = of([&many[0], &many[1]], CALLS);
    let (found, notes) = answer(&overlapping, MORE);
    assert_eq!(found, Answer::NotMet);
    assert_eq!(notes, ["faults vary: 90 to 99 in A, 95 to 120 in B; that is too little apart to be more"]);
    // If commands are equal, three counts lie above three others once in 20 comparisons, seven above seven once in 3,432.
    let (found, notes) = answer(&of([&[90.0, 92.0, 95.0], &[96.0, 97.0, 99.0]], CALLS), MORE);
    assert_eq!((found, notes.len()), (Answer::NotMet, 1), "{notes:?}");
    let apart = |number: usize| -> Vec<Run> {
        let below: Vec<f64> = (0..number).map(|at| 90.0 + at as f64).collect();
        let above: Vec<f64> = below.iter().map(|count| count + 30.0).collect();
        of([&below, &above], CALLS)
    };
    let (found, _) = answer(&apart(3), MORE);
    let few = "undecided: B may do more than A, in too few executions to say: faults 120 to 122 (A 90 to 92); --time or --runs gives more";
    assert_eq!(found, Answer::Open(few.to_owned()));
    assert_eq!(answer(&apart(7), MORE), met("B does more than A: faults 120 to 126 (A 90 to 96)"));
    // Two executions do not show that a count repeats.
    assert!(matches!(answer(&of(SAME, [&[100; 2], &[101; 2]]), MORE).0, Answer::Open(_)));
}

#[test]
fn a_budget_is_the_greatest_number_that_each_execution_may_have() {
    let budget = |of: &str, most| Budget { of: of.to_owned(), most };
    let within = [budget("calls", 620), budget("unlink", 100), budget("faults", 99), budget("fsync", 0)];
    let asked = |budgets| Asked { is_more: false, budgets, ..MORE };
    assert_eq!(answer(&of(SAME, CALLS), asked(&within)), NOTHING);
    let over = [budget("unlink", 99), budget("faults", 98), budget("read", 1_000)];
    assert_eq!(
        answer(&of(SAME, CALLS), asked(&over)),
        met("B is over budget: unlink 100 (99 allowed) and faults 99 (98 allowed)")
    );
    // The base is not judged, unless it is alone.
    assert_eq!(answer(&of([&[500.0; 3], &[98.0; 3]], CALLS), asked(&over[1..])), NOTHING);
    assert_eq!(
        answer(&runs(&[side("a", 20.0)]), asked(&over[..1])),
        met("A is over budget: unlink 100 (99 allowed)")
    );
    let (found, notes) = answer(&of([&[98.0; 3], &[98.0, 1_500.0, 98.0]], CALLS), asked(&over[1..]));
    assert_eq!(found, Answer::NotMet);
    assert_eq!(notes, ["faults of B vary, 98 to 1,500: not all above the budget of 98"]);
}

#[test]
fn calls_that_were_not_counted_leave_it_undecided() {
    let untraced = [side("a", 20.0), Side { untraced: Some("no tracer."), ..side("b", 20.0) }];
    let mut runs = runs(&untraced);
    runs.iter_mut().for_each(|run| measured(run, FAULTS).samples = vec![99.0; 40]);
    let open = Answer::Open("undecided: the calls of B are not counted: no tracer".to_owned());
    assert_eq!(answer(&runs, MORE).0, open);
    // Faults alone, if no trace is asked for.
    assert_eq!(answer(&runs, Asked { is_traced: false, ..MORE }), NOTHING);
    let budgets = [Budget { of: "unlink".to_owned(), most: 1 }];
    let found = answer(&runs, Asked { budgets: &budgets, is_more: false, ..MORE }).0;
    assert_eq!(found, Answer::Open("undecided: unlink of B are not counted: no tracer".to_owned()));
}

#[test]
fn instructions_of_guests_are_compared_by_their_verdicts() {
    assert_eq!(answer(&counted(5_000.0, 0.0), MORE), NOTHING);
    assert_eq!(answer(&counted(0.0, 1.0), MORE), met("B does more than A: user 481,295 (A 481,294)"));
    assert_eq!(
        answer(&counted(60_000.0, 0.0), MORE),
        met("B does more than A: instructions 3,424,000 (A 3,364,000) and kernel 2,942,706 (A 2,882,706)")
    );
    // Executions that vary leave the sum open, which decides if its parts are not known.
    let mut parts = counted(0.0, 0.0);
    parts.iter_mut().zip([3.0e6, 3.2e6]).for_each(|(run, least)| {
        measured(run, INSTRUCTIONS).samples = vec![least, least + 1e5];
        run.measurements
            .retain(|one| ![USER_INSTRUCTIONS, KERNEL_INSTRUCTIONS].contains(&one.case.benchmark.as_str()));
    });
    let open = Answer::Open("undecided: instructions of B are inconclusive".to_owned());
    assert_eq!(answer(&parts, MORE).0, open);
    let budgets =
        [Budget { of: "user".to_owned(), most: 481_293 }, Budget { of: "calls".to_owned(), most: 156 }];
    assert_eq!(
        answer(&counted(0.0, 0.0), Asked { budgets: &budgets, ..MORE }),
        met("B is over budget: user 481,294 (481,293 allowed)")
    );
}
