//! Converts the time stamps of lines to the time since the first line. Pure.

use super::line::{Absolute, Stamp};

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// The most that two stamps and a call between them may differ: strace truncates to microseconds or milliseconds.
const ROUNDED_NS: u64 = 2_000_000;
const SECOND_NS: u64 = 1_000_000_000;

#[derive(Debug, Default)]
pub(super) struct Clock {
    first: Option<Absolute>,
    /// The last time of day, and the number of days before it.
    last_of_day: u64,
    days: u64,
    now_ns: u64,
    /// The end of the last call, if the next line is of the same thread and so cannot be earlier.
    end_ns: u64,
    pub is_known: bool,
    pub is_coarse: bool,
    /// Whether the intervals between lines do not sum to the elapsed time.
    pub is_short: bool,
}

impl Clock {
    /// Returns the time of a line since the first, in nanoseconds; that of the previous line if it has no stamp.
    pub fn at(&mut self, stamp: Stamp) -> u64 {
        let since_first = stamp.absolute.map(|time| (self.since_first(time), time.is_coarse));
        match (since_first, stamp.relative_ns) {
            (Some((ns, is_coarse)), None) => {
                self.is_coarse |= is_coarse;
                self.now_ns = ns;
            }
            (Some((ns, false)), Some(_)) => self.now_ns = ns,
            (coarse, Some(ns)) => {
                // The first interval is since the start of strace, and with `-ff` each is since the last line of any process.
                let summed = if self.is_known { self.now_ns.saturating_add(ns) } else { 0 };
                let least = coarse.map_or(0, |(ns, _)| ns.saturating_sub(SECOND_NS)).max(self.end_ns);
                self.is_short |= summed.saturating_add(ROUNDED_NS) < least;
                self.now_ns = summed.max(least);
            }
            (None, None) => return self.now_ns,
        }
        self.is_known = true;
        self.now_ns
    }

    pub fn not_before(&mut self, ns: u64) {
        self.end_ns = ns;
    }

    fn since_first(&mut self, time: Absolute) -> u64 {
        let first = *self.first.get_or_insert(time);
        if time.is_of_day {
            // `-tt` does not print the day.
            if time.ns.saturating_add(DAY_NS / 2) < self.last_of_day {
                self.days += 1;
            }
            self.last_of_day = time.ns;
        }
        time.ns.saturating_add(self.days.saturating_mul(DAY_NS)).saturating_sub(first.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_day(seconds: u64) -> Stamp {
        let absolute = Absolute { ns: seconds * 1_000_000_000, is_of_day: true, is_coarse: false };
        Stamp { absolute: Some(absolute), relative_ns: None }
    }

    #[test]
    fn midnight_does_not_turn_the_time_back() {
        let mut clock = Clock::default();
        let times = [86_399, 0, 5, 86_399, 1].map(|second| clock.at(of_day(second)) / 1_000_000_000);
        assert_eq!(times, [0, 1, 6, 86_400, 86_402]);
    }

    #[test]
    fn differences_add_up() {
        let mut clock = Clock::default();
        let by = |ns| Stamp { absolute: None, relative_ns: Some(ns) };
        assert_eq!([7, 10, 20].map(|ns| clock.at(by(ns))), [0, 10, 30]);
        assert_eq!(clock.at(Stamp::default()), 30);
    }
}
