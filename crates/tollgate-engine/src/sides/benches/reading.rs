use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tollgate_os::paths;

const MOST_RESULTS: u64 = 16 << 20;
/// The depth and the number of entries of criterion's directories: one bench has some ten.
const MOST_DEPTH: usize = 8;
const MOST_ENTRIES: usize = 1000;

/// Criterion's fastest sample, in ns per iteration, from `new/sample.json` below the directory of its results.
pub(super) fn criterion(results: &Path) -> Result<f64, String> {
    let file = find_sample(results, MOST_DEPTH).ok_or("left no new/sample.json below CRITERION_HOME")?;
    let wrong = |why: String| format!("has a new/sample.json that {why}");
    let text =
        paths::read_regular(&file, MOST_RESULTS).map_err(|why| wrong(format!("cannot be read: {why}")))?;
    let sample: Value = serde_json::from_slice(&text).map_err(|why| wrong(format!("is not JSON: {why}")))?;
    let numbers = |field: &str| -> Vec<f64> {
        sample[field].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let (times, iterations) = (numbers("times"), numbers("iters"));
    let each = times.iter().zip(&iterations).map(|(time, iterations)| time / iterations);
    let fastest = each.min_by(f64::total_cmp).filter(|_| times.len() == iterations.len());
    fastest.ok_or_else(|| wrong("has different numbers of `times` and `iters`".to_owned()))
}

fn find_sample(directory: &Path, depth: usize) -> Option<PathBuf> {
    let entries: Vec<fs::DirEntry> = fs::read_dir(directory).ok()?.take(MOST_ENTRIES).flatten().collect();
    // Links, which a build may have left, are not followed.
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let is_new = directory.ends_with("new");
    let own =
        entries.iter().find(|entry| is_new && entry.file_name() == "sample.json").map(fs::DirEntry::path);
    own.or_else(|| {
        let inner = entries.iter().filter(|entry| depth > 0 && is_directory(entry));
        inner.map(fs::DirEntry::path).find_map(|inner| find_sample(&inner, depth - 1))
    })
}

/// The name of the bench at the start of a line of Go's output, without the number of processors.
pub(super) fn go_name(line: &str, suffix: &str) -> Option<String> {
    let name = line.split_whitespace().next().filter(|name| name.starts_with("Benchmark"))?;
    Some(name.strip_suffix(suffix).unwrap_or(name).to_owned())
}

/// The fastest of Go's measurements, in ns per operation.
pub(super) fn go(output: &str) -> Result<f64, String> {
    // A bench's own output may precede them.
    let before = output.lines().filter_map(|line| line.split_once(" ns/op")).map(|(before, _)| before);
    let figures = before.filter_map(|before| before.split_whitespace().next_back()?.parse::<f64>().ok());
    figures.min_by(f64::total_cmp).ok_or_else(|| {
        if output.contains("--- SKIP") {
            "is skipped".to_owned()
        } else {
            "has no ns/op in its output".to_owned()
        }
    })
}

pub(super) struct Repetition {
    pub ns: f64,
    pub iterations: f64,
}

pub(super) fn google(output: &str) -> Result<Repetition, String> {
    // A bench's own output may precede the document.
    let document = output.find("{\n").map_or(output, |at| &output[at..]);
    let document: Value =
        serde_json::from_str(document).map_err(|why| format!("wrote no document of JSON: {why}"))?;
    let all = || document["benchmarks"].as_array().into_iter().flatten();
    if let Some(why) = all().find_map(|repetition| repetition["error_message"].as_str()) {
        return Err(format!("failed: {}", tollgate_model::text::excerpt(why)));
    }
    let of = |repetition: &Value| {
        let iterations = repetition["iterations"].as_f64().unwrap_or(f64::INFINITY);
        Some(Repetition { ns: time_of(repetition)?, iterations })
    };
    let repetitions = all().filter(|repetition| repetition["run_type"] == "iteration").filter_map(of);
    let fastest = repetitions.min_by(|one, another| one.ns.total_cmp(&another.ns));
    fastest.ok_or_else(|| "has no iteration in its document of JSON".to_owned())
}

fn time_of(repetition: &Value) -> Option<f64> {
    let of_unit = match repetition["time_unit"].as_str()? {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(repetition["real_time"].as_f64()? * of_unit)
}
