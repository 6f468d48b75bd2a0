//! Runs that count instructions: no times, no intervals, no noise.

use crate::{everywhere, sessions};
use sessions::{Side, host, runs, under};
use tollgate_engine::Topology;
use tollgate_model::compare::Spread;
use tollgate_model::{Environment, Fact, Outcome, ProcessRounds, Provenance, Run, Unit};
use tollgate_view::compare::condition::{Answer, Condition, answer};
use tollgate_view::compare::{self, json};
use tollgate_view::comparison::Comparison;
use tollgate_view::explain;
use tollgate_view::report::{markdown, page_of};
use tollgate_view::session::{self, Session};
use tollgate_view::show::text::{self as show, Options};
use tollgate_view::show::{csv, json as run_json};
use tollgate_view::summary::Summary;
use tollgate_view::{export, screen};

const COUNTS: [(&str, f64); 9] = [
    ("entry/syscall", 209.0),
    ("entry/syscall-getpid", 307.0),
    ("entry/vdso-clock", 71.0),
    ("entry/int80", 253.0),
    ("entry/seccomp{instructions=32}", 1204.0),
    ("entry/io-uring-nop{batch=64}", 409.25),
    ("traps/minor-fault", 3_611.0),
    ("traps/signal-self", 4_018.0),
    ("traps/invalid-opcode{opcode=ud1}", 2_942.0),
];

fn guest(name: &'static str) -> Side {
    Side {
        name,
        kind: Environment::Vm,
        paired: false,
        facts: vec![
            ("hypervisor.layers", Fact::known(vec!["QEMU TCG".to_owned()], "CPUID")),
            ("cpu.model", Fact::known("QEMU Virtual CPU version 2.5+", "CPUID")),
            ("cpu.online", Fact::known(1, "/sys/devices/system/cpu/online")),
            ("kernel.release", Fact::known("6.1.0-56-cloud-amd64", "uname(2)")),
            ("run.clock_hz", Fact::known(1_000_000_000_i64, "run.clock")),
            ("run.cpu", Fact::known(0, "sched_getaffinity(2)")),
        ],
        ..host()
    }
}

/// The same without mitigations: system calls have 22 instructions less, a fault varies.
fn unmitigated() -> Side {
    let mut side = guest("vm:exact,append=mitigations=off");
    side.facts
        .push(("mitigation.pti", Fact::known(false, "/sys/devices/system/cpu/vulnerabilities/meltdown")));
    let line = "console=ttyS0 mitigations=off";
    side.facts.push(("kernel.command_line", Fact::known(line, "/proc/cmdline")));
    side.ratio = |case| match case.benchmark.as_str() {
        "entry/syscall" => 187.0 / 209.0,
        "entry/int80" => 251.0 / 253.0,
        "traps/signal-self" => 4_020.0 / 4_018.0,
        _ => 1.0,
    };
    side
}

fn mitigated() -> Side {
    let mut side = guest("vm:exact");
    side.facts
        .push(("mitigation.pti", Fact::known(true, "/sys/devices/system/cpu/vulnerabilities/meltdown")));
    side.facts.push(("kernel.command_line", Fact::known("console=ttyS0", "/proc/cmdline")));
    side
}

/// Counts the cases of a run: one process, twenty batches; signals have another count in each; a tick fell into three.
fn count(run: &mut Run) {
    for measurement in &mut run.measurements {
        let Outcome::Measured(measured) = &mut measurement.outcome else { continue };
        let name = measurement.case.to_string();
        let (_, of_base) = COUNTS.iter().find(|(case, _)| *case == name).expect("a case");
        // The helper's random figure is a ratio to the count.
        let of_side = run.session.as_ref().map_or(0, |part| part.place);
        let ratio = match of_side {
            1 => (unmitigated().ratio)(&measurement.case),
            _ => 1.0,
        };
        let count = of_base * ratio;
        let varies = measurement.case.benchmark == "traps/signal-self";
        measured.unit = Unit::Instructions;
        measured.provenance = Provenance::QemuIcount;
        measured.ops_per_sample = 100;
        measured.clock_hz = 1_000_000_000;
        measured.samples =
            (0..17).map(|at| count + if varies { f64::from(at % 5) * 4.0 } else { 0.0 }).collect();
        measured.discarded = 3;
        measured.processes = vec![ProcessRounds { rounds: 20, ran: None, discarded: vec![4, 9, 14] }];
    }
}

