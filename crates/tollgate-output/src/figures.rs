//! Writes figures with three significant digits and a suitable unit.

use std::time::Duration;

use tollgate_model::Unit;

const DIGITS: i32 = 3;

/// Writes a figure with its unit: `87.1 ns`, `1.85 µs`, `1,204 instructions`.
pub fn estimate(value: f64, unit: Unit) -> String {
    if unit == Unit::Instructions {
        let plural = if value == 1.0 { "" } else { "s" };
        return format!("{} instruction{plural}", instructions(value));
    }
    let scale = Scale::new(value, unit);
    format!("{} {}", significant(value / scale.divisor, DIGITS), scale.name)
}

/// Writes a number of instructions: `209`, `1,204`. A small fractional mean has two decimals: `409.25`.
pub fn instructions(count: f64) -> String {
    /// A fraction that rounding leaves.
    const LITTLE: f64 = 0.005;
    /// From here on, a fraction of an instruction is not shown.
    const LARGE: f64 = 1000.0;
    if is_far(count.round()) {
        return significant(count, DIGITS);
    }
    let text = if count.abs() >= LARGE {
        // Adding 0 avoids a negative zero.
        format!("{count:.0}")
    } else if (count - count.round()).abs() < LITTLE {
        format!("{:.0}", count.round() + 0.0)
    } else {
        format!("{count:.2}")
    };
    thousands(&text)
}

/// Writes an amount of bytes: `5.61 GiB`.
pub fn bytes(amount: f64) -> String {
    estimate(amount, Unit::Bytes)
}

/// Writes a rate: `1.25 M/s`.
pub fn per_second(rate: f64) -> String {
    let (divisor, prefix) = match rate {
        1e9.. => (1e9, " G"),
        1e6.. => (1e6, " M"),
        1e3.. => (1e3, " k"),
        _ => (1.0, ""),
    };
    format!("{}{prefix}/s", significant(rate / divisor, DIGITS))
}

/// Writes a difference with its sign: `+12.3 ns`.
pub fn difference(value: f64, unit: Unit) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", estimate(value.abs(), unit))
}

/// Writes an interval in the unit of its median: `86.9–87.3`.
pub fn range(low: f64, high: f64, estimate: f64, unit: Unit) -> String {
    if unit == Unit::Instructions {
        return format!("{}–{}", instructions(low), instructions(high));
    }
    let scale = Scale::new(estimate, unit);
    span(low / scale.divisor, high / scale.divisor)
}

/// Writes an interval of bare numbers, with equal decimals and no more digits than the larger one needs: `1.31–1.37`.
pub fn span(low: f64, high: f64) -> String {
    let largest = low.abs().max(high.abs());
    if is_far(largest) {
        return format!("{}–{}", significant(low, DIGITS), significant(high, DIGITS));
    }
    let decimals = decimals(largest, DIGITS);
    format!("{low:.decimals$}–{high:.decimals$}")
}

/// Writes a multiple: `×12.3`.
pub fn multiple(value: f64) -> String {
    format!("×{}", significant(value, DIGITS))
}

/// Writes a multiple for an axis, without trailing zeros: `×0.5`, `×10`.
pub fn multiple_in_short(value: f64) -> String {
    let text = significant(value, 2);
    if text.contains('.') && !text.contains('e') {
        format!("×{}", text.trim_end_matches('0').trim_end_matches('.'))
    } else {
        format!("×{text}")
    }
}

/// Writes a ratio, with thousandths around 1: `1.034`, `0.966`, `12.3`.
pub fn ratio(value: f64) -> String {
    match value.abs() {
        size if (0.1..9.9995).contains(&size) => format!("{value:.3}"),
        _ => significant(value, DIGITS),
    }
}

/// Writes an interval of a ratio: `0.986–1.016`.
pub fn ratio_span(low: f64, high: f64) -> String {
    format!("{}–{}", ratio(low), ratio(high))
}

/// Returns the words for a higher and for a lower figure of this unit.
pub fn words(unit: Unit) -> [&'static str; 2] {
    match unit {
        Unit::Nanoseconds | Unit::NanosecondsPerLine | Unit::Cycles => ["slower", "faster"],
        Unit::Bytes => ["more", "less"],
        Unit::Count | Unit::Instructions => ["more", "fewer"],
    }
}

/// Writes a difference by the ratio to its base, with the word for more or for less: `3.2 % slower`, or from a tenth `1.69 × faster`.
pub fn compared(ratio: f64, [more, less]: [&str; 2]) -> String {
    format!("{} {}", size(ratio, is_small(ratio)), if ratio < 1.0 { less } else { more })
}

