//! Names of the kernel's functions, from `/proc/kallsyms` (proc(5)). If `kernel.kptr_restrict` hides the addresses, all are zero.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use crate::sides::versus::counted;

const SYMBOLS: &str = "/proc/kallsyms";
/// Bytes of symbols to read: a large kernel has about ten million.
const MOST: u64 = 1 << 28;
const MOST_LINE: usize = 1 << 10;

/// Returns the kernel's function at each address, in order. Fails if the symbols are unreadable, or their addresses hidden.
pub fn here(addresses: &[u64]) -> Result<Vec<Option<String>>, String> {
    let file = File::open(counted::SYMBOLS)
        .or_else(|_| File::open(SYMBOLS))
        .map_err(|error| format!("{SYMBOLS}: {error}"))?;
    named(BufReader::with_capacity(1 << 16, file), addresses)
}

#[derive(Debug, Clone, Default)]
struct Nearest {
    start: u64,
    name: String,
    is_global: bool,
}

fn named(symbols: impl BufRead, addresses: &[u64]) -> Result<Vec<Option<String>>, String> {
    // The best symbol so far of each address. Symbols are sorted within the kernel, but not those of modules.
    let mut wanted: BTreeMap<u64, Nearest> =
        addresses.iter().map(|&address| (address, Nearest::default())).collect();
    let mut symbols = symbols.take(MOST);
    let (mut line, mut is_hidden) = (Vec::new(), true);
    // Symbols between two wanted addresses are all offered to the second one; only the last of them matters for later addresses.
    loop {
        line.clear();
        match symbols.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return Err(format!("{SYMBOLS}: {error}")),
        }
        let Some((start, kind, name)) = parsed(&line) else { continue };
        is_hidden &= start == 0;
        if !matches!(kind, b'T' | b't' | b'W' | b'w') {
            continue;
        }
        // The first wanted address from the symbol on takes it; later ones inherit it below.
        if let Some((_, nearest)) = wanted.range_mut(start..).next() {
            nearest.offer(start, kind.is_ascii_uppercase(), name);
        }
    }
    if is_hidden {
        return Err(format!("{SYMBOLS} hides the addresses; root sees them with kernel.kptr_restrict=0"));
    }
    let mut latest = Nearest::default();
    for nearest in wanted.values_mut() {
        if nearest.start < latest.start {
            nearest.clone_from(&latest);
        }
        latest.clone_from(nearest);
    }
    let name = |address: &u64| wanted.get(address).map(|nearest| nearest.name.clone());
    Ok(addresses.iter().map(|address| name(address).filter(|name| !name.is_empty())).collect())
}

impl Nearest {
    /// Takes the symbol if it starts later. Among several names of one address it prefers a global one without leading underscores.
    fn offer(&mut self, start: u64, is_global: bool, name: &str) {
        let underscores = |name: &str| name.len() - name.trim_start_matches('_').len();
        let is_better = match start.cmp(&self.start) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal if self.name.is_empty() => true,
            std::cmp::Ordering::Equal => {
                (is_global, std::cmp::Reverse(underscores(name)))
                    > (self.is_global, std::cmp::Reverse(underscores(&self.name)))
            }
        };
        if is_better {
            *self = Self { start, name: name.to_owned(), is_global };
        }
    }
}

/// Parses `ffffffff81000000 T _text`, perhaps with `\t[module]`: the address, the kind and the name.
fn parsed(line: &[u8]) -> Option<(u64, u8, &str)> {
    let line = std::str::from_utf8(line.get(..line.len().min(MOST_LINE))?).ok()?;
    let mut words = line.split_ascii_whitespace();
    let start = u64::from_str_radix(words.next()?, 16).ok()?;
    let kind = *words.next()?.as_bytes().first()?;
    Some((start, kind, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "0000000000001000 A a_number\n\
        ffffffff81000000 T _text\n\
        ffffffff81000000 T startup_64\n\
        ffffffff81000100 t local\n\
        ffffffff81000100 T __x64_global\n\
        ffffffff81000180 d data\n\
        ffffffff81000200 T last\n\
        ffffffffc0000000 t of_module\t[module]\n\
        ffffffffa0000000 t earlier_module\t[other]\n";

    fn names(addresses: &[u64]) -> Vec<Option<String>> {
        named(TEXT.as_bytes(), addresses).expect("not hidden")
    }

    #[test]
    fn an_address_has_the_function_that_begins_last_before_it() {
        let addresses = [
            0xffff_ffff_8100_0190,
            0xffff_ffff_8100_0000,
            0xffff_ffff_8100_0004,
            0xffff_ffff_c000_0010,
            0xffff_ffff_a000_0010,
            0xffff_ffff_8100_0208,
            0x7fff_0000_0000,
            0xffff_ffff_8100_0100,
        ];
        let expected = [
            Some("__x64_global"),
            Some("startup_64"),
            Some("startup_64"),
            Some("of_module"),
            Some("earlier_module"),
            Some("last"),
            None,
            Some("__x64_global"),
        ];
        let found = names(&addresses);
        assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
        for (address, expected) in addresses.iter().zip(expected) {
            assert_eq!(names(&[*address])[0].as_deref(), expected, "alone: {address:x}");
        }
    }

    #[test]
    fn hidden_addresses_are_no_names() {
        let why = named("0000000000000000 T _text\n".as_bytes(), &[1]).expect_err("hidden");
        assert!(why.contains("kptr_restrict"), "{why}");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), address in any::<u64>()) {
            let _ = named(bytes.as_slice(), &[address, address, 0]);
        }
    }
}
