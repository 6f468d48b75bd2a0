//! `tollgate report`: one page of runs. Its content is made here; its form, in `crate::page`.

mod bars;
mod curves;
mod differences;
mod dots;
mod environment;
mod known;
mod levels;
mod matrix;
mod rows;
mod ruler;
mod sections;
mod subject;

use std::path::Path;

use crate::page::{MAX_ENVIRONMENTS, Page, Text};
use tollgate_model::Run;
use tollgate_store::writing::{self, Existing, Refusal};

use crate::args::ReportArgs;
use crate::destination::STANDARD_OUTPUT;
use crate::failure::Failure;
use crate::{out, store};
use subject::Subject;

/// Makes a page of runs.
///
/// # Errors
/// When a run cannot be read, or the page not be written.
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    if args.run.len() > MAX_ENVIRONMENTS {
        return Err(Failure::input(format!(
            "{} runs are more than a page can compare; name at most {MAX_ENVIRONMENTS}",
            args.run.len()
        )));
    }
    let runs = store::find_all(&args.run)?;
    let page = page_of(&runs).render().map_err(|error| Failure::input(error.to_string()))?;
    if args.out == Path::new(STANDARD_OUTPUT) {
        return out::print_raw(page.as_bytes());
    }
    writing::write_whole(&args.out, page.as_bytes(), Existing::Replace).map_err(|error| {
        let refusal = Refusal::of_write(&args.out, error).about(&args.out);
        Failure::input(format!("the page was not written: {refusal}"))
    })
}

/// The page of runs, of which there is at least one.
fn page_of(runs: &[Run]) -> Page {
    let subjects = Subject::all(runs);
    let comparisons = differences::all(&subjects);
    let is_comparison = subjects.len() > 1;
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
    let findings = match is_comparison {
        true => differences::findings(&subjects, &comparisons),
        false => ruler::sentences(&subjects),
    };
    Page {
        title: Text::new(&match names.as_slice() {
            [base, others @ ..] if is_comparison => format!("{} compared with {base}", others.join(", ")),
            names => names.concat(),
        }),
        maker: Text::new(&format!("tollgate {}", env!("CARGO_PKG_VERSION"))),
        environments: subjects.iter().map(|subject| environment::of(subject, is_comparison)).collect(),
        warnings: subjects.iter().flat_map(|subject| environment::warnings(subject, is_comparison)).collect(),
        findings,
        differing: differences::facts(&subjects, &comparisons),
        ruler: ruler::of(&subjects),
        sections: sections::of(&subjects, &comparisons),
        facts: known::of(&subjects, &comparisons),
    }
}
