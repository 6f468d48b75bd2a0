//! Published experiments: none of their figures and claims is absent, everything that they name exists, and the verdicts follow
//! from the runs.

#[path = "../../../tests/machines.rs"]
mod machines;
#[path = "../../tollgate-view/tests/sessions/mod.rs"]
mod sessions;

use std::collections::BTreeSet;
use std::path::Path;

use machines::MACHINES;
use sessions::{host, runs};
use tollgate_claims::{Cell, ClaimsDocument, Config, Experiment, Known, Told, screen, to_repeat, told};
use tollgate_model::{Case, Fact, Facts, Outcome, Run};
use tollgate_suites::{Extent, Size};
use tollgate_view::summary::Summary;

fn with<T>(runs: &[Run], cases: &[Case], evaluate: impl FnOnce(&Known) -> T) -> T {
    let facts = Facts::new();
    let config: Config = Err("the configuration is not known".to_owned());
    let runs = runs.iter().map(Summary::of).collect();
    evaluate(&Known { runs, facts: &facts, config: &config, cases })
}

fn experiment(name: &str) -> Experiment {
    Experiment::named(name).expect("a built-in experiment").expect("sound")
}

fn all() -> Vec<Experiment> {
    Experiment::names().map(experiment).collect()
}

/// The cases of a machine with two processors.
fn cases() -> Vec<Case> {
    let machine = MACHINES[0].topology();
    let selected = tollgate_suites::select(&machine, &["*".to_owned()], Extent::Thorough, Size::Small);
    selected.expect("everything").cases().collect()
}

fn claiming(holds: &str) -> Experiment {
    let text = format!(
        r#"{{"id": "x-1999", "title": "t", "source": "s", "claims": [{{"id": "c", "text": "t", "holds": {holds}}}]}}"#
    );
    Experiment::read(&text).expect("an experiment")
}

/// Returns the verdict on a claim with these conditions, and its reasons.
fn judged(holds: &str, runs: &[Run]) -> (String, String) {
    with(runs, &cases(), |known| {
        let told = told(&claiming(holds), known);
        let verdict = serde_json::to_value(told.claims[0].verdict).expect("JSON");
        (verdict.as_str().expect("text").to_owned(), told.claims[0].because.join("\n"))
    })
}

fn run(latencies: &[(&str, f64)]) -> Run {
    runs(&[host()], latencies).remove(0)
}

const RATIO: &str = r#"{"ratio": [{"case": "entry/int80"}, {"case": "entry/syscall"}]}"#;

#[test]
fn every_file_is_built_in_and_sound() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("claims");
    let files = std::fs::read_dir(directory).expect("claims/").map(|entry| {
        let name = entry.expect("an entry").file_name().into_string().expect("text");
        name.strip_suffix(".json").map(str::to_owned)
    });
    let files: BTreeSet<String> = files.flatten().collect();
    assert_eq!(files, Experiment::names().map(str::to_owned).collect());
    for name in Experiment::names() {
        let experiment = experiment(name);
        assert_eq!(experiment.id, name);
        assert!(!experiment.source.is_empty() && !experiment.claims.is_empty(), "{name}");
        for claim in &experiment.claims {
            assert!(
                !claim.holds.is_empty() || !claim.cannot.is_empty(),
                "{name}: {} says no reason",
                claim.id
            );
        }
    }
    assert!(Experiment::named("direct-io-buffer").is_none());
}

fn printed(told: &Told) -> String {
    let mut text = vec![told.work.clone(), told.machine.clone()];
    text.extend(told.tables.iter().flat_map(|table| table.rows.concat()));
    text.extend(told.statements.iter().cloned());
    text.extend(told.listings.iter().flat_map(|listing| listing.lines.clone()));
    text.extend(told.claims.iter().map(|claim| claim.figures.clone()));
    text.join("\n")
}

#[test]
fn every_published_figure_and_claim_is_told() {
    for experiment in all() {
        let told = with(&[], &cases(), |known| told(&experiment, known));
        let text = printed(&told);
        let rows = experiment.tables.iter().flat_map(|table| table.rows.iter().flatten());
        let cells = rows.filter_map(|cell| match cell {
            Cell::Printed(cell) => Some(cell),
            Cell::Here(_) => None,
        });
        let lines = experiment.listings.iter().flat_map(|listing| &listing.lines);
        for word in cells.chain(&experiment.statements).chain(lines) {
            assert!(text.contains(word.as_str()), "{}: {word:?} is absent", experiment.id);
        }
        let ids = |claims: &mut dyn Iterator<Item = &String>| claims.cloned().collect::<Vec<String>>();
        let [here, there] = [
            ids(&mut told.claims.iter().map(|claim| &claim.id)),
            ids(&mut experiment.claims.iter().map(|claim| &claim.id)),
        ];
        assert!(here == there && !there.is_empty(), "{}: {here:?}", experiment.id);
    }
}

