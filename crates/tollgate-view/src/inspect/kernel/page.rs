//! The evidence behind the answer, as text.

use tollgate_inspect::kernel_base::{Conclusion, Evidence};

use super::text;
use crate::table::{Look, Table, paragraph};

/// All of it.
pub fn page(evidence: &Evidence, conclusion: &Conclusion, width: usize) -> String {
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
