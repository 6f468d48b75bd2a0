//! The cost of a benchmark in the environments of a session, or under a setting that it alternated.

use tollgate_model::Case;
use tollgate_output::table::paragraph;
use tollgate_suites::Benchmark;

use crate::compare::columns::Compared;
use crate::comparison::{self, ComparedRow, Comparison};
use crate::counts;
use crate::session::{Member, Session};

const ROWS: usize = 6;

pub(super) fn text(benchmark: &Benchmark, session: &Session, width: usize) -> String {
    let Some(base) = session.members.first() else { return String::new() };
    let text: String = session
        .others()
        .map(|(other, comparison)| text_of(benchmark, base, other, comparison, width))
        .collect();
    // It may belong to another run than the figures above.
    if text.is_empty() {
        text
    } else {
        text + &paragraph(&format!("session {}", session.id), width, &" ".repeat(13))
    }
}

fn text_of(
    benchmark: &Benchmark,
    base: &Member,
    other: &Member,
    comparison: &Comparison,
    width: usize,
) -> String {
    let rows: Vec<&ComparedRow> =
        comparison.rows.iter().filter(|row| row.case().benchmark == benchmark.name).collect();
    if rows.is_empty() {
        return beside(benchmark, base, other, comparison, width);
    }
    // The setting itself makes the difference.
    let what = match &comparison.proven {
        Some(proven) => format!("{}, {} → {}:", proven.setting, proven.was, proven.value),
        None => format!("In {}, compared with {}:", other.name, base.name),
    };
    let mut text = paragraph(&what, width, "Costs here   ");
    let indent = " ".repeat(13);
    for row in rows.iter().take(ROWS) {
        text.push_str(&paragraph(&in_words(comparison, row, rows.len() > 1), width, &indent));
    }
    if rows.len() > ROWS {
        text.push_str(&paragraph(&format!("and {} more cases", rows.len() - ROWS), width, &indent));
    }
    let is_changed = rows.iter().any(|row| row.result.verdict.is_difference());
    let cause = match &comparison.proven {
        Some(_) if is_changed && comparison.is_counted() => {
            "A proven cause: nothing else differed, and instructions have no noise.".to_owned()
        }
        Some(_) if is_changed => "A proven cause: nothing else differed, and both alternated.".to_owned(),
        _ => {
            let mut names: Vec<&str> = rows.iter().flat_map(|row| comparison.cause_names(row)).collect();
            let mut seen = std::collections::HashSet::new();
            names.retain(|name| seen.insert(*name));
            if names.is_empty() { return text } else { format!("Possible causes: {}", names.join(", ")) }
        }
    };
    text + &paragraph(&cause, width, &indent)
}

/// The figures of both if one counted and the other timed: `83.1 ns in host, 209 instructions in vm:exact: not compared`.
fn beside(
    benchmark: &Benchmark,
    base: &Member,
    other: &Member,
    comparison: &Comparison,
    width: usize,
) -> String {
    let apart = comparison.not_compared.iter().find(|apart| apart.case.benchmark == benchmark.name);
    let figure = |member: &Member, case: &Case| {
        Some(format!("{} in {}", member.summary.figures(case)?.in_words(), member.name))
    };
    let words = apart.and_then(|apart| {
        let [base, other] = [figure(base, &apart.case)?, figure(other, &apart.case)?];
        Some(format!("{}: {base}, {other}; not compared", apart.case))
    });
    words.map(|words| paragraph(&words, width, "Costs here   ")).unwrap_or_default()
}

/// `1.560 × (1.552–1.571), +46.5 ns, slower`
pub(super) fn in_words(comparison: &Comparison, row: &ComparedRow, is_named: bool) -> String {
    let compared = Compared::new(comparison, row);
    let verdict = row.result.verdict;
    let name = if is_named { format!("{}: ", row.case()) } else { String::new() };
    if row.is_count() {
        return format!("{name}{}, {}", counts::in_words(row), comparison::verdict_word(verdict, true));
    }
    let Some(ratio) = compared.words("ratio") else {
        let why = row.result.why.as_deref().unwrap_or("no ratio");
        return format!("{name}{verdict}: {why}");
    };
    let interval = compared.words("ratio_ci").map(|interval| format!(" ({interval})")).unwrap_or_default();
    let adds = compared.words("adds").map(|adds| format!(", {adds}")).unwrap_or_default();
    format!("{name}{ratio} ×{interval}{adds}, {verdict}")
}
