//! The figures of a case as the cells of a row, for tables in a terminal and on a page.

use tollgate_model::Unit;
use tollgate_output::figures::{estimate, multiple, range};

use crate::counts;
use crate::summary::{Figures, Row};

/// How samples become the figures that are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// A sample times this is the figure.
    pub factor: f64,
    /// Its unit.
    pub unit: Unit,
}

impl Scale {
    /// As measured.
    pub fn of_measured(figures: &Figures) -> Self {
        Self { factor: 1.0, unit: figures.measured.unit }
    }
}

/// The columns beside the name in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// The interval and the minimum.
    Level,
    /// Also the multiple of the plain call, where that was measured.
    Multiple,
    /// The distribution of single operations, for suites whose operations wait for storage.
    Distribution,
    /// Counts of instructions, and whether they are the same in every batch.
    Counts,
}

/// Whether its samples are single operations that move bytes.
fn is_single(figures: &Figures) -> bool {
    figures.measured.bytes_per_op.is_some() && figures.measured.ops_per_sample == 1
}

impl Columns {
    /// The columns for a suite's rows.
    pub fn of<'a, 'b: 'a>(rows: impl IntoIterator<Item = &'a Row<'b>> + Clone) -> Self {
        let measured = || rows.clone().into_iter().filter_map(Row::figures);
        if measured().next().is_some() && measured().all(Figures::is_count) {
            Self::Counts
        } else if measured().any(is_single) {
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
            Self::Counts => &["instructions", "batches", "× syscall"],
        }
    }

    /// The cells of a case; fewer where it has no estimate.
    pub fn cells(self, figures: &Figures) -> Vec<String> {
        self.cells_in(figures, Scale::of_measured(figures))
    }

    /// The same on another scale.
    pub fn cells_in(self, figures: &Figures, scale: Scale) -> Vec<String> {
        let Figures { estimate: of, measured, .. } = figures;
        let shown = |value: f64| estimate(value * scale.factor, scale.unit);
        if !figures.is_estimate() {
            return vec!["emulated".to_owned()];
        }
        if let Some(limit) = figures.below {
            return vec![format!("< {}", shown(limit))];
        }
        if self == Self::Counts {
            let multiple = figures.multiple.map(multiple).unwrap_or_default();
            return vec![
                counts::count(of.median, measured.unit),
                counts::batches(figures).unwrap_or_default(),
                multiple,
            ];
        }
        let interval = of.interval.map(|interval| {
            let [low, high, median] =
                [interval.low, interval.high, of.median].map(|value| value * scale.factor);
            range(low, high, median, scale.unit)
        });
        let mut cells = vec![shown(of.median), interval.unwrap_or_default()];
        if self == Self::Distribution {
            // A sample that is the mean of several operations says nothing about a single one.
            let of_single =
                |value: f64| if measured.ops_per_sample == 1 { shown(value) } else { String::new() };
            cells.extend([of.p99.map(of_single).unwrap_or_default(), of_single(of.max)]);
        } else {
            cells.push(figures.min().map(shown).unwrap_or_default());
        }
        if self == Self::Multiple {
            cells.push(figures.multiple.map(multiple).unwrap_or_default());
        }
        cells
    }
}
