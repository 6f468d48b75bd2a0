//! The Windows debugger's `dt` of the tables' structures.
//!
//! ```text
//! kd> dt nt!_KIDTENTRY 8003f570
//!    +0x000 Offset           : 0x55cd
//!    +0x002 Selector         : 8
//!    +0x004 Access           : 0xee00
//!    +0x006 ExtendedOffset   : 0x8086
//! ```
//!
//! Fields and offsets are from the kernel's public symbols. Numbers below ten have no `0x`; bit fields are shown as
//! `0y01110 (0xe)`. Only the command has the address, which may be a sum such as `@idtr+2e*8`.

use crate::kd_layouts::{LAYOUTS, Layout};
use crate::kd_pcr;
use crate::number::{number, plain, word};
use crate::{format::Format, line::Line, sink::Sink, structure::Structure};

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    if let Some((name, value)) = field(line.text) {
        if let Some(structure) = &mut sink.structure {
            structure.set(name, value);
        } else if sink.in_pcr {
            kd_pcr::field(sink, Format::Dt, name, value);
        }
        return true;
    }
    if kd_pcr::is_structure(line.text) {
        sink.finish_structure();
        sink.in_pcr = true;
        return true;
    }
    let Some((layout, rest)) = header(line) else { return false };
    let address = address(sink, rest);
    match &mut sink.structure {
        // The command named it, and now the answer does.
        Some(structure) if structure.is_of(layout) && !structure.is_begun() && address.is_none() => {}
        _ => {
            sink.finish_structure();
            sink.structure = Some(Structure::new(layout, address, sink.line()));
        }
    }
    true
}

/// Parses `+0x002 Selector         : 8`, or `dx`' form `[+0x002] Selector         : 0x8 [Type: unsigned short]`.
fn field(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("+0x").or_else(|| text.strip_prefix("[+0x"))?;
    let (offset, rest) = word(rest);
    plain(offset.strip_suffix(']').unwrap_or(offset))?;
    let (name, rest) = word(rest);
    let value = rest.trim_start_matches(' ').strip_prefix(':')?;
    Some((name, value.trim_start_matches(' ')))
}

fn header<'a>(line: &Line<'a>) -> Option<(&'static Layout, &'a str)> {
    let text = line.text;
    let at = text.find("_K").filter(|&at| at < 32)?;
    let layout = LAYOUTS.iter().find(|layout| text[at..].starts_with(layout.name))?;
    let rest = &text[at + layout.name.len()..];
    let is_command = ["dt ", "dx "].iter().any(|command| text.starts_with(command));
    (is_command || rest.trim_matches(' ').is_empty()).then_some((layout, rest))
}

fn address(sink: &Sink, rest: &str) -> Option<u64> {
    let mut words = rest.split([' ', ')', '(']).filter(|word| !word.is_empty() && *word != "*");
    let expression = words.find(|word| !word.starts_with('-'))?;
    expression.split('+').try_fold(0u64, |sum, product| {
        let product =
            product.split('*').try_fold(1u64, |all, factor| Some(all.wrapping_mul(operand(sink, factor)?)));
        Some(sum.wrapping_add(product?))
    })
}

