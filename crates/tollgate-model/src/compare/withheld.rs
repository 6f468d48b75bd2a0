use super::Verdict;
use super::halves::Halves;
use super::rows::ComparedCase;

/// Withholds the verdicts of cases that differ from themselves, or of all if these are many.
pub(super) fn withhold<'a>(rows: impl Iterator<Item = &'a mut ComparedCase>, halves: &Halves) {
    for row in rows.filter(|row| row.verdict != Verdict::Inconclusive) {
        let why = if halves.different.contains(&row.case) {
            "withheld: halves of the base's own processes differ".to_owned()
        } else if halves.is_failed() {
            format!("withheld: {halves}")
        } else {
            continue;
        };
        row.verdict = Verdict::Inconclusive;
        row.why = Some(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Case;

    fn row(benchmark: &str) -> ComparedCase {
        ComparedCase {
            case: Case::plain(benchmark),
            base: Some(100.0),
            other: Some(103.0),
            ratio: 1.03,
            interval: None,
            verdict: Verdict::Slower,
            threshold: 0.01,
            why: None,
            alternation: None,
            layouts: None,
            total: None,
            processor: None,
        }
    }

    fn verdicts(halves: &Halves) -> Vec<(Verdict, bool)> {
        let mut rows = ["entry/a", "entry/b"].map(row);
        withhold(rows.iter_mut(), halves);
        rows.into_iter().map(|row| (row.verdict, row.why.is_some())).collect()
    }

    #[test]
    fn what_differs_from_itself_has_no_verdict() {
        let of = |same: usize, different: &[&str]| Halves {
            same,
            open: 0,
            different: different.iter().map(|name| Case::plain(*name)).collect(),
            half_widths: Vec::new(),
        };
        let (held, withheld) = ((Verdict::Slower, false), (Verdict::Inconclusive, true));
        assert_eq!(verdicts(&of(51, &[])), [held, held]);
        assert_eq!(verdicts(&of(50, &["entry/b"])), [held, withheld]);
        assert_eq!(verdicts(&of(20, &["entry/c", "entry/d"])), [withheld, withheld]);
        assert_eq!(of(51, &[]).to_string(), "A/A: 51 of 51 the same, none different");
    }
}
