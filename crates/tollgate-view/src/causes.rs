//! The facts of a machine that can be causes of a difference. A fact names the boundaries that it affects, a benchmark those that it
//! crosses; if they have none in common, the fact is not a cause.

use std::collections::BTreeSet;

use tollgate_model::compare::FactDifference;
use tollgate_model::{Boundary, Case, Effect};
use tollgate_suites::Benchmark;

/// Whether an effect reaches this case. Nothing is claimed about a benchmark that this build lacks, as in a document of another
/// version.
pub fn reaches(effect: &Effect, case: &Case) -> bool {
    tollgate_suites::find(&case.benchmark).is_some_and(|benchmark| reaches_benchmark(effect, benchmark, case))
}

fn reaches_benchmark(effect: &Effect, benchmark: &Benchmark, case: &Case) -> bool {
    let takes_time = !benchmark.unit.is_amount();
    // A frequency or a load does not change a size or a count.
    (takes_time || !effect.is_general()) && effect.reach.meets(benchmark.crosses_in(&case.params))
}

fn crossed<'a>(cases: impl Iterator<Item = &'a Case>) -> BTreeSet<Boundary> {
    let of = |case: &'a Case| Some(tollgate_suites::find(&case.benchmark)?.crosses_in(&case.params));
    cases.filter_map(of).flatten().collect()
}

const LAYERS: [&str; 1] = ["container.layers"];

/// Sorts facts: those that affect a boundary which one of these cases crosses, then those that affect others or everything, then
/// those without a known effect.
pub fn sort<'a>(facts: &mut [FactDifference], differing: impl Iterator<Item = &'a Case>) {
    let crossed = crossed(differing);
    facts.sort_by_key(|fact| match tollgate_inspect::effect(&fact.name) {
        Some(effect) if !effect.is_general() && effect.reach.meets(crossed.iter().copied()) => {
            // A layer affects a latency by its settings, which other facts name.
            u8::from(LAYERS.contains(&fact.name.as_str()))
        }
        Some(_) => 2,
        None => 3,
    });
}

#[cfg(test)]
mod tests {
    use tollgate_inspect::{FactSpec, MOMENTS, STORAGE};
    use tollgate_model::{Fact, Params, Reach};
    use tollgate_suites::{SUITES, Suite};

    use super::*;

    fn case(benchmark: &str, params: &[(&str, &str)]) -> Case {
        let params: Params =
            params.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        Case { benchmark: benchmark.to_owned(), params }
    }

    fn can_cause(fact: &str, case: &Case) -> bool {
        tollgate_inspect::effect(fact).is_some_and(|effect| reaches(effect, case))
    }

