//! Sentences about processor times, in addition to the verdicts by real time.

use tollgate_model::compare::{ComparedCase, Verdict, crowd};

use super::columns::cpu_ratio;
use super::sentences;
use crate::comparison::{ComparedRow, Comparison};

const MOST_NAMED: usize = 3;

/// `By processor time B is 10.0 × slower [9.8, 10.2] than A; real time is inconclusive: 8 tasks for 2 processors.` `None` if no
/// processor time is known.
pub(crate) fn sentence(
    [base, other]: [&str; 2],
    comparison: &Comparison,
    row: &ComparedRow,
    is_corrected: bool,
) -> Option<String> {
    let cpu = row.result.processor.as_deref()?;
    let (Some(ratio), Some(_)) = (cpu_ratio(cpu), cpu.interval) else {
        let why = cpu.why.as_deref().unwrap_or("it has no ratio");
        return Some(format!("By processor time {other} and {base} are not compared: {why}."));
    };
    let with = if is_corrected { ", start-up included," } else { "" };
    let is = sentences::verdict([base, other], cpu, comparison.asked);
    let how = match is {
        Some(is) if cpu.verdict.is_beyond_margin() => is,
        is => {
            let is = is.unwrap_or_else(|| "it is inconclusive".to_owned());
            format!("{is}: {}", sentences::ratio(ratio, cpu.interval))
        }
    };
    let open = decides(row).then(|| format!("; real time is inconclusive{}", because(comparison)));
    Some(format!("By processor time{with} {how}{}.", open.unwrap_or_default()))
}

/// Likewise for many rows: `By processor time 1 slower, 0 faster, 2 same: workloads/grep 1.5 × slower [1.4, 1.6].`
pub(crate) fn of_rows(comparison: &Comparison) -> Option<String> {
    let rows: Vec<(&ComparedRow, &ComparedCase)> =
        comparison.rows.iter().filter_map(|row| Some((row, row.result.processor.as_deref()?))).collect();
    if rows.is_empty() {
        return None;
    }
    let number = |verdict: Verdict| rows.iter().filter(|(_, cpu)| cpu.verdict == verdict).count();
    let is_shown =
        |verdict: &Verdict| number(*verdict) > 0 || matches!(verdict, Verdict::Slower | Verdict::Faster);
    let counts = Verdict::ALL.into_iter().filter(is_shown);
    let counts: Vec<String> = counts.map(|verdict| format!("{} {verdict}", number(verdict))).collect();
    let mut changed: Vec<_> = rows.iter().filter(|(_, cpu)| cpu.verdict.is_difference()).collect();
    changed.sort_by(|(_, one), (_, another)| another.ratio.ln().abs().total_cmp(&one.ratio.ln().abs()));
    let more = changed.len().saturating_sub(MOST_NAMED);
    changed.truncate(MOST_NAMED);
    let mut named: Vec<String> =
        changed.iter().map(|(row, cpu)| format!("{} {}", row.case(), sentences::different(cpu))).collect();
    named.extend((more > 0).then(|| format!("{more} more")));
    let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    let decided = rows.iter().filter(|(row, _)| decides(row)).count();
    let decided = match decided {
        0 => String::new(),
        _ => format!("; real time leaves {decided} of these inconclusive{}", because(comparison)),
    };
    Some(format!("By processor time {}{named}{decided}.", counts.join(", ")))
}

fn decides(row: &ComparedRow) -> bool {
    let cpu = row.result.processor.as_ref();
    row.result.verdict == Verdict::Inconclusive && cpu.is_some_and(|cpu| cpu.verdict != Verdict::Inconclusive)
}

fn because(comparison: &Comparison) -> String {
    crowd(comparison.base).map(|crowd| format!(": {crowd}")).unwrap_or_default()
}
