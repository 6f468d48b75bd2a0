//! Columns of rates, which only some suites have.

use tollgate_output::figures;

use crate::summary::{Note, Row};

/// A column of a table that has a row with such a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Bytes per second.
    Bytes,
    /// The latency with several users over that of one user alone.
    Users,
}

impl Rate {
    /// Those of which these rows have one.
    pub fn of(rows: &[&Row]) -> Vec<Self> {
        let has = |rate: &Self| rows.iter().any(|row| !rate.cell(row).is_empty());
        [Self::Bytes, Self::Users].into_iter().filter(has).collect()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes/s",
            Self::Users => "× 1 user",
        }
    }

    /// A row's; nothing where it has none.
    pub fn cell(self, row: &Row) -> String {
        let Some(figures) = row.figures().filter(|figures| figures.is_estimate() && figures.below.is_none())
        else {
            return String::new();
        };
        let cell = match self {
            Self::Bytes => figures.bytes_per_second().map(figures::bytes),
            Self::Users => {
                let paired = figures.paired.as_ref().filter(|paired| {
                    row.case.params.contains_key("users") && paired.baseline.benchmark == row.case.benchmark
                });
                paired.map(|paired| figures::multiple(paired.ratio))
            }
        };
        cell.unwrap_or_default()
    }

    /// Whether the column says what a note would.
    pub fn replaces(self, note: &Note) -> bool {
        self == Self::Bytes && matches!(note, Note::Throughput(_))
    }
}
