//! One symbol's address at run time and at link time, which differ by the kernel's move. A list of a few lines is enough.

use std::collections::BTreeMap;

use tollgate_model::Unknown;

use crate::machine::{Answer, Found, Machine, found};
use crate::text::kernel_symbol;

pub(super) const SYMBOLS: &str = "/proc/kallsyms";
/// The start of the image in virtual memory: `__START_KERNEL_map`; it has one gigabyte (arch/x86/include/asm/page_64_types.h).
pub(super) const IMAGE: u64 = 0xffff_ffff_8000_0000;
pub(super) const IMAGE_SIZE: u64 = 1 << 30;
/// A kernel's first symbols are in this much of a list, after some hundreds of the per-processor area.
pub(super) const START: u64 = 256 << 10;
/// A kernel with all of its modules has some 15 MiB of symbols.
pub(super) const WHOLE: u64 = 64 << 20;
/// The kernel is moved by multiples of CONFIG_PHYSICAL_ALIGN, which is at least this much (arch/x86/Kconfig).
pub(super) const STEP: u64 = 0x20_0000;
/// Preferred if both lists have them: the beginning of the code.
const PREFERRED: [&str; 3] = ["_text", "startup_64", "_stext"];

/// A symbol with both of its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Name, such as `do_sys_open`.
    pub name: String,
    /// Address in the running kernel.
    pub now: u64,
    /// Address in the list that was made with the image.
    pub linked: u64,
    /// Number of symbols that both lists have, all of which were moved by the same distance.
    pub agree: usize,
}

impl Symbol {
    /// Distance between the addresses, in bytes, modulo 2^64.
    pub fn distance(&self) -> u64 {
        self.now.wrapping_sub(self.linked)
    }
}

/// The first `limit` bytes of the System.map that was made with the image. Debian's is a stub, and others leave none.
pub(super) fn map(machine: &Machine, release: Option<&str>, limit: u64) -> Answer<String> {
    let paths = match release {
        Some(release) => paths(release),
        // A tree of a few files need not have the release.
        None => the_only_one(machine).map(|path| vec![path]).ok_or_else(|| {
            Unknown::Absent(
                "the kernel's release is not known, and /boot does not have exactly one System.map".into(),
            )
        })?,
    };
    let mut why = match paths.as_slice() {
        [only] => Unknown::Absent(format!("{only} does not exist")),
        paths => Unknown::Absent(format!("none of {} exists", paths.join(", "))),
    };
    for path in paths {
        match machine.start_of(&path, limit) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes.value).into_owned();
                if text.lines().any(|line| in_image(line).is_some()) {
                    return Ok(Found { value: text, source: path });
                }
                why = Unknown::Absent(format!("{path} is only a stub"));
            }
            Err(Unknown::Absent(_)) => {}
            Err(other) => why = other,
        }
    }
    Err(why)
}

/// Debian's real list is in the package of its debug symbols, which comes last.
fn paths(release: &str) -> Vec<String> {
    let places = [
        ("/boot/System.map-", ""),
        ("/usr/lib/modules/", "/System.map"),
        ("/usr/lib/debug/boot/System.map-", ""),
    ];
    places.iter().map(|(before, after)| format!("{before}{release}{after}")).collect()
}

fn the_only_one(machine: &Machine) -> Option<String> {
    let names = machine.names("/boot").ok()?.value;
    let mut maps = names.iter().filter(|name| name.starts_with("System.map"));
    let name = maps.next()?;
    maps.next().is_none().then(|| format!("/boot/{name}"))
}

pub(super) fn symbol(machine: &Machine, map: &Answer<String>) -> Answer<Symbol> {
    let without = || "without the symbol list made with the image".to_owned();
    let map = map.as_ref().map_err(|why| match why {
        Unknown::Absent(_) => Unknown::Absent(without()),
        Unknown::Refused(_) => Unknown::Refused(without()),
        Unknown::Unreadable(_) => Unknown::Unreadable(without()),
    })?;
    let linked = unique(&map.value);
    let mut why = None;
    // Reading a kernel's whole list takes a tenth of a second, so it is read only if its beginning has none of them.
    for limit in [START, WHOLE] {
        let now = machine.start_of(SYMBOLS, limit)?;
        let is_whole = (now.value.len() as u64) < limit;
        match both(&linked, &String::from_utf8_lossy(&now.value)) {
            Ok(symbol) => return found(symbol, format!("{SYMBOLS} and {}", map.source)),
            Err(error) => why = Some(error),
        }
        if is_whole || !matches!(why, Some(NoSymbol::None)) {
            break;
        }
    }
    Err(why.unwrap_or(NoSymbol::None).in_map(&map.source))
}

#[derive(Debug, PartialEq, Eq)]
enum NoSymbol {
    None,
    Hidden,
    Differ { name: String, other: String },
    Distance { name: String },
}

impl NoSymbol {
    fn in_map(self, map: &str) -> Unknown {
        match self {
            Self::None => Unknown::Absent(format!("{SYMBOLS} has none of the symbols of {map}")),
            Self::Hidden => Unknown::Refused(format!("{SYMBOLS} shows zeros")),
            Self::Differ { name, other } => Unknown::Unreadable(format!(
                "{map}: {name} and {other} are at another distance in {SYMBOLS}: the list is from another build"
            )),
            Self::Distance { name } => Unknown::Unreadable(format!(
                "{map}: {name} is not a multiple of 2 MiB from its address in {SYMBOLS}, as a moved kernel's is: the list is from another build"
            )),
        }
    }
}

