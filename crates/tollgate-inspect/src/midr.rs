//! MIDR_EL1 of arm64, which names a processor's maker and part (Arm ARM, D19.2, MIDR_EL1). The names are those of Linux
//! (arch/arm64/include/asm/cputype.h); names that Linux lacks are from GCC (aarch64-cores.def) and m1n1 (src/midr.h).

use tollgate_model::Unknown;

use crate::machine::{Answer, Machine, found};
use crate::text::{self, digits, keyed, show_processors};

const CPUINFO: &str = "/proc/cpuinfo";
const CPU: &str = "/sys/devices/system/cpu";

#[rustfmt::skip]
const IMPLEMENTERS: [(u32, &str); 11] = [
    (0x41, "Arm"), (0x42, "Broadcom"), (0x43, "Cavium"), (0x46, "Fujitsu"), (0x48, "HiSilicon"), (0x4e, "NVIDIA"), (0x50, "APM"),
    (0x51, "Qualcomm"), (0x61, "Apple"), (0x6d, "Microsoft"), (0xc0, "Ampere"),
];

#[rustfmt::skip]
const PARTS: [(u32, u32, &str); 86] = [
    (0x41, 0xd03, "Cortex-A53"), (0x41, 0xd04, "Cortex-A35"), (0x41, 0xd05, "Cortex-A55"), (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"), (0x41, 0xd09, "Cortex-A73"), (0x41, 0xd0a, "Cortex-A75"), (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"), (0x41, 0xd0d, "Cortex-A77"), (0x41, 0xd0e, "Cortex-A76AE"), (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"), (0x41, 0xd42, "Cortex-A78AE"), (0x41, 0xd44, "Cortex-X1"), (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"), (0x41, 0xd48, "Cortex-X2"), (0x41, 0xd49, "Neoverse-N2"), (0x41, 0xd4b, "Cortex-A78C"),
    (0x41, 0xd4c, "Cortex-X1C"), (0x41, 0xd4d, "Cortex-A715"), (0x41, 0xd4e, "Cortex-X3"), (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd80, "Cortex-A520"), (0x41, 0xd81, "Cortex-A720"), (0x41, 0xd82, "Cortex-X4"), (0x41, 0xd83, "Neoverse-V3AE"),
    (0x41, 0xd84, "Neoverse-V3"), (0x41, 0xd85, "Cortex-X925"), (0x41, 0xd87, "Cortex-A725"), (0x41, 0xd89, "Cortex-A720AE"),
    (0x41, 0xd8c, "C1-Ultra"), (0x41, 0xd8e, "Neoverse-N3"), (0x41, 0xd90, "C1-Premium"), (0x42, 0x100, "Brahma-B53"),
    (0x42, 0x516, "Vulcan"), (0x43, 0x0a1, "ThunderX"), (0x43, 0x0a2, "ThunderX 81XX"), (0x43, 0x0a3, "ThunderX 83XX"),
    (0x43, 0x0af, "ThunderX2"), (0x43, 0x0b1, "OcteonTX2 98XX"), (0x43, 0x0b2, "OcteonTX2 96XX"), (0x43, 0x0b3, "OcteonTX2 95XX"),
    (0x43, 0x0b4, "OcteonTX2 95XXN"), (0x43, 0x0b5, "OcteonTX2 95XXMM"), (0x43, 0x0b6, "OcteonTX2 95XXO"), (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "TSV110"), (0x48, 0xd02, "HIP09"), (0x48, 0xd06, "HIP12"), (0x4e, 0x003, "Denver"), (0x4e, 0x004, "Carmel"),
    (0x4e, 0x010, "Olympus"), (0x50, 0x000, "X-Gene"), (0x51, 0x001, "Oryon X1"), (0x51, 0x200, "Kryo"),
    (0x51, 0x800, "Kryo 2XX Gold or Falkor"), (0x51, 0x801, "Kryo 2XX Silver"), (0x51, 0x802, "Kryo 3XX Gold"),
    (0x51, 0x803, "Kryo 3XX Silver"), (0x51, 0x804, "Kryo 4XX Gold"), (0x51, 0x805, "Kryo 4XX Silver"), (0x51, 0xc00, "Falkor"),
    (0x61, 0x022, "M1 Icestorm"), (0x61, 0x023, "M1 Firestorm"), (0x61, 0x024, "M1 Pro Icestorm"), (0x61, 0x025, "M1 Pro Firestorm"),
    (0x61, 0x028, "M1 Max Icestorm"), (0x61, 0x029, "M1 Max Firestorm"), (0x61, 0x032, "M2 Blizzard"), (0x61, 0x033, "M2 Avalanche"),
    (0x61, 0x034, "M2 Pro Blizzard"), (0x61, 0x035, "M2 Pro Avalanche"), (0x61, 0x038, "M2 Max Blizzard"),
    (0x61, 0x039, "M2 Max Avalanche"), (0x61, 0x042, "M3 Sawtooth"), (0x61, 0x043, "M3 Everest"), (0x61, 0x044, "M3 Pro Sawtooth"),
    (0x61, 0x045, "M3 Pro Everest"), (0x61, 0x048, "M3 Max Sawtooth"), (0x61, 0x049, "M3 Max Everest"),
    (0x6d, 0xd49, "Azure Cobalt 100"), (0xc0, 0xac3, "Ampere-1"), (0xc0, 0xac4, "Ampere-1A"), (0xc0, 0xac5, "Ampere-1B"),
];

