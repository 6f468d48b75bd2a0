//! Made-up sessions: runs whose turns share the machine's noise, and comparisons with given results.

#![allow(dead_code, reason = "each test file uses its part")]

use tollgate_model::compare::{Alternation, Verdict};
use tollgate_model::run::{Knob, Part, SCHEMA, Tool};
use tollgate_model::stats::Interval;
use tollgate_model::{
    Case, Environment, Fact, Facts, Measured, Measurement, Outcome, ParamValue, ProcessRounds, Provenance,
    Run, Unit,
};
use tollgate_view::proven::Proven;
use tollgate_view::session::Session;

pub const ID: &str = "20261122-210501-1a2b3c4d";
/// Pairs of processes, and turns in each.
const PAIRS: usize = 24;
const TURNS: usize = 20;

/// An environment of a session.
pub struct Side {
    pub name: &'static str,
    pub kind: Environment,
    pub paired: bool,
    pub knob: Option<Knob>,
    /// In addition to those of the machine.
    pub facts: Vec<(&'static str, Fact)>,
    /// The factor on the latencies.
    pub ratio: fn(&Case) -> f64,
}

pub fn host() -> Side {
    Side { name: "host", kind: Environment::Vm, paired: true, knob: None, facts: Vec::new(), ratio: |_| 1.0 }
}

/// Its filter adds 46 ns to the 83 of each kernel entry.
pub fn filtered() -> Side {
    Side {
        name: "container",
        kind: Environment::Container,
        facts: vec![
            ("container.layers", Fact::known(vec!["runc".to_owned()], "/proc/1/cgroup")),
            ("seccomp.mode", Fact::known("filter", "/proc/self/status")),
            ("seccomp.filters", Fact::known(1, "/proc/self/status")),
            (
                "run.filter",
                Fact::known(
                    "tollgate's own, of the calls that Docker's documentation lists as blocked",
                    "the environment's name",
                ),
            ),
            ("process.no_new_privileges", Fact::known(true, "/proc/self/status")),
            ("process.capabilities", Fact::known("00000000a80425fb", "/proc/self/status")),
            ("process.limit.files", Fact::known(1024, "/proc/self/limits")),
        ],
        ratio: |case| match case.benchmark.as_str() {
            "entry/syscall" => 1.56,
            "traps/minor-fault" | "entry/vdso-clock" => 1.0,
            _ => 1.08,
        },
        ..host()
    }
}

fn machine() -> Facts {
    let known = [
        ("cpu.model", Fact::known("Intel(R) Xeon(R) Processor", "CPUID")),
        ("cpu.online", Fact::known(2, "/sys/devices/system/cpu/online")),
        ("kernel.release", Fact::known("6.18.44", "uname(2)")),
        ("hypervisor.present", Fact::known(true, "CPUID")),
        ("hypervisor.layers", Fact::known(vec!["KVM".to_owned(), "Firecracker".to_owned()], "CPUID")),
        ("container.layers", Fact::known(Vec::<String>::new(), "/proc/1/cgroup")),
        ("seccomp.mode", Fact::known("disabled", "/proc/self/status")),
        ("seccomp.filters", Fact::known(0, "/proc/self/status")),
        ("process.no_new_privileges", Fact::known(false, "/proc/self/status")),
        ("process.capabilities", Fact::known("000001ffffffffff", "/proc/self/status")),
        ("process.limit.files", Fact::known(1_048_576, "/proc/self/limits")),
        ("memory.thp", Fact::known("madvise", "/sys/kernel/mm/transparent_hugepage/enabled")),
        ("run.clock", Fact::known("tsc", "CPUID")),
        ("run.clock_hz", Fact::known(2_000_000_000_i64, "run.clock")),
        ("run.cpu", Fact::known(1, "sched_getaffinity(2)")),
    ];
    known.map(|(name, fact)| (name.to_owned(), fact)).into()
}

pub fn case(name: &str) -> Case {
    let (benchmark, params) = name.split_once('{').unwrap_or((name, ""));
    let pairs = params.trim_end_matches('}').split(',').filter_map(|pair| pair.split_once('='));
    Case {
        benchmark: benchmark.to_owned(),
        params: pairs.map(|(name, value)| (name.trim().to_owned(), ParamValue::from(value))).collect(),
    }
}

/// Real benchmarks with their latencies in ns.
pub const CASES: [(&str, f64); 10] = [
    ("entry/syscall", 83.1),
    ("entry/syscall-getpid", 85.4),
    ("entry/vdso-clock", 24.8),
    ("entry/int80", 940.0),
    ("entry/seccomp{instructions=1}", 119.0),
    ("entry/seccomp{instructions=32}", 171.0),
    ("entry/user-dispatch", 1290.0),
    ("traps/minor-fault", 611.0),
    ("traps/signal-self", 1180.0),
    ("traps/invalid-opcode{opcode=ud1}", 1420.0),
];

fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as f64 / (1_u64 << 31) as f64
}

