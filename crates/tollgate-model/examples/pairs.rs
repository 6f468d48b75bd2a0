//! Compares every two of the kept runs in a directory. Prints how many rows are called different although nothing changed, how many
//! rows of an artificially slowed run are found, and how far the runs lie apart.
//!
//! ```text
//! cargo run --release -p tollgate-model --example pairs -- ~/.local/share/tollgate/runs
//! ```
//!
//! The second argument is the number of other runs beside which each pair is compared; default all, and 0 shows two runs alone.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::{env, io};

use tollgate_model::compare::{ComparedCase, Spread, Verdict, compare_knowing};
use tollgate_model::stats::quantile;
use tollgate_model::{Outcome, Run, own};

const SCALED: usize = 4;
const RATIOS: [f64; 2] = [1.5, 3.0];

#[derive(Default)]
struct Found {
    rows: usize,
    same: usize,
    alone: usize,
    different: BTreeMap<String, usize>,
    /// Scaled rows of each suite, and how many were found at × 1.5 and × 3.
    scaled: BTreeMap<String, (usize, [usize; 2])>,
    logs: BTreeMap<String, Vec<f64>>,
}

fn main() -> io::Result<()> {
    let directory = env::args_os().nth(1).ok_or_else(|| io::Error::other("name a directory of kept runs"))?;
    let most = match env::args().nth(2) {
        Some(text) => text.parse().map_err(|_| io::Error::other("name a number of runs"))?,
        None => usize::MAX,
    };
    let runs = read(directory.as_ref())?;
    let mut found = Found::default();
    let pairs = (0..runs.len()).flat_map(|base| (base + 1..runs.len()).map(move |other| [base, other]));
    for (number, [base, other]) in pairs.enumerate() {
        let others = (1..runs.len()).map(|step| (base + other + step) % runs.len());
        let kept = others.filter(|at| ![base, other].contains(at)).take(most).map(|at| &runs[at]);
        let spread = Spread::of(kept);
        for row in compare_knowing(&runs[base], &runs[other], 0.0, &spread).rows {
            found.add(&row);
        }
        if number % SCALED == 0 {
            for (at, ratio) in RATIOS.into_iter().enumerate() {
                let compared = compare_knowing(&runs[base], &slowed(&runs[other], ratio), 0.0, &spread).rows;
                for row in &compared {
                    let suite = row.case.benchmark.split('/').next().unwrap_or_default();
                    let (rows, found) = found.scaled.entry(suite.to_owned()).or_default();
                    *rows += usize::from(at == 0);
                    found[at] += usize::from(row.verdict == Verdict::Slower);
                }
            }
        }
    }
    found.print(runs.len());
    Ok(())
}

impl Found {
    fn add(&mut self, row: &ComparedCase) {
        self.rows += 1;
        self.same += usize::from(row.verdict == Verdict::Same);
        let is_beyond = |low: f64| low * RATIOS[0] > 1.0 + row.threshold;
        self.alone += usize::from(row.interval.is_some_and(|interval| is_beyond(interval.low)));
        if row.verdict.is_difference() {
            *self.different.entry(row.case.to_string()).or_insert(0) += 1;
        }
        if row.interval.is_some() {
            self.logs.entry(row.case.to_string()).or_default().push(row.ratio.ln());
        }
    }

    fn print(&self, runs: usize) {
        let of = |part: usize, all: usize| format!("{:.2} %", 100.0 * part as f64 / all.max(1) as f64);
        let different: usize = self.different.values().sum();
        let Self { rows, same, scaled, alone, .. } = self;
        println!(
            "{runs} runs, {rows} rows: {different} different ({}), {same} the same",
            of(different, *rows)
        );
        let all = scaled.values().fold((0, [0; 2]), |(all, sums), (rows, found)| {
            (all + rows, [sums[0] + found[0], sums[1] + found[1]])
        });
        let suites = scaled.iter().map(|(suite, found)| (suite.as_str(), *found));
        for (name, (rows, found)) in [("all", all)].into_iter().chain(suites) {
            println!("{name}, {rows} rows × 1.5: {} found; × 3: {}", of(found[0], rows), of(found[1], rows));
        }
        println!("one row alone × 1.5: {} found", of(*alone, *rows));
        let mut sizes: Vec<f64> = self.logs.values().flatten().map(|log| log.abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let apart = [0.5, 0.9, 0.99, 0.999].map(|q| quantile(&sizes, q).unwrap_or_default().exp());
        println!("two runs lie apart: {apart:.3?} in 50, 90, 99, 99.9 % of the rows");
        println!(
            "cases of which pairs lie near enough for × 1.5 once in 1,000: {}",
            of(self.near(), self.logs.len())
        );
        self.different.iter().for_each(|(case, number)| println!("  different in {number}: {case}"));
    }

    /// Cases whose runs' ratios, if normal, exceed 1.5 at most once in 1,000 times.
    fn near(&self) -> usize {
        const ONCE_IN_1000: f64 = 3.29;
        let deviation = |logs: &Vec<f64>| {
            let squares: f64 = logs.iter().map(|log| log * log).sum();
            (squares / logs.len() as f64).sqrt()
        };
        self.logs.values().filter(|logs| ONCE_IN_1000 * deviation(logs) < RATIOS[0].ln()).count()
    }
}

fn read(directory: &Path) -> io::Result<Vec<Run>> {
    let mut paths: Vec<_> =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths.iter().map(|path| Run::read(File::open(path)?).map_err(io::Error::other)).collect()
}

fn slowed(run: &Run, ratio: f64) -> Run {
    let mut run = run.clone();
    for measurement in &mut run.measurements {
        let benchmark = &measurement.case.benchmark;
        let is_own = own::is_own(benchmark) && benchmark != own::CONTROL;
        if let (false, Outcome::Measured(measured)) = (is_own, &mut measurement.outcome) {
            measured.samples.iter_mut().for_each(|sample| *sample *= ratio);
        }
    }
    run
}
