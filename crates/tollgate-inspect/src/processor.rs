use tollgate_model::Unknown;

use crate::leaves::{Bit, Leaves, spelled};
use crate::machine::{Answer, Machine, found};
use crate::midr;
use crate::text::{self, digits, keyed};

const CPUINFO: &str = "/proc/cpuinfo";
/// Three times the size of the first processor's paragraph. On a large machine the whole file is a quarter of a megabyte, and
/// older kernels wake every processor to print it.
const FIRST_PARAGRAPH: u64 = 1 << 14;

pub(crate) fn vendor_text(machine: &Machine) -> Answer<String> {
    if machine.is_arm64() {
        return midr::vendor(machine);
    }
    cpuid(machine, "CPUID.0", |leaves| leaves.leaf(0, 0).and_then(|[_, b, c, d]| spelled(&[b, d, c])))
        .or_else(|_| cpuinfo(machine, "vendor_id"))
}

pub(crate) fn model(machine: &Machine) -> Answer<String> {
    if machine.is_arm64() {
        return midr::model(machine);
    }
    let brand = cpuid(machine, "CPUID.80000002h-80000004h", |leaves| {
        let parts = [0x8000_0002, 0x8000_0003, 0x8000_0004].map(|leaf| leaves.leaf(leaf, 0));
        spelled(&parts.into_iter().collect::<Option<Vec<_>>>()?.concat())
    });
    brand.or_else(|_| cpuinfo(machine, "model name"))
}

pub(crate) fn bugs(machine: &Machine) -> Answer<Vec<String>> {
    Ok(cpuinfo(machine, "bugs")?.map(|text| text::words(&text)))
}

/// Returns whether the kernel lists `flag` for the processor. These flags include the kernel's own decisions.
pub(crate) fn lists(machine: &Machine, flag: &str) -> Answer<bool> {
    flags(machine).map(|flags| {
        let source = format!("{} flags {flag}", flags.source);
        let listed = flags.value.split_whitespace().any(|listed| listed == flag);
        crate::machine::Found { value: listed, source }
    })
}

pub(crate) fn used_by_kernel(machine: &Machine, features: &[&str]) -> Answer<Vec<String>> {
    flags(machine).map(|flags| {
        flags.map(|flags| {
            let listed = |name: &&&str| flags.split_whitespace().any(|flag| flag == **name);
            features.iter().filter(listed).map(|&name| name.to_owned()).collect::<Vec<_>>()
        })
    })
}

pub(crate) fn feature(machine: &Machine, bit: Bit) -> Answer<bool> {
    cpuid(machine, &bit.to_string(), |leaves| leaves.bit(bit))
}

/// Returns whether arm64's kernel lists `word`, and the field of the ID register that says so.
pub(crate) fn capability(machine: &Machine, word: &str, field: &str) -> Answer<bool> {
    let flags = flags(machine)?;
    let is_listed = flags.value.split_whitespace().any(|listed| listed == word);
    found(is_listed, format!("{} Features, {field}", flags.source))
}

pub(crate) fn flags(machine: &Machine) -> Answer<String> {
    cpuinfo(machine, if machine.is_arm64() { "Features" } else { "flags" })
}

pub(crate) fn cpuid<T>(
    machine: &Machine,
    source: &str,
    read: impl FnOnce(&Leaves) -> Option<T>,
) -> Answer<T> {
    let value = read(machine.leaves()?);
    value.map_or_else(
        || Err(Unknown::Absent(format!("{source} is not offered"))),
        |value| found(value, source),
    )
}

/// The family, model or stepping: from CPUID, or by its key in the first processor's paragraph.
pub(crate) fn version_part(machine: &Machine, part: fn(Version) -> u32, key: &str) -> Answer<i64> {
    let version = cpuid(machine, "CPUID.1:EAX", |leaves| leaves.leaf(1, 0));
    version
        .map(|registers| registers.map(|[eax, ..]| i64::from(part(Version(eax)))))
        .or_else(|_| cpuinfo(machine, key)?.parse("a whole number", digits))
}

pub(crate) fn cpuinfo(machine: &Machine, key: &str) -> Answer<String> {
    let bytes = machine.start_of(CPUINFO, FIRST_PARAGRAPH)?;
    match value_of_first(&String::from_utf8_lossy(&bytes.value), key) {
        Some(value) => found(value.to_owned(), CPUINFO),
        None => Err(Unknown::Absent(format!("{CPUINFO} has no {key:?}"))),
    }
}

fn value_of_first<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let paragraph = text.split("\n\n").next()?;
    keyed(paragraph, key).filter(|value| !value.is_empty())
}

/// EAX of leaf 1: stepping, model and family, the latter two in parts (Intel SDM 2A, CPUID).
#[derive(Clone, Copy)]
pub(crate) struct Version(u32);

impl Version {
    pub fn stepping(self) -> u32 {
        self.0 & 0xf
    }

    pub fn model(self) -> u32 {
        let (low, high) = (self.0 >> 4 & 0xf, self.0 >> 16 & 0xf);
        if matches!(self.base_family(), 6 | 15) { high << 4 | low } else { low }
    }

    pub fn family(self) -> u32 {
        let extended = self.0 >> 20 & 0xff;
        if self.base_family() == 15 { 15 + extended } else { self.base_family() }
    }

    fn base_family(self) -> u32 {
        self.0 >> 8 & 0xf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let parts = |eax| [Version::family, Version::model, Version::stepping].map(|part| part(Version(eax)));
        assert_eq!(parts(0x0006_06a6), [6, 106, 6], "Ice Lake");
        assert_eq!(parts(0x00a2_0f12), [25, 33, 2], "Zen 3");
        assert_eq!(parts(0x0000_0543), [5, 4, 3], "Pentium MMX");
    }

    #[test]
    fn only_the_first_paragraph_counts() {
        let text = "vendor_id\t: A\nmicrocode\t: \n\nmodel\t: 7\n";
        assert_eq!(value_of_first(text, "vendor_id"), Some("A"));
        assert_eq!(value_of_first(text, "model"), None);
        assert_eq!(value_of_first(text, "microcode"), None, "nothing is not a value");
    }

    takes_any! {
        text in "\\PC{0,100}|[a-z_ \t:\n]{0,200}", key in "[a-z_ ]{0,9}", eax in any::<u32>() =>
        value_of_first(&text, &key),
        Version(eax).family(), Version(eax).model(), Version(eax).stepping()
    }
}