/// The runs of a session. A process pair and a turn move all sides by the same factor.
pub fn runs(sides: &[Side], cases: &[(&str, f64)]) -> Vec<Run> {
    let measured = |side: &Side, at: usize, name: &str, latency: f64| {
        let seed = name.bytes().fold(7_u64, |seed, byte| seed.wrapping_mul(31) + u64::from(byte));
        // The noise of the machine, and of this side alone.
        let (mut common, mut own) = (seed, seed ^ (at as u64 + 1) << 32);
        let ratio = (side.ratio)(&case(name));
        let mut samples = Vec::new();
        for _ in 0..PAIRS {
            let process = 1.0 + 0.3 * random(&mut common);
            for _ in 0..TURNS {
                let turn = 1.0 + 0.05 * random(&mut common);
                samples.push(latency * ratio * process * turn * (1.0 + 0.002 * random(&mut own)));
            }
        }
        Measured {
            unit: Unit::Nanoseconds,
            provenance: Provenance::Hardware,
            ops_per_sample: 500,
            clock_hz: 2_000_000_000,
            samples,
            discarded: 0,
            processes: vec![ProcessRounds { rounds: TURNS as u32, ran: None, discarded: Vec::new() }; PAIRS],
            counted: None,
            counters: Vec::new(),
            events: Vec::new(),
            bytes_per_op: None,
            group: "entry".to_owned(),
            baseline: None,
            notes: Vec::new(),
            span_ns: None,
            traced: Vec::new(),
            traced_apart: Vec::new(),
        }
    };
    let run = |(at, side): (usize, &Side)| {
        let mut facts = machine();
        facts.extend(side.facts.iter().map(|(name, fact)| ((*name).to_owned(), fact.clone())));
        let measurement = |(name, latency): &(&str, f64)| Measurement {
            case: case(name),
            outcome: Outcome::Measured(Box::new(measured(side, at, name, *latency))),
        };
        Run {
            schema: SCHEMA,
            tool: Tool { name: "tollgate".to_owned(), version: "0.1.0".to_owned() },
            id: format!("20261122-210501-0000000{at}").parse().expect("an id"),
            label: None,
            environment: side.kind,
            session: Some(Part {
                id: ID.parse().expect("an id"),
                environment: side.name.to_owned(),
                stands_for: None,
                place: at as u32,
                of: sides.len() as u32,
                paired: side.paired,
                knob: side.knob.clone(),
                switches: Vec::new(),
                command: None,
            }),
            started: "2026-11-22T21:05:01Z".to_owned(),
            finished: "2026-11-22T21:05:22Z".to_owned(),
            facts,
            measurements: cases.iter().map(measurement).collect(),
        }
    };
    sides.iter().enumerate().map(run).collect()
}

/// Sets the results of the comparisons: each row has the ratio of its side within 0.3 %. The statistics do not matter here.
pub fn decide(session: &mut Session<'_>, sides: &[Side]) {
    for (comparison, side) in session.comparisons.iter_mut().zip(&sides[1..]) {
        if !side.paired {
            continue;
        }
        comparison.is_alternated = true;
        comparison.proven = Proven::new(comparison.base, comparison.other, &comparison.facts);
        for row in &mut comparison.rows {
            let result = &mut row.result;
            let ratio = (side.ratio)(&result.case);
            let Some(base) = result.base else { continue };
            let adds = base * (ratio - 1.0);
            let around = |at: f64| Some(Interval { low: at - 0.003 * base, high: at + 0.003 * base });
            result.ratio = ratio;
            result.interval = Some(Interval { low: ratio * 0.997, high: ratio * 1.003 });
            result.threshold = 0.003;
            result.verdict = match ratio {
                above if above > 1.006 => Verdict::Slower,
                below if below < 0.994 => Verdict::Faster,
                _ => Verdict::Same,
            };
            result.why = None;
            result.alternation = Some(Alternation {
                adds,
                adds_interval: around(adds),
                pairs: PAIRS,
                turns: PAIRS * TURNS,
                correlation: Some(0.93),
            });
        }
        // Their order follows from the changes.
        let differing: Vec<Case> = comparison.changed().iter().map(|row| row.case().clone()).collect();
        tollgate_view::causes::sort(&mut comparison.facts, differing.iter());
    }
}

/// The lines that an explanation has under this heading.
pub fn under<'a>(explanation: &'a str, heading: &str) -> Vec<&'a str> {
    let mut lines = explanation.lines().skip_while(|line| !line.starts_with(&format!("{heading} ")));
    let first = lines.next().and_then(|line| line.strip_prefix(heading)).map(str::trim_start);
    first.into_iter().chain(lines.map_while(|line| line.strip_prefix("             "))).collect()
}
