//! Compares every two of the kept runs in a directory, and prints how many rows are called different though nothing changed, and how
//! many of a run are found that is scaled.
//!
//! ```text
//! cargo run --release -p tollgate-model --example pairs -- ~/.local/share/tollgate/runs
//! ```

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::{env, io};

use tollgate_model::compare::{Spread, Verdict, compare_knowing};
use tollgate_model::own;
use tollgate_model::{Outcome, Run};

/// Every fourth pair is compared scaled too.
const SCALED: usize = 4;

fn main() -> io::Result<()> {
    let directory = env::args_os().nth(1).ok_or_else(|| io::Error::other("name a directory of kept runs"))?;
    let runs = read(directory.as_ref())?;
    let mut unlike = BTreeMap::new();
    let (mut rows, mut same, mut scaled) = (0, 0, 0);
    let mut found = [0; 2];
    let pairs = (0..runs.len()).flat_map(|base| (base + 1..runs.len()).map(move |other| [base, other]));
    for (number, [base, other]) in pairs.enumerate() {
        let kept = runs.iter().enumerate().filter(|(at, _)| ![base, other].contains(at)).map(|(_, run)| run);
        let spread = Spread::of(kept);
        for row in compare_knowing(&runs[base], &runs[other], 0.0, &spread).rows {
            rows += 1;
            same += usize::from(row.verdict == Verdict::Same);
            if row.verdict.is_difference() {
                *unlike.entry(row.case.to_string()).or_insert(0) += 1;
            }
        }
        if number % SCALED == 0 {
            for (found, ratio) in found.iter_mut().zip([1.5, 3.0]) {
                let compared = compare_knowing(&runs[base], &slowed(&runs[other], ratio), 0.0, &spread).rows;
                *found += compared.iter().filter(|row| row.verdict == Verdict::Slower).count();
                scaled += compared.len();
            }
        }
    }
    let different: usize = unlike.values().sum();
    println!("{} runs, {rows} rows: {different} different, {same} the same", runs.len());
    println!("of {} rows × 1.5 found {}, × 3 found {}", scaled / 2, found[0], found[1]);
    unlike.iter().for_each(|(case, number)| println!("  different in {number}: {case}"));
    Ok(())
}

fn read(directory: &Path) -> io::Result<Vec<Run>> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            runs.push(Run::read(File::open(&path)?).map_err(io::Error::other)?);
        }
    }
    Ok(runs)
}

fn slowed(run: &Run, ratio: f64) -> Run {
    let mut run = run.clone();
    for measurement in &mut run.measurements {
        if let (false, Outcome::Measured(measured)) =
            (measurement.case.benchmark.starts_with(own::SUITE), &mut measurement.outcome)
        {
            measured.samples.iter_mut().for_each(|sample| *sample *= ratio);
        }
    }
    run
}