fn both(linked: &BTreeMap<&str, Option<u64>>, now: &str) -> Result<Symbol, NoSymbol> {
    let mut known: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    for (address, _, name) in now.lines().filter_map(kernel_symbol).filter(|it| linked.contains_key(it.2)) {
        once(&mut known, name, address);
    }
    if !known.is_empty() && known.values().all(|address| *address == Some(0)) {
        return Err(NoSymbol::Hidden);
    }
    let image = |address: &u64| (IMAGE..IMAGE + IMAGE_SIZE).contains(address);
    let mut pairs: Vec<(&str, u64, u64)> = known
        .into_iter()
        .filter_map(|(name, now)| Some((name, now.filter(image)?, (*linked.get(name)?)?)))
        .collect();
    let rank =
        |name: &str| PREFERRED.iter().position(|preferred| *preferred == name).unwrap_or(PREFERRED.len());
    pairs.sort_by_key(|&(name, _, linked)| (rank(name), linked));
    let &(name, now, linked) = pairs.first().ok_or(NoSymbol::None)?;
    let symbol = Symbol { name: name.to_owned(), now, linked, agree: pairs.len() };
    let differs = pairs.iter().find(|(_, now, linked)| now.wrapping_sub(*linked) != symbol.distance());
    match differs {
        Some((other, ..)) => Err(NoSymbol::Differ { name: symbol.name, other: (*other).to_owned() }),
        None if !symbol.distance().is_multiple_of(STEP) => Err(NoSymbol::Distance { name: symbol.name }),
        None => Ok(symbol),
    }
}

/// The symbols of the image by name; `None` for a name that occurs several times, as with functions in different files.
fn unique(map: &str) -> BTreeMap<&str, Option<u64>> {
    let mut symbols = BTreeMap::new();
    for (address, name) in map.lines().filter_map(in_image) {
        once(&mut symbols, name, address);
    }
    symbols
}

fn once<'a>(symbols: &mut BTreeMap<&'a str, Option<u64>>, name: &'a str, address: u64) {
    let known = symbols.entry(name).or_insert(Some(address));
    if *known != Some(address) {
        *known = None;
    }
}

/// Parses a symbol of the image. Absolute ones (`A`) and those of the per-processor area are not moved.
fn in_image(line: &str) -> Option<(u64, &str)> {
    /// `KSYM_NAME_LEN` in include/linux/kallsyms.h.
    const LONGEST: usize = 512;
    let (address, kind, name) = kernel_symbol(line)?;
    let is_moved = (IMAGE..IMAGE + IMAGE_SIZE).contains(&address) && !kind.eq_ignore_ascii_case("a");
    let is_name = name.len() <= LONGEST && name.bytes().all(|byte| byte.is_ascii_graphic());
    (is_moved && is_name).then_some((address, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(linked: &str, now: &str) -> Result<Symbol, NoSymbol> {
        both(&unique(linked), now)
    }

    const MAP: &str =
        "ffffffff81234560 T do_sys_open\nffffffff81a00000 D sys_call_table\nffffffff82000000 D init_task\n";

    #[test]
    fn one_symbol_is_enough() {
        let now = "ffffffffb6434560 T do_sys_open\nffffffffc0001000 t init_task\t[module]\n";
        let symbol = pair(MAP, now).unwrap();
        assert_eq!((symbol.name.as_str(), symbol.distance(), symbol.agree), ("do_sys_open", 0x3520_0000, 1));
        let stayed = pair(MAP, MAP).unwrap();
        assert_eq!((stayed.distance(), stayed.agree), (0, 3));
        let code = "ffffffff81000000 T _text\n";
        assert_eq!(pair(&format!("{MAP}{code}"), &format!("{MAP}{code}")).unwrap().name, "_text");
    }

    #[test]
    fn another_builds_list_is_no_evidence() {
        let other = "ffffffffb6434560 T do_sys_open\nffffffffb6c00040 D sys_call_table\n";
        assert!(matches!(pair(MAP, other), Err(NoSymbol::Differ { .. })));
        assert!(matches!(pair(MAP, "ffffffff81234570 T do_sys_open\n"), Err(NoSymbol::Distance { .. })));
    }

    #[test]
    fn zeros_doubles_and_strangers_are_no_evidence() {
        assert_eq!(pair(MAP, "0000000000000000 T do_sys_open\n"), Err(NoSymbol::Hidden));
        assert_eq!(pair(MAP, "ffffffffb6434560 T another\n"), Err(NoSymbol::None));
        let twice = "ffffffffb6434560 t do_sys_open\nffffffffb6434580 t do_sys_open\n";
        assert_eq!(pair(MAP, twice), Err(NoSymbol::None));
        let absolute = "ffffffff81000000 A phys_startup_64\n0000000000004000 D cpu_number\n";
        assert!(unique(absolute).is_empty());
    }

    takes_any! { text in "\\PC{0,80}|[0-9a-fT _textd\n]{0,120}", now in "[0-9a-fT _textd\n]{0,120}" => pair(&text, &now) }
}
