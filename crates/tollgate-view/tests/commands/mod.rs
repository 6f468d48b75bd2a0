//! Made-up comparisons of commands: runs whose executions share the machine's noise.

#![allow(dead_code, reason = "each test file uses its part")]

use tollgate_model::run::{Part, SCHEMA, Tool};
use tollgate_model::traced::{Backend, Call, Ended, Idle, Parts, TimesFrom};
use tollgate_model::versus::{CASES, Command, FAULTS, MEMORY, REAL, SYS, USER};
use tollgate_model::{
    Case, Environment, Fact, Measured, Measurement, Outcome, ProcessRounds, Provenance, Run, Traced, Unit,
    own,
};

pub const ID: &str = "20261123-040501-1a2b3c4d";
const EXECUTIONS: usize = 40;
const TRACED: usize = 9;
const MS: f64 = 1e6;

/// A command of a comparison.
#[derive(Clone)]
pub struct Side {
    pub line: &'static str,
    pub name: Option<&'static str>,
    pub environment: &'static str,
    /// Its real time, of which a fifth is in calls.
    pub ms: f64,
    /// Its calls of unlink(2), each of 2 µs.
    pub unlinks: u64,
    /// Why it was not traced.
    pub untraced: Option<&'static str>,
    pub command: fn(&mut Command),
}

pub fn side(line: &'static str, ms: f64) -> Side {
    Side { line, name: None, environment: "host", ms, unlinks: 100, untraced: None, command: |_| () }
}

fn random(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as f64 / (1_u64 << 31) as f64
}

fn measured(unit: Unit, samples: Vec<f64>) -> Measured {
    Measured {
        unit,
        provenance: Provenance::Hardware,
        ops_per_sample: 1,
        clock_hz: 1_000_000_000,
        discarded: 0,
        processes: vec![ProcessRounds { rounds: 1, ran: None, discarded: Vec::new() }; samples.len()],
        counted: None,
        counters: Vec::new(),
        events: Vec::new(),
        bytes_per_op: None,
        group: "versus".to_owned(),
        baseline: None,
        notes: Vec::new(),
        span_ns: None,
        traced: Vec::new(),
        traced_apart: Vec::new(),
        samples,
    }
}

fn call(name: &str, count: u64, on_cpu_ns: u64, disk_ns: u64) -> Call {
    Call {
        name: name.to_owned(),
        count,
        errors: 0,
        unfinished: 0,
        stopped: 0,
        total_ns: on_cpu_ns + disk_ns,
        max_ns: on_cpu_ns,
        parts: Parts { on_cpu_ns, disk_ns, ..Parts::default() },
        histogram: Vec::new(),
    }
}

fn traced(side: &Side, noise: f64) -> Traced {
    let real = (side.ms * noise * 1.01 * MS) as u64;
    let unlink = call("unlink", side.unlinks, side.unlinks * 1_500, side.unlinks * 500);
    let read = call("read", 320, real / 10, 0);
    let openat = call("openat", 200, real / 20, 0);
    let inside = unlink.parts.on_cpu_ns + read.total_ns + openat.total_ns;
    let runqueue_ns = (0.1 * MS * noise) as u64;
    let outside = Parts {
        on_cpu_ns: real - inside - unlink.parts.disk_ns - runqueue_ns,
        runqueue_ns,
        ..Parts::default()
    };
    Traced {
        command: vec!["sh".into(), "-c".into(), side.line.into()],
        ended: Some(Ended::Exit(0)),
        processors: 2,
        user_ns: outside.on_cpu_ns,
        sys_ns: inside,
        times_from: TimesFrom::Trace,
        busy_ns: Some(outside.on_cpu_ns + inside),
        idle: Some(Idle { runqueue_ns, disk_ns: unlink.parts.disk_ns, sleep_ns: 0 }),
        processes: 1,
        threads: 1,
        calls: vec![unlink, read, openat, call("exit_group", 0, 0, 0)],
        outside: Some(outside),
        cost_per_call_ns: Some(60.0),
        cost_to_others_ns: Some(20.0),
        ..Traced::new(Backend::Bpf, real)
    }
}

/// The runs of a comparison. An execution of one number is equally noisy in all of them, except for 0.4 %.
pub fn runs(sides: &[Side]) -> Vec<Run> {
    sides.iter().enumerate().map(|(at, side)| run(sides.len(), at, side)).collect()
}

fn run(of: usize, at: usize, side: &Side) -> Run {
    let noises = |number: usize| -> Vec<f64> {
        let (mut common, mut own) = (7, 11 + at as u64);
        let noise = |_| (1.0 + 0.2 * random(&mut common)) * (1.0 + 0.004 * random(&mut own));
        (0..number).map(noise).collect()
    };
    let samples = |case: &str| {
        let (unit, of): (Unit, fn(&Side, f64) -> f64) = match case {
            REAL => (Unit::Nanoseconds, |side, noise| side.ms * noise * MS),
            USER => (Unit::Nanoseconds, |side, noise| side.ms * noise * 0.8 * MS),
            SYS => (Unit::Nanoseconds, |side, noise| side.ms * noise * 0.2 * MS),
            MEMORY => (Unit::Bytes, |_, _| 3.5 * 1024.0 * 1024.0),
            FAULTS => (Unit::Count, |_, noise| (412.0 * noise).round()),
            other => unreachable!("no case {other}"),
        };
        measured(unit, noises(EXECUTIONS).into_iter().map(|noise| of(side, noise)).collect())
    };
    let measurement = |case: &str, outcome| Measurement { case: Case::plain(case), outcome };
    let mut measurements: Vec<Measurement> =
        CASES.iter().map(|case| measurement(case, Outcome::Measured(Box::new(samples(case))))).collect();
    let all: Vec<Traced> = noises(TRACED).into_iter().map(|noise| traced(side, noise)).collect();
    let real = all.iter().map(|traced| traced.wall_ns as f64).collect();
    measurements.push(measurement(
        own::TRACED,
        match side.untraced {
            Some(why) => Outcome::Skipped { why: why.to_owned() },
            None => {
                Outcome::Measured(Box::new(Measured { traced: all, ..measured(Unit::Nanoseconds, real) }))
            }
        },
    ));
    let mut command = Command {
        line: side.line.to_owned(),
        name: side.name.map(str::to_owned),
        parameters: [].into(),
        shell: Some("sh -c".to_owned()),
        is_corrected: false,
        failed: Vec::new(),
        cold: None,
        harness: None,
    };
    (side.command)(&mut command);
    let facts = [
        ("cpu.model", Fact::known("Intel(R) Xeon(R) Processor", "CPUID")),
        ("cpu.online", Fact::known(2, "/sys/devices/system/cpu/online")),
        ("kernel.release", Fact::known("6.18.44", "uname(2)")),
    ];
    Run {
        schema: SCHEMA,
        tool: Tool { name: "tollgate".to_owned(), version: "0.1.0".to_owned() },
        id: format!("20261123-040501-000000{at:02x}").parse().expect("an id"),
        label: None,
        environment: Environment::Host,
        session: Some(Part {
            id: ID.parse().expect("an id"),
            environment: side.environment.to_owned(),
            stands_for: None,
            place: at as u32,
            of: of as u32,
            paired: true,
            knob: None,
            switches: Vec::new(),
            command: Some(Box::new(command)),
        }),
        started: "2026-11-23T04:05:01Z".to_owned(),
        finished: "2026-11-23T04:05:32Z".to_owned(),
        facts: facts.map(|(name, fact)| (name.to_owned(), fact)).into(),
        measurements,
    }
}
