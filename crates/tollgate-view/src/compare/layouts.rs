//! Sentences about sides with several layouts: how far these lie apart, and what one layout of each would have shown.

use tollgate_model::compare::{Verdict, margin};
use tollgate_model::stats::Layouts;
use tollgate_output::figures;

use crate::comparison::{ComparedRow, Comparison};

/// Rows that are named.
const MOST_NAMED: usize = 3;

/// `The 8 layouts of A lie 1.2 % apart, those of B 16.6 %. One of each would have shown a ratio from 0.990 to 1.170, so A and B could
/// have been called different by chance.` `None` if a side is one program.
pub(crate) fn of_row([base, other]: [&str; 2], row: &ComparedRow, asked: f64) -> Option<String> {
    let layouts = row.result.layouts.as_ref()?;
    let number = layouts.number;
    if !layouts.are_apart {
        return Some(format!(
            "The {number} layouts of each lie no further apart than the noise of executions makes them seem."
        ));
    }
    let [of_base, of_other] = layouts.apart.map(figures::percent);
    let chance = if is_by_chance(row, layouts, asked) {
        format!(", so {base} and {other} could have been called different by chance")
    } else {
        String::new()
    };
    let shown = span(layouts);
    Some(format!(
        "The {number} layouts of {base} lie {of_base} apart, those of {other} {of_other}. One of each would have shown a ratio {shown}{chance}."
    ))
}

/// Likewise for many rows: `Of 8 layouts of each, those of divan/sort lie farthest apart, 16.6 %. One of each could have called 2
/// same rows different: divan/sort, from 0.990 to 1.170; …`
pub(crate) fn of_rows(comparison: &Comparison) -> Option<String> {
    let mut rows: Vec<(&ComparedRow, &Layouts)> =
        comparison.rows.iter().filter_map(|row| Some((row, row.result.layouts.as_ref()?))).collect();
    let apart = |layouts: &Layouts| layouts.apart[0].max(layouts.apart[1]);
    rows.sort_by(|(_, one), (_, another)| apart(another).total_cmp(&apart(one)));
    let number = rows.first()?.1.number;
    rows.retain(|(_, layouts)| layouts.are_apart);
    let Some((row, widest)) = rows.first() else {
        return Some(format!(
            "The {number} layouts of each lie no further apart than the noise of executions makes them seem."
        ));
    };
    let widest = figures::percent(apart(widest));
    let by_chance: Vec<String> = rows
        .iter()
        .filter(|(row, layouts)| is_by_chance(row, layouts, comparison.asked))
        .map(|(row, layouts)| format!("{} {}", row.case(), span(layouts)))
        .collect();
    let chance = match by_chance.len() {
        0 => String::new(),
        all => format!(
            " One of each could have called {} different by chance: {}{}.",
            figures::count(all, "row", "rows"),
            by_chance[..all.min(MOST_NAMED)].join("; "),
            if all > MOST_NAMED { "; …" } else { "" }
        ),
    };
    Some(format!("The {number} layouts of {} lie {widest} apart, the widest.{chance}", row.case()))
}

/// `About 24 layouts of each decide it: --layouts 24.` `None` if the layouts are not what keeps it open.
pub(crate) fn deciding(row: &ComparedRow) -> Option<String> {
    let layouts = row.result.layouts.as_ref().filter(|layouts| layouts.are_apart)?;
    Some(match layouts.deciding {
        Some(number) if number <= tollgate_model::versus::MOST_LAYOUTS => {
            format!("About {number} layouts of each decide it: --layouts {number}.")
        }
        Some(number) => format!("About {number} layouts of each would decide it, more than there can be."),
        None => "More layouts will not decide it.".to_owned(),
    })
}

/// Whether one layout of each side could have shown a difference beyond the margin that the verdict does not have.
fn is_by_chance(row: &ComparedRow, layouts: &Layouts, asked: f64) -> bool {
    let far = 1.0 + margin(asked);
    let verdict = row.result.verdict;
    let is_slower = matches!(verdict, Verdict::Slower | Verdict::SomewhatSlower);
    let is_faster = matches!(verdict, Verdict::Faster | Verdict::SomewhatFaster);
    (layouts.by_one.high > far && !is_slower) || (layouts.by_one.low < 1.0 / far && !is_faster)
}

fn span(layouts: &Layouts) -> String {
    format!("from {:.3} to {:.3}", layouts.by_one.low, layouts.by_one.high)
}