#[test]
fn every_quantity_is_a_registered_benchmark_with_these_parameters() {
    let machine = MACHINES[0].topology();
    for experiment in all() {
        for pattern in experiment.quantities().iter().flat_map(|quantity| quantity.patterns()) {
            let (name, params) = pattern.split_once('{').unwrap_or((pattern, "}"));
            let benchmark = tollgate_suites::find(name);
            let benchmark = benchmark.unwrap_or_else(|| panic!("{}: no benchmark {name}", experiment.id));
            let cases = benchmark.cases_in(Extent::Thorough, &machine);
            for pair in params.trim_end_matches('}').split(',').filter(|pair| !pair.is_empty()) {
                let (parameter, _) = pair.trim().split_once('=').expect("name=value");
                let has = cases.iter().any(|params| params.contains_key(parameter));
                assert!(has, "{}: {pattern} has a parameter that {name} has not", experiment.id);
            }
        }
    }
}

#[test]
fn what_takes_minutes_is_not_measured_unasked() {
    let known_cases = cases();
    for experiment in all() {
        let patterns = with(&[], &known_cases, |known| {
            let quantities = experiment.quantities().into_iter();
            quantities.flat_map(|quantity| quantity.to_measure(known)).collect::<BTreeSet<String>>()
        });
        for pattern in &patterns {
            assert!(!pattern.starts_with("workloads/") && !pattern.starts_with("environments/"), "{pattern}");
        }
        if !patterns.is_empty() {
            let patterns: Vec<String> = patterns.into_iter().collect();
            let machine = MACHINES[0].topology();
            tollgate_suites::select(&machine, &patterns, Extent::Usual, Size::Small).expect("selected");
        }
    }
}

