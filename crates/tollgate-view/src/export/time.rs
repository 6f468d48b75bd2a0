//! Times of run documents, RFC 3339 in UTC, and days.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

const DAY: u64 = 86_400;

/// A day of the Gregorian calendar, from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(u64);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let midnight = SystemTime::UNIX_EPOCH + Duration::from_secs(self.0 * DAY);
        let text = humantime::format_rfc3339_seconds(midnight).to_string();
        f.write_str(text.split('T').next().unwrap_or_default())
    }
}

/// Text that is not a date or time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a date or time")]
pub struct NoSuchTime;

impl FromStr for Date {
    type Err = NoSuchTime;

    /// `YYYY-MM-DD`.
    fn from_str(text: &str) -> Result<Self, NoSuchTime> {
        if text.len() != "YYYY-MM-DD".len() {
            return Err(NoSuchTime);
        }
        format!("{text}T00:00:00Z").parse().map(|moment: Moment| moment.date())
    }
}

/// A second of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(u64);

impl Moment {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub fn unix(self) -> i64 {
        self.0 as i64
    }

    /// The day in UTC.
    pub fn date(self) -> Date {
        Date(self.0 / DAY)
    }
}

impl FromStr for Moment {
    type Err = NoSuchTime;

    /// `YYYY-MM-DDTHH:MM:SSZ`; a fraction of a second is cut off.
    fn from_str(text: &str) -> Result<Self, NoSuchTime> {
        let moment = humantime::parse_rfc3339(text).map_err(|_| NoSuchTime)?;
        let since = moment.duration_since(SystemTime::UNIX_EPOCH).map_err(|_| NoSuchTime)?;
        Ok(Self(since.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_has_them() {
        let days = |text: &str| text.parse::<Date>().map(|date| date.0);
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