/// Writes a difference with its interval, the smaller difference first: `1.69 × faster [1.66, 1.72]`.
pub fn compared_within(ratio: f64, [low, high]: [f64; 2], words: [&str; 2]) -> String {
    let ends = if ratio < 1.0 { [high, low] } else { [low, high] };
    let [near, far] = ends.map(|end| size(end, is_small(ratio)).replace(" ×", ""));
    format!("{} [{near}, {far}]", compared(ratio, words))
}

/// Smaller differences are shown in percent.
const SMALL: f64 = 0.1;

fn is_small(ratio: f64) -> bool {
    (ratio - 1.0).abs() < SMALL
}

fn size(ratio: f64, is_small: bool) -> String {
    if is_small {
        percent((ratio - 1.0).abs())
    } else {
        format!("{} ×", significant(ratio.max(1.0 / ratio), DIGITS))
    }
}

/// Writes a share of one as percent: `0.25 %`, `3.4 %`, `12 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        size if size < 0.005 => "less than 0.01 %".to_owned(),
        size if size < 0.995 => format!("{percent:.2} %"),
        size if size < 9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// Writes a frequency: `2.60 GHz`.
pub fn frequency(hz: f64) -> String {
    let (divisor, name) = match hz {
        hz if hz >= 1e9 => (1e9, "GHz"),
        hz if hz >= 1e6 => (1e6, "MHz"),
        _ => (1.0, "Hz"),
    };
    format!("{} {name}", significant(hz / divisor, DIGITS))
}

/// Writes a number with this many significant digits, with an exponent only if it would otherwise be a row of zeros.
pub fn significant(value: f64, digits: i32) -> String {
    if is_far(value) {
        return format!("{value:.*e}", digits.max(1) as usize - 1);
    }
    let decimals = decimals(value, digits);
    format!("{value:.decimals$}")
}

/// Writes a number with thousands separators: `1,390`.
pub fn thousands(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let digits = number.char_indices().map(|(at, digit)| {
        let is_after = at > 0 && at < whole && (whole - at).is_multiple_of(3);
        if is_after && !number.contains('e') { format!(",{digit}") } else { digit.to_string() }
    });
    digits.collect()
}

/// Whether a number needs an exponent. No measured number does, but one in a document may.
fn is_far(value: f64) -> bool {
    value != 0.0 && value.is_finite() && !(1e-7..1e9).contains(&value.abs())
}

