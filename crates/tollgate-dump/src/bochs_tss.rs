//! Bochs' `info tss`.
//!
//! From bx_debug/dbg_main.cc: `bx_dbg_info_tss_command` and `bx_dbg_print_tss`, which treats the TSS as a 32-bit one in
//! every mode.

use crate::number::{assigned, pairs, prefixed};
use crate::piece::{SegmentRegister, What};
use crate::{format::Format, line::Line, sink::Sink};

const FORMAT: Format = Format::BochsTss;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    let text = line.text;
    if let Some(rest) = text.strip_prefix("tr:s=").filter(|rest| !rest.contains("dh=")) {
        sink.in_tss = true;
        let Some(selector) = prefixed(rest.split(',').next().unwrap_or_default()) else { return false };
        let Ok(selector) = u16::try_from(selector.value) else { return false };
        sink.push(FORMAT, What::selector(SegmentRegister::Tr, selector));
        return assigned(rest, "base").is_none_or(|base| sink.push(FORMAT, What::tss(base)));
    }
    if let Some(rest) = text.strip_prefix("ss:esp(") {
        sink.in_tss = true;
        return stack(sink, rest);
    }
    if !sink.in_tss {
        return false;
    }
    sink.in_tss = fields(sink, text);
    sink.in_tss
}

fn stack(sink: &mut Sink, rest: &str) -> bool {
    const FIELDS: [(&str, &str); 3] = [("ss0", "esp0"), ("ss1", "esp1"), ("ss2", "esp2")];
    let Some((ring, value)) = rest.split_once("): ") else { return false };
    let names = ring.parse().ok().and_then(|ring: usize| FIELDS.get(ring));
    let values = value.split_once(':').and_then(|(ss, esp)| prefixed(ss).zip(prefixed(esp)));
    let (Some(names), Some((ss, esp))) = (names, values) else { return false };
    sink.push(FORMAT, What::TssField { name: names.0, value: ss.value });
    sink.push(FORMAT, What::TssField { name: names.1, value: esp.value })
}

fn fields(sink: &mut Sink, text: &str) -> bool {
    let one = |(name, value): (&str, &str)| {
        let name = if name == "i/o map" { "iomap" } else { name };
        let field = tollgate_x86::Tss32::FIELDS.iter().find(|field| field.name == name)?;
        Some(What::TssField { name: field.name, value: prefixed(value)?.value })
    };
    pairs(text).map_while(one).map(|what| sink.push(FORMAT, what)).count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::whats;

    #[test]
    fn a_whole_tss() {
        let text = "tr:s=0x60, base=0x00000000c02161dc, valid=1
ss:esp(0): 0x0018:0xc0218000
ss:esp(1): 0x0000:0x00000000
cr3: 0x00101000
cs: 0x0000 ds: 0x0000 ss: 0x0000
eax: 0x00000000  ebx: 0x00000000  ecx: 0x00000000  edx: 0x00000000
i/o map: 0x8000";
        let printed = whats(text);
        assert!(printed.contains(&What::TssField { name: "esp0", value: 0xc021_8000 }));
        assert!(printed.contains(&What::TssField { name: "iomap", value: 0x8000 }));
        assert!(printed.contains(&What::tss(0xc021_61dc)));
        assert_eq!(printed.len(), 2 + 4 + 1 + 3 + 4 + 1);
        let alone = whats("cr3: 0x00101000");
        assert!(
            matches!(alone[..], [What::Register { .. }]),
            "without a TSS before it it is the register: {alone:?}"
        );
    }
}
