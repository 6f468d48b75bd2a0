//! `tollgate inspect kernel`: whether the kernel itself was moved, and the evidence.

use std::path::Path;

use tollgate_inspect::kernel_base::{Evidence, Source, Symbols, conclude, kernel_base, named as symbols};
use tollgate_inspect::output::kernel::{Before, KernelDocument, named_screen, screen};

use super::machine::machine;
use crate::args::{Format, KernelArgs};
use crate::failure::Failure;
use crate::out;

/// Prints the evidence after the answer; or the addresses of symbols, beside those of another boot.
pub fn kernel(args: &KernelArgs) -> Result<(), Failure> {
    let machine = machine("--from", args.from.as_deref())?;
    let evidence = kernel_base(&machine);
    let conclusion = conclude(&evidence);
    let named = symbols(&machine, &args.symbols);
    let before = args.since.as_deref().map(|tree| before(tree, &args.symbols, &evidence)).transpose()?;
    match args.format {
        Format::Json => {
            out::print_json(&KernelDocument::new(&evidence, &conclusion, &named, before.as_ref()))
        }
        Format::Table if named.is_empty() => out::print(&screen(&evidence, &conclusion, out::width())),
        Format::Table => out::print(&named_screen(&conclusion, &named, before.as_ref(), out::width())),
    }
}

fn before(tree: &Path, names: &[String], after: &Evidence) -> Result<Before, Failure> {
    let machine = machine("--since", Some(tree))?;
    let code = |evidence: &Evidence| match evidence.symbols {
        Ok(Source { value: Symbols::At(at), .. }) => Some(at),
        _ => None,
    };
    let was = code(&kernel_base(&machine));
    Ok(Before {
        place: tree.display().to_string(),
        symbols: symbols(&machine, names),
        code: was.zip(code(after)).map(|(was, is)| is.wrapping_sub(was)),
    })
}
