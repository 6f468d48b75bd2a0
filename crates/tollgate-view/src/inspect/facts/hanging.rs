//! Lines that are indented below a label.

use anstyle::Style;
use tollgate_model::text::clean;
use tollgate_output::table::wrap;

pub(crate) const FAINT: Style = Style::new().dimmed();
pub(crate) const INDENT: &str = "  ";

/// A paragraph after a label, with its later lines below its first word.
pub(crate) fn hanging(label: &str, text: &str, style: Style, width: usize) -> String {
    let label = if label.starts_with(' ') { label.to_owned() } else { format!("{INDENT}{label}") };
    let indent = label.chars().count().min(16);
    let columns = width.saturating_sub(indent).max(10);
    let first = width.saturating_sub(label.chars().count()).max(10);
    let mut out = String::new();
    for (at, line) in wrap(&clean(text), columns.min(first)).into_iter().enumerate() {
        let line = if at == 0 { format!("{label}{line}") } else { format!("{:indent$}{line}", "") };
        let line = line.trim_end();
        if style == Style::new() {
            out.push_str(&format!("{line}\n"))
        } else {
            out.push_str(&format!("{style}{line}{style:#}\n"))
        }
    }
    out
}
