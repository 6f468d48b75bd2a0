//! `tollgate inspect kernel`: whether the kernel itself was moved, and the evidence.

use tollgate_inspect::kernel_base::{conclude, kernel_base};
use tollgate_inspect::output::kernel::{Document, page};

use super::machine::machine;
use crate::args::{Format, KernelArgs};
use crate::failure::Failure;
use crate::out;

/// Reads the evidence, and prints it behind the answer.
///
/// # Errors
/// A captured tree that is none.
pub fn kernel(args: &KernelArgs) -> Result<(), Failure> {
    let evidence = kernel_base(&machine(args.from.as_deref())?);
    let conclusion = conclude(&evidence);
    match args.format {
        Format::Json => out::print_json(&Document::of(&evidence, &conclusion)),
        Format::Table => out::print(&page(&evidence, &conclusion, out::width())),
    }
}
