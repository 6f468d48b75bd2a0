//! Times as they are typed: `3`, `2.5`, `90s`, `2m`.

use std::time::Duration;

/// `--time`: seconds, or a number with `s`, `m` or `h`; from one second to a day.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    const LEAST: f64 = 1.0;
    match parse_seconds(text)? {
        seconds if seconds < LEAST => Err("a run takes at least 1 s".to_owned()),
        seconds if seconds > MOST_SECONDS => Err("a run takes at most 24 h".to_owned()),
        seconds => Ok(Duration::from_secs_f64(seconds)),
    }
}

/// `--linger`: from zero to a day.
pub fn parse_wait(text: &str) -> Result<Duration, String> {
    match parse_seconds(text)? {
        seconds if seconds > MOST_SECONDS => Err("it is more than 24 h".to_owned()),
        seconds => Ok(Duration::from_secs_f64(seconds)),
    }
}

/// `--every` of a trace: from 10 ms to a day.
pub fn parse_interval(text: &str) -> Result<Duration, String> {
    const LEAST: f64 = 0.01;
    match parse_seconds(text)? {
        seconds if seconds < LEAST => Err("it is less than 10ms".to_owned()),
        seconds if seconds > MOST_SECONDS => Err("it is more than 24 h".to_owned()),
        seconds => Ok(Duration::from_secs_f64(seconds)),
    }
}

const MOST_SECONDS: f64 = 24.0 * 3600.0;

fn parse_seconds(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = match digits.parse() {
        Ok(number) if plain => number,
        _ => return Err("it is not a time such as 3, 2.5, 90s or 2m".to_owned()),
    };
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("its unit is not one of ms, s, m and h".to_owned()),
    };
    Ok(number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_or_refused_with_the_reason() {
        let seconds = |text| parse_time(text).map(|time| time.as_secs_f64());
        assert_eq!(seconds("3"), Ok(3.0));
        assert_eq!(seconds("2.5"), Ok(2.5));
        assert_eq!(seconds("90s"), Ok(90.0));
        assert_eq!(seconds("2m"), Ok(120.0));
        assert_eq!(seconds("24h"), Ok(86_400.0));
        for wrong in
            ["", "s", "0", "0.5", "-3", "+3", "1e3", "inf", "nan", "3 weeks", "25h", "9d", "1.2.3", "٣"]
        {
            assert!(seconds(wrong).is_err(), "{wrong:?} was taken for a time");
        }
    }

    #[test]
    fn waiting_may_be_for_nothing() {
        assert_eq!(parse_wait("0"), Ok(Duration::ZERO));
        assert_eq!(parse_wait("0.5s"), Ok(Duration::from_millis(500)));
        assert!(parse_wait("-1").is_err() && parse_wait("25h").is_err() && parse_wait("").is_err());
    }
}
