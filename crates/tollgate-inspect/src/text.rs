//! Parsers of formats that several modules read. All accept any text and none guesses: text outside the format gives `None`.

/// More processors than any x86-64 kernel can be built for (`NR_CPUS`, at most 8192).
const MAX_PROCESSORS: u32 = 1 << 14;

pub(crate) fn zero_or_one(text: &str) -> Option<bool> {
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

/// Booleans of kernel parameters: `kstrtobool` in lib/kstrtox.c.
pub(crate) fn kernel_bool(text: &str) -> Option<bool> {
    match text.as_bytes() {
        [b'y' | b'Y' | b't' | b'T' | b'1', ..] | [b'o' | b'O', b'n' | b'N', ..] => Some(true),
        [b'n' | b'N' | b'f' | b'F' | b'0', ..] | [b'o' | b'O', b'f' | b'F', ..] => Some(false),
        _ => None,
    }
}

/// A set of processors, such as `0-3,8`, ascending. The kernel prints `(null)` for a set that it never made.
pub(crate) fn processors(text: &str) -> Option<Vec<u32>> {
    let text = text.trim();
    if text.is_empty() || text == "(null)" {
        return Some(Vec::new());
    }
    let mut set = std::collections::BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (digits(first)?, digits(last)?);
        if first > last || last >= MAX_PROCESSORS {
            return None;
        }
        set.extend(first..=last);
    }
    Some(set.into_iter().collect())
}

/// A set of processors, ascending, in the kernel's format; `none` if it is empty.
pub(crate) fn show_processors(set: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &processor in set {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(processor) => *last = processor,
            _ => ranges.push((processor, processor)),
        }
    }
    if ranges.is_empty() {
        return "none".to_owned();
    }
    let show = |(first, last)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    ranges.into_iter().map(show).collect::<Vec<_>>().join(",")
}

/// The value of the first line `key: value` (with any white space before the colon).
pub(crate) fn keyed<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    })
}

pub(crate) fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The marked one in a line of choices, such as `always [madvise] never`.
pub(crate) fn marked(text: &str, open: char, close: char) -> Option<&str> {
    let words = text.split_whitespace();
    let mut marked = words.filter_map(|word| word.strip_prefix(open)?.strip_suffix(close));
    let choice = marked.next()?;
    (!choice.is_empty() && marked.next().is_none()).then_some(choice)
}

/// Address, type and name in a line of `/proc/kallsyms` or a System.map; `None` for a module's symbol.
pub(crate) fn kernel_symbol(line: &str) -> Option<(u64, &str, &str)> {
    let mut words = line.split_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let address = u64::from_str_radix(address, 16).ok()?;
    words.next().is_none().then_some((address, kind, name))
}

pub(crate) fn size(text: &str) -> Option<i64> {
    let shift = match text.as_bytes().last()? {
        b'K' => 10,
        b'M' => 20,
        b'G' => 30,
        _ => 0,
    };
    let count: i64 = digits(if shift > 0 { &text[..text.len() - 1] } else { text })?;
    count.checked_mul(1 << shift)
}

pub(crate) fn kilobytes(text: &str) -> Option<i64> {
    digits::<i64>(text.strip_suffix("kB")?.trim())?.checked_mul(1024)
}

/// A number of decimal digits only: `parse` also accepts a sign.
pub(crate) fn digits<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

pub(crate) fn amount(text: &str) -> Option<f64> {
    text.parse().ok().filter(|x: &f64| x.is_finite() && *x >= 0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn processor_sets() {
        assert_eq!(processors("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(processors("\n"), Some(vec![]));
        assert_eq!(processors("(null)"), Some(vec![]));
        for text in ["3-1", "0-4294967295", "99999", "a", "1,,2", "-", "+1", "1-2-3"] {
            assert_eq!(processors(text), None, "{text}");
        }
        assert_eq!(show_processors(&[0, 1, 2, 8, 10, 11]), "0-2,8,10-11");
        assert_eq!(show_processors(&[]), "none");
    }

    #[test]
    fn choices() {
        assert_eq!(marked("always [madvise] never", '[', ']'), Some("madvise"));
        assert_eq!(marked("none voluntary (full) lazy", '(', ')'), Some("full"));
        assert_eq!(marked("always madvise never", '[', ']'), None);
        assert_eq!(marked("[always] [never]", '[', ']'), None);
        assert_eq!(marked("[]", '[', ']'), None);
    }

    #[test]
    fn sizes() {
        assert_eq!(size("48K"), Some(49152));
        assert_eq!(size("32M"), Some(32 << 20));
        assert_eq!(size("64"), Some(64));
        for text in ["", "K", "-1K", "9223372036854775807K", "4 K", "é"] {
            assert_eq!(size(text), None, "{text}");
        }
        assert_eq!(kilobytes("  10 kB".trim()), Some(10240));
        assert_eq!(kilobytes("10"), None);
    }

    #[test]
    fn keys_are_whole() {
        let text = "model\t\t: 106\nmodel name\t: A Processor\n";
        assert_eq!(keyed(text, "model name"), Some("A Processor"));
        assert_eq!(keyed(text, "model"), Some("106"));
        assert_eq!(keyed(text, "name"), None);
    }

    #[test]
    fn kernel_booleans() {
        assert_eq!(["1", "on", "Y", "true"].map(kernel_bool), [Some(true); 4]);
        assert_eq!(["0", "off", "n", "false"].map(kernel_bool), [Some(false); 4]);
        assert_eq!(["", "2", "o", "é"].map(kernel_bool), [None; 4]);
    }

    takes_any! {
        text in "\\PC{0,200}|[0-9,\\-KMG kB\\[\\]()\":=\n]{0,200}", name in "[a-z_]{0,8}" =>
        processors(&text), marked(&text, '[', ']'), size(&text), kilobytes(&text),
        keyed(&text, &name), kernel_bool(&text), amount(&text)
    }

    proptest! {
        #[test]
        fn processor_sets_round_trip(set in prop::collection::btree_set(0..MAX_PROCESSORS, 1..50)) {
            let set: Vec<u32> = set.into_iter().collect();
            prop_assert_eq!(processors(&show_processors(&set)), Some(set));
        }

        #[test]
        fn sizes_are_never_wrapped(count in 0i64..i64::MAX) {
            if let Some(bytes) = size(&format!("{count}G")) {
                prop_assert_eq!(bytes >> 30, count);
            }
        }
    }
}
