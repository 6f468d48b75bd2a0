//! `tollgate inspect config`: a kernel's build configuration, and the differences of several.

mod chosen;

use tollgate_kconfig::output::{Asked, ConfigDocument, show};

use crate::args::{ConfigArgs, Format};
use crate::failure::Failure;
use crate::out;

pub fn config(args: &ConfigArgs) -> Result<(), Failure> {
    let asked = Asked::new(&args.area, args.all, args.explain)?;
    let chosen = chosen::chosen(&args.config)?;
    match args.format {
        Format::Json => out::print_json(&ConfigDocument::new(&chosen, &asked)),
        Format::Table => out::print(&show(&chosen, &asked, out::width())),
    }
}
