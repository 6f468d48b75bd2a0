//! A value below the detection limit is `< limit`, and a few samples have a maximum and no p99, wherever a figure is shown.

use tollgate_model::compare::Spread;
use tollgate_model::own::EMPTY_LOOP;
use tollgate_model::run::{SCHEMA, Tool};
use tollgate_model::{
    Case, Environment, Facts, Measured, Measurement, Outcome, ParamValue, ProcessRounds, Provenance, Run,
    Unit,
};
use tollgate_view::show::text::Options;
use tollgate_view::summary::Summary;

/// Seven processes with one sample each.
fn measured(samples: [f64; 7]) -> Measured {
    Measured {
        unit: Unit::Nanoseconds,
        provenance: Provenance::Hardware,
        ops_per_sample: 1,
        clock_hz: 1_000_000_000,
        samples: samples.to_vec(),
        discarded: 0,
        processes: samples.map(|_| ProcessRounds { rounds: 1, ran: None, discarded: Vec::new() }).to_vec(),
        counted: None,
        counters: Vec::new(),
        events: Vec::new(),
        bytes_per_op: None,
        group: "files".to_owned(),
        baseline: None,
        notes: Vec::new(),
        span_ns: None,
        traced: Vec::new(),
        traced_apart: Vec::new(),
    }
}

fn run() -> Run {
    let row = |case: Case, samples: [f64; 7]| Measurement {
        case,
        outcome: Outcome::Measured(Box::new(measured(samples))),
    };
    let of_call = |call: &str| Case {
        benchmark: "files/small-file".to_owned(),
        params: [("call".to_owned(), ParamValue::from(call))].into(),
    };
    let around =
        |middle: f64| [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0].map(|off| middle + off * middle / 100.0);
    Run {
        schema: SCHEMA,
        tool: Tool { name: "tollgate".to_owned(), version: "0.1.0".to_owned() },
        id: "20261121-015427-3f2a91c4".parse().expect("an id"),
        label: None,
        environment: Environment::Vm,
        session: None,
        started: "2026-11-21T01:54:27Z".to_owned(),
        finished: "2026-11-21T01:55:27Z".to_owned(),
        facts: Facts::new(),
        measurements: vec![
            // Its batches take up to 500 ns.
            row(Case::plain(EMPTY_LOOP), [-500.0, 500.0, -500.0, 500.0, -500.0, 500.0, 0.0]),
            row(of_call("create"), around(20_000.0)),
            row(of_call("close"), around(300.0)),
            row(of_call("fsync"), around(90_000.0)),
            row(of_call("all"), around(110_300.0)),
        ],
    }
}

#[test]
fn a_value_below_the_limit_is_less_than_it_in_words_and_in_no_picture() {
    let run = run();
    let summary = Summary::of(&run);
    let close = &run.measurements[2].case;
    let figures = summary.figures(close).expect("figures");
    assert_eq!((figures.in_words().as_str(), figures.interval_in_words()), ("< 500 ns", None));
    let shown = tollgate_view::show::text::text(&summary, Options { width: Some(100), ..Options::default() });
    // It has no interval and is in no sentence.
    insta::assert_snapshot!(anstream::adapter::strip_str(&shown));
}

#[test]
fn cases_without_memory_are_said_where_a_run_ends() {
    let mut run = run();
    let summary = Summary::of(&run);
    assert_eq!(summary.without_memory(), None);
    for (kib, why) in [
        (64, "128 MiB would be more than half of the 200 MiB that memory.max allows"),
        (128, "256 MiB would be more than half of the 200 MiB that memory.max allows"),
        (256, "a quarter of the caches is not known"),
    ] {
        let params = [("kib".to_owned(), ParamValue::from(kib))].into();
        let case = Case { benchmark: "memory/latency".to_owned(), params };
        run.measurements.push(Measurement { case, outcome: Outcome::Skipped { why: why.to_owned() } });
    }
    let said = "Left out: 2 cases that need up to 256 MiB of memory, more than half of the 200 MiB that memory.max allows";
    let summary = Summary::of(&run);
    assert_eq!(summary.without_memory().as_deref(), Some(said));
    let screen = anstream::adapter::strip_str(&tollgate_view::screen::text(&summary, 80)).to_string();
    assert!(
        screen.lines().count() <= 43 && screen.lines().all(|line| line.chars().count() <= 80),
        "{screen}"
    );
    for text in [screen, tollgate_view::show::text::text(&summary, Options::default())] {
        let text = anstream::adapter::strip_str(&text).to_string();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(said), "{text}");
    }
}

