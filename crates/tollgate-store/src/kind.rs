//! Kinds of runs.

use std::fmt;

use serde::Serialize;
use tollgate_model::Run;
use tollgate_model::versus::{INSTRUCTIONS, REAL, is_bench};
use tollgate_trace::output::CASE;

/// The verb that made a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "KindOfRun"))]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    /// A run of `tollgate run`.
    Run,
    /// A run of `tollgate trace`.
    Trace,
    /// A run of `tollgate lab`.
    Lab,
    /// A run of `tollgate versus`.
    Versus,
}

impl RunKind {
    /// Every kind.
    pub const ALL: &[Self] = &[Self::Run, Self::Trace, Self::Lab, Self::Versus];
    /// The kinds that `last` means: they measured this machine (the lab measures its own), each case often enough for intervals.
    pub const MEASURED: &[Self] = &[Self::Run, Self::Versus];
    /// The kinds that `last` means when benchmarks are asked for.
    pub const OF_BENCHMARKS: &[Self] = &[Self::Run];

    /// Returns the kind of a run.
    pub fn of(run: &Run) -> Self {
        Self::by_first(run.measurements.first().map(|measurement| measurement.case.benchmark.as_str()))
    }

    /// Whether its cases are of benchmarks.
    pub fn has_benchmarks(self) -> bool {
        matches!(self, Self::Run | Self::Lab)
    }

    /// Determines the kind by the name of the first benchmark: a trace and the lab have their own, a comparison of commands begins
    /// with the real time or the instructions, and one of builds has only benches.
    pub(crate) fn by_first(benchmark: Option<&str>) -> Self {
        match benchmark {
            Some(CASE) => Self::Trace,
            Some(name) if [REAL, INSTRUCTIONS].contains(&name) || is_bench(name) => Self::Versus,
            Some(name) if name.starts_with("lab/") => Self::Lab,
            _ => Self::Run,
        }
    }
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_known_by_its_first_benchmark() {
        let kinds =
            [None, Some("entry/syscall"), Some("lab/int"), Some(CASE), Some(REAL), Some("go/BenchmarkSort")];
        let kinds = kinds.map(RunKind::by_first);
        assert_eq!(
            kinds,
            [RunKind::Run, RunKind::Run, RunKind::Lab, RunKind::Trace, RunKind::Versus, RunKind::Versus]
        );
        assert!(kinds.map(RunKind::has_benchmarks) == [true, true, true, false, false, false]);
    }
}
