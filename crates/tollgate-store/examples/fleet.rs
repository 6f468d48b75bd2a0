//! Writes the directory of a simulated fleet: `fleet DIR MACHINES DAYS`. The code of real runs writes the rows. Latencies are
//! drawn from a seed, so every fleet of one size is the same. `DIR/exact.json` has the expected answers to the queries in
//! docs/fleet-queries.md, computed from all samples.
//!
//! Halfway through the month the machines go from kernel 6.1.90 to 6.12.8, a third of them a day. The new kernel makes system
//! calls 12 % slower. Two machines in five trace system calls, which makes them 60 % slower.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::json;
use tollgate_model::run::{SCHEMA, Tool};
use tollgate_model::{
    Case, Environment, Fact, Facts, Measured, Measurement, Outcome, Part, ProcessRounds, Provenance, Run,
    Unit,
};
use tollgate_store::fleet::layout;

const PROCESSES: usize = 8;
const ROUNDS: usize = 12;
const BENCHMARKS: [(&str, f64); 3] =
    [("entry/syscall", 90.0), ("traps/breakpoint", 1400.0), ("processes/fork", 52_000.0)];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, machines, days] = arguments.as_slice() else {
        return Err("usage: fleet DIR MACHINES DAYS".into());
    };
    let (directory, machines, days) = (Path::new(directory), machines.parse()?, days.parse()?);
    let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for machine in 0..machines {
        for day in 0..days {
            let drawn = Drawn { machine, day, days };
            for run in std::iter::once(drawn.run()?).chain(drawn.session()?) {
                for measurement in &run.measurements {
                    if let Outcome::Measured(measured) = &measurement.outcome {
                        let of_benchmark = samples.entry(measurement.case.benchmark.clone()).or_default();
                        of_benchmark.extend(&measured.samples);
                    }
                }
                let files = layout::files(&run)?;
                for file in [files.facts, files.rows] {
                    let path = directory.join(file.path);
                    fs::create_dir_all(path.parent().ok_or("no parent")?)?;
                    fs::write(path, file.bytes)?;
                }
            }
        }
    }
    let exact: BTreeMap<String, _> =
        samples.into_iter().map(|(benchmark, samples)| (benchmark, summary(samples))).collect();
    fs::write(directory.join("exact.json"), serde_json::to_vec_pretty(&exact)?)?;
    Ok(())
}

/// The 99th percentile of the samples, and their number.
fn summary(mut samples: Vec<f64>) -> serde_json::Value {
    samples.sort_unstable_by(f64::total_cmp);
    let rank = (0.99 * samples.len() as f64).ceil() as usize;
    json!({"p99": samples[rank.max(1) - 1], "count": samples.len()})
}

struct Drawn {
    machine: u64,
    day: u64,
    days: u64,
}

impl Drawn {
    /// A property of the machine that stays the same every day.
    fn of_machine(&self, what: u64) -> f64 {
        uniform(self.machine * 1000 + what)
    }

    fn is_upgraded(&self) -> bool {
        // A third on each of three days.
        self.day >= self.days / 2 + (self.of_machine(1) * 3.0) as u64
    }

    fn is_traced(&self) -> bool {
        self.of_machine(2) < 0.4
    }

    fn run(&self) -> Result<Run, Box<dyn Error>> {
        let (machine, day) = (self.machine, self.day);
        // A minute past three, plus a second for each machine.
        let second = machine % 60;
        let minute = 1 + machine / 60 % 59;
        let date = format!("2026-{:02}-{:02}", 11 + day / 30, 1 + day % 30);
        let started = format!("{date}T03:{minute:02}:{second:02}Z");
        let id = format!("{}-03{minute:02}{second:02}-{machine:08x}", date.replace('-', ""));
        Ok(Run {
            schema: SCHEMA,
            tool: Tool { name: "tollgate".to_owned(), version: "0.1.0".to_owned() },
            id: id.parse()?,
            label: None,
            environment: Environment::Vm,
            session: None,
            finished: started.clone(),
            started,
            facts: self.facts(),
            measurements: self.measurements(),
        })
    }

