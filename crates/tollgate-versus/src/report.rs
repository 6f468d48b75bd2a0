//! The result of a session, and how it is printed.

use std::fmt;

use tollgate_statistics::{Interval, Neighbours, Verdict};

/// The result of a session.
#[derive(Debug, Clone)]
pub struct Report {
    /// The name of the base, and the median of its figures in ns.
    pub base: (String, f64),
    /// The other sides in their order.
    pub others: Vec<Other>,
    /// The number of pairs of turns.
    pub pairs: usize,
    /// The base compared with itself, its turns split by chance. If the halves differ by more than the noise threshold, every
    /// verdict is [`Verdict::Inconclusive`]. `None` without turns.
    pub halves: Option<Neighbours>,
    /// The side that ended the session, if one did. Then nothing is compared.
    pub failed: Option<Failed>,
}

/// A side compared with the base.
#[derive(Debug, Clone)]
pub struct Other {
    /// The name of the side.
    pub name: String,
    /// The median of its figures, in ns.
    pub ns: f64,
    /// The comparison; `None` without a time above zero, or if a side failed.
    pub compared: Option<Neighbours>,
}

/// A command that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The name of its side.
    pub side: String,
    /// The failure, as a clause.
    pub why: String,
}

/// `new is slower than old: 1.031 × [1.028, 1.034], 1.03 ns for 1.00 ns, 112 pairs`, one line per side.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Failed { side, why }) = &self.failed {
            return write!(f, "{side} failed: {why}");
        }
        for (at, other) in self.others.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            self.line(f, other)?;
        }
        let beyond =
            self.halves.filter(|halves| halves.verdict.is_beyond_margin() && !self.others.is_empty());
        let Some(Neighbours { ratio, .. }) = beyond else { return Ok(()) };
        let base = &self.base.0;
        write!(f, "\n{base} differs from itself, {ratio:.3} × in its two halves: all verdicts are withheld")
    }
}

impl Report {
    fn line(&self, f: &mut fmt::Formatter<'_>, Other { name, ns, compared }: &Other) -> fmt::Result {
        let (base, base_ns) = &self.base;
        let Some(Neighbours { ratio, interval, verdict, .. }) = compared else {
            return write!(f, "{name} is not compared with {base}: a time is not above zero");
        };
        match verdict {
            Verdict::Same => write!(f, "{name} and {base} are the same: ")?,
            Verdict::Inconclusive => write!(f, "{name} compared with {base}: inconclusive, ")?,
            different => write!(f, "{name} is {different} than {base}: ")?,
        }
        write!(f, "{ratio:.3} ×")?;
        if let Some(Interval { low, high }) = interval {
            write!(f, " [{low:.3}, {high:.3}]")?;
        }
        write!(f, ", {} for {}, {} pairs", time(*ns), time(*base_ns), self.pairs)
    }
}

/// Three digits: `1.03 ns`, `3.62 µs`.
fn time(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    // A figure that rounds to 1000 takes the next unit.
    let (size, unit) = units.into_iter().find(|(size, _)| ns >= size * 0.9995).unwrap_or((1.0, "ns"));
    let value = ns / size;
    let digits = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_their_unit() {
        for (ns, text) in [
            (0.0, "0.00 ns"),
            (1.034, "1.03 ns"),
            (99.96, "100 ns"),
            (999.7, "1.00 µs"),
            (3620.0, "3.62 µs"),
            (12_345_678.0, "12.3 ms"),
            (5e9, "5.00 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }
}
