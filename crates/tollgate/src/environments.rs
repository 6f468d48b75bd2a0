//! `tollgate environments`: what `run --in` can measure on this machine, and what the rest needs.

use serde::Serialize;
use tollgate_environments::{Possibility, survey};
use tollgate_output::table::{Look, Table};

use crate::args::Format;
use crate::args::session::EnvironmentsArgs;
use crate::failure::Failure;
use crate::out;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Environments {
    /// One object for each kind.
    environments: Vec<KindOfEnvironment>,
}

/// An environment, and whether it works here.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct KindOfEnvironment {
    /// As `--in` takes it.
    environment: String,
    /// Whether it can be made here.
    works: bool,
    /// The version of what makes it, and the like; or None.
    detail: Option<String>,
    /// Why it does not work, or None.
    why: Option<String>,
}

impl KindOfEnvironment {
    fn of(found: Possibility) -> Self {
        let Possibility { environment, found, .. } = found;
        let (detail, why) = found.map_or_else(|why| (None, Some(why)), |detail| (Some(detail), None));
        Self { environment, works: why.is_none(), detail, why }
    }
}

/// Tries what this machine has.
///
/// # Errors
/// When it cannot be printed.
pub fn environments(args: &EnvironmentsArgs) -> Result<(), Failure> {
    let environments: Vec<KindOfEnvironment> = survey().into_iter().map(KindOfEnvironment::of).collect();
    match args.format {
        Format::Json => out::print_json(&Environments { environments }),
        Format::Table => out::print(&table(&environments).render(out::width())),
    }
}

fn table(environments: &[KindOfEnvironment]) -> Table {
    let mut table = Table::new(&["environment", "works"]).with_words(&["environment", "works"]);
    for one in environments {
        let works = if one.works { "yes" } else { "no" };
        let remarks: Vec<String> = one.detail.iter().chain(&one.why).cloned().collect();
        table.row(Look::Plain, &[one.environment.clone(), works.to_owned()], &remarks);
    }
    table
}
