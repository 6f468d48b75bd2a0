//! Moments as run documents have them, RFC 3339 in UTC, and days.

use std::fmt;
use std::str::FromStr;

/// A day of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        // March first, so that the day that comes and goes is a year's last (Howard Hinnant, "chrono-Compatible Low-Level Date
        // Algorithms").
        let month = i64::from(self.month);
        let year = i64::from(self.year) - i64::from(month <= 2);
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(self.day) - 1;
        year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468
    }

    fn exists(self) -> bool {
        let leap =
            self.year.is_multiple_of(4) && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        let days = match self.month {
            2 => 28 + u8::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (1..=12).contains(&self.month) && (1..=days).contains(&self.day) && self.year > 0
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// Text that is no date, or no moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no such day or moment")]
pub struct NoSuchTime;

impl FromStr for Date {
    type Err = NoSuchTime;

    /// `YYYY-MM-DD`.
    fn from_str(text: &str) -> Result<Self, NoSuchTime> {
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return Err(NoSuchTime);
        }
        let date = Self {
            year: number(&bytes[..4])?,
            month: number(&bytes[5..7])? as u8,
            day: number(&bytes[8..])? as u8,
        };
        date.exists().then_some(date).ok_or(NoSuchTime)
    }
}

/// A second of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The day in UTC.
    pub date: Date,
    second: u32,
}

impl Moment {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub fn unix(self) -> i64 {
        self.date.days() * 86_400 + i64::from(self.second)
    }
}

impl FromStr for Moment {
    type Err = NoSuchTime;

    /// `YYYY-MM-DDTHH:MM:SSZ`; a fraction of the second is left out.
    fn from_str(text: &str) -> Result<Self, NoSuchTime> {
        let (date, time) = text.split_once('T').ok_or(NoSuchTime)?;
        let time = time.strip_suffix('Z').ok_or(NoSuchTime)?;
        let whole = match time.split_once('.') {
            Some((whole, fraction)) if fraction.bytes().all(|byte| byte.is_ascii_digit()) => whole,
            Some(_) => return Err(NoSuchTime),
            None => time,
        };
        let bytes = whole.as_bytes();
        if bytes.len() != 8 || bytes[2] != b':' || bytes[5] != b':' {
            return Err(NoSuchTime);
        }
        let (hour, minute, second) = (number(&bytes[..2])?, number(&bytes[3..5])?, number(&bytes[6..])?);
        if hour > 23 || minute > 59 || second > 60 {
            return Err(NoSuchTime);
        }
        let second = u32::from(hour) * 3600 + u32::from(minute) * 60 + u32::from(second);
        Ok(Self { date: date.parse()?, second })
    }
}

fn number(digits: &[u8]) -> Result<u16, NoSuchTime> {
    digits.iter().try_fold(0, |number: u16, byte| match byte {
        b'0'..=b'9' => Ok(number * 10 + u16::from(byte - b'0')),
        _ => Err(NoSuchTime),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_has_them() {
        let days = |text: &str| text.parse::<Date>().map(Date::days);
        assert_eq!(days("1970-01-01"), Ok(0));
        assert_eq!(days("2000-02-29"), Ok(11_016));
        assert_eq!(days("2026-11-21"), Ok(20_778));
        for wrong in [
            "1900-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-04-31",
            "2026-4-31",
            "0000-01-01",
            "20261121xx",
            "2026-11-٣",
        ] {
            assert_eq!(days(wrong), Err(NoSuchTime), "{wrong}");
        }
    }

    #[test]
    fn moments() {
        let unix = |text: &str| text.parse::<Moment>().map(Moment::unix);
        assert_eq!(unix("2026-11-21T01:54:27Z"), Ok(1_795_226_067));
        assert_eq!(unix("2026-11-21T01:54:27.25Z"), Ok(1_795_226_067));
        for wrong in [
            "2026-11-21",
            "2026-11-21T01:54:27",
            "2026-11-21T24:00:00Z",
            "2026-11-21T01:54:27+01:00",
            "../../x",
        ] {
            assert_eq!(unix(wrong), Err(NoSuchTime), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_moment_or_not(text in "\\PC{0,30}|[0-9T:Z.-]{0,24}") {
            let _ = text.parse::<Moment>();
            if let Ok(date) = text.parse::<Date>() {
                prop_assert_eq!(date.to_string(), text);
            }
        }
    }
}