#[test]
fn both_parts_of_a_ratio_are_measured_where_one_is_missing() {
    const ANY: &str = r#"{"any": [{"case": "entry/int80-getpid"}, {"case": "entry/syscall-getpid"}]}"#;
    let missing = |ratio: &str, latencies: &[(&str, f64)]| {
        let holds = format!(r#"[{{"what": "w", "of": {{"ratio": [{ratio}]}}, "at_least": 1}}]"#);
        let experiment = claiming(&holds);
        let of = |known: &Known| experiment.quantities()[0].to_measure(known);
        with(&[run(latencies)], &cases(), of).into_iter().collect::<BTreeSet<String>>()
    };
    let both = |known: &str| BTreeSet::from([known.to_owned(), "entry/int80".to_owned()]);
    let ratio = format!(r#"{{"case": "entry/int80"}}, {ANY}"#);
    assert_eq!(missing(&ratio, &[("entry/syscall-getpid", 90.0)]), both("entry/syscall-getpid"));
    assert_eq!(missing(&ratio, &[("entry/int80-getpid", 90.0)]), both("entry/int80-getpid"));
    let plain = r#"{"case": "entry/syscall"}, {"case": "entry/int80"}"#;
    assert_eq!(missing(plain, &[("entry/syscall", 80.0)]), both("entry/syscall"));
}

#[test]
fn a_claim_holds_or_not_by_the_interval_of_its_ratio() {
    let run = [run(&[("entry/syscall", 100.0), ("entry/int80", 200.0)])];
    let bounds = |bounds: &str| judged(&format!(r#"[{{"what": "w", "of": {RATIO}, {bounds}}}]"#), &run);
    let (verdict, because) = bounds(r#""at_least": 1.2, "at_most": 4"#);
    assert_eq!(verdict, "holds", "{because}");
    assert!(
        because.starts_with("w: ") && because.ends_with("it holds with at least 1.2, at most 4"),
        "{because}"
    );
    assert_eq!(bounds(r#""at_least": 1.1, "at_most": 1.5"#).0, "holds, and more");
    assert_eq!(bounds(r#""at_least": 1.2, "at_most": 2"#).0, "holds", "no less, and a part of it more");
    assert_eq!(bounds(r#""at_least": 0.5, "at_most": 0.9"#).0, "does not hold");
    assert_eq!(bounds(r#""at_least": 5"#).0, "does not hold");
    assert_eq!(bounds(r#""at_most": 0.9"#).0, "does not hold");
    let (verdict, because) = bounds(r#""at_least": 2"#);
    assert_eq!(verdict, "cannot be told here", "{because}");
    assert!(because.ends_with("its interval reaches to both sides"), "{because}");
    let (verdict, because) = bounds(r#""at_least": 5, "unless": "the reason""#);
    assert_eq!((verdict.as_str(), because.ends_with(": the reason")), ("cannot be told here", true));
}

/// No order and no subset of three runs of one machine gives two verdicts that exclude each other.
#[test]
fn verdicts_at_different_times_do_not_exclude_each_other() {
    let condition = format!(r#"[{{"what": "w", "of": {RATIO}, "at_least": 10}}]"#);
    let at = |ratio: f64| run(&[("entry/syscall", 100.0), ("entry/int80", 100.0 * ratio)]);
    let alone = |mut run: Run| {
        run.session = None;
        run
    };
    let at_times = |ratios: &[f64]| {
        let runs: Vec<Run> = ratios.iter().map(|ratio| alone(at(*ratio))).collect();
        let repeats = with(&runs, &cases(), |known| to_repeat(&claiming(&condition), known).len());
        let (verdict, because) = judged(&condition, &runs);
        (verdict, because, repeats)
    };
    let (verdict, because, repeats) = at_times(&[7.7]);
    assert_eq!((verdict.as_str(), repeats), ("cannot be told here", 2), "{because}");
    assert!(because.ends_with("; runs of one machine may differ by 2 ×, so a verdict needs 3 runs, or a figure further from the limit: --check measures it once more"), "{because}");
    assert_eq!(at_times(&[7.7, 7.6]).0, "cannot be told here");
    let (verdict, because, repeats) = at_times(&[7.7, 7.6, 7.8]);
    assert_eq!((verdict.as_str(), repeats), ("does not hold", 0), "{because}");
    assert!(because.contains(", in 3 runs "), "{because}");
    assert_eq!(at_times(&[22.0]).0, "holds, and more");
    assert_eq!(at_times(&[22.0, 13.0]).0, "holds");
    for ratios in [[22.0, 7.7], [7.7, 22.0], [22.0, 3.0]] {
        let (verdict, because, repeats) = at_times(&ratios);
        assert_eq!((verdict.as_str(), repeats), ("cannot be told here", 0), "{because}");
        assert!(because.ends_with("; they reach to both sides"), "{because}");
    }
    assert_eq!(at_times(&[3.0]).0, "does not hold", "further from the limit than runs lie apart");
    // A fact that both runs know shows that the machine was another one.
    let knowing = |mut run: Run, pti: bool| {
        run.facts.insert("kernel.pti".to_owned(), Fact::known(pti, "a test"));
        run
    };
    let low = knowing(alone(at(3.0)), false);
    assert_eq!(judged(&condition, &[low.clone(), knowing(alone(at(22.0)), true)]).0, "does not hold");
    assert_eq!(judged(&condition, &[low, alone(at(22.0))]).0, "cannot be told here");
}

#[test]
fn without_figures_a_claim_cannot_be_told_and_says_why() {
    let condition = format!(r#"[{{"what": "w", "of": {RATIO}, "at_least": 1}}]"#);
    for run in [vec![], vec![run(&[("entry/vdso-clock", 20.0)])]] {
        let (verdict, because) = judged(&condition, &run);
        assert_eq!(verdict, "cannot be told here");
        assert_eq!(because, "w: not in the given runs; --check measures it");
        let patterns = with(&run, &cases(), |known| claiming(&condition).quantities()[0].to_measure(known));
        assert_eq!(patterns, ["entry/int80", "entry/syscall"]);
    }
    // One part is known, but both must come from one run.
    let half = [run(&[("entry/syscall", 100.0)])];
    let patterns = with(&half, &cases(), |known| claiming(&condition).quantities()[0].to_measure(known));
    assert_eq!(BTreeSet::from_iter(patterns).len(), 2);
    let elsewhere = with(&[], &[], |known| told(&claiming(&condition), known).claims[0].because.join(" "));
    assert_eq!(elsewhere, "w: this machine has no case entry/int80");
    assert_eq!(judged("[]", &[]).0, "cannot be told here");
}

#[test]
fn conditions_of_which_some_hold_hold_in_part() {
    let run = [run(&[("entry/syscall", 100.0), ("entry/int80", 200.0)])];
    let both = |first: &str, second: &str| {
        let condition = |of: &str| format!(r#"{{"what": "w", "of": {of}, "at_least": 5}}"#);
        judged(&format!("[{}, {}]", condition(first), condition(second)), &run).0
    };
    let missing = r#"{"case": "locks/uncontended{by=xchg}"}"#;
    assert_eq!(both(RATIO, missing), "does not hold");
    assert_eq!(both(missing, RATIO), "does not hold");
    let [int80, syscall] = ["int80", "syscall"].map(|entry| format!(r#"{{"case": "entry/{entry}"}}"#));
    assert_eq!(both(&int80, missing), "holds in part");
    assert_eq!(both(RATIO, &int80), "holds in part");
    assert_eq!(both(&int80, &syscall), "holds, and more");
}

#[test]
fn figures_come_from_the_first_run_that_has_them_and_the_other_is_named() {
    let [first, mut second] =
        [run(&[("entry/syscall", 100.0)]), run(&[("entry/syscall", 300.0), ("entry/int80", 900.0)])];
    second.id = "20261122-210502-1a2b3c4d".parse().expect("an id");
    let text = r#"{"id": "x-1999", "title": "t", "source": "s", "claims": [],
        "tables": [{"title": "t", "columns": ["a", "b"], "rows": [[{"case": "entry/syscall"}, {"case": "entry/int80"}]]}]}"#;
    let experiment = Experiment::read(text).expect("an experiment");
    let table = with(&[first, second], &cases(), |known| told(&experiment, known).tables.remove(0));
    let figure = |cell: &str| cell.split(' ').next().and_then(|figure| figure.parse::<f64>().ok());
    assert!(figure(&table.rows[0][0]).is_some_and(|figure| figure < 200.0), "{:?}", table.rows);
    assert!(table.rows[0][1].ends_with(" [1]"), "{:?}", table.rows);
    assert_eq!(table.notes, ["in host, run 20261122-210502-1a2b3c4d"]);
}

#[test]
fn estimators_and_units_are_those_of_the_source() {
    let one = run(&[("entry/syscall", 100.0)]);
    let cell = |quantity: &str| {
        let text = format!(
            r#"{{"id": "x", "title": "t", "source": "s", "claims": [], "tables": [{{"title": "t", "columns": ["a"], "rows": [[{quantity}]]}}]}}"#
        );
        let experiment = Experiment::read(&text).expect("an experiment");
        with(std::slice::from_ref(&one), &cases(), |known| {
            told(&experiment, known).tables.remove(0).rows[0][0].clone()
        })
    };
    let figure = |quantity: &str| cell(quantity).parse::<f64>().expect("a figure");
    let median = figure(r#"{"case": "entry/syscall"}"#);
    let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.01;
    assert!(near(figure(r#"{"case": "entry/syscall", "times": 2000000, "unit": "ms"}"#), median * 2.0));
    assert!(near(figure(r#"{"case": "entry/syscall", "unit": "cycles"}"#), median * 2.0));
    assert!(near(figure(r#"{"case": "entry/syscall", "unit": "in 20 s"}"#), 20e9 / median));
    for estimator in ["mean-of-5", "mean-of-10", "mean-of-20", "trimmed-mean"] {
        let figure = figure(&format!(r#"{{"case": "entry/syscall", "by": "{estimator}"}}"#));
        assert!((100.0..140.0).contains(&figure), "{estimator}: {figure}");
    }
    assert_eq!(cell(r#"{"case": "entry/syscall", "unit": "MB"}"#), "– [1]");
    assert_eq!(cell(r#"{"schedule": "figure-11"}"#), "holds");
    assert_eq!(cell(r#"{"schedule": "figure-2"}"#), "two hold the lock at once");
}

#[test]
fn text_and_json_tell_the_same_of_all_of_them() {
    let run = [run(&[("entry/syscall", 100.0), ("entry/int80", 200.0), ("entry/syscall-getpid", 100.0)])];
    let experiments = all();
    let (text, document) = with(&run, &cases(), |known| {
        let text = anstream::adapter::strip_str(&screen(&experiments, known, 80)).to_string();
        (text, serde_json::to_value(ClaimsDocument::new(&experiments, known)).expect("JSON"))
    });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(document["runs"][0], run[0].id.to_string());
    for one in document["experiments"].as_array().expect("experiments") {
        for claim in one["claims"].as_array().expect("claims") {
            let line =
                format!("\n{}: {}\n", claim["id"].as_str().unwrap(), claim["verdict"].as_str().unwrap());
            assert!(text.contains(&line), "{line}");
        }
    }
    assert!(text.lines().any(|line| line.starts_with("24 claims: ")), "{text}");
}

#[test]
fn a_text_that_is_no_experiment_says_what_is_wrong() {
    let of = |rows: &str| {
        format!(
            r#"{{"id": "x", "title": "t", "source": "s", "claims": [], "tables": [{{"title": "T", "columns": ["a", "b"], "rows": {rows}}}]}}"#
        )
    };
    let why = |text: &str| Experiment::read(text).expect_err("no experiment");
    assert_eq!(why(&of(r#"[["1", "2"], ["1"]]"#)), "row 2 of \"T\" has 1 cells for 2 columns");
    assert_eq!(why("{}"), "missing field `id` at line 1 column 2");
    assert_eq!(
        why(&of(r#"[["1", {"cases": "entry/syscall"}]]"#)),
        "data did not match any variant of untagged enum Cell at line 1 column 146"
    );
    assert_eq!(why(""), "EOF while parsing a value at line 1 column 0");
}

/// A case does not get the figure of another instruction that the processor executes in its place.
#[test]
fn a_case_that_enters_otherwise_has_no_figure() {
    let holds = r#"[{"what": "w", "of": {"case": "entry/compat-fast", "noted": ["enters by sysenter", "no SYSENTER here"]}, "at_most": 1000}]"#;
    let entering_by = |instruction: &str| {
        let mut run = run(&[("entry/compat-fast", 100.0)]);
        for measurement in &mut run.measurements {
            if let Outcome::Measured(measured) = &mut measurement.outcome {
                measured.notes = vec![format!("enters by {instruction}")];
            }
        }
        judged(holds, &[run])
    };
    let (verdict, because) = entering_by("syscall");
    assert_eq!((verdict.as_str(), because.as_str()), ("cannot be told here", "w: no SYSENTER here"));
    assert_eq!(entering_by("sysenter").0, "holds");
}

/// A name that no question has would be asked for endlessly.
#[test]
fn every_answer_has_its_question_and_every_question_is_asked_for() {
    let (known_facts, config) = (Facts::new(), Err(String::new()));
    let nothing = Known { runs: Vec::new(), facts: &known_facts, config: &config, cases: &[] };
    let mut names = BTreeSet::new();
    for experiment in all() {
        let asked: BTreeSet<String> =
            experiment.asks.iter().flat_map(|ask| ask.facts().map(|(name, _)| name)).collect();
        let needed: BTreeSet<String> =
            experiment.quantities().iter().flat_map(|quantity| quantity.unanswered(&nothing)).collect();
        assert_eq!(asked, needed, "{}", experiment.id);
        for ask in &experiment.asks {
            assert!(names.insert(ask.name.clone()), "{}", ask.name);
        }
    }
    assert!(!names.is_empty());
}

#[test]
fn answers_are_facts_of_a_run() {
    let holds = r#"[{"what": "w", "of": {"ratio": [{"told": "a.b"}, {"value": 2}]}, "at_least": 3}, {"what": "v", "of": {"told": "a.c"}, "is": "yes"}]"#;
    let told_by = |facts: &[(&str, Fact)]| {
        let mut run = run(&[]);
        run.facts.extend(facts.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())));
        judged(holds, &[run])
    };
    let (verdict, because) = told_by(&[]);
    let asks = "w: not in the given runs; --check asks for it\nv: not in the given runs; --check asks for it";
    assert_eq!((verdict.as_str(), because.as_str()), ("cannot be told here", asks));
    let yes = ("claims.a.c", Fact::known(true, "a verb"));
    assert_eq!(told_by(&[("claims.a.b", Fact::known(6, "a verb")), yes.clone()]).0, "holds");
    assert_eq!(told_by(&[("claims.a.b", Fact::known(5, "a verb")), yes.clone()]).0, "holds in part");
    let (verdict, because) = told_by(&[("claims.a.b", Fact::unreadable("there is no QEMU")), yes]);
    assert_eq!((verdict.as_str(), because.as_str()), ("holds in part", "w: there is no QEMU\nv: yes"));
}