fn operand(sink: &Sink, word: &str) -> Option<u64> {
    let [gdtr, idtr] = sink.bases;
    match word.strip_prefix('@').unwrap_or(word) {
        "idtr" => idtr,
        "gdtr" => gdtr,
        word => Some(number(word)?.value),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{piece::What, testing::whats};

    fn bytes(address: Option<u64>, bytes: &[u8]) -> What {
        What::Bytes { address, bytes: bytes.to_vec() }
    }

    const FIELDS: &str = "   +0x000 Offset           : 0x55cd
   +0x002 Selector         : 8
   +0x004 Access           : 0xee00
   +0x006 ExtendedOffset   : 0x8086
";
    const GATE: [u8; 8] = [0xcd, 0x55, 8, 0, 0, 0xee, 0x86, 0x80];

    #[test]
    fn the_address_is_in_the_command() {
        for command in [
            "dt nt!_KIDTENTRY 8003f570",
            "kd> dt _KIDTENTRY -b 8003f400+2e*8",
            "kd> r idtr\nidtr=8003f400\nkd> dt nt!_KIDTENTRY @idtr+0x2e*0x8",
            "kd> dt nt!_KIDTENTRY 8003f570\nnt!_KIDTENTRY",
        ] {
            let printed = whats(&format!("{command}\n{FIELDS}"));
            assert_eq!(printed.last(), Some(&bytes(Some(0x8003_f570), &GATE)), "{command}");
        }
        assert_eq!(whats(&format!("ntdll!_KIDTENTRY\n{FIELDS}")), [bytes(None, &GATE)]);
        assert_eq!(whats(FIELDS), [], "without the structure's name");
    }

    #[test]
    fn bit_fields() {
        let text = "0: kd> dt nt!_KIDTENTRY64 fffff8051ae62000
   +0x000 OffsetLow        : 0x1c00
   +0x002 Selector         : 0x10
   +0x004 IstIndex         : 0y000
   +0x004 Reserved0        : 0y00000 (0)
   +0x004 Type             : 0y01110 (0xe)
   +0x004 Dpl              : 0y00
   +0x004 Present          : 0y1
   +0x006 OffsetMiddle     : 0x1800
   +0x008 OffsetHigh       : 0xfffff805
   +0x00c Reserved1        : 0
   +0x000 Alignment        : 0x18008e00`00101c00";
        let gate = [0x00, 0x1c, 0x10, 0, 0, 0x8e, 0x00, 0x18, 0x05, 0xf8, 0xff, 0xff, 0, 0, 0, 0];
        assert_eq!(whats(text), [bytes(Some(0xffff_f805_1ae6_2000), &gate)]);
    }

    #[test]
    fn a_tss_is_printed_in_parts() {
        let fields = "   +0x000 Reserved0        : 0
   +0x004 Rsp0             : 0xfffff801`4af6ec90
   +0x01c Ist              : [8] 0
   +0x066 IoMapBase        : 0x68";
        let printed = whats(&format!("kd> dt nt!_KTSS64 0xfffff8014af63000\n{fields}"));
        assert_eq!(printed.len(), 2);
        assert_eq!(printed[1], bytes(Some(0xffff_f801_4af6_3066), &[0x68, 0]));
        let printed = whats(&format!("nt!_KTSS64\n{fields}"));
        assert!(
            printed.contains(&What::TssField { name: "rsp0", value: 0xffff_f801_4af6_ec90 }),
            "{printed:?}"
        );
        assert!(printed.contains(&What::TssField { name: "iomap", value: 0x68 }));
        assert!(!printed.iter().any(|what| matches!(what, What::TssField { name: "ist1", .. })));
    }

    #[test]
    fn types_without_values_say_nothing() {
        let text = "kd> dt _KIDTENTRY\nntdll!_KIDTENTRY\n   +0x000 Offset           : Uint2B\n   +0x002 Selector : Uint2B";
        assert_eq!(whats(text), []);
        assert_eq!(
            whats("kd> dt _KIDTENTRY ffffffffffffffff\n+0x000 Offset : 0x1"),
            [],
            "past the last address"
        );
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(gate: [u8; 8], address in 0u64..0xffff_fff0) {
            let word = |at: usize| u16::from_le_bytes([gate[at], gate[at + 1]]);
            let text = format!(
                "kd> dt _KIDTENTRY {address:x}\n+0x000 Offset : {:#x}\n+0x002 Selector : {:#x}\n+0x004 Access : {:#x}\n+0x006 ExtendedOffset : {:#x}\n",
                word(0), word(2), word(4), word(6)
            );
            prop_assert_eq!(whats(&text), [bytes(Some(address), &gate)]);
        }
    }
}