    fn benchmarks(suite: &Suite) -> impl Iterator<Item = &'static Benchmark> + Clone {
        suite.benchmarks.iter().copied().filter(|benchmark| !benchmark.name.contains("/test-"))
    }

    fn facts() -> impl Iterator<Item = (&'static FactSpec, Effect)> {
        let all = tollgate_inspect::facts().chain(STORAGE).chain(MOMENTS);
        all.filter_map(|spec| Some((spec, spec.effect?)))
    }

    fn affected(effect: &Effect) -> &'static [Boundary] {
        match effect.reach {
            Reach::Everything => &[],
            Reach::Boundaries(boundaries) => boundaries,
        }
    }

    /// Whether it reaches any case of the benchmark, on any machine.
    fn reaches_any(effect: &Effect, benchmark: &Benchmark) -> bool {
        affected(effect).iter().any(|boundary| benchmark.crosses.contains(boundary))
    }

    #[test]
    fn a_fact_is_a_cause_only_where_boundaries_meet() {
        assert!(can_cause("mitigation.pti", &case("entry/syscall", &[])));
        assert!(!can_cause("mitigation.pti", &case("entry/call", &[])));
        assert!(can_cause("files.device", &case("files/read", &[("state", "uncached")])));
        assert!(!can_cause("files.device", &case("files/read", &[("state", "cached")])));
        assert!(can_cause("mitigation.pti", &case("locks/uncontended", &[("by", "semop")])));
        assert!(!can_cause("mitigation.pti", &case("locks/uncontended", &[("by", "cmpxchg")])));
        assert!(!can_cause("mitigation.srbds", &case("entry/syscall", &[])));
    }

    #[test]
    fn clocks_are_no_cause_of_a_lock() {
        let locks = SUITES.iter().find(|suite| suite.name == "locks").expect("registered");
        let clocks = ["clocksource.current", "vdso.present", "clocksource.in_user_mode", "clock.offsets"];
        for name in clocks {
            let effect = tollgate_inspect::effect(name).expect("it has one");
            for benchmark in locks.benchmarks {
                assert!(!reaches_any(effect, benchmark), "{name} and {}", benchmark.name);
            }
        }
    }

    #[test]
    fn what_takes_no_time_has_no_general_cause() {
        assert!(can_cause("power.governor", &case("memory/latency", &[])));
        assert!(can_cause("power.governor", &case("bench/empty-loop", &[])));
        assert!(!can_cause("power.governor", &case("locks/footprint", &[("part", "kernel")])));
        assert!(can_cause("kernel.release", &case("locks/footprint", &[("part", "kernel")])));
    }

    #[test]
    fn nothing_is_claimed_of_a_benchmark_of_another_version() {
        assert!(facts().all(|(_, effect)| !reaches(&effect, &case("entry/of-another-version", &[]))));
    }

    #[test]
    fn what_affects_a_case_that_differs_stands_first() {
        let fact = |name: &str| FactDifference {
            name: name.to_owned(),
            base: Some(Fact::known("one", "a file")),
            other: Some(Fact::known("another", "a file")),
        };
        let mut facts = ["cpu.family", "clocksource.current", "power.governor", "mitigation.pti"].map(fact);
        sort(&mut facts, [case("entry/syscall", &[])].iter());
        let sorted: Vec<&str> = facts.iter().map(|fact| fact.name.as_str()).collect();
        assert_eq!(sorted, ["mitigation.pti", "clocksource.current", "power.governor", "cpu.family"]);
    }

    /// For each fact and suite the number of benchmarks that the fact can be a cause of; at the end the facts whose
    /// boundaries no benchmark crosses. A new fact or benchmark changes this table: the change shows what it reaches.
    #[test]
    fn facts_by_suite() {
        let names: String = SUITES.iter().map(|suite| format!("{:>13}", suite.name)).collect();
        let mut table = vec![format!("{:<42}{names}", "fact")];
        let mut without = vec![String::new(), "No benchmark crosses what these affect:".to_owned()];
        for (spec, effect) in facts() {
            let reached = |suite: &&Suite| {
                benchmarks(suite).filter(|benchmark| reaches_any(&effect, benchmark)).count()
            };
            let cell = |suite: &&Suite| match reached(suite) {
                0 => format!("{:>13}", "-"),
                count => format!("{:>13}", format!("{count}/{}", benchmarks(suite).count())),
            };
            if effect.is_general() {
                table.push(format!("{:<42}  everything that takes time", spec.name));
            } else if SUITES.iter().any(|suite| reached(suite) > 0) {
                let cells: String = SUITES.iter().map(cell).collect();
                table.push(format!("{:<42}{cells}", spec.name));
            } else {
                without.push(format!("{}: {}", spec.name, effect.reach));
            }
        }
        table.extend(without);
        insta::assert_snapshot!(table.join("\n"));
    }

    /// For each boundary the benchmarks that cross it and the facts that affect it.
    #[test]
    fn benchmarks_and_facts_by_boundary() {
        let all: Vec<&Benchmark> = SUITES.iter().flat_map(|suite| benchmarks(suite)).collect();
        let crossed = all.iter().flat_map(|benchmark| benchmark.crosses);
        let boundaries: BTreeSet<Boundary> =
            facts().flat_map(|(_, effect)| affected(&effect)).chain(crossed).copied().collect();
        let listed =
            |names: Vec<&'static str>| if names.is_empty() { "nothing".to_owned() } else { names.join(" ") };
        let block = |boundary: &Boundary| {
            let crossing = all.iter().filter(|benchmark| benchmark.crosses.contains(boundary));
            let affecting = facts().filter(|(_, effect)| affected(effect).contains(boundary));
            format!(
                "{boundary}\n  crossed by  {}\n  affected by {}",
                listed(crossing.map(|benchmark| benchmark.name).collect()),
                listed(affecting.map(|(spec, _)| spec.name).collect())
            )
        };
        insta::assert_snapshot!(boundaries.iter().map(block).collect::<Vec<_>>().join("\n"));
    }
}
