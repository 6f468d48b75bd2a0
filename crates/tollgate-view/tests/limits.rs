//! A value below the detection limit is `< limit`, and a few samples have a maximum and no p99, wherever a figure is shown.

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
    // A value that is not known has no share of the whole. Few samples have a maximum and no p99.
    insta::assert_snapshot!(anstream::adapter::strip_str(&shown));
}
