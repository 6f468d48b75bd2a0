//! Producers and consumers: the throughput of each lock relative to a system call, by the number of threads; by our statistic and
//! by that of the published comparison.

use std::collections::BTreeMap;

use tollgate_model::stats::trimmed_mean;
use tollgate_output::figures;
use tollgate_output::table::heading;

use crate::summary::{Figures, Summary};

pub const BENCHMARK: &str = "locks/producer-consumer";
/// The lock whose throughput is 1, as in the published comparison.
pub const BASE: &str = "futex-trylock-pi";

/// Times of an item in ns: by lock, in the order of the run, and by number of threads.
pub type Times<'a> = Vec<(&'a str, BTreeMap<u64, f64>)>;

/// `None` if the system call or all others were not measured.
pub(super) fn picture(summary: &Summary, width: usize) -> Option<String> {
    let ours = |figures: &Figures| Some(figures.estimate.median);
    let published = |figures: &Figures| trimmed_mean(&figures.measured.samples);
    let mut pictures = Vec::new();
    for (cpus, processors) in [("one", "on one processor"), ("all", "on all processors")] {
        let title = format!("{BENCHMARK} {processors}: throughput, {BASE} = 1");
        if let Some(picture) = draw(&times(summary, cpus, ours), width) {
            pictures.push(format!("{}{picture}", heading(&title, width)));
        }
        if let Some(picture) = draw(&times(summary, cpus, published), width) {
            let title = "by the published estimator: mean of 12 runs without the highest and the lowest";
            pictures.push(format!("{}{picture}", heading(title, width)));
        }
    }
    (!pictures.is_empty()).then(|| pictures.join("\n"))
}

pub fn times<'a>(summary: &Summary<'a>, cpus: &str, time: impl Fn(&Figures) -> Option<f64>) -> Times<'a> {
    let mut times: Times = Vec::new();
    for (case, figures) in summary.of_benchmark(BENCHMARK).filter(|(case, _)| case.word("cpus") == Some(cpus))
    {
        let (Some(by), Some(threads)) = (case.word("by"), case.number("threads")) else { continue };
        let Some(time) = time(figures).filter(|time| *time > 0.0) else { continue };
        match times.iter_mut().find(|(other, _)| *other == by) {
            Some((_, known)) => drop(known.insert(threads, time)),
            None => times.push((by, BTreeMap::from([(threads, time)]))),
        }
    }
    times
}

fn draw(times: &Times, width: usize) -> Option<String> {
    const CELL: usize = 7;
    let base = &times.iter().find(|(by, _)| *by == BASE)?.1;
    let name = times.iter().map(|(by, _)| by.len()).max()?.max("threads".len());
    if times.len() < 2 || name + CELL * base.len() > width {
        return None;
    }
    let mut picture = format!("{:name$}", "threads");
    for threads in base.keys() {
        picture.push_str(&format!("{threads:>CELL$}"));
    }
    picture.push('\n');
    for (by, own) in times {
        let mut line = format!("{by:name$}");
        for (threads, base) in base {
            let times = own.get(threads).map(|time| figures::significant(base / time, 2));
            line.push_str(&format!("{:>CELL$}", times.unwrap_or_default()));
        }
        picture.push_str(line.trim_end());
        picture.push('\n');
    }
    Some(picture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_as_many_times_the_system_call_as_it_takes_less_time() {
        let times: Times = vec![
            ("xchg", BTreeMap::from([(2, 100.0), (64, 400.0)])),
            (BASE, BTreeMap::from([(2, 1000.0), (64, 1000.0)])),
            ("semop", BTreeMap::from([(64, 2000.0)])),
        ];
        let picture = draw(&times, 80).expect("room");
        let lines: Vec<&str> = picture.lines().collect();
        assert_eq!(lines[0], "threads               2     64");
        assert_eq!(lines[1], "xchg                 10    2.5");
        assert_eq!(lines[2], "futex-trylock-pi    1.0    1.0");
        assert_eq!(lines[3], "semop                     0.50");
        assert_eq!(draw(&times, 20), None);
        assert_eq!(draw(&times[..1].to_vec(), 80), None);
    }
}
