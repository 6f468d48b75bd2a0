//! The guest's latencies compared with those of this machine's kernel: the processor's share, and the kernel's.

use tollgate_lab::{Results, Status};
use tollgate_model::{Run, Unit};
use tollgate_output::figures;

use super::text::per_operation;
use crate::facts;
use crate::summary::latency;

/// A crossing by itself, and the benchmark of Linux that uses it.
const PAIRS: [(&str, &str); 5] = [
    ("syscall", "entry/syscall"),
    ("int", "entry/int80"),
    ("compat-int", "entry/compat-int80"),
    ("compat-sysenter", "entry/compat-fast"),
    ("compat-syscall", "entry/compat-fast"),
];

/// Whether a run has what the guest's latencies are compared with.
pub fn has_entries(run: &Run) -> bool {
    PAIRS.iter().any(|pair| latency(run, pair.1).is_some())
}

/// The processor's share of the latency of each entry that a run on the same processor has, a sentence each.
pub fn shares(results: &Results, run: &Run) -> Vec<String> {
    let Some(hertz) = facts::number(&run.facts, facts::CLOCK_HZ).filter(|hertz| *hertz > 0.0) else {
        return Vec::new();
    };
    let text = PAIRS.iter().filter_map(|&(experiment, gate)| {
        let row = results.rows.iter().find(|row| row.experiment.name == experiment)?;
        let Status::Done(rounds) = &row.status else { return None };
        let own = per_operation(rounds)? / hertz * 1e9;
        let whole = latency(run, gate)?;
        let shown = |value| figures::estimate(value, Unit::Nanoseconds);
        Some(match own <= whole {
            true => format!(
                "{gate} takes {} here (run {}): the processor takes {} of it for {experiment}, {}, and the kernel {}.",
                shown(whole),
                run.id,
                shown(own),
                figures::percent(own / whole),
                shown(whole - own)
            ),
            false => format!(
                "{experiment} takes {} in the guest, and {gate} took {} (run {}): the processor's speed differed.",
                shown(own),
                shown(whole),
                run.id
            ),
        })
    });
    text.collect()
}

#[cfg(test)]
mod tests {
    use tollgate_lab::guest::{Experiment, Round};
    use tollgate_lab::{Provenance, Row};
    use tollgate_model::measurement::ProcessRounds;
    use tollgate_model::run::{SCHEMA, Tool};
    use tollgate_model::{Case, Environment, Fact, Measured, Measurement, Outcome, Provenance as Executor};

    use super::*;

    fn gate(estimate: f64) -> Run {
        let measured = Measured {
            unit: Unit::Nanoseconds,
            provenance: Executor::Hardware,
            ops_per_sample: 1,
            clock_hz: 2_000_000_000,
            samples: vec![estimate; 3],
            discarded: 0,
            processes: vec![ProcessRounds { rounds: 3, ran: None, discarded: Vec::new() }],
            counted: None,
            counters: Vec::new(),
            events: Vec::new(),
            bytes_per_op: None,
            group: "entry".to_owned(),
            baseline: None,
            notes: Vec::new(),
            span_ns: None,
            traced: Vec::new(),
        };
        let measurement = Measurement {
            case: Case::plain("entry/syscall"),
            outcome: Outcome::Measured(Box::new(measured)),
        };
        let facts = [(facts::CLOCK_HZ.to_owned(), Fact::known(2_000_000_000_i64, "a clock"))];
        Run {
            schema: SCHEMA,
            tool: Tool { name: "tollgate".to_owned(), version: "0".to_owned() },
            id: "20261121-015427-3f2a91c4".parse().expect("an id"),
            label: None,
            environment: Environment::Host,
            session: None,
            started: "2026-11-21T01:54:27Z".to_owned(),
            finished: "2026-11-21T01:54:28Z".to_owned(),
            facts: facts.into_iter().collect(),
            measurements: vec![measurement],
        }
    }

    fn results() -> Results {
        let experiment = Experiment::of("syscall").expect("an experiment");
        let round = Round {
            iterations: 100,
            ticks_one: 1000,
            ticks_two: 7000,
            count_one: 100,
            count_two: 200,
            value: 0,
        };
        let row = Row { experiment, status: Status::Done(vec![round]), references: None };
        Results {
            provenance: Some(Provenance::Kvm),
            maker: None,
            machines: 1,
            rows: vec![row],
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_processor_s_share_and_the_rest_are_the_whole() {
        // 60 cycles at 2 GHz.
        let text = shares(&results(), &gate(120.0));
        assert_eq!(text.len(), 1);
        for part in [
            "entry/syscall takes 120 ns here",
            "takes 30.0 ns of it for syscall, 25 %",
            "and the kernel 90.0 ns",
        ] {
            assert!(text[0].contains(part), "{part} in {}", text[0]);
        }
    }

    #[test]
    fn a_guest_that_is_slower_than_the_kernel_has_no_share() {
        assert!(shares(&results(), &gate(20.0))[0].contains("the processor's speed differed"));
    }
}
