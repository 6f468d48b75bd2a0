//! `tollgate report`: one page of runs, or their summary as Markdown.

use std::path::Path;
use std::process::{Command, Stdio};

use tollgate_model::Run;
use tollgate_model::compare::Spread;
use tollgate_os::programs;
use tollgate_store::writing::{self, Existing, Refusal};
use tollgate_view::comparison::Comparison;
use tollgate_view::page::MAX_ENVIRONMENTS;
use tollgate_view::report::{markdown, page_of};

use crate::args::compare::Quantity;
use crate::args::{ReportArgs, ReportFormat};
use crate::destination::STANDARD_OUTPUT;
use crate::failure::{Failure, plainly};
use crate::{compare, out, say, store};

const PAGE: &str = "tollgate-report.html";
/// The program that opens a file in the user's browser (freedesktop.org, xdg-utils).
const OPENER: &str = "xdg-open";

impl ReportArgs {
    /// # Errors
    /// A run that cannot be read, or a report that cannot be written; and the condition of `--fail-on`.
    pub fn execute(&self) -> Result<(), Failure> {
        let runs = store::find_all(&self.run)?;
        if runs.len() > MAX_ENVIRONMENTS {
            return Err(Failure::input(format!(
                "{} runs are too many for one page; name at most {MAX_ENVIRONMENTS}",
                runs.len()
            )));
        }
        if self.fail_on.is_some() && runs.len() < 2 {
            return Err(Failure::input("--fail-on needs two runs: the base, and one to compare with it"));
        }
        let spread = compare::spread(&runs);
        let text = match self.format {
            ReportFormat::Md => markdown(&runs, &spread, 0.0),
            ReportFormat::Html => page_of(&runs, tollgate_lab::output::about, &spread)
                .render()
                .map_err(|error| Failure::input(error.to_string()))?,
        };
        let usual = match self.format {
            ReportFormat::Md => STANDARD_OUTPUT,
            ReportFormat::Html => PAGE,
        };
        let to = self.out.as_deref().unwrap_or(Path::new(usual));
        if self.open && to == Path::new(STANDARD_OUTPUT) {
            return Err(Failure::input(
                "--open needs a file, but the report goes to standard output: give --out FILE",
            ));
        }
        write(to, &text)?;
        if self.out.is_none() && to == Path::new(PAGE) {
            say::say(&format!("the page is in {PAGE}"));
        }
        if self.open {
            open(to)?;
        }
        compare::check(self.fail_on.as_slice(), 0.0, compared(&runs, &spread), Quantity::Real)
    }
}

fn compared<'a>(runs: &'a [Run], spread: &Spread) -> Vec<Comparison<'a>> {
    let [base, others @ ..] = runs else { return Vec::new() };
    others.iter().map(|other| Comparison::knowing(base, other, 0.0, spread)).collect()
}

fn open(page: &Path) -> Result<(), Failure> {
    let cannot = |why: &str| Failure::input(format!("--open: {why}; open {} in a browser", page.display()));
    let program =
        programs::find(OPENER).ok_or_else(|| cannot("xdg-open is not in PATH (package xdg-utils)"))?;
    // A path that begins with `-` is not an option.
    let page = std::path::absolute(page).map_err(|error| cannot(&plainly(&error)))?;
    let status = Command::new(program).arg(page).stdin(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(cannot(&format!("xdg-open ended with {status}"))),
        Err(error) => Err(cannot(&format!("xdg-open cannot be started: {}", plainly(&error)))),
    }
}

fn write(to: &Path, text: &str) -> Result<(), Failure> {
    if to == Path::new(STANDARD_OUTPUT) {
        return out::print_raw(text.as_bytes());
    }
    writing::write_whole(to, text.as_bytes(), Existing::Replace).map_err(|error| {
        let refusal = Refusal::of_write(to, error).about(to);
        Failure::input(format!("the page was not written: {refusal}"))
    })
}
