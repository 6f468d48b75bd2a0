//! `tollgate report`: one page of runs.

use std::path::Path;

use tollgate_store::writing::{self, Existing, Refusal};
use tollgate_view::page::MAX_ENVIRONMENTS;
use tollgate_view::report::page_of;

use crate::args::ReportArgs;
use crate::destination::STANDARD_OUTPUT;
use crate::failure::Failure;
use crate::{out, store};

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
