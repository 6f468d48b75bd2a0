//! `tollgate inspect kernel`: whether the kernel itself was moved, and the evidence.

mod json;
mod text;

use tollgate_inspect::kernel_base::{Conclusion, Evidence, conclude, kernel_base};

use crate::args::{Format, KernelArgs};
use crate::failure::Failure;
use crate::out;
use crate::table::{Look, Table, paragraph};

/// Reads the evidence, and prints it behind the answer.
///
/// # Errors
/// A captured tree that is none.
pub fn kernel(args: &KernelArgs) -> Result<(), Failure> {
    let machine = super::machine(args.from.as_deref())?;
    let evidence = kernel_base(&machine);
    let conclusion = conclude(&evidence);
    match args.format {
        Format::Json => out::print_json(&json::Document::of(&evidence, &conclusion)),
        Format::Table => out::print(&page(&evidence, &conclusion, out::width())),
    }
}

fn page(evidence: &Evidence, conclusion: &Conclusion, width: usize) -> String {
    let mut text = paragraph(&text::verdict(conclusion), width, "");
    for remark in &conclusion.remarks {
        text.push_str(&paragraph(remark, width, "- "));
    }
    text.push('\n');
    let mut table = Table::new(&["evidence", "says"]).with_words(&["says"]);
    for line in text::evidence(evidence, conclusion) {
        let look = if line.known { Look::Plain } else { Look::Faint };
        table.row(look, &[line.name.to_owned(), line.says], &[line.source]);
    }
    text.push_str(&table.render(width));
    text.push('\n');
    text.push_str(&paragraph(&text::chances(conclusion), width, ""));
    text
}
