use std::collections::HashMap;

use crate::estimate::{batch_error, error_per_operation, is_empty_loop};
use crate::measurement::{Case, Measured, Outcome};
use crate::run::Run;

pub(super) struct Index<'a> {
    pub(super) run: &'a Run,
    by_case: HashMap<&'a Case, &'a Outcome>,
    batch_errors: HashMap<&'a str, f64>,
}

impl<'a> Index<'a> {
    pub(super) fn new(run: &'a Run) -> Self {
        let by_case =
            run.measurements.iter().map(|measurement| (&measurement.case, &measurement.outcome)).collect();
        let mut batch_errors = HashMap::new();
        for (_, null) in run.measured().filter(|(case, _)| is_empty_loop(case)) {
            if let Some(error) = batch_error(run, null) {
                batch_errors.entry(null.group.as_str()).or_insert(error);
            }
        }
        Self { run, by_case, batch_errors }
    }

    pub(super) fn outcome(&self, case: &Case) -> Option<&'a Outcome> {
        self.by_case.get(case).copied()
    }

    pub(super) fn measured_case(&self, case: &Case) -> Option<&'a Measured> {
        self.outcome(case)?.measured()
    }

    /// The detection limit of `measured`, in its unit; `None` without an empty loop.
    pub(super) fn detection_limit(&self, measured: &Measured) -> Option<f64> {
        let error = self.batch_errors.get(measured.group.as_str())?;
        Some(error_per_operation(*error, measured))
    }
}