/// Writes a count: `1 process`, `8 processes`.
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Writes a duration for people: `9 s`, `2 min`, `1 h 5 min`.
pub fn time_left(left: Duration) -> String {
    match left.as_secs_f64().ceil() as u64 {
        seconds if seconds < 100 => format!("{seconds} s"),
        seconds if seconds < 3600 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// The divisor of a figure, and the name of its unit.
struct Scale {
    divisor: f64,
    name: &'static str,
}

impl Scale {
    fn new(value: f64, unit: Unit) -> Self {
        const KIB: f64 = 1024.0;
        let steps: &[(f64, &str)] = match unit {
            Unit::Nanoseconds => &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")],
            Unit::NanosecondsPerLine => &[(1.0, "ns/line"), (1e3, "µs/line")],
            Unit::Cycles => &[(1.0, "cycles")],
            Unit::Instructions => &[(1.0, "instructions")],
            Unit::Count => &[(1.0, "events")],
            Unit::Bytes => &[
                (1.0, "bytes"),
                (KIB, "KiB"),
                (KIB * KIB, "MiB"),
                (KIB * KIB * KIB, "GiB"),
                (KIB * KIB * KIB * KIB, "TiB"),
            ],
        };
        // 999.6 ns rounds to 1.00 µs, not to 1000 ns.
        let fitting = steps.iter().rev().find(|(divisor, _)| value.abs() >= divisor * 0.9995);
        let &(divisor, name) = fitting.unwrap_or(&steps[0]);
        Self { divisor, name }
    }
}

/// The number of decimals that show `digits` significant digits of `value`.
fn decimals(value: f64, digits: i32) -> usize {
    const MOST: i32 = 9;
    if value == 0.0 || !value.is_finite() || is_far(value) {
        return 1;
    }
    let of_magnitude = |value: f64| digits - 1 - value.abs().log10().floor() as i32;
    let first = of_magnitude(value).clamp(0, MOST);
    // Rounding may carry into the next magnitude: 9.996 becomes 10.0.
    let step = 10_f64.powi(first);
    of_magnitude((value * step).round() / step).clamp(0, MOST).min(first) as usize
}

/// Writes two figures as `0.962 → 4.01 ns/line`, with the unit once if both share it.
pub fn from_to(one: &str, other: &str) -> String {
    let one = match (one.split_once(' '), other.split_once(' ')) {
        (Some((figure, unit)), Some((_, same))) if unit == same => figure,
        _ => one,
    };
    format!("{one} → {other}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_said_in_one_form() {
        let said = |ratio| compared(ratio, ["slower", "faster"]);
        assert_eq!(
            [1.032, 0.968, 57.6 / 97.2, 6.3].map(said),
            ["3.2 % slower", "3.2 % faster", "1.69 × faster", "6.30 × slower"]
        );
        let within = |ratio, ends| compared_within(ratio, ends, ["more", "fewer"]);
        assert_eq!(within(1.032, [1.026, 1.036]), "3.2 % more [2.6 %, 3.6 %]");
        assert_eq!(within(0.5, [0.4, 0.625]), "2.00 × fewer [1.60, 2.50]");
    }

    #[test]
    fn a_common_unit_is_shown_once() {
        assert_eq!(from_to("0.962 ns/line", "4.01 ns/line"), "0.962 → 4.01 ns/line");
        assert_eq!(from_to("962 ns", "4.01 µs"), "962 ns → 4.01 µs");
    }

    #[test]
    fn estimates_have_three_digits_and_a_unit_that_suits() {
        let ns = |value| estimate(value, Unit::Nanoseconds);
        assert_eq!(ns(0.3456), "0.346 ns");
        assert_eq!(ns(87.123), "87.1 ns");
        assert_eq!(ns(9.996), "10.0 ns");
        assert_eq!(ns(99.96), "100 ns");
        assert_eq!(ns(999.4), "999 ns");
        assert_eq!(ns(999.7), "1.00 µs");
        assert_eq!(ns(1_849.0), "1.85 µs");
        assert_eq!(ns(12_345_678.0), "12.3 ms");
        assert_eq!(ns(3e9), "3.00 s");
        assert_eq!(ns(0.0), "0.0 ns");
        assert_eq!(ns(1.7e300), "1.70e291 s");
        assert_eq!(ns(1.5e-300), "1.50e-300 ns");
        assert_eq!(estimate(1234.4, Unit::Cycles), "1234 cycles");
        assert_eq!(estimate(18.25, Unit::NanosecondsPerLine), "18.2 ns/line");
        assert_eq!(estimate(77820.0, Unit::Bytes), "76.0 KiB");
    }

    #[test]
    fn instructions_are_whole_numbers() {
        let all = [0.0, -0.0, 1.0, 209.0, 1_234_567.0, 409.25, 208.999_999, 1e12, -3.0].map(instructions);
        assert_eq!(all, ["0", "0", "1", "209", "1,234,567", "409.25", "209", "1.00e12", "-3"]);
        assert_eq!(estimate(1.0, Unit::Instructions), "1 instruction");
        assert_eq!(range(19_950.0, 20_100.0, 0.0, Unit::Instructions), "19,950–20,100");
        let [one, other] = [1209.0, 1187.0].map(|count| estimate(count, Unit::Instructions));
        assert_eq!(from_to(&one, &other), "1,209 → 1,187 instructions");
    }

    #[test]
    fn thousands_are_apart() {
        let all = ["7", "999", "1390", "-1234567", "1234.5", "1.70e291"].map(thousands);
        assert_eq!(all, ["7", "999", "1,390", "-1,234,567", "1,234.5", "1.70e291"]);
    }

    #[test]
    fn differences_have_a_sign() {
        assert_eq!(difference(12.34, Unit::Nanoseconds), "+12.3 ns");
        assert_eq!(difference(-1234.0, Unit::Nanoseconds), "-1.23 µs");
    }

    #[test]
    fn an_interval_shows_both_ends_apart() {
        let ns = Unit::Nanoseconds;
        assert_eq!(range(86.93, 87.31, 87.1, ns), "86.9–87.3");
        assert_eq!(range(87.11, 87.13, 87.12, ns), "87.1–87.1");
        assert_eq!(range(1840.0, 1851.0, 1845.0, ns), "1.84–1.85");
        assert_eq!(range(0.0, 0.0, 0.0, ns), "0.0–0.0");
        assert_eq!(range(-0.5, 12.0, 3.0, ns), "-0.5–12.0");
        assert_eq!(range(1e300, 2e300, 1e300, ns), "1.00e291–2.00e291");
    }

    #[test]
    fn ratios_and_shares() {
        assert_eq!(ratio(1.0344), "1.034");
        assert_eq!(ratio(12.34), "12.3");
        assert_eq!(ratio_span(0.9861, 1.0158), "0.986–1.016");
        assert_eq!(ratio(0.0123), "0.0123");
        assert_eq!(multiple(12.34), "×12.3");
        assert_eq!(percent(0.0), "less than 0.01 %");
        assert_eq!(percent(0.0021), "0.21 %");
        assert_eq!(percent(0.034), "3.4 %");
        assert_eq!(percent(0.123), "12 %");
    }

    #[test]
    fn the_time_left_is_rounded_up() {
        assert_eq!(time_left(Duration::from_millis(8200)), "9 s");
        assert_eq!(time_left(Duration::from_secs(121)), "3 min");
        assert_eq!(time_left(Duration::from_secs(3900)), "1 h 5 min");
    }
}
