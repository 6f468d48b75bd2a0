/// A number, and its count of hexadecimal digits including leading zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hex {
    pub value: u64,
    pub digits: usize,
}

pub(crate) fn plain(word: &str) -> Option<Hex> {
    if word.is_empty() || word.len() > 16 {
        return None;
    }
    let mut value = 0;
    for byte in word.bytes() {
        value = value << 4 | u64::from(digit(byte)?);
    }
    Some(Hex { value, digits: word.len() })
}

pub(crate) const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// Parses digits with or without `0x`, with the lower eight possibly set off: ``fffff800`01d51000`` by a backtick (the
/// Windows debugger), an apostrophe (as word processors change it) or an underscore (Bochs).
pub(crate) fn number(word: &str) -> Option<Hex> {
    let word = strip_prefix(word).unwrap_or(word);
    match word.find(['`', '\'', '_']) {
        None => plain(word),
        Some(at) => {
            let (high, low) = (plain(&word[..at])?, plain(&word[at + 1..])?);
            (high.digits <= 8 && low.digits == 8)
                .then_some(Hex { value: high.value << 32 | low.value, digits: high.digits + 8 })
        }
    }
}

pub(crate) fn prefixed(word: &str) -> Option<Hex> {
    plain(strip_prefix(word)?)
}

pub(crate) fn strip_prefix(word: &str) -> Option<&str> {
    word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"))
}

pub(crate) fn is_hex(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(' ');
    text.split_at(text.find(' ').unwrap_or(text.len()))
}

pub(crate) fn after<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    Some(text.trim_start_matches(' ').strip_prefix(before)?.trim_start_matches(' '))
}

/// Returns `name=value` pairs in order. Spaces may surround the sign, and a name starts after a space, a comma or a colon.
/// Text between pairs is skipped.
pub(crate) fn assignments(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let at = rest.find('=')?;
        let before = rest[..at].trim_end_matches(' ');
        let name = &before[before.rfind([' ', ',', ':', '=']).map_or(0, |at| at + 1)..];
        let behind = rest[at + 1..].trim_start_matches(' ');
        let end = behind.find([' ', ',', '=']).unwrap_or(behind.len());
        rest = &behind[end..];
        Some((name, &behind[..end]))
    })
}

pub(crate) fn assigned(text: &str, wanted: &str) -> Option<u64> {
    let (_, value) = assignments(text).find(|(name, _)| *name == wanted)?;
    Some(prefixed(value)?.value)
}

pub(crate) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (name, behind) = rest.split_once(':')?;
        let (value, behind) = word(behind);
        rest = behind;
        Some((name.trim_matches(' '), value))
    })
}

pub(crate) fn in_memory_order(word: &str) -> impl Iterator<Item = u8> {
    let (pairs, _) = word.as_bytes().as_chunks::<2>();
    pairs.iter().filter_map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?))
}

/// Appends the `count` low bytes of a value in little-endian order; `None` if it does not fit.
pub(crate) fn little_endian(value: u64, count: usize, bytes: &mut Vec<u8>) {
    bytes.extend(value.to_le_bytes().into_iter().take(count));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_in_two_groups() {
        for word in ["fffff800`01d51000", "0xfffff80001d51000", "fffff800'01d51000", "fffff800_01d51000"] {
            assert_eq!(number(word), Some(Hex { value: 0xffff_f800_01d5_1000, digits: 16 }), "{word}");
        }
        for word in ["", "0x", "`", "1`2", "fffff800`01d5100", "123456789`00000000", "12345678901234567", "é"]
        {
            assert_eq!(number(word), None, "{word}");
        }
    }

    #[test]
    fn pairs() {
        let all = |text| assignments(text).collect::<Vec<_>>();
        assert_eq!(all("R8 =01 R9= 2, x"), [("R8", "01"), ("R9", "2")]);
        assert_eq!(all("gdtr:base=0x10, limit=0x1f"), [("base", "0x10"), ("limit", "0x1f")]);
        assert_eq!(all("=="), [("", ""), ("", "")]);
    }
}
