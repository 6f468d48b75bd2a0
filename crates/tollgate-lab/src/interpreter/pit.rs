//! Channel 0 of the 8254 timer, which is connected to input 0 of the first interrupt controller. It counts virtual time: an
//! instruction takes a nanosecond, as with QEMU's `-icount shift=0`. Its edges are timed as in QEMU 7.2, hw/timer/i8254.c and
//! i8254_common.c. The other two channels, BCD and the read-back command are not modelled.
//!
//! Source: Intel, "8254 Programmable Interval Timer".

const FREQUENCY: u64 = 1_193_182;
const NANOSECONDS: u64 = 1_000_000_000;

#[derive(Debug, Clone)]
pub(super) struct Pit {
    mode: u8,
    /// 1: the lower byte; 2: the upper byte; 3: both.
    access: u8,
    /// Whether the lower of two bytes was written or read.
    half: bool,
    low: u8,
    /// The count that a latch command keeps.
    latched: Option<u16>,
    count: u64,
    loaded_at: u64,
    /// The time of the next look at the output; `None` if it will not change.
    due: Option<u64>,
}

impl Default for Pit {
    /// Without a count nothing happens.
    fn default() -> Self {
        Self {
            mode: 3,
            access: 3,
            half: false,
            low: 0,
            latched: None,
            count: 0x1_0000,
            loaded_at: 0,
            due: None,
        }
    }
}

fn scale(a: u64, b: u64, c: u64) -> u64 {
    (u128::from(a) * u128::from(b) / u128::from(c)) as u64
}

impl Pit {
    /// Returns when the output may change, in virtual nanoseconds.
    #[inline]
    pub(super) fn due(&self) -> Option<u64> {
        self.due
    }

    /// Moves to the due time; returns the output's level, and computes the next due time.
    pub(super) fn look(&mut self) -> bool {
        let now = self.due.unwrap_or(self.loaded_at);
        self.due = self.next(now);
        self.output(now)
    }

    /// Writes port 40h or 43h; returns the output's level if it is set anew.
    pub(super) fn write(&mut self, port: u16, byte: u8, now: u64) -> Option<bool> {
        match port {
            0x43 if byte >> 6 != 0 => None,
            0x43 if byte >> 4 & 3 == 0 => {
                let left = self.count.saturating_sub(self.periods(now) % self.count);
                self.latched = Some(left as u16);
                None
            }
            0x43 => {
                self.access = byte >> 4 & 3;
                // Modes 2 and 3 have two numbers each.
                self.mode = byte >> 1 & if byte & 4 == 0 { 7 } else { 3 };
                self.half = false;
                None
            }
            0x40 => match (self.access, self.half) {
                (1, _) => self.load(byte.into(), now),
                (2, _) => self.load(u16::from(byte) << 8, now),
                (_, false) => {
                    (self.low, self.half) = (byte, true);
                    None
                }
                (_, true) => {
                    self.half = false;
                    self.load(u16::from_le_bytes([self.low, byte]), now)
                }
            },
            _ => None,
        }
    }

    pub(super) fn read(&mut self, now: u64) -> u8 {
        let left = self.count.saturating_sub(self.periods(now) % self.count) as u16;
        let [low, high] = self.latched.unwrap_or(left).to_le_bytes();
        let is_low = self.access == 1 || self.access == 3 && !self.half;
        if self.access == 3 {
            self.half = !self.half;
        }
        if self.access != 3 || !self.half {
            self.latched = None;
        }
        if is_low { low } else { high }
    }

    fn load(&mut self, count: u16, now: u64) -> Option<bool> {
        self.count = if count == 0 { 0x1_0000 } else { count.into() };
        self.loaded_at = now;
        self.due = self.next(now);
        Some(self.output(now))
    }

    fn periods(&self, now: u64) -> u64 {
        scale(now.saturating_sub(self.loaded_at), FREQUENCY, NANOSECONDS)
    }

    fn output(&self, now: u64) -> bool {
        let passed = self.periods(now);
        match self.mode {
            0 => passed >= self.count,
            1 => passed < self.count,
            2 => passed.is_multiple_of(self.count) && passed != 0,
            3 => passed % self.count < self.count.div_ceil(2),
            _ => passed == self.count,
        }
    }

    fn next(&self, now: u64) -> Option<u64> {
        let passed = self.periods(now);
        let begin = passed - passed % self.count;
        let next = match self.mode {
            0 | 1 => (passed < self.count).then_some(self.count),
            2 if passed == begin && passed != 0 => Some(begin + self.count),
            2 => Some(begin + self.count + 1),
            3 if passed - begin < self.count.div_ceil(2) => Some(begin + self.count.div_ceil(2)),
            3 => Some(begin + self.count),
            _ if passed < self.count => Some(self.count),
            _ => (passed == self.count).then_some(self.count + 1),
        }?;
        Some((self.loaded_at + scale(next, NANOSECONDS, FREQUENCY)).max(now + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(control: u8, count: u16, now: u64) -> Pit {
        let mut pit = Pit::default();
        let [low, high] = count.to_le_bytes();
        for (port, byte) in [(0x43, control), (0x40, low), (0x40, high)] {
            pit.write(port, byte, now);
        }
        pit
    }

    /// Returns the times at which the output rises, up to `until`.
    fn rises(pit: &mut Pit, until: u64) -> Vec<u64> {
        let mut rises = Vec::new();
        let mut was_high = pit.output(pit.loaded_at);
        while let Some(due) = pit.due().filter(|due| *due < until) {
            let is_high = pit.look();
            if is_high && !was_high {
                rises.push(due);
            }
            was_high = is_high;
        }
        rises
    }

    #[test]
    fn a_rate_generator_rises_once_in_a_period() {
        // 1193 periods are 999,847 ns.
        let rises = rises(&mut loaded(0x34, 1193, 1000), 4_000_000);
        assert_eq!(rises.len(), 3);
        for (number, at) in (1..).zip(rises) {
            assert!(at.abs_diff(1000 + number * 999_847) < 1000, "{at}");
        }
    }

    #[test]
    fn one_shot_rises_once() {
        let mut pit = loaded(0x30, 0, 0);
        let rises = rises(&mut pit, u64::MAX);
        assert_eq!((rises.len(), pit.due()), (1, None));
        assert!(rises[0].abs_diff(54_925_493) < 1000, "65536 periods");
    }

    #[test]
    fn what_is_left_can_be_read() {
        let mut pit = loaded(0x34, 1000, 0);
        pit.write(0x43, 0, 100_000);
        let [low, high] = [pit.read(900_000), pit.read(900_000)];
        assert_eq!(u16::from_le_bytes([low, high]), 1000 - 119, "latched at 100 us");
        assert_ne!(u16::from_le_bytes([pit.read(200_000), pit.read(200_000)]), 1000 - 119);
    }

    #[test]
    fn any_bytes_are_taken() {
        let mut pit = Pit::default();
        let mut now = 0;
        for at in 0..100_000_u32 {
            let byte = (at.wrapping_mul(0x9e37_79b9) >> 24) as u8;
            now += u64::from(byte) * 50;
            pit.write([0x40, 0x43, 0x40, 0x41][at as usize % 4], byte, now);
            pit.read(now);
            if let Some(due) = pit.due().filter(|due| *due <= now) {
                pit.look();
                assert!(pit.due().is_none_or(|next| next > due));
            }
        }
    }
}
