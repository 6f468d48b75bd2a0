//! The text about compared commands: the screen, the JSON, and the forms of hyperfine.

use std::collections::BTreeSet;

use crate::{commands, everywhere};
use commands::{Side, runs, side};
use serde_json::Value;
use tollgate_model::compare::Spread;
use tollgate_model::traced::Ended;
use tollgate_model::versus::{BENCHES, Cold, Failed, LAYOUTS, REAL, SYS, USER, part_of_bench};
use tollgate_model::{Case, Fact, Measured, Measurement, Outcome, Provenance, Run, Unit};
use tollgate_view::session::Session;
use tollgate_view::versus::{self, hyperfine, json};

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn screen(sides: &[Side]) -> String {
    let runs = runs(sides);
    let session = Session::of(&runs).expect("a session");
    let text = plain(&versus::text(&session, false, 80));
    assert!(text.lines().count() <= 40, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    text
}

#[test]
fn a_difference_is_told_with_what_it_consists_of() {
    let slower = Side { unlinks: 400, ..side("git checkout -q b", 29.0) };
    insta::assert_snapshot!(screen(&[side("git checkout -q a", 28.0), slower]));
}

#[test]
fn equal_commands_are_the_same() {
    insta::assert_snapshot!(screen(&[side("sleep 0.02", 21.0), side("sleep 0.02", 21.0)]));
}

#[test]
fn many_commands_have_room_on_one_screen() {
    let lines = ["true", "sleep 0.01", "sleep 0.02", "sleep 0.03", "sleep 0.04", "sleep 0.05"];
    let more = ["sleep 0.06", "sleep 0.07", "sleep 0.08", "sleep 0.09", "sleep 0.1"];
    let sides = lines.iter().chain(&more).enumerate().map(|(at, line)| side(line, 1.5 + 10.0 * at as f64));
    insta::assert_snapshot!(screen(&sides.collect::<Vec<Side>>()));
}

#[test]
fn commands_in_environments_are_a_matrix() {
    let mut sides = Vec::new();
    for (line, ms) in [("find .", 10.0), ("fd .", 6.0)] {
        for (environment, times) in [("host", 1.0), ("container", 1.1)] {
            sides.push(Side { environment, untraced: Some("--no-trace"), ..side(line, ms * times) });
        }
    }
    insta::assert_snapshot!(screen(&sides));
}

#[test]
fn one_command_has_its_figures_and_notes() {
    let noted = Side {
        name: Some("cold"),
        command: |command| {
            command.failed = vec![
                Failed { execution: 3, ended: Ended::Exit(1) },
                Failed { execution: 5, ended: Ended::Signal(9) },
            ];
            command.cold = Some(Cold {
                files: 12,
                stayed: vec!["/lib/libc.so.6".into()],
                stayed_files: 1,
                certified_by: Some("mincore(2)".into()),
            });
        },
        ..side("grep -r needle .\nexit 1", 812.0)
    };
    insta::assert_snapshot!(screen(&[noted]));
}

#[test]
fn all_of_it_is_shown_where_it_is_asked_for() {
    let sides = [side("git checkout -q a", 28.0), Side { unlinks: 400, ..side("git checkout -q b", 29.0) }];
    let runs = runs(&[sides.as_slice(), &[side("true", 1.0)]].concat());
    let session = Session::of(&runs).expect("a session");
    insta::assert_snapshot!(plain(&versus::text(&session, true, 100)));
}

#[test]
fn an_open_comparison_says_what_would_decide_it() {
    let mut runs = runs(&[side("a", 28.0), side("b", 28.4)]);
    // Sides without common noise.
    for measurement in &mut runs[1].measurements {
        if let tollgate_model::Outcome::Measured(measured) = &mut measurement.outcome {
            measured.samples.reverse();
        }
    }
    let session = Session::of(&runs).expect("a session");
    insta::assert_snapshot!(plain(&versus::text(&session, false, 80)));
}

/// Layouts of the second command lie apart: each fourth execution takes a tenth longer.
#[test]
fn layouts_that_lie_apart_are_said_with_what_one_would_have_shown() {
    let mut runs = runs(&[side("a", 28.0), side("b", 28.0)]);
    for (at, run) in runs.iter_mut().enumerate() {
        run.facts.insert(LAYOUTS.to_owned(), Fact::known(8_i64, "--layouts"));
        for measurement in &mut run.measurements {
            if let Outcome::Measured(measured) = &mut measurement.outcome {
                let slow = measured
                    .samples
                    .iter_mut()
                    .enumerate()
                    .filter(|(execution, _)| at == 1 && execution % 4 == 1);
                slow.for_each(|(_, sample)| *sample *= 1.1);
            }
        }
    }
    let session = Session::of(&runs).expect("a session");
    insta::assert_snapshot!(plain(&versus::text(&session, false, 80)));
}

#[test]
fn a_quota_that_was_used_up_is_said() {
    let mut runs = runs(&[side("a", 28.0), side("b", 28.4)]);
    for (when, times) in [("before", 3_i64), ("after", 20)] {
        for run in &mut runs {
            run.facts.insert(format!("throttled.{when}"), Fact::known(times, "cpu.stat"));
        }
    }
    let text = |runs: &[Run]| {
        let session = Session::of(runs).expect("a session");
        plain(&versus::text(&session, false, 80)).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = "A, B: the control group used up its processor time 17 times meanwhile (cpu.max): real time includes these waits.";
    assert!(text(&runs).contains(said), "{}", text(&runs));
    runs.iter_mut()
        .for_each(|run| drop(run.facts.insert("throttled.after".to_owned(), Fact::known(3_i64, "cpu.stat"))));
    assert!(!text(&runs).contains("used up"), "{}", text(&runs));
}

#[test]
fn no_command_is_too_long_or_too_wide_for_its_screen() {
    let line: &'static str = "printf '\u{1b}[2J\u{202e}%s\\n' \u{6f22}\u{5b57} | tr a b; sleep 0.00000000000000000000000000000000000000000000000001";
    for width in [24, 40, 80, 200] {
        let runs = runs(&[side(line, 3.0), side("true", 2.0), side("x", 2.5)]);
        let session = Session::of(&runs).expect("a session");
        let text = versus::text(&session, false, width);
        assert!(!plain(&text).contains(['\u{1b}', '\u{202e}']), "{text}");
        assert!(plain(&text).lines().count() <= 60, "{width}: {text}");
    }
}

#[test]
fn its_json_has_the_commands_and_the_comparison() {
    let sides = [side("git checkout -q a", 28.0), Side { unlinks: 400, ..side("git checkout -q b", 29.0) }];
    let runs = runs(&sides);
    let session = Session::of(&runs).expect("a session");
    let document = serde_json::to_value(json::VersusDocument::new(&session, &["/a".into()])).expect("JSON");
    let commands = document["commands"].as_array().expect("commands");
    assert_eq!(commands[0]["command"], "git checkout -q a");
    assert_eq!(commands[0]["file"], "/a");
    assert_eq!(commands[1]["file"], Value::Null);
    for figure in ["median_s", "ci_low_s", "ci_high_s", "min_s", "user_s", "sys_s", "memory_bytes", "faults"]
    {
        assert!(commands[1][figure].as_f64().is_some_and(|figure| figure > 0.0), "{figure}");
    }
    assert_eq!(commands[0]["times_s"].as_array().map(Vec::len), Some(40));
    let of_traced = &commands[0]["traced"];
    assert_eq!((&of_traced["backend"], &of_traced["executions"]), (&"bpf".into(), &9.into()));
    for part in ["real_s", "user_s", "sys_s", "disk_s", "runqueue_s", "sleep_s", "unaccounted_s"] {
        assert!(of_traced[part].is_f64(), "{part}: {of_traced}");
    }
    let rows = document["comparison"]["rows"].as_array().expect("rows");
    assert_eq!(document["comparison"]["reference"], "git checkout -q a");
    assert_eq!((rows.len(), &rows[0]["verdict"]), (1, &"slower".into()));
    for figure in ["ratio", "ratio_low", "ratio_high", "adds_s", "adds_low_s", "adds_high_s"] {
        assert!(rows[0][figure].is_f64(), "{figure}: {}", rows[0]);
    }
    assert_eq!(rows[0]["others"].as_array().map(Vec::len), Some(4));
}

#[test]
fn parts_and_calls_sum_to_the_difference_that_was_timed() {
    let sides = [side("a", 28.0), Side { unlinks: 400, ..side("b", 29.0) }];
    let runs = runs(&sides);
    let session = Session::of(&runs).expect("a session");
    let document = serde_json::to_value(json::VersusDocument::new(&session, &[])).expect("JSON");
    let row = &document["comparison"]["rows"][0];
    let split = &row["split"];
    let number = |value: &Value| value.as_f64().expect("a number");
    let sum = |list: &str| -> f64 {
        let lines = split[list].as_array().expect("a list").iter();
        lines.map(|line| number(&line["difference_s"])).sum()
    };
    let timed = number(&row["adds_s"]);
    let parts = sum("parts") + number(&split["rest_of_parts_s"]);
    let beside = ["outside", "runqueue", "unaccounted"].map(|line| number(&split[line]["difference_s"]));
    let calls = sum("calls") + beside.iter().sum::<f64>() + number(&split["rest_of_calls_s"]);
    for all in [parts, calls, number(&split["difference_s"])] {
        assert!((all - timed).abs() < 2e-9, "{all} {timed}");
    }
    let unlink = split["calls"].as_array().expect("calls").iter().find(|call| call["name"] == "unlink");
    let unlink = unlink.expect("unlink");
    assert_eq!((&unlink["base_count"], &unlink["other_count"]), (&100.into(), &400.into()));
    assert!((number(&unlink["difference_s"]) - 600e-6).abs() < 1e-9, "{unlink}");
    assert_eq!(split["exact"], true);
}

/// The fields that `scripts/*.py` of hyperfine read, and the figures that it computes from the same times.
#[test]
fn the_forms_of_hyperfine_are_those_that_it_writes() {
    let with = |value: &'static str| Side {
        command: match value {
            "1" => |command| command.parameters = [("n".to_owned(), "1".to_owned())].into(),
            _ => |command| {
                command.parameters = [("n".to_owned(), "2".to_owned())].into();
                command.failed = vec![
                    Failed { execution: 0, ended: Ended::Exit(3) },
                    Failed { execution: 1, ended: Ended::Signal(9) },
                ];
            },
        },
        ..side(
            if value == "1" { "sleep 0.01 | cat" } else { "sleep 0.02" },
            if value == "1" { 11.0 } else { 21.0 },
        )
    };
    let mut runs = runs(&[with("1"), with("2")]);
    for run in &mut runs {
        for measurement in &mut run.measurements {
            if let tollgate_model::Outcome::Measured(measured) = &mut measurement.outcome {
                measured.samples.truncate(3);
                measured.processes.truncate(3);
            }
        }
    }
    let tollgate_model::Outcome::Measured(measured) = &mut runs[0].measurements[0].outcome else {
        unreachable!()
    };
    measured.samples = vec![11_511_637.0, 14_667_348.0, 11_631_246.0];
    let session = Session::of(&runs).expect("a session");
    let document: Value = serde_json::from_str(&hyperfine::json(&session).expect("JSON")).expect("JSON");
    let results = document["results"].as_array().expect("results");
    let fields: Vec<&String> = results[0].as_object().expect("an object").keys().collect();
    let mut wanted = vec![
        "command",
        "mean",
        "stddev",
        "median",
        "user",
        "system",
        "min",
        "max",
        "times",
        "memory_usage_byte",
        "exit_codes",
        "parameters",
    ];
    wanted.sort_unstable();
    assert_eq!(fields, wanted);
    assert_eq!(results[0]["parameters"]["n"], "1");
    assert_eq!(results[1]["exit_codes"], serde_json::json!([3, 137, 0]));
    // The output of hyperfine 1.15 for these three times.
    let close = |field: &str, wanted: f64| {
        let found = results[0][field].as_f64().expect("a number");
        assert!((found / wanted - 1.0).abs() < 1e-12, "{field}: {found}");
    };
    close("mean", 0.012603410333333334);
    close("stddev", 0.0017884226561789953);
    close("median", 0.011631246000000001);
    close("min", 0.011511637);
    let csv = hyperfine::csv(&session);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "command,mean,stddev,median,user,system,min,max,parameter_n");
    assert!(lines[1].starts_with("sleep 0.01 | cat,0.0126034103"), "{csv}");
    assert!(lines[2].ends_with(",2"), "{csv}");
    let markdown = hyperfine::markdown(&session, None);
    let lines: Vec<&str> = markdown.lines().collect();
    assert_eq!(lines[0], "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |");
    assert_eq!(lines[1], "|:---|---:|---:|---:|---:|");
    assert_eq!(lines[2], r"| `sleep 0.01 \| cat` | 12.6 ± 1.8 | 11.5 | 14.7 | 1.00 |");
    assert!(lines[3].starts_with("| `sleep 0.02` | "), "{markdown}");
    let seconds = hyperfine::markdown(&session, Some(hyperfine::TimeUnit::Second));
    let lines: Vec<&str> = seconds.lines().collect();
    assert_eq!(lines[0], "| Command | Mean [s] | Min [s] | Max [s] | Relative |");
    assert_eq!(lines[2], r"| `sleep 0.01 \| cat` | 0.013 ± 0.002 | 0.012 | 0.015 | 1.00 |");
}

#[test]
fn kept_comparisons_are_compared_reported_and_exported_by_command() {
    use tollgate_view::compare;
    use tollgate_view::comparison::{self, Comparison};
    let container = |line, ms| Side { environment: "container", ..side(line, ms) };
    let runs = runs(&[side("make -j1", 28.0), Side { unlinks: 400, ..container("make -j2", 29.0) }]);
    assert_eq!(comparison::name(&runs[1]), "make -j2 in container");
    let comparisons = [Comparison::of(&runs[0], &runs[1])];
    insta::assert_snapshot!(
        "kept_comparisons_compared",
        plain(&compare::text::text(&comparisons, false, 80))
    );
    let traces = compare::json::traces(&comparisons);
    let document = compare::json::CompareDocument::new(&runs[0], &comparisons, &traces);
    let document = serde_json::to_value(document).expect("JSON");
    assert!(document["splits"][0]["split"]["calls"].as_array().is_some_and(|calls| !calls.is_empty()));
    let page = tollgate_view::report::page_of(&runs, |_| None, &Spread::default()).render().expect("a page");
    for part in ["make -j2 in container", "by part", "unlink", "The largest memory of one of its processes"] {
        assert!(page.contains(part), "{part}");
    }
    let markdown = tollgate_view::report::markdown(&runs, &Spread::default(), 0.0);
    insta::assert_snapshot!("kept_comparisons_in_markdown", markdown);
    let csv = tollgate_view::export::csv::csv(&runs);
    assert!(csv.lines().next().is_some_and(|header| header.ends_with(",session_command")), "{csv}");
    assert!(csv.lines().last().is_some_and(|last| last.ends_with(",make -j2")), "{csv}");
    let text = tollgate_view::export::openmetrics::openmetrics(&runs);
    let label = |line: &str| line.split("session_command=\"").nth(1)?.split('"').next().map(str::to_owned);
    let labels: BTreeSet<String> = text.lines().filter_map(label).collect();
    assert_eq!(labels, ["make -j1", "make -j2"].map(str::to_owned).into());
    let bmf = tollgate_view::export::bmf::of_session(&runs).expect("JSON");
    let bmf: Value = serde_json::from_str(&bmf).expect("JSON");
    assert!(bmf["versus/real of make -j1 in host"]["latency"]["value"].is_number(), "{bmf}");
}

#[test]
fn runs_of_two_comparisons_are_named_by_the_command_that_alternates_them() {
    use tollgate_view::compare;
    use tollgate_view::comparison::Comparison;
    let mut runs = runs(&[side("make -j1", 28.0), side("it's", 29.0)]);
    let Some(part) = &mut runs[1].session else { unreachable!() };
    part.id = "20261123-040501-ffffffff".parse().expect("an id");
    let comparisons = [Comparison::of(&runs[0], &runs[1])];
    let text = plain(&compare::text::text(&comparisons, false, 400));
    assert!(text.contains(r"tollgate versus 'make -j1' 'it'\''s'"), "{text}");
}

/// The runs of builds with three benches, of which one is slower in all but the first, and two without a figure.
fn builds(paths: &[&'static str]) -> Vec<Run> {
    let mut runs = runs(&paths.iter().map(|path| side(path, 1.0)).collect::<Vec<Side>>());
    for (at, run) in runs.iter_mut().enumerate() {
        let real = run.measurement(&Case::plain(REAL)).and_then(|real| real.outcome.measured());
        let samples = real.expect("it is timed").samples.clone();
        let of = |times: f64| {
            let samples = samples.iter().map(|sample| sample / 1e3 * times).collect();
            Outcome::Measured(Box::new(Measured::of_executions(BENCHES, Unit::Nanoseconds, samples)))
        };
        let slower = 1.0 + 0.03 * at as f64;
        let gone = Outcome::NotMeasured { why: "is in old/ops only".to_owned() };
        let failed =
            Outcome::Failed { error: "ended with exit status 101: no such file (in new/ops)".to_owned() };
        let all =
            [("sort", of(slower)), ("sum", of(2.0)), ("parse", of(3.0)), ("gone", gone), ("read", failed)];
        let measurement = |(name, outcome): (&str, _)| Measurement {
            case: Case::plain(format!("divan/ops::{name}")),
            outcome,
        };
        run.measurements = all.map(measurement).into();
        run.facts.insert("run.statistic".to_owned(), Fact::known("the median of its samples", "divan"));
        let command = run.session.as_mut().and_then(|part| part.command.as_mut()).expect("a build");
        command.name = Some(command.line.replace("target/", ""));
        command.harness = Some("divan".to_owned());
    }
    runs
}

#[test]
fn builds_show_the_benches_that_changed_and_count_the_others() {
    let runs = builds(&["target/old/ops", "target/new/ops"]);
    let session = Session::of(&runs).expect("a session");
    assert!(!session.is_of_commands());
    let text = plain(&tollgate_view::session::text(&session, false, 80));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn counts_of_builds_are_more_or_fewer_and_no_layout_moves_them() {
    let mut runs = builds(&["target/old/ops", "target/new/ops"]);
    for (run, more) in runs.iter_mut().zip([0.0, 3.0]) {
        let count = |name: &str, of: f64| {
            let measured = Measured {
                provenance: Provenance::QemuIcount,
                ..Measured::of_executions(BENCHES, Unit::Instructions, vec![of])
            };
            let case = match name {
                "kernel" => part_of_bench("divan/ops::sum", name),
                name => Case::plain(format!("divan/ops::{name}")),
            };
            Measurement { case, outcome: Outcome::Measured(Box::new(measured)) }
        };
        run.measurements = vec![count("sort", 100.0 + more), count("sum", 50.0), count("kernel", 9e3)];
    }
    let session = Session::of(&runs).expect("a session");
    let text = plain(&tollgate_view::session::text(&session, false, 80));
    insta::assert_snapshot!(text);
}

#[test]
fn changes_that_a_control_has_too_are_said() {
    let mut runs = builds(&["target/old/ops", "target/new/ops", "target/moved/ops"]);
    for run in &mut runs {
        run.facts.insert("run.control".to_owned(), Fact::known(2, "--control"));
    }
    let session = Session::of(&runs).expect("a session");
    let text = plain(&tollgate_view::session::text(&session, false, 200));
    insta::assert_snapshot!(text);
}

fn change(run: &mut Run, case: &str, how: impl Fn(usize, f64) -> f64) {
    for measurement in run.measurements.iter_mut().filter(|one| one.case == Case::plain(case)) {
        if let Outcome::Measured(measured) = &mut measurement.outcome {
            let samples = measured.samples.iter_mut().enumerate();
            samples.for_each(|(at, sample)| *sample = how(at, *sample));
        }
    }
}

/// Two commands of which one needs a processor for ten times as long, while eight other tasks run: some executions of the first
/// take thirty times as long as others.
fn crowded() -> Vec<Run> {
    let mut runs = runs(&[side("a", 5.0), Side { untraced: Some("--no-trace"), ..side("b", 50.0) }]);
    change(&mut runs[0], REAL, |at, ns| if at * 7 % 5 < 3 { ns * 30.0 } else { ns });
    for run in &mut runs {
        for name in ["running.before", "running.after"] {
            run.facts.insert(name.to_owned(), Fact::known(9, "/proc/stat procs_running"));
        }
    }
    runs
}

/// The sentences about processor time, on one line each, and the verdict by real time.
fn by_processor(runs: &[Run]) -> (String, Value) {
    let session = Session::of(runs).expect("a session");
    let text = plain(&versus::text(&session, false, 400)).replace('\n', " ");
    let from = text.find("By processor time").expect("a sentence");
    let sentence = text[from..].split(". ").next().unwrap_or_default().to_owned();
    let document = serde_json::to_value(json::VersusDocument::new(&session, &[])).expect("JSON");
    (sentence, document["comparison"]["rows"][0].clone())
}

#[test]
fn processor_time_decides_where_other_tasks_take_the_processors() {
    let mut runs = crowded();
    let (sentence, row) = by_processor(&runs);
    assert!(sentence.starts_with("By processor time B is 10.0 × slower ["), "{sentence}");
    assert!(sentence.ends_with("than A; real time is inconclusive: 8 tasks for 2 processors"), "{sentence}");
    assert_eq!((&row["verdict"], &row["cpu_verdict"]), (&"inconclusive".into(), &"slower".into()));
    for (figure, range) in
        [("cpu_ratio", 9.9..10.1), ("cpu_ratio_low", 9.8..10.1), ("cpu_ratio_high", 9.9..10.2)]
    {
        assert!(row[figure].as_f64().is_some_and(|it| range.contains(&it)), "{figure}: {}", row[figure]);
    }
    assert!(row["cpu_base_s"].as_f64().is_some_and(|it| (0.005..0.007).contains(&it)), "{row}");
    // The kernel divides the sum by chance, but knows it exactly.
    for run in &mut runs {
        change(run, USER, |at, ns| if at * 5 % 3 == 0 { 0.0 } else { ns });
        change(run, SYS, |at, ns| if at * 5 % 3 == 0 { ns * 5.0 } else { ns });
    }
    assert_eq!(by_processor(&runs).0, sentence);
    // Nothing else ran.
    runs.iter_mut().for_each(|run| run.facts.retain(|name, _| !name.starts_with("running")));
    assert!(by_processor(&runs).0.ends_with("than A; real time is inconclusive"));
}

#[test]
fn processor_time_says_nothing_of_commands_that_wait() {
    // Traced: they slept.
    let mut runs = runs(&[side("sleep 0.01", 11.0), side("sleep 0.02", 21.0)]);
    for run in &mut runs {
        for measurement in &mut run.measurements {
            let Outcome::Measured(measured) = &mut measurement.outcome else { continue };
            for traced in &mut measured.traced {
                let idle = traced.idle.as_mut().expect("it is traced");
                let ran = traced.user_ns + traced.sys_ns;
                (idle.sleep_ns, idle.disk_ns) = (ran * 8, ran);
            }
        }
    }
    let (sentence, row) = by_processor(&runs);
    let why = "processor time excludes waiting, which is 90 % of the real time";
    assert_eq!(sentence, format!("By processor time B and A are not compared: {why}"));
    assert_eq!((&row["verdict"], &row["cpu_verdict"]), (&"slower".into(), &"inconclusive".into()));
    assert_eq!((&row["cpu_ratio"], &row["cpu_why"]), (&Value::Null, &why.into()));
    // Not traced: the time that no execution used.
    let untraced = |line, ms| Side { untraced: Some("--no-trace"), ..side(line, ms) };
    let mut runs = self::runs(&[untraced("sleep 0.01", 11.0), untraced("sleep 0.02", 21.0)]);
    for run in &mut runs {
        change(run, USER, |_, ns| ns / 40.0);
        change(run, SYS, |_, ns| ns / 10.0);
    }
    let (sentence, _) = by_processor(&runs);
    assert!(sentence.ends_with("waiting, which is 96 % of the real time"), "{sentence}");
    // If other tasks run, they may have taken it.
    for run in &mut runs {
        run.facts.insert("stalled.cpu.before".to_owned(), Fact::known(0, "/proc/pressure/cpu"));
        run.facts.insert("stalled.cpu.after".to_owned(), Fact::known(20_000_000, "/proc/pressure/cpu"));
    }
    let (sentence, _) = by_processor(&runs);
    assert!(sentence.starts_with("By processor time B is 1.91 × slower ["), "{sentence}");
}

#[test]
fn processor_time_that_the_kernel_does_not_know_is_none() {
    let of = |how: fn(usize, f64) -> f64| {
        let mut runs = runs(&[side("a", 11.0), side("b", 21.0)]);
        for run in &mut runs {
            change(run, USER, how);
            change(run, SYS, |_, _| 0.0);
        }
        by_processor(&runs).0
    };
    let steps = of(|_, ns| (ns / 10e6).ceil() * 10e6);
    assert!(steps.contains("processor time has a resolution of 10 ms here, too coarse for "), "{steps}");
    let tiny = of(|at, _| 1000.0 * (30 + at % 7) as f64);
    assert!(tiny.contains("a resolution of 1 µs here, too coarse for 33 µs"), "{tiny}");
    let some = of(|at, ns| if at % 4 == 1 { 0.0 } else { ns });
    assert!(some.ends_with("not above zero in 10 of 40 turns"), "{some}");
}

#[test]
fn many_commands_have_their_processor_time_in_a_column() {
    let sides = [side("a", 10.0), side("b", 20.0), side("c", 30.0), side("d", 10.0)];
    let text = screen(&sides);
    let row = text.lines().find(|line| line.trim_start().starts_with("C ") && line.contains("slower"));
    let last = row.and_then(|row| row.split_whitespace().last()?.parse().ok());
    assert!(last.is_some_and(|ratio: f64| (2.9..3.1).contains(&ratio)), "{text}");
}

#[test]
fn workloads_of_a_session_have_their_processor_time() {
    let mut runs = runs(&[side("a", 10.0), side("b", 20.0)]);
    for run in &mut runs {
        run.measurements.retain(|one| one.case == Case::plain(tollgate_model::own::TRACED));
        run.session.iter_mut().for_each(|part| part.command = None);
        for measurement in &mut run.measurements {
            measurement.case = Case::plain("workloads/grep");
            let Outcome::Measured(measured) = &mut measurement.outcome else { continue };
            measured.traced.extend(measured.traced.clone());
            measured.processes.extend(measured.processes.clone());
            measured.samples.extend(measured.samples.clone());
        }
    }
    runs[1].session.iter_mut().for_each(|part| part.environment = "container".to_owned());
    change(&mut runs[0], "workloads/grep", |at, ns| if at * 7 % 5 < 3 { ns * 30.0 } else { ns });
    let session = Session::of(&runs).expect("a session");
    let text = plain(&tollgate_view::session::text(&session, false, 400));
    let lines = text.lines().skip_while(|line| !line.starts_with("By processor time"));
    let said = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    assert!(said.starts_with("By processor time 1 slower, 0 faster: workloads/grep 2.0"), "{said}");
    assert!(said.contains("]; real time leaves 1 of these inconclusive."), "{said}");
}

#[test]
fn commands_are_shown_everywhere_alike() {
    let sides = [side("git checkout -q a", 28.0), Side { unlinks: 400, ..side("git checkout -q b", 29.0) }];
    insta::assert_snapshot!(everywhere::of_session(&runs(
        &[sides.as_slice(), &[side("true", 1.0)]].concat()
    )));
}

#[test]
fn commands_in_environments_are_shown_everywhere_alike() {
    let mut sides = Vec::new();
    for (line, ms) in [("find .", 10.0), ("fd .", 6.0)] {
        for (environment, times) in [("host", 1.0), ("container", 1.1)] {
            sides.push(Side { environment, untraced: Some("--no-trace"), ..side(line, ms * times) });
        }
    }
    insta::assert_snapshot!(everywhere::of_session(&runs(&sides)));
}

#[test]
fn an_open_comparison_is_shown_everywhere_alike() {
    insta::assert_snapshot!(everywhere::of_session(&crowded()));
}

#[test]
fn builds_are_shown_everywhere_alike() {
    let mut runs = builds(&["target/old/ops", "target/new/ops", "target/moved/ops"]);
    for run in &mut runs {
        run.facts.insert("run.control".to_owned(), Fact::known(2, "--control"));
    }
    insta::assert_snapshot!(everywhere::of_session(&runs));
}

#[test]
fn traced_workloads_are_shown_everywhere_alike() {
    let mut runs = runs(&[side("a", 10.0), Side { unlinks: 400, ..side("b", 20.0) }]);
    for run in &mut runs {
        run.measurements.retain(|one| one.case == Case::plain(tollgate_model::own::TRACED));
        run.session = None;
        run.measurements.iter_mut().for_each(|one| one.case = Case::plain("workloads/grep"));
    }
    insta::assert_snapshot!(everywhere::of_runs(&runs, &Spread::default()));
}
