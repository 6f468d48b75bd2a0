//! Axes: the positions of values.

use tollgate_output::markup::Text;

#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    least: f64,
    most: f64,
    is_log: bool,
    pub ticks: Vec<Tick>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    pub at: f64,
    pub name: Text,
    /// It is named on narrow screens too.
    pub is_main: bool,
}

/// The range of times that are drawn, in nanoseconds. Times outside it are not measurements.
const DRAWN: std::ops::Range<f64> = 1e-4..1e14;

impl Axis {
    pub fn of_times(times: impl Iterator<Item = f64>) -> Option<Self> {
        let mut times = times.filter(|time| DRAWN.contains(time));
        let first = times.next()?;
        let (least, most) =
            times.fold((first, first), |(least, most), time| (least.min(time), most.max(time)));
        // A rounding error beyond a decade does not add another.
        let low = (least.log10() + 1e-9).floor() as i32;
        let high = ((most.log10() - 1e-9).ceil() as i32).max(low + 1);
        let ticks = (low..=high).map(|power| Tick {
            at: 10_f64.powi(power),
            name: time_text(1, power),
            is_main: power.rem_euclid(3) == 0,
        });
        Some(Self { least: 10_f64.powi(low), most: 10_f64.powi(high), is_log: true, ticks: ticks.collect() })
    }

    /// A logarithmic axis of the range of these times. 2 and 5 times each power of ten are named too if there are few powers.
    pub fn around_times(times: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let times = times.filter(|time| DRAWN.contains(time));
        // Below the least there is room for the names of plateaus.
        let least = times.clone().min_by(f64::total_cmp)? / 2.0;
        let most = times.max_by(f64::total_cmp)? * 1.2;
        let powers = least.log10().floor() as i32..=most.log10().floor() as i32;
        let digits: &[u32] = if most / least > 500.0 { &[1] } else { &[1, 2, 5] };
        let ticks = powers.flat_map(|power| {
            digits.iter().map(move |digit| Tick {
                at: f64::from(*digit) * 10_f64.powi(power),
                name: time_text(*digit, power),
                is_main: *digit == 1,
            })
        });
        Self::logarithmic(least, most, ticks.collect())
    }

    pub fn logarithmic(least: f64, most: f64, ticks: Vec<Tick>) -> Option<Self> {
        let is_axis = least > 0.0 && most > least && most.is_finite();
        is_axis.then_some(Self { least, most, is_log: true, ticks })
    }

    pub fn of_steps(names: impl IntoIterator<Item = Text>) -> Self {
        let ticks: Vec<Tick> = names
            .into_iter()
            .enumerate()
            .map(|(at, name)| Tick { at: at as f64, name, is_main: true })
            .collect();
        Self { least: 0.0, most: ticks.len().saturating_sub(1).max(1) as f64, is_log: false, ticks }
    }

    /// The position of a value, 0 to 1; `None` outside.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        let share = if self.is_log {
            (value / self.least).ln() / (self.most / self.least).ln()
        } else {
            (value - self.least) / (self.most - self.least)
        };
        (-1e-9..=1.0 + 1e-9).contains(&share).then_some(share.clamp(0.0, 1.0))
    }

    pub fn percent(&self, value: f64) -> Option<f64> {
        self.share(value).map(|share| share * 100.0)
    }

    /// In percent; values outside are at the nearer end.
    pub(super) fn clamped(&self, value: f64) -> f64 {
        self.percent(value).unwrap_or(if value > self.most { 100.0 } else { 0.0 })
    }
}

/// `500 ns` for 5 and 2.
fn time_text(digit: u32, power: i32) -> Text {
    let digit = f64::from(digit);
    let (unit, above) = match power {
        ..=2 => ("ns", power),
        3..=5 => ("µs", power - 3),
        6..=8 => ("ms", power - 6),
        _ => ("s", power - 9),
    };
    Text::from(match above {
        below @ ..=-1 => format!("{:.*} {unit}", below.unsigned_abs() as usize, digit * 10_f64.powi(below)),
        above => format!("{:.0} {unit}", digit * 10_f64.powi(above)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_named_by_decades() {
        let axis = Axis::of_times([0.8, 1e9].into_iter()).expect("an axis");
        let names: Vec<&str> = axis.ticks.iter().map(|tick| tick.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "0.1 ns", "1 ns", "10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms",
                "1 s"
            ]
        );
        assert_eq!(axis.percent(1.0), Some(10.0));
        assert_eq!(axis.percent(0.01), None);
        assert_eq!(axis.clamped(0.01), 0.0);
        assert_eq!(axis.clamped(f64::MAX), 100.0);
    }

    #[test]
    fn values_that_are_no_times_make_no_axis() {
        assert!(Axis::of_times([f64::MAX, f64::MIN_POSITIVE, 0.0, -1.0].into_iter()).is_none());
        assert!(Axis::logarithmic(0.0, 1.0, Vec::new()).is_none());
        assert!(Axis::logarithmic(2.0, 2.0, Vec::new()).is_none());
    }

    #[test]
    fn steps_are_evenly_spaced() {
        let axis = Axis::of_steps(["none", "64", "256"].map(Text::from));
        assert_eq!([0.0, 1.0, 2.0].map(|step| axis.percent(step)), [Some(0.0), Some(50.0), Some(100.0)]);
    }
}