/// Guests of these kernels: each except the first has this many instructions more in a system call than the first.
fn kernels(all: &[(&'static str, f64)]) -> Vec<Run> {
    let side = |(release, _): &(&'static str, f64)| {
        let mut side = guest(release);
        side.facts.push(("kernel.release", Fact::known(*release, "uname(2)")));
        side
    };
    let sides: Vec<Side> = all.iter().map(side).collect();
    let mut runs = runs(&sides, &COUNTS);
    for (run, (_, more)) in runs.iter_mut().zip(all) {
        run.session.iter_mut().for_each(|part| part.place = 0);
        count(run);
        for measurement in &mut run.measurements {
            let Outcome::Measured(measured) = &mut measurement.outcome else { continue };
            let adds = match measurement.case.benchmark.as_str() {
                "entry/syscall" => *more,
                "entry/int80" => more / 2.0,
                // Too small a change.
                "traps/minor-fault" => more / 4.0,
                _ => 0.0,
            };
            measured.samples.iter_mut().for_each(|sample| *sample += adds);
        }
    }
    for (place, run) in (0..).zip(&mut runs) {
        run.session.iter_mut().for_each(|part| part.place = place);
    }
    // The last one has no such call.
    if let Some(last) = runs.last_mut() {
        last.measurements.retain(|measurement| measurement.case.benchmark != "entry/io-uring-nop");
    }
    runs
}

#[test]
fn kernels_stand_side_by_side_and_each_is_compared_with_the_one_before() {
    let runs = kernels(&[
        ("6.1.0-47-cloud-amd64", 0.0),
        ("6.1.0-48-cloud-amd64", 12.0),
        ("6.12.100+deb12-cloud-amd64", 4.0),
    ]);
    let session = Session::of(&runs).expect("a session");
    let text = plain(&session::text(&session, false, 80));
    assert!(text.lines().count() <= 40, "{text}");
    assert_untimed(&text);
    insta::assert_snapshot!("the_screen_of_three_kernels", text);
    insta::assert_snapshot!("all_cases_of_three_kernels", plain(&session::text(&session, true, 80)));
    let page = page_of(&runs, |_| None, &Spread::default()).render().expect("a page");
    for part in [
        "<h1>3 kernels, 6.1.0-47 to 6.12.100+deb12: 2 of 9 counted cases changed</h1>",
        "<h3>Instructions by kernel</h3>",
        "<li class=\"vs\"><span>entry/syscall</span>",
        // From the fewest to the most, and the last.
        "<rect class=\"i\" x=\"52.09%\" width=\"23.24%\" y=\"4.5\"/><use class=\"f\" href=\"#m0\" x=\"59.98%\" y=\"8\"/>",
        "<b>209 → 213</b>",
        "<tr><th>entry/syscall<td>209<td>221 +<td>213 -",
        "<tr><th>traps/minor-fault<td>3,611<td>3,614 =<td>3,612 =",
        "<tr><th>entry/io-uring-nop{batch=64}<td>409.25<td>409.25 =<td>–",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("cases in both"), "its figure says what each of them changes");
    // If one of them has another name, they are environments like others.
    let mut runs = runs;
    runs[1].session.as_mut().expect("a session").environment = "other".to_owned();
    let session = Session::of(&runs).expect("a session");
    insta::assert_snapshot!("one_kernel_is_called_otherwise", plain(&session::text(&session, false, 80)));
}

#[test]
fn many_kernels_have_a_sign_each() {
    const MANY: [&str; 17] = [
        "6.1.0-1", "6.1.0-2", "6.1.0-3", "6.1.0-4", "6.1.0-5", "6.1.0-6", "6.1.0-7", "6.1.0-8", "6.1.0-9",
        "6.1.0-10", "6.1.0-11", "6.1.0-12", "6.1.0-13", "6.1.0-14", "6.1.0-15", "6.1.0-16", "6.1.0-17",
    ];
    let runs = kernels(&MANY.map(|name| (name, if name > "6.1.0-4" { 12.0 } else { 0.0 })));
    let session = Session::of(&runs).expect("a session");
    let text = plain(&session::text(&session, false, 80));
    assert!(text.lines().count() <= 40, "{text}");
    insta::assert_snapshot!("the_screen_of_many_kernels", text);
    let all = plain(&session::text(&session, true, 80));
    // Each kernel has its column in one of the blocks.
    assert_eq!(all.lines().filter(|line| line.starts_with("entry/int80 ")).count(), 5, "{all}");
}

fn counted_runs() -> Vec<Run> {
    let mut runs = runs(&[mitigated(), unmitigated()], &COUNTS);
    runs.iter_mut().for_each(count);
    runs.iter().for_each(|run| {
        Run::parse(&run.to_json().expect("a document")).expect("a run");
    });
    runs
}

/// The host with times, the guest with counts.
fn mixed_runs() -> Vec<Run> {
    let mut runs = runs(&[host(), guest("vm:exact")], &COUNTS);
    runs[1].session.as_mut().expect("a session").place = 2;
    count(&mut runs[1]);
    runs[1].session.as_mut().expect("a session").place = 1;
    runs
}

fn plain(text: &str) -> String {
    let text = anstream::adapter::strip_str(text).to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

/// Nothing that belongs only to times.
fn assert_untimed(text: &str) {
    for word in [
        " ns",
        "µs",
        "95 %",
        "inconclusive",
        "correl",
        "detection",
        "noisy",
        "A/A",
        "processes agree",
        "lack a CI",
    ] {
        assert!(!text.contains(word), "{word:?} in {text}");
    }
}

#[test]
fn a_run_has_counts_in_place_of_medians_and_intervals() {
    let run = counted_runs().remove(0);
    let summary = Summary::of(&run);
    let first = plain(&screen::text(&summary, 80));
    assert!(first.lines().count() <= 40);
    assert_untimed(&first);
    insta::assert_snapshot!("the_screen_of_a_counted_run", first);
    let all = plain(&show::text(&summary, Options { width: Some(80), bench: true, ..Options::default() }));
    assert_untimed(&all);
    insta::assert_snapshot!("all_rows_of_a_counted_run", all);
    for width in [40, 60, 79] {
        assert!(plain(&screen::text(&summary, width)).lines().all(|line| line.chars().count() <= width));
    }
}

#[test]
fn two_command_lines_differ_by_what_they_set_and_nothing_else() {
    let runs = counted_runs();
    let session = Session::of(&runs).expect("a session");
    let text = plain(&session::text(&session, false, 80));
    assert!(text.lines().count() <= 40);
    assert!(!text.contains("inconclusive"), "{text}");
    insta::assert_snapshot!("the_screen_of_two_command_lines", text);
    insta::assert_snapshot!("all_rows_of_two_command_lines", plain(&session::text(&session, true, 80)));
    let json = serde_json::to_value(session::json::SessionDocument::new(&session, &[])).expect("JSON");
    let rows = json["comparison"]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), COUNTS.len());
    let syscall = &rows[0];
    assert_eq!((syscall["base"].as_f64(), syscall["other"].as_f64()), (Some(209.0), Some(187.0)));
    assert_eq!((&syscall["verdict"], &syscall["threshold"]), (&"faster".into(), &0.0.into()));
    assert_eq!((&syscall["unit"], &syscall["adds"]), (&"instructions".into(), &(-22.0).into()));
    assert!(rows.iter().all(|row| row["verdict"] != "inconclusive" && row["ratio_low"].is_null()));
    let causes = syscall["causes"].as_array().expect("causes");
    assert!(causes.contains(&"mitigation.pti".into()), "{causes:?}");
}

#[test]
fn a_regression_test_of_counts_says_yes_or_no() {
    let runs = counted_runs();
    let forth = |asked| [Comparison::above(&runs[0], &runs[1], asked)];
    let back = |asked| [Comparison::above(&runs[1], &runs[0], asked)];
    assert_eq!(answer(&[Condition::Slower], 0.0, &forth(0.0)), Answer::NotMet);
    assert!(matches!(answer(&[Condition::Slower], 0.0, &back(0.0)), Answer::Met(_)));
    // 251 → 253 instructions are 0.8 %, 187 → 209 are 12 %.
    let of = |asked| answer(&[Condition::Slower], asked, &back(asked));
    assert_eq!(of(0.005), Answer::Met("entry/syscall and 1 more are more".to_owned()));
    assert_eq!(of(0.01), Answer::Met("entry/syscall is more".to_owned()));
    assert_eq!(of(0.2), Answer::NotMet);
    assert_eq!(answer(&[Condition::Undecided], 0.0, &back(0.0)), Answer::NotMet);
    let mixed = mixed_runs();
    let open = answer(&[Condition::Slower], 0.0, &[Comparison::of(&mixed[0], &mixed[1])]);
    let why = "undecided: 9 rows are not compared: nanoseconds in host, instructions in vm:exact";
    assert_eq!(open, Answer::Open(why.to_owned()));
}

#[test]
fn compare_shows_counts_without_a_word_of_turns() {
    let mut runs = counted_runs();
    // Two runs of two days.
    runs.iter_mut().for_each(|run| run.session = None);
    let comparisons = [Comparison::of(&runs[0], &runs[1])];
    let text = plain(&compare::text::text(&comparisons, true, 80));
    assert_untimed(&text.replace("0 inconclusive", ""));
    assert!(!text.contains("In turns"), "{text}");
    insta::assert_snapshot!("two_counted_runs_compared", text);
    let json = serde_json::to_value(json::CompareDocument::new(&runs[0], &comparisons, &[])).expect("JSON");
    assert_eq!(json["not_compared"], serde_json::json!([]));
}

#[test]
fn times_and_counts_stand_beside_each_other() {
    let runs = mixed_runs();
    let session = Session::of(&runs).expect("a session");
    let text = plain(&session::text(&session, false, 80));
    assert!(text.lines().count() <= 40 && !text.contains("inconclusive"), "{text}");
    insta::assert_snapshot!("a_host_beside_a_counting_guest", text);
    let comparisons = [Comparison::of(&runs[0], &runs[1])];
    let text = plain(&compare::text::text(&comparisons, false, 80));
    insta::assert_snapshot!("a_host_compared_with_a_counting_guest", text);
    let json = serde_json::to_value(json::CompareDocument::new(&runs[0], &comparisons, &[])).expect("JSON");
    let apart = json["not_compared"].as_array().expect("a list");
    assert_eq!(apart.len(), COUNTS.len());
    assert_eq!((&apart[0]["benchmark"], &apart[0]["base_unit"]), (&"entry/syscall".into(), &"ns".into()));
    insta::assert_snapshot!("markdown_of_times_and_counts", markdown(&runs, &Spread::default(), 0.0));
}

#[test]
fn a_benchmark_is_explained_by_its_count() {
    let runs = counted_runs();
    let session = Session::of(&runs).expect("a session");
    let benchmark = tollgate_suites::find("entry/syscall").expect("registered");
    let mut summary = Summary::of(&runs[1]);
    summary.retain(|case| case.benchmark == benchmark.name);
    let text = plain(&explain::text(
        benchmark,
        &Topology::default(),
        Some(&summary),
        Some(&session),
        &runs[1].facts,
        80,
    ));
    let here = [
        "instructions 187, batches exact, 1.00 × syscall; run",
        "20261122-210501-00000001",
        "3 of 20 batches had other events and were left out",
    ];
    assert_eq!(under(&text, "Here"), here);
    let costs = [
        "append, not set → mitigations=off:",
        "209 → 187 instructions, -10.5 %, fewer",
        "A proven cause: nothing else differed, and instructions have no",
        "noise.",
        "session 20261122-210501-1a2b3c4d",
    ];
    assert_eq!(under(&text, "Costs here"), costs);
    let mixed = mixed_runs();
    let session = Session::of(&mixed).expect("a session");
    let text =
        plain(&explain::text(benchmark, &Topology::default(), None, Some(&session), &mixed[1].facts, 80));
    let costs = [
        "entry/syscall: 236 ns in host, 209 instructions in vm:exact; not",
        "compared",
        "session 20261122-210501-1a2b3c4d",
    ];
    assert_eq!(under(&text, "Costs here"), costs);
}

#[test]
fn other_systems_get_instructions() {
    let runs = counted_runs();
    let summary = Summary::of(&runs[0]);
    let table = csv::csv(&summary);
    let header: Vec<&str> = table.lines().next().expect("a header").split(',').collect();
    assert_eq!(header.last(), Some(&"exact"));
    let exact = |name: &str| {
        let line = table.lines().find(|line| line.starts_with(name)).expect("a line");
        line.rsplit(',').next().map(str::to_owned)
    };
    assert_eq!(
        (exact("entry/syscall,").as_deref(), exact("traps/signal-self").as_deref()),
        (Some("true"), Some("false"))
    );
    let json = serde_json::to_value(run_json::ShowDocument::new(&summary, None)).expect("JSON");
    let syscall = &json["measurements"][0];
    assert_eq!(
        (&syscall["exact"], &syscall["noisy"], &syscall["median"]),
        (&true.into(), &false.into(), &209.0.into())
    );
    assert_eq!((&syscall["ci_low"], &syscall["provenance"]), (&().into(), &"qemu-icount".into()));
    assert_eq!((&json["quality"]["grade"], &json["warnings"]), (&"exact".into(), &serde_json::json!([])));
    let bmf = export::bmf::of_session(&runs).expect("BMF");
    let bmf: serde_json::Value = serde_json::from_str(&bmf).expect("JSON");
    assert_eq!(bmf["entry/syscall in vm:exact"]["instructions"]["value"], 209.0);
    let (both, one) =
        (markdown(&runs, &Spread::default(), 0.0), markdown(&runs[..1], &Spread::default(), 0.0));
    insta::assert_snapshot!("markdown_of_two_command_lines", both);
    insta::assert_snapshot!("markdown_of_a_counted_run", one);
    let page = format!("{:?}", page_of(&runs, |_| None, &Spread::default()));
    assert!(page.contains("in instructions, compared with vm:exact") && page.contains("-10.5 %"), "{page}");
}

#[test]
fn counts_are_shown_everywhere_alike() {
    insta::assert_snapshot!(everywhere::of_session(&counted_runs()));
}

#[test]
fn times_beside_counts_are_shown_everywhere_alike() {
    insta::assert_snapshot!(everywhere::of_session(&mixed_runs()));
}

#[test]
fn kernels_are_shown_everywhere_alike() {
    let names = ["6.1.0-47-cloud-amd64", "6.1.0-48-cloud-amd64", "6.12.100+deb12-cloud-amd64"];
    let more = [0.0, 12.0, 4.0];
    let all: Vec<(&str, f64)> = names.into_iter().zip(more).collect();
    insta::assert_snapshot!(everywhere::of_session(&kernels(&all)));
}
