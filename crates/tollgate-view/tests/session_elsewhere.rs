//! Sessions in what is made for runs: comparisons, reports, explanations.

use crate::{everywhere, sessions};
use sessions::{CASES, Side, filtered, host, runs};
use tollgate_engine::Topology;
use tollgate_model::compare::Spread;
use tollgate_model::{Environment, Knob, Run};
use tollgate_view::compare::condition::{Answer, Condition, answer};
use tollgate_view::compare::{json, text};
use tollgate_view::comparison::Comparison;
use tollgate_view::report::{markdown, page_of};
use tollgate_view::session::Session;
use tollgate_view::summary::Summary;
use tollgate_view::{explain, proven::Proven};

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn varied(name: &'static str) -> Side {
    let facts = filtered().facts.into_iter().filter(|(name, _)| name.starts_with("seccomp.")).collect();
    Side { name, kind: Environment::Vm, facts, ..filtered() }
}

fn alone(run: &Run) -> Run {
    Run { session: None, ..run.clone() }
}

#[test]
fn compare_shows_the_pairing() {
    let runs = runs(&[host(), filtered()], &CASES);
    let comparisons = [Comparison::of(&runs[0], &runs[1])];
    insta::assert_snapshot!(plain(&text::text(&comparisons, false, 100)));
    let traces = json::traces(&comparisons);
    let document =
        serde_json::to_value(json::CompareDocument::new(&runs[0], &comparisons, &traces)).expect("JSON");
    assert_eq!((&document["paired"], &document["alternating"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(document["others"][0]["session"]["environment"], "container");
    let row = &document["rows"][0];
    assert_eq!(row["benchmark"], "entry/syscall");
    assert!(row["adds"].as_f64().is_some_and(|adds| (40.0..70.0).contains(&adds)), "{row}");
    assert!(row["correlation"].as_f64().is_some_and(|correlation| correlation > 0.9), "{row}");
    assert_eq!(row["causes"][0], "seccomp.filters");
}

#[test]
fn compare_shows_the_largest_changes_where_not_all_have_room() {
    let names: Vec<String> = (0..25).map(|number| format!("entry/other-{number:02}")).collect();
    let others = names.iter().map(|name| (name.as_str(), 100.0));
    let cases: Vec<(&str, f64)> = others.chain([("entry/syscall", 83.1)]).collect();
    let other = Side {
        name: "container",
        ratio: |case| {
            let number = case.benchmark.strip_prefix("entry/other-").and_then(|it| it.parse::<f64>().ok());
            number.map_or(1.2, |number| 1.5 + number / 10.0)
        },
        ..host()
    };
    let runs = runs(&[host(), other], &cases);
    let text = plain(&text::text(&[Comparison::of(&runs[0], &runs[1])], false, 100));
    let shows = |case: &str| text.lines().any(|line| line.starts_with(&format!("{case} ")));
    assert!(text.contains("6 more changed (--all); "), "{text}");
    assert!(shows("entry/other-24") && shows("entry/other-05"), "{text}");
    assert!(!shows("entry/other-04") && !shows("entry/syscall"), "{text}");
}

#[test]
fn runs_of_no_common_session_name_the_command_that_alternates() {
    let runs = runs(&[host(), filtered()], &CASES);
    let [base, other] = [alone(&runs[0]), alone(&runs[1])];
    let table = |base: &Run, other: &Run| plain(&text::text(&[Comparison::of(base, other)], false, 200));
    let shown = table(&base, &other);
    insta::assert_snapshot!(shown);
    let begin = shown.find("Not alternated, unpaired").expect("how they were made");
    // Two of one kind: what differs is unknown.
    let named = "--in A --in B; tollgate environments lists what A and B can be; for commands";
    let same_kind = table(&base, &Run { environment: Environment::Vm, ..other.clone() });
    let made = shown[begin..].replace("--in host --in container; for commands", named);
    assert!(same_kind.ends_with(&made), "{same_kind}");
    // A run of another session says its environment's name.
    let mut far = runs[1].clone();
    far.session.iter_mut().for_each(|part| part.id = "20261122-210501-ffffffff".parse().expect("an id"));
    let of_another = table(&runs[0], &far);
    assert!(of_another.ends_with(&shown[begin..]), "{of_another}");
}

#[test]
fn a_condition_holds_of_alternated_rows() {
    let runs = runs(&[host(), filtered(), host()], &CASES);
    let [slower, same] = [1, 2].map(|other| [Comparison::of(&runs[0], &runs[other])]);
    let met = Answer::Met("entry/syscall and 7 more are slower".to_owned());
    assert_eq!(answer(&[Condition::Slower], 0.01, &slower), met);
    assert_eq!(answer(&[Condition::Faster], 0.01, &slower), Answer::NotMet);
    assert_eq!(answer(&[Condition::Different], 0.01, &same), Answer::NotMet);
    // Differences up to 60 % do not count.
    let asked = [Comparison::above(&runs[0], &runs[1], 0.6)];
    assert_eq!(answer(&[Condition::Slower], 0.6, &asked), Answer::NotMet);
}

#[test]
fn a_setting_is_proven_where_it_alone_differs() {
    let knob = || Knob { path: "/proc/sys/vm/x".to_owned(), was: "0".to_owned(), value: "1".to_owned() };
    let with_knob = |name| Side { knob: Some(knob()), ..varied(name) };
    let proven = |base: Side, other: Side| {
        let runs = runs(&[base, other], &CASES[..1]);
        Comparison::of(&runs[0], &runs[1]).proven
    };
    let is = |proven: Option<Proven>, expected: [&str; 3]| {
        let found = proven.expect("one setting");
        assert_eq!([found.setting.as_str(), &found.was, &found.value], expected);
    };
    is(proven(host(), varied("host:seccomp=default")), ["seccomp", "not set", "default"]);
    is(proven(varied("host:nice=5"), varied("host:nice=5,env.A=b")), ["env.A", "not set", "b"]);
    is(proven(varied("container"), varied("container:seccomp=none")), ["seccomp", "not set", "none"]);
    is(proven(host(), with_knob("host")), ["/proc/sys/vm/x", "0", "1"]);
    is(proven(varied("host:seccomp=a,b"), varied("host:seccomp=c")), ["seccomp", "a,b", "c"]);
    let mut named = runs(&[host(), varied("mine")], &CASES[..1]);
    assert!(Comparison::of(&named[0], &named[1]).proven.is_none());
    named[1].session.as_mut().expect("a session").stands_for = Some("host:nice=5".to_owned());
    is(Comparison::of(&named[0], &named[1]).proven, ["nice", "not set", "5"]);
    for (base, other) in [
        (host(), host()),
        (host(), varied("host:seccomp=default,nice=5")),
        (host(), filtered()),
        (varied("container:runtime=runc"), varied("container:runtime=bwrap")),
        (varied("exec:a=1"), varied("exec:a=2")),
        (host(), with_knob("host:nice=5")),
        (host(), Side { paired: false, ..varied("host:nice=5") }),
    ] {
        let names = format!("{} and {}", base.name, other.name);
        assert!(proven(base, other).is_none(), "{names}");
    }
}

#[test]
fn a_report_names_environments_and_begins_with_the_comparison() {
    let runs = runs(&[host(), varied("host:seccomp=default")], &CASES);
    let mut turned = runs.clone();
    turned.reverse();
    insta::assert_snapshot!(markdown(&turned, &Spread::default(), 0.0));
    let page = page_of(&runs, |_| None, &Spread::default()).render().expect("a page");
    for part in [
        "<h1>host:seccomp=default compared with host</h1>",
        "Proven cause of each difference in host:seccomp=default",
        "What host:seccomp=default changes, turn by turn with host",
        "<dt>Session</dt>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let single = page_of(&runs[..1], |_| None, &Spread::default()).render().expect("a page");
    assert!(!single.contains("turn by turn"));
    let before = page_of(&[alone(&runs[0])], |_| None, &Spread::default()).render().expect("a page");
    assert!(!before.contains("Session"));
}

#[test]
fn an_explanation_has_what_the_setting_costs() {
    let runs = runs(&[host(), varied("host:seccomp=default")], &CASES);
    let session = Session::of(&runs).expect("a session");
    let benchmark = tollgate_suites::find("entry/syscall").expect("a benchmark");
    let mut summary = Summary::of(&runs[0]);
    summary.retain(|case| case.benchmark == benchmark.name);
    let shown = |session| {
        plain(&explain::text(benchmark, &Topology::default(), Some(&summary), session, &runs[0].facts, 80))
    };
    let costs = [
        "seccomp, not set → default:",
        "1.560 × (1.559–1.561), +52.6 ns, slower",
        "A proven cause: nothing else differed, and both alternated.",
        "session 20261122-210501-1a2b3c4d",
    ];
    assert_eq!(sessions::under(&shown(Some(&session)), "Costs here"), costs);
    assert!(!shown(None).contains("Costs here"));
}

#[test]
fn runs_of_no_session_are_shown_everywhere_alike() {
    let mut runs = runs(&[host(), filtered(), host()], &CASES);
    // One that the base lacks, and one that only the base has.
    runs[0].measurements.remove(2);
    runs[1].measurements.remove(6);
    runs.iter_mut().for_each(|run| run.session = None);
    // Others of the machine differ no more than the base from itself.
    let others = vec![runs[0].clone(); 4];
    insta::assert_snapshot!(everywhere::of_runs(&runs, &Spread::of(&others)));
}

#[test]
fn a_proven_cause_is_shown_everywhere_alike() {
    let runs = runs(&[host(), varied("host:seccomp=default")], &CASES[..5]);
    insta::assert_snapshot!(everywhere::of_session(&runs));
}
