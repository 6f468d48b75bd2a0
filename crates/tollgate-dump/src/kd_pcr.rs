//! The Windows debugger's `!pcr`, and `dt` of `_KPCR`: the addresses of a processor's tables.
//!
//! ```text
//! KPCR for Processor 0 at ffdff000:
//!         NtTib.ExceptionList: acb74c7c
//!                         IDT: 8003f400
//!                         GDT: 8003f000
//!                         TSS: 80042000
//! ```
//!
//! On a 64-bit target `!pcr` prints 0 for all three: the structure begins with GdtBase and TssBase there, which the command
//! shows as the first two fields of `NtTib` (`_KPCR` in the kernel's public symbols).

use crate::number::{number, plain, word};
use crate::piece::{Form, TableRegister, What};
use crate::{format::Format, line::Line, sink::Sink};

const FORMAT: Format = Format::KdPcr;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    if let Some(rest) = line.text.strip_prefix("KPCR for Processor ") {
        return header(sink, rest);
    }
    if !sink.in_pcr && !sink.is_hinted {
        return false;
    }
    let Some((name, value)) = line.text.split_once(':') else {
        return line.text.starts_with("Major ");
    };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.') {
        return false;
    }
    field(sink, FORMAT, name, value);
    true
}

fn header(sink: &mut Sink, rest: &str) -> bool {
    let (processor, rest) = word(rest);
    let address = rest
        .trim_start_matches(' ')
        .strip_prefix("at ")
        .and_then(|rest| number(word(rest).0.trim_end_matches(':')));
    let (Ok(processor), Some(address)) = (processor.parse(), address) else { return false };
    sink.processor(processor);
    sink.form(FORMAT, if address.digits > 8 { Form::DebuggerWide } else { Form::DebuggerNarrow });
    sink.in_pcr = true;
    true
}

/// Returns whether the line names the structure: `nt!_KPCR`, or a command that asks for it.
pub(crate) fn is_structure(text: &str) -> bool {
    let names = |text: &str| text.ends_with("_KPCR") && !text.contains(' ');
    let command = text.strip_prefix("dt ").map(|rest| word(rest).0);
    command.is_some_and(names) || names(text)
}

/// Reads a field that is the address of a table. 0 is printed for fields that the region does not have.
pub(crate) fn field(sink: &mut Sink, format: Format, name: &str, value: &str) {
    let Some(address) = number(word(value).0).filter(|hex| hex.value != 0) else { return };
    let is_wide = plain(word(value).0).is_some_and(|hex| hex.digits == 16);
    let what = match name {
        "GDT" | "GdtBase" => What::base(TableRegister::Gdt, address.value),
        "IDT" | "IdtBase" => What::base(TableRegister::Idt, address.value),
        "TSS" | "TssBase" => What::tss(address.value),
        "NtTib.ExceptionList" if is_wide => What::base(TableRegister::Gdt, address.value),
        "NtTib.StackBase" if is_wide => What::tss(address.value),
        _ => return,
    };
    sink.push(format, what);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::whats;

    #[test]
    fn both_widths() {
        let narrow = "lkd> !pcr
KPCR for Processor 0 at ffdff000:
    Major 1 Minor 1
\tNtTib.ExceptionList: acb74c7c
\t    NtTib.StackBase: acb74df0

\t                IDT: 8003f400
\t                GDT: 8003f000
\t                TSS: 80042000";
        let tables = [
            What::base(TableRegister::Idt, 0x8003_f400),
            What::base(TableRegister::Gdt, 0x8003_f000),
            What::tss(0x8004_2000),
        ];
        assert_eq!(whats(narrow), tables);
        let wide = "0: kd> !pcr
KPCR for Processor 0 at fffff80002c4a000:
    Major 1 Minor 1
\tNtTib.ExceptionList: fffff80000b95000
\t    NtTib.StackBase: fffff80000b96080
\t   NtTib.StackLimit: 0000000000000000
\t                IDT: 0000000000000000
\t                GDT: 0000000000000000
\t                TSS: 0000000000000000";
        assert_eq!(
            whats(wide),
            [What::base(TableRegister::Gdt, 0xffff_f800_00b9_5000), What::tss(0xffff_f800_00b9_6080)]
        );
        let structure = "kd> dt nt!_KPCR ffdff000
   +0x01c SelfPcr          : 0xffdff000 _KPCR
   +0x038 IDT              : 0x8003f400 _KIDTENTRY
   +0x03c GDT              : 0x8003f000 _KGDTENTRY
   +0x040 TSS              : 0x80042000 _KTSS";
        assert_eq!(whats(structure), tables);
    }

    #[test]
    fn what_is_no_region() {
        for text in
            ["IDT: 8003f400", "KPCR for Processor x at 1:", "KPCR for Processor 0", "a _KPCR is there"]
        {
            assert_eq!(whats(text), [], "{text}");
        }
    }

    takes_any! { text in "\\PC{0,60}" => whats(&format!("KPCR for Processor 0 at ffdff000:\n{text}")) }
}