    /// The runs of the session that every tenth machine made on the first day. A container makes a signal 5 % slower.
    fn session(&self) -> Result<Vec<Run>, Box<dyn Error>> {
        if self.day > 0 || !self.machine.is_multiple_of(10) {
            return Ok(Vec::new());
        }
        let run = self.run()?;
        let begin = run.id.to_string();
        let begin = begin.rsplit_once('-').map_or(begin.as_str(), |(begin, _)| begin);
        let id = |place: u64| format!("{begin}-{:08x}", (place + 1) << 24 | self.machine);
        let sides = [("host", Environment::Vm, 1.0), ("container", Environment::Container, 1.05)];
        let of_side = |(place, (name, environment, ratio)): (usize, (&str, Environment, f64))| {
            let outcome = Outcome::Measured(Box::new(self.measured(3, 1100.0 * ratio)));
            Ok(Run {
                id: id(place as u64).parse()?,
                environment,
                session: Some(Part {
                    id: id(2).parse()?,
                    environment: name.to_owned(),
                    stands_for: None,
                    place: place as u32,
                    of: sides.len() as u32,
                    paired: true,
                    knob: None,
                    switches: Vec::new(),
                    command: None,
                }),
                measurements: vec![Measurement { case: Case::plain("traps/signal-self"), outcome }],
                ..run.clone()
            })
        };
        sides.into_iter().enumerate().map(of_side).collect()
    }

    fn facts(&self) -> Facts {
        let cpu = ["Xeon Gold 6338", "EPYC 7763", "EPYC 9654"][(self.of_machine(3) * 3.0) as usize];
        let kernel = if self.is_upgraded() { "6.12.8" } else { "6.1.90" };
        let governor = if self.of_machine(4) < 0.3 { "powersave" } else { "performance" };
        [
            ("kernel.release", Fact::known(kernel, "uname(2)")),
            ("kernel.traced_system_calls", Fact::known(self.is_traced(), "/sys/kernel/tracing")),
            ("cpu.model", Fact::known(cpu, "CPUID")),
            ("cpu.online", Fact::known(64, "/sys/devices/system/cpu/online")),
            ("power.governor", Fact::known(governor, "/sys/devices/system/cpu/cpu0/cpufreq")),
            ("clocksource.current", Fact::known("tsc", "/sys/devices/system/clocksource")),
            ("mitigation.pti", Fact::known(false, "CPUID and /proc/cmdline")),
            ("container.layers", Fact::known(Vec::<String>::new(), "marks")),
            ("memory.thp", Fact::refused("permission denied")),
            ("uptime", Fact::known((self.day * 86_400) as i64, "/proc/uptime")),
            ("run.machine", Fact::known(format!("node-{:04}", self.machine), "--machine")),
        ]
        .map(|(name, fact)| (name.to_owned(), fact))
        .into()
    }

    fn measurements(&self) -> Vec<Measurement> {
        let mut measurements: Vec<Measurement> = BENCHMARKS
            .iter()
            .enumerate()
            .map(|(number, &(benchmark, estimate))| Measurement {
                case: Case::plain(benchmark),
                outcome: Outcome::Measured(Box::new(self.measured(number as u64, estimate))),
            })
            .collect();
        let why = "the kernel has no IA-32 emulation".to_owned();
        measurements
            .push(Measurement { case: Case::plain("entry/int80"), outcome: Outcome::Skipped { why } });
        measurements
    }

    fn measured(&self, benchmark: u64, estimate: f64) -> Measured {
        let is_call = benchmark == 0;
        let level = estimate
            * (1.0 + 0.1 * self.of_machine(10 + benchmark))
            * if is_call && self.is_upgraded() { 1.12 } else { 1.0 }
            * if is_call && self.is_traced() { 1.6 } else { 1.0 };
        let first = ((self.machine * 10_000 + self.day) * 16 + benchmark) * 1024;
        let sample = |number: usize| {
            let (body, tail) = (uniform(first + number as u64), uniform(first + 512 + number as u64));
            // One sample in fifty is disturbed.
            level * (1.0 + 0.02 * body) * if tail < 0.02 { 1.0 + 400.0 * tail } else { 1.0 }
        };
        Measured {
            unit: Unit::Nanoseconds,
            provenance: Provenance::Hardware,
            ops_per_sample: 500,
            clock_hz: 2_000_000_000,
            samples: (0..PROCESSES * ROUNDS).map(sample).collect(),
            discarded: 0,
            processes: vec![
                ProcessRounds { rounds: ROUNDS as u32, ran: None, discarded: Vec::new() };
                PROCESSES
            ],
            counted: None,
            counters: Vec::new(),
            events: Vec::new(),
            bytes_per_op: None,
            group: "fleet".to_owned(),
            baseline: None,
            notes: Vec::new(),
            span_ns: None,
            traced: Vec::new(),
            traced_apart: Vec::new(),
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014): from 0 to 1.
fn uniform(seed: u64) -> f64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) as f64 / u64::MAX as f64
}
