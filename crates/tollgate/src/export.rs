//! `tollgate export`: runs as data for other systems.

use std::path::Path;

use tollgate_model::Run;
use tollgate_store::writing::{self, Existing};
use tollgate_view::export::{bmf, csv, openmetrics, row};

use crate::args::{ExportArgs, ExportFormat};
use crate::failure::{Failure, plainly};
use crate::out::{self, Form};
use crate::store;

impl ExportArgs {
    /// # Errors
    /// Unknown runs; a file that cannot be written, which then is unchanged.
    pub fn execute(&self) -> Result<(), Failure> {
        let runs = store::find_all(&self.run)?;
        if self.format == ExportFormat::Bmf && runs.len() > 1 {
            return Err(Failure::input(
                "--format bmf: the Bencher Metric Format has one value per benchmark, so it takes one run; export each by itself",
            ));
        }
        write(&self.out, &written(self.format, &runs)?)
    }
}

fn written(format: ExportFormat, runs: &[Run]) -> Result<String, Failure> {
    let as_json = |run: fn(&Run) -> Result<String, serde_json::Error>| -> Result<String, Failure> {
        let texts: Result<String, serde_json::Error> = runs.iter().map(run).collect();
        texts.map_err(|error| Failure::input(format!("a run cannot be written as JSON: {error}")))
    };
    match format {
        ExportFormat::Openmetrics => Ok(openmetrics::openmetrics(runs)),
        ExportFormat::Csv => Ok(csv::csv(runs)),
        ExportFormat::Bmf => as_json(bmf::bmf),
        ExportFormat::Ndjson => as_json(row::ndjson),
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    if file == Path::new("-") {
        return out::print_document(text.as_bytes(), Form::Lines);
    }
    writing::write_whole(file, text.as_bytes(), Existing::Replace)
        .map_err(|error| Failure::input(format!("--out {}: {}", file.display(), plainly(&error))))
}
