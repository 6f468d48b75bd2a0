//! Parameters of commands: `{threads}` with each of its values.

use std::collections::BTreeMap;

use crate::args::versus::ParameterArgs;
use crate::failure::Failure;

/// More combinations are too many to compare.
const MOST: usize = 256;

pub type Values = BTreeMap<String, String>;

/// Every combination of the values, the first parameter's in the innermost order; one empty combination without parameters.
/// Fails for a range without a value or with too many, a value that is not a number, a parameter without a value or given
/// twice.
pub fn combinations(args: &ParameterArgs) -> Result<Vec<Values>, Failure> {
    let mut lists: Vec<(String, Vec<String>)> = Vec::new();
    if let [name, least, most] = args.parameter_scan.as_slice() {
        let step = args.parameter_step_size.as_deref().unwrap_or("1");
        let values = scan(least, most, step)
            .map_err(|why| Failure::input(format!("--parameter-scan {name} {least} {most}: {why}")))?;
        lists.push((name.clone(), values));
    }
    for pair in args.parameter_list.chunks(2) {
        let [name, values] = pair else { continue };
        lists.push((name.clone(), listed(values)));
    }
    let mut all = vec![Values::new()];
    for (at, (name, values)) in lists.iter().enumerate() {
        if name.is_empty() || lists[..at].iter().any(|(known, _)| known == name) {
            return Err(Failure::input(format!(
                "the parameter `{name}` is given twice or has no name; give each parameter its own name"
            )));
        }
        let with = |value: &String| {
            let of_value = all.iter().cloned().map(|mut known: Values| {
                known.insert(name.clone(), value.clone());
                known
            });
            of_value.collect::<Vec<_>>()
        };
        if all.len().saturating_mul(values.len()) > MOST {
            return Err(Failure::input(format!("the parameters have more than {MOST} combinations")));
        }
        all = values.iter().flat_map(with).collect();
    }
    Ok(all)
}

/// The values of a list; a comma after a backslash belongs to a value.
fn listed(values: &str) -> Vec<String> {
    let (mut all, mut value) = (Vec::new(), String::new());
    let mut letters = values.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&',') => value.extend(letters.next()),
            ',' => all.push(std::mem::take(&mut value)),
            letter => value.push(letter),
        }
    }
    all.push(value);
    all
}

pub fn filled(text: &str, values: &Values) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, braced) = rest.split_at(at);
        whole.push_str(before);
        let known = values.iter().find_map(|(name, value)| {
            Some((value, braced[1..].strip_prefix(name.as_str())?.strip_prefix('}')?))
        });
        let (part, after) = known.map_or(("{", &braced[1..]), |(value, after)| (value.as_str(), after));
        whole.push_str(part);
        rest = after;
    }
    whole + rest
}

/// A decimal number: an integer, and how many of its digits are after the point.
#[derive(Debug, Clone, Copy)]
struct Decimal(i128, u32);

impl Decimal {
    const MOST_DIGITS: u32 = 12;

    fn parse(text: &str) -> Option<Self> {
        let digits = text.split_once('.').map_or("", |(_, digits)| digits);
        let scale = u32::try_from(digits.len()).ok().filter(|scale| *scale <= Self::MOST_DIGITS)?;
        let whole = text.replacen('.', "", 1);
        let is_number = whole.strip_prefix('-').unwrap_or(&whole).bytes().all(|byte| byte.is_ascii_digit());
        (is_number && whole.len() <= 30)
            .then(|| whole.parse().ok())
            .flatten()
            .map(|number| Self(number, scale))
    }

    fn at(self, scale: u32) -> i128 {
        self.0.saturating_mul(10_i128.saturating_pow(scale - self.1))
    }
}

fn scan(least: &str, most: &str, step: &str) -> Result<Vec<String>, String> {
    let parse = |text: &str| Decimal::parse(text).ok_or_else(|| format!("`{text}` is not a decimal number"));
    let (least, most, step) = (parse(least)?, parse(most)?, parse(step)?);
    let (scale, step_digits) = (least.1.max(most.1).max(step.1), step.1);
    let [first, last, step] = [least, most, step].map(|number| number.at(scale));
    if [first, last, step].iter().any(|number| number.unsigned_abs() > u128::from(u64::MAX)) {
        return Err("its numbers have too many digits".to_owned());
    }
    if first > last {
        return Err("the range is empty: MIN is above MAX".to_owned());
    }
    if step <= 0 {
        return Err("the step is not above 0".to_owned());
    }
    if (last - first) / step >= MOST as i128 {
        return Err(format!("it has more than {MOST} values"));
    }
    // The first value has its own digits, and the others those of the step too.
    let digits = least.1.max(step_digits);
    let value = |number: i128| match number {
        0 => shown(least.0, least.1),
        number => shown((first + number * step) / 10_i128.pow(scale - digits), digits),
    };
    Ok((0..=(last - first) / step).map(value).collect())
}

fn shown(number: i128, scale: u32) -> String {
    if scale == 0 {
        return number.to_string();
    }
    let unit = 10_i128.pow(scale);
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}.{:0width$}", number.abs() / unit, number.abs() % unit, width = scale as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(scan: &[&str], step: Option<&str>, list: &[&str]) -> ParameterArgs {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        ParameterArgs {
            parameter_scan: owned(scan),
            parameter_step_size: step.map(str::to_owned),
            parameter_list: owned(list),
            command_name: Vec::new(),
            reference: None,
            reference_name: None,
        }
    }

    fn values(args: &ParameterArgs, name: &str) -> Vec<String> {
        combinations(args).expect("parameters").into_iter().map(|values| values[name].clone()).collect()
    }

    #[test]
    fn ranges_have_the_values_that_hyperfine_documents() {
        assert_eq!(values(&args(&["threads", "1", "4"], None, &[]), "threads"), ["1", "2", "3", "4"]);
        let delays = args(&["delay", "0.3", "0.7"], Some("0.2"), &[]);
        assert_eq!(values(&delays, "delay"), ["0.3", "0.5", "0.7"]);
        assert_eq!(values(&args(&["x", "-1", "1"], None, &[]), "x"), ["-1", "0", "1"]);
        assert_eq!(values(&args(&["x", "0", "1.00"], Some("0.5"), &[]), "x"), ["0", "0.5", "1.0"]);
        for wrong in
            [["x", "2", "1"], ["x", "a", "1"], ["x", "0", "1000000"], ["x", "1e3", "2"], ["x", "", "1"]]
        {
            assert!(combinations(&args(&wrong, None, &[])).is_err(), "{wrong:?}");
        }
        assert!(combinations(&args(&["x", "0", "1"], Some("0"), &[])).is_err());
    }

    #[test]
    fn lists_are_combined_and_filled_in() {
        let all = combinations(&args(&[], None, &["c", "gcc,clang", "o", "1,2,3"])).expect("parameters");
        assert_eq!(all.len(), 6);
        let lines: Vec<String> = all.iter().map(|values| filled("{c} -O{o} {x}", values)).collect();
        assert_eq!(lines[..3], ["gcc -O1 {x}", "clang -O1 {x}", "gcc -O2 {x}"]);
        assert!(combinations(&args(&[], None, &["c", "a", "c", "b"])).is_err());
        assert_eq!(values(&args(&[], None, &["x", r"a\,b,c\d,"]), "x"), ["a,b", r"c\d", ""]);
        let nested = combinations(&args(&[], None, &["a", "{b}", "b", "x"])).expect("parameters");
        assert_eq!(filled("{a} {b} {{b}} {c", &nested[0]), "{b} x {x} {c");
    }
}
