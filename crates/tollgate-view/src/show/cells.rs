//! The figures of a case as the cells of a row, for tables in a terminal and on a page.

use crate::figures::{estimate, multiple};
use crate::summary::{Figures, Row};

/// The columns beside the name in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// The interval and the minimum.
    Level,
    /// Also the multiple of the plain call, where that was measured.
    Multiple,
    /// The distribution of single operations, for suites whose operations wait for storage.
    Distribution,
}

impl Columns {
    /// The columns for a suite's rows.
    pub fn of<'a, 'b: 'a>(rows: impl IntoIterator<Item = &'a Row<'b>> + Clone) -> Self {
        let measured = || rows.clone().into_iter().filter_map(Row::figures);
        if measured().any(|figures| figures.measured.bytes_per_op.is_some()) {
            Self::Distribution
        } else if measured().any(|figures| figures.multiple.is_some()) {
            Self::Multiple
        } else {
            Self::Level
        }
    }

    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Level => &["median", "95 % CI", "min"],
            Self::Multiple => &["median", "95 % CI", "min", "× syscall"],
            Self::Distribution => &["median", "95 % CI", "p99", "max"],
        }
    }

    /// The cells of a case; fewer where it has no estimate.
    pub fn cells(self, figures: &Figures) -> Vec<String> {
        let Figures { estimate: of, measured, .. } = figures;
        let shown = |value: f64| estimate(value, measured.unit);
        if !figures.is_estimate() {
            return vec!["emulated".to_owned()];
        }
        if let Some(limit) = figures.below {
            return vec![format!("< {}", shown(limit))];
        }
        let interval = figures.interval_in_words().unwrap_or_default();
        let mut cells = vec![shown(of.median), interval];
        if self == Self::Distribution {
            // A sample that is the mean of several operations says nothing about a single one.
            let of_single =
                |value: f64| if measured.ops_per_sample == 1 { shown(value) } else { String::new() };
            cells.extend([of.p99.map(of_single).unwrap_or_default(), of_single(of.max)]);
        } else {
            // A minimum of zero is below the detection limit.
            cells.push(if of.min > 0.0 { shown(of.min) } else { String::new() });
        }
        if self == Self::Multiple {
            cells.push(figures.multiple.map(multiple).unwrap_or_default());
        }
        cells
    }
}
