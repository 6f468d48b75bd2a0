//! The answer and its evidence, as text.

use tollgate_output::figures;
use tollgate_output::table::{Look, Table, paragraph};

use super::evidence::{pieces, signed};
use crate::kernel_base::{Conclusion, Evidence, Verdict};

/// Formats the answer and all evidence.
pub fn screen(evidence: &Evidence, conclusion: &Conclusion, width: usize) -> String {
    let mut text = paragraph(&verdict(conclusion), width, "");
    for remark in &conclusion.remarks {
        text.push_str(&paragraph(remark, width, "- "));
    }
    text.push('\n');
    let mut table = Table::new(&["evidence", "says"]).with_words(&["says"]);
    for piece in pieces(evidence, conclusion.link_address) {
        let (look, says, source) = match piece.found {
            Ok(found) => (Look::Plain, found.says, format!("{}{}", found.source, found.more)),
            Err(unknown) => {
                let (kind, why) = unknown.kind_and_why();
                (Look::Faint, kind.to_owned(), why.to_owned())
            }
        };
        table.row(look, &[piece.name.to_owned(), says], &[source]);
    }
    text.push_str(&table.render(width));
    text.push('\n');
    text.push_str(&paragraph(&chances(conclusion), width, ""));
    text
}

pub(super) fn verdict(conclusion: &Conclusion) -> String {
    let answer = match (conclusion.verdict, conclusion.offset) {
        (Verdict::Moved, Some(offset)) => {
            let bytes = offset.cast_signed().unsigned_abs();
            format!("moved, by {} ({})", signed(offset), figures::bytes(bytes as f64))
        }
        (Verdict::Moved, None) => "moved, by an unknown distance".to_owned(),
        (Verdict::NotMoved, _) => "not moved".to_owned(),
        (Verdict::Unknown, _) => "inconclusive: whether the kernel was moved is unknown".to_owned(),
    };
    format!("{answer}: {}", conclusion.because)
}

fn chances(conclusion: &Conclusion) -> String {
    format!(
        "A kernel that moves itself chooses one of at most {} virtual addresses: {:.1} bits.",
        conclusion.slots,
        (conclusion.slots as f64).log2()
    )
}