/// MIDR_EL1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Midr(u32);

impl Midr {
    fn implementer(self) -> u32 {
        self.0 >> 24
    }

    fn part(self) -> u32 {
        self.0 >> 4 & 0xfff
    }

    fn maker(self) -> Option<&'static str> {
        IMPLEMENTERS.into_iter().find(|(number, _)| *number == self.implementer()).map(|(_, name)| name)
    }

    /// The maker and the part, each by its number if it has no name.
    fn name(self) -> String {
        let (implementer, part) = (self.implementer(), self.part());
        let maker = self.maker().map_or_else(|| format!("implementer {implementer:#x}"), str::to_owned);
        match PARTS.into_iter().find(|known| (known.0, known.1) == (implementer, part)) {
            Some((_, _, name)) => format!("{maker} {name}"),
            None => format!("{maker} part {part:#x}"),
        }
    }
}

impl std::fmt::Display for Midr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (variant, revision) = (self.0 >> 20 & 0xf, self.0 & 0xf);
        write!(f, "{:#010x} {} r{variant}p{revision}", self.0, self.name())
    }
}

/// Each maker once.
pub(crate) fn vendor(machine: &Machine) -> Answer<String> {
    let named = |midr: Midr| {
        midr.maker().map_or_else(|| format!("implementer {:#x}", midr.implementer()), str::to_owned)
    };
    Ok(processors(machine)?.map(|all| {
        let kinds: Vec<String> = kinds(&all, named).into_iter().map(|(name, _)| name).collect();
        kinds.join(" + ")
    }))
}

/// `Arm Neoverse-V1`; if there are several kinds of cores, with the number of each: `4 × Apple M1 Icestorm + 4 × Apple M1 Firestorm`.
pub(crate) fn model(machine: &Machine) -> Answer<String> {
    Ok(processors(machine)?.map(|all| match &kinds(&all, Midr::name)[..] {
        [(name, _)] => name.clone(),
        kinds => {
            let counted: Vec<String> =
                kinds.iter().map(|(name, of)| format!("{} × {name}", of.len())).collect();
            counted.join(" + ")
        }
    }))
}

/// The value of each kind, with its name, its variant and revision, and its processors.
pub(crate) fn values(machine: &Machine) -> Answer<Vec<String>> {
    Ok(processors(machine)?.map(|all| {
        let kinds = kinds(&all, |midr| midr.to_string()).into_iter();
        kinds.map(|(name, of)| format!("{name}: {}", show_processors(&of))).collect()
    }))
}

/// The processors of each kind, in the order of their first ones.
fn kinds(all: &[(u32, Midr)], name: impl Fn(Midr) -> String) -> Vec<(String, Vec<u32>)> {
    let mut kinds: Vec<(String, Vec<u32>)> = Vec::new();
    for &(processor, midr) in all {
        let name = name(midr);
        match kinds.iter_mut().find(|(known, _)| *known == name) {
            Some((_, of)) => of.push(processor),
            None => kinds.push((name, vec![processor])),
        }
    }
    kinds
}

/// The values of all processors that are online: from one file, or each from its own if that file does not show them.
fn processors(machine: &Machine) -> Answer<Vec<(u32, Midr)>> {
    let listed = machine.text(CPUINFO).and_then(|text| match listed(&text.value) {
        Ok(all) if all.is_empty() => Err(Unknown::Absent(format!("{CPUINFO} has no \"CPU implementer\""))),
        Ok(all) => found(all, text.source),
        Err(why) => Err(Unknown::Unreadable(format!("{CPUINFO}: {why}"))),
    });
    match listed {
        Err(Unknown::Absent(why)) => of_each(machine).map_err(|_| Unknown::Absent(why)),
        listed => listed,
    }
}

