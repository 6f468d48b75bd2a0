//! Compares the guest's latencies with those of this machine's kernel: the processor's share, and the kernel's.

use std::collections::BTreeMap;

use tollgate_model::Unit;
use tollgate_output::figures;

use super::text::per_operation;
use crate::{Results, Status};

const PAIRS: [(&str, &str); 5] = [
    ("syscall", "entry/syscall"),
    ("int", "entry/int80"),
    ("compat-int", "entry/compat-int80"),
    ("compat-sysenter", "entry/compat-fast"),
    ("compat-syscall", "entry/compat-fast"),
];

/// Latencies of the entries into this machine's kernel, from a run on the same processor.
pub struct Entries {
    /// Name of the run.
    pub run: String,
    /// Frequency in Hz of the time-stamp counter, for the run and for the guest.
    pub hertz: f64,
    /// Latency in ns of each of [`benchmarks`] that the run has.
    pub latencies: BTreeMap<&'static str, f64>,
}

/// Returns the benchmarks that the guest's latencies are compared with.
pub fn benchmarks() -> impl Iterator<Item = &'static str> {
    PAIRS.iter().map(|(_, benchmark)| *benchmark)
}

/// Says the processor's share of the latency of each entry, one sentence each.
pub fn shares(results: &Results, entries: &Entries) -> Vec<String> {
    let text = PAIRS.iter().filter_map(|&(experiment, gate)| {
        let row = results.rows.iter().find(|row| row.experiment.name == experiment)?;
        let Status::Done(rounds) = &row.status else { return None };
        let own = per_operation(rounds)? / entries.hertz * 1e9;
        let whole = *entries.latencies.get(gate)?;
        let shown = |value| figures::estimate(value, Unit::Nanoseconds);
        Some(if own <= whole {
            format!(
                "{gate} takes {} here (run {}): the processor takes {} of it for {experiment}, {}, and the kernel {}.",
                shown(whole),
                entries.run,
                shown(own),
                figures::percent(own / whole),
                shown(whole - own)
            )
        } else {
            format!(
                "{experiment} takes {} in the guest, and {gate} took {} (run {}): the processor's speed differed.",
                shown(own),
                shown(whole),
                entries.run
            )
        })
    });
    text.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::{Experiment, Round};
    use crate::{EntryRow, Provenance};

    /// Makes a run with one latency, in ns, whose clock has 2 GHz.
    fn gate(latency: f64) -> Entries {
        Entries {
            run: "20261121-015427-3f2a91c4".to_owned(),
            hertz: 2e9,
            latencies: [("entry/syscall", latency)].into(),
        }
    }

    fn results() -> Results {
        let experiment = Experiment::by_name("syscall").expect("an experiment");
        let round = Round {
            iterations: 100,
            ticks_one: 1000,
            ticks_two: 7000,
            count_one: 100,
            count_two: 200,
            value: 0,
        };
        let row = EntryRow { experiment, status: Status::Done(vec![round]), references: None };
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
