//! Compares this program with itself: `session SECONDS SIDE[,SIDE]… PATTERN…`.
//!
//! A side is `host`, `host+NAME=VALUE` with an environment variable, or a command that is put in front of the agent. Prints the
//! facts of the session, and the paired ratio of each side to the first one for each case.

#![allow(clippy::unwrap_used, clippy::panic)] // Tool for developers.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tollgate_engine::agent::{Means, serve};
use tollgate_engine::session::{Link, Side, measure_in};
use tollgate_engine::{Limits, Plan, Storage, Topology, interrupt, serve_if_worker};
use tollgate_model::{Case, Facts, Measured, stats};
use tollgate_os::workdir::Workdir;
use tollgate_suites::{Extent, Size, find, select};

fn main() {
    serve_if_worker(find);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "agent") {
        std::process::exit(agent());
    }
    let [seconds, sides, patterns @ ..] = arguments.as_slice() else {
        return eprintln!("usage: session SECONDS SIDE[,SIDE]… PATTERN…");
    };
    session(seconds.parse().unwrap(), sides, patterns);
}

fn agent() -> i32 {
    #[expect(clippy::disallowed_methods, reason = "an example, which no other user runs beside")]
    let directory = std::env::temp_dir().join(format!("session-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let made = directory.clone();
    let mut storage = move || {
        let directory = Workdir::find(&made).map_err(|error| error.to_string())?;
        Ok(Storage { directory, limit: 1 << 30, by: "this example".to_owned() })
    };
    let mut executor = tollgate_suites::command::Here::new();
    let status = serve(Means {
        version: "0",
        find,
        executes: true,
        facts: &mut |_| Facts::new(),
        limits: &Limits::default,
        storage: &mut storage,
        executor: &mut executor,
    });
    let _ = std::fs::remove_dir_all(directory);
    status
}

struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn side(name: &str) -> Side<'static> {
    let of = name.to_owned();
    let start = move || {
        let own = std::env::current_exe().unwrap();
        let mut command = match of.strip_prefix("host") {
            Some(rest) => {
                let mut command = Command::new(&own);
                if let Some((name, value)) = rest.strip_prefix('+').and_then(|rest| rest.split_once('=')) {
                    command.env(name, value);
                }
                command
            }
            None => {
                let mut words = of.split(' ');
                let mut command = Command::new(words.next().unwrap());
                command.args(words).arg(&own);
                command
            }
        };
        command.arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut errors = child.stderr.take().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            let mut bytes = [0; 1 << 10];
            while let Ok(read @ 1..) = errors.read(&mut bytes) {
                eprint!("{}", String::from_utf8_lossy(&bytes[..read]));
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        let agent = Agent(child);
        let said = move || {
            let _ = &agent;
            said.lock().unwrap().lines().next().map(str::to_owned)
        };
        Ok(Link { to: OwnedFd::from(to), from: OwnedFd::from(from), said: Box::new(said) })
    };
    Side {
        name: name.to_owned(),
        start: Box::new(start),
        starts: 1,
        wake: None,
        cpu: None,
        is_paired: true,
        is_counting: false,
        has_disk: false,
        outside: None,
        life: None,
    }
}

fn session(seconds: f64, sides: &str, patterns: &[String]) {
    interrupt::install();
    let mut sides: Vec<Side<'_>> = sides.split(',').map(side).collect();
    let extent = if patterns.is_empty() { Extent::Headlines } else { Extent::Usual };
    let selection = select(&Topology::here(), patterns, extent, Size::Small).unwrap();
    let plan = Plan { executes: true, ..Plan::within(Duration::from_secs_f64(seconds)) };
    let began = Instant::now();
    let mut told = Duration::ZERO;
    let found = measure_in(&mut sides, &selection, &plan, &mut |progress| {
        if progress.elapsed > told + Duration::from_secs(5) {
            told = progress.elapsed;
            eprintln!("{:.1} s {}", progress.elapsed.as_secs_f64(), progress.what);
        }
    });
    println!("took {:.2} s", began.elapsed().as_secs_f64());
    let found = match found {
        Ok(found) => found,
        Err(error) => return println!("{error}"),
    };
    found.facts.iter().for_each(|(name, fact)| println!("{name} {fact:?}"));
    let mut measured: Vec<BTreeMap<Case, Measured>> = Vec::new();
    for (side, found) in sides.iter().zip(&found.found) {
        println!("== {} lost {:?}", side.name, found.lost);
        found.findings.facts.iter().for_each(|(name, fact)| println!("   {name} {fact:?}"));
        let mut of = BTreeMap::new();
        for measurement in &found.findings.measurements {
            match measurement.outcome.measured() {
                Some(measured) => drop(of.insert(measurement.case.clone(), measured.clone())),
                None => println!("   {} {:?}", measurement.case, measurement.outcome),
            }
        }
        measured.push(of);
    }
    for (case, base) in &measured[0] {
        for other in &measured[1..] {
            let Some(other) = other.get(case) else { continue };
            let ratios = ratios(base, other);
            let n = ratios.len();
            let medians = |of: &Measured| {
                let mut all: Vec<f64> = of.by_process().filter_map(stats::median).collect();
                all.sort_unstable_by(f64::total_cmp);
                all
            };
            let (own, theirs) = (medians(base), medians(other));
            let range = own.last().unwrap() / own.first().unwrap() - 1.0;
            let interval = stats::median_interval(&ratios, 0.95_f64.powf(1.0 / 41.0));
            println!(
                "{:<50} {:>12.1} {:>12.1}  range {:>5.1} %  n {n:>4}/{:<4} {:.4} [{:.4}, {:.4}]",
                case.to_string(),
                stats::median(&own).unwrap(),
                stats::median(&theirs).unwrap(),
                range * 100.0,
                base.processes.len(),
                stats::median(&ratios).unwrap_or(f64::NAN).exp(),
                interval.map_or(f64::NAN, |interval| interval.low.exp()),
                interval.map_or(f64::NAN, |interval| interval.high.exp()),
            );
        }
    }
}

fn ratios(base: &Measured, other: &Measured) -> Vec<f64> {
    let pairs = base.processes.iter().zip(&other.processes).zip(base.by_process().zip(other.by_process()));
    let of_pair = |((one, two), (base, other)): (_, (&[f64], &[f64]))| {
        let (one, two): (&tollgate_model::ProcessRounds, &tollgate_model::ProcessRounds) = (one, two);
        let mut base: BTreeMap<u32, f64> = one.kept_rounds().zip(base.iter().copied()).collect();
        let both = two.kept_rounds().zip(other).filter_map(|(round, other)| {
            Some(other.ln() - base.remove(&round)?.ln()).filter(|ratio| ratio.is_finite())
        });
        stats::median(&both.collect::<Vec<f64>>())
    };
    pairs.filter_map(of_pair).collect()
}