fn of_each(machine: &Machine) -> Answer<Vec<(u32, Midr)>> {
    let online = machine.line(&format!("{CPU}/online"))?.parse("a list of processors", text::processors)?;
    let read = |processor: u32| {
        let line = machine.line(&format!("{CPU}/cpu{processor}/regs/identification/midr_el1"))?;
        Ok((
            processor,
            line.parse("MIDR_EL1 in hexadecimal", |text| Some(Midr(hexadecimal(text, 32)?)))?.value,
        ))
    };
    let all: Result<Vec<_>, Unknown> = online.value.into_iter().map(read).collect();
    found(all?, format!("{CPU}/cpu*/regs/identification/midr_el1"))
}

/// The processors of the paragraphs that have an implementer, or the error in one of these paragraphs.
fn listed(text: &str) -> Result<Vec<(u32, Midr)>, String> {
    let paragraphs = text.split("\n\n").filter(|paragraph| keyed(paragraph, "CPU implementer").is_some());
    paragraphs.map(of_paragraph).collect()
}

fn of_paragraph(text: &str) -> Result<(u32, Midr), String> {
    let field = |key: &str| keyed(text, key).ok_or_else(|| format!("a processor has no {key:?}"));
    let wrong = |key: &str, value: &str, right: &str| {
        let excerpt: String = value.chars().take(20).collect();
        format!("{key:?} {excerpt:?} is not {right}")
    };
    let number = |key: &str, bits: u32| {
        let value = field(key)?;
        hexadecimal(value, bits)
            .ok_or_else(|| wrong(key, value, &format!("a hexadecimal number of {bits} bits")))
    };
    let decimal = |key: &str, limit: u32| {
        let value = field(key)?;
        let number = digits::<u32>(value).filter(|number| *number < limit);
        number.ok_or_else(|| wrong(key, value, &format!("a number below {limit}")))
    };
    let processor = decimal("processor", 1 << 14)?;
    let (implementer, variant) = (number("CPU implementer", 8)?, number("CPU variant", 4)?);
    let (part, revision) = (number("CPU part", 12)?, decimal("CPU revision", 16)?);
    // The architecture is 15: it is in the ID registers.
    Ok((processor, Midr(implementer << 24 | variant << 20 | 0xf << 16 | part << 4 | revision)))
}

fn hexadecimal(text: &str, bits: u32) -> Option<u32> {
    let digits =
        text.strip_prefix("0x").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    u32::try_from(number).ok().filter(|number| u64::from(*number) >> bits == 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_processor_is_named_by_maker_and_part() {
        for (midr, expected) in [
            (0x411f_d401, "0x411fd401 Arm Neoverse-V1 r1p1"),
            (0x611f_0231, "0x611f0231 Apple M1 Firestorm r1p1"),
            (0x410f_0420, "0x410f0420 Arm part 0x42 r0p0"),
            (0x991f_1230, "0x991f1230 implementer 0x99 part 0x123 r1p0"),
        ] {
            assert_eq!(Midr(midr).to_string(), expected);
        }
        let numbers: BTreeSet<(u32, u32)> = PARTS.into_iter().map(|(of, part, _)| (of, part)).collect();
        assert_eq!(numbers.len(), PARTS.len(), "a part is there twice");
        assert!(PARTS.into_iter().all(|(of, part, _)| Midr(of << 24 | part << 4).maker().is_some()));
    }

    #[test]
    fn a_field_that_is_no_number_is_named() {
        let text = |implementer: &str, revision: &str| {
            format!(
                "processor\t: 3\nCPU implementer\t: {implementer}\nCPU variant\t: 0x1\nCPU part\t: 0xd40\nCPU revision\t: {revision}\n"
            )
        };
        assert_eq!(listed(&text("0x41", "1")), Ok(vec![(3, Midr(0x411f_d401))]));
        for (text, why) in [
            (text("0xzz", "1"), "\"CPU implementer\" \"0xzz\" is not a hexadecimal number of 8 bits"),
            (text("0x141", "1"), "\"CPU implementer\" \"0x141\" is not a hexadecimal number of 8 bits"),
            (text("0x41", "16"), "\"CPU revision\" \"16\" is not a number below 16"),
            (
                "processor\t: 0\nCPU implementer\t: 0x41\nCPU va".to_owned(),
                "a processor has no \"CPU variant\"",
            ),
        ] {
            assert_eq!(listed(&text), Err(why.to_owned()));
        }
        assert_eq!(listed("processor\t: 0\nmodel name\t: A Processor\n"), Ok(Vec::new()));
    }

    takes_any! {
        text in "\\PC{0,100}|((processor|CPU (implementer|part|variant|revision))\t: (0x)?[0-9a-fz]{0,12}\n{1,2}){0,9}",
        bits in 0..=32u32 =>
        listed(&text), hexadecimal(&text, bits)
    }
}
