//! From the time stamps of lines to the time since the first of them. Pure.

use super::line::{Absolute, Stamp};

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// The time of a log.
#[derive(Debug, Default)]
pub(super) struct Clock {
    first: Option<Absolute>,
    /// The last time of day, with the days before it.
    last_of_day: u64,
    days: u64,
    now_ns: u64,
    /// Whether any line had a stamp.
    pub is_known: bool,
    /// Whether the stamps are whole seconds.
    pub is_coarse: bool,
}

impl Clock {
    /// The time of a line since the first, in nanoseconds; that of the line before where it has no stamp.
    pub fn at(&mut self, stamp: Stamp) -> u64 {
        match (stamp.relative_ns, stamp.absolute) {
            // The first difference is to the start of strace. These are finer than `-t` beside them.
            (Some(ns), _) => self.now_ns = if self.is_known { self.now_ns.saturating_add(ns) } else { 0 },
            (None, Some(time)) => {
                let first = *self.first.get_or_insert(time);
                self.is_coarse |= time.is_coarse;
                if time.is_of_day {
                    // `-tt` does not say the day.
                    if time.ns.saturating_add(DAY_NS / 2) < self.last_of_day {
                        self.days += 1;
                    }
                    self.last_of_day = time.ns;
                }
                let days = self.days.saturating_mul(DAY_NS);
                self.now_ns = time.ns.saturating_add(days).saturating_sub(first.ns);
            }
            (None, None) => return self.now_ns,
        }
        self.is_known = true;
        self.now_ns
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
