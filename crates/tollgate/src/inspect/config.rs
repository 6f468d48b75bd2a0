//! `tollgate inspect config`: a kernel's build configuration, and the differences of several.

mod affecting;
mod asked;
mod chosen;
mod json;
mod many;
mod one;
mod text;

use crate::args::{ConfigArgs, Format};
use crate::failure::Failure;
use crate::out;
use asked::Asked;

/// Reads the configurations, and prints one, or the differences of several.
///
/// # Errors
/// A file that is no configuration, and an area that there is not.
pub fn config(args: &ConfigArgs) -> Result<(), Failure> {
    let asked = Asked::of(args)?;
    let chosen = chosen::chosen(&args.config)?;
    let width = out::width();
    match (args.format, chosen.as_slice()) {
        (Format::Json, chosen) => out::print_json(&json::Document::of(chosen, &asked)),
        (Format::Table, [one]) => out::print(&one::show(one, &asked, width)),
        (Format::Table, many) => out::print(&many::show(many, &asked, width)),
    }
}