/// 48 samples of a store in six processes, about one time or about two.
fn stores(kib: u64, shared: bool, times: [f64; 2]) -> Measurement {
    let params = [
        ("kib".to_owned(), ParamValue::from(kib)),
        ("shared".to_owned(), ParamValue::Flag(shared)),
        ("pair".to_owned(), "llc".into()),
        ("order".to_owned(), "sequential".into()),
        ("page".to_owned(), "4k".into()),
    ];
    let samples = (0..48).map(|at| times[at % 2] * (1.0 + (at * 7 % 48) as f64 / 10_000.0)).collect();
    let whole = ProcessRounds { rounds: 8, ran: None, discarded: Vec::new() };
    let of_lines = Measured { unit: Unit::NanosecondsPerLine, ops_per_sample: 509, ..measured([0.0; 7]) };
    let measured = Measured { samples, processes: vec![whole; 6], group: "memory".to_owned(), ..of_lines };
    let case = Case { benchmark: "memory/thrash".to_owned(), params: params.into() };
    Measurement { case, outcome: Outcome::Measured(Box::new(measured)) }
}

#[test]
fn sharing_is_two_curves_by_size_with_both_modes_of_a_case() {
    let mut run = run();
    run.measurements.clear();
    let times = [
        (8, [0.9; 2], [14.0, 30.0]),
        (128, [1.0; 2], [12.0; 2]),
        (2 << 10, [2.5; 2], [7.5; 2]),
        (16 << 10, [6.0; 2], [6.0; 2]),
    ];
    for (kib, alone, shared) in times {
        run.measurements.extend([stores(kib, false, alone), stores(kib, true, shared)]);
    }
    let summary = Summary::of(&run);
    let shown = tollgate_view::show::text::text(&summary, Options { width: Some(80), ..Options::default() });
    let shown = anstream::adapter::strip_str(&shown).to_string();
    let (_, picture) = shown.split_once("that is stored to, by buffer size\n").expect("a picture");
    assert!(picture.contains("sharing is slower up to 2M, but not"), "{picture}");
    insta::assert_snapshot!(picture);
    let runs = [run];
    let page = tollgate_view::report::page_of(&runs, |_| None, &Spread::default()).render().expect("a page");
    let (_, figure) = page.split_once("memory/thrash: a store where another core").expect("a figure");
    let figure = figure.split("</figure>").next().expect("a picture");
    // A sign for each of two keys, of eight medians, and of both modes of one case.
    assert_eq!(figure.matches("<use href=\"#m").count(), 2 + 8 + 2, "{figure}");
    assert_eq!(figure.matches(" in 50 % of the samples").count(), 2, "{figure}");
    // The case with two modes has a row with a sign at either.
    let (_, bimodal) = page.split_once("<h3>Bimodal cases</h3>").expect("a figure");
    let bimodal = bimodal.split("</figure>").next().expect("its end");
    assert_eq!(bimodal.matches("\n<li").count(), 1, "{bimodal}");
    assert_eq!(bimodal.matches("<title>50 % of the samples</title>").count(), 2, "{bimodal}");
    // A run without the overview has only this picture, and it is that of the page.
    let alone = tollgate_view::report::picture_of(&runs, &Spread::default(), 0.0).expect("a picture");
    assert_eq!(alone.matches("<use href=\"#m").count(), 2 + 8 + 2, "{alone}");
    let drawing = |text: &str| {
        let (_, plot) = text.split_once("<svg class=\"plot\"").expect("a drawing");
        let (_, drawing) = plot.split_once("</title>").expect("its title");
        drawing.split_once("</g></svg>").expect("its end").0.to_owned()
    };
    assert_eq!(drawing(&alone), drawing(figure));
    assert!(alone.contains(">other lines</text>") && alone.contains(">the same lines</text>"), "{alone}");
}
