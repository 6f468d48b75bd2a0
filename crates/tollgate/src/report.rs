//! `tollgate report`: one page of runs, or their summary as Markdown.

use std::path::Path;

use tollgate_model::Run;
use tollgate_model::compare::Spread;
use tollgate_store::writing::{self, Existing, Refusal};
use tollgate_view::comparison::Comparison;
use tollgate_view::page::MAX_ENVIRONMENTS;
use tollgate_view::report::{markdown, page_of};

use crate::args::{ReportArgs, ReportFormat};
use crate::destination::STANDARD_OUTPUT;
use crate::failure::Failure;
use crate::{compare, out, store};

/// Makes a page of runs, or their summary.
///
/// # Errors
/// When a run cannot be read, or the report not be written; and the condition of `--fail-on`.
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let runs = store::find_all(&args.run)?;
    if runs.len() > MAX_ENVIRONMENTS {
        return Err(Failure::input(format!(
            "{} runs are more than a page can compare; name at most {MAX_ENVIRONMENTS}",
            runs.len()
        )));
    }
    if args.fail_on.is_some() && runs.len() < 2 {
        return Err(Failure::input("--fail-on needs two runs: the base, and one that is compared with it"));
    }
    let spread = compare::spread(&runs);
    let text = match args.format {
        ReportFormat::Md => markdown(&runs, &spread),
        ReportFormat::Html => page_of(&runs, tollgate_lab::output::about, &spread)
            .render()
            .map_err(|error| Failure::input(error.to_string()))?,
    };
    write(args.out.as_deref().unwrap_or(Path::new(STANDARD_OUTPUT)), &text)?;
    compare::check(args.fail_on.as_slice(), 0.0, &compared(&runs, &spread))
}

fn compared<'a>(runs: &'a [Run], spread: &Spread) -> Vec<Comparison<'a>> {
    let [base, others @ ..] = runs else { return Vec::new() };
    others.iter().map(|other| Comparison::knowing(base, other, 0.0, spread)).collect()
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
