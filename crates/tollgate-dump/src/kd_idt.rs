//! The Windows debugger's `!idt`: handlers by vector.
//!
//! After `Dumping IDT: 8003f400`, or without the address on older systems, each line has a vector, an address and a symbol.
//! A task gate's line has `Task Selector = 0x0058`, and a gate with a stack of its own has `Stack = 0x...`. Further
//! handlers of a shared interrupt follow, indented. Some versions print other bytes before the vector.

use tollgate_x86::Selector;

use crate::line::{Line, excerpt};
use crate::number::{after, number, plain, prefixed, word};
use crate::piece::{Form, TableRegister, What};
use crate::{format::Format, printed::PrintedGate, sink::Sink};

const FORMAT: Format = Format::KdIdt;
const TASK_GATE: u8 = 5;

pub(crate) fn read(sink: &mut Sink, line: &Line<'_>) -> bool {
    if let Some(rest) = line.text.strip_prefix("Dumping IDT:") {
        sink.in_idt = true;
        sink.vector = None;
        if let Some(base) = number(word(rest).0) {
            let form = if base.digits > 8 { Form::DebuggerWide } else { Form::NarrowTableRegister };
            sink.form(FORMAT, form);
            let table = TableRegister::Idt;
            sink.push(FORMAT, What::base(table, base.value));
        }
        return true;
    }
    let is_wanted = sink.in_idt || sink.is_hinted;
    match row(line.text, is_wanted) {
        Some((gate, digits)) => {
            match digits {
                Some(16) => sink.form(FORMAT, Form::DebuggerWide),
                Some(_) => sink.form(FORMAT, Form::DebuggerNarrow),
                None => {}
            }
            sink.vector = Some(gate.vector);
            sink.push(FORMAT, What::Gate(gate))
        }
        None => is_wanted && further(sink, line.text),
    }
}

/// A further handler of the vector above: `USBPORT!USBPORT_InterruptService (KINTERRUPT 898d3308)`.
fn further(sink: &mut Sink, text: &str) -> bool {
    let (symbol, rest) = word(text);
    let Some(vector) = sink.vector.filter(|_| symbol.contains('!') && rest.contains("(KINTERRUPT ")) else {
        return false;
    };
    let symbol = Some(excerpt(symbol).to_owned());
    sink.push(FORMAT, What::Gate(PrintedGate { vector, symbol, ..PrintedGate::default() }))
}

/// Returns a gate and the number of digits of its address. Unless `!idt` was seen, the line must have a symbol.
fn row(text: &str, is_wanted: bool) -> Option<(PrintedGate, Option<usize>)> {
    let (index, rest) = text.split_at_checked(text.bytes().take(17).position(|byte| byte == b':')?)?;
    let index = plain(index).filter(|hex| matches!(hex.digits, 2 | 8 | 16))?;
    let rest = rest[1..].trim_start_matches(' ');
    let mut gate =
        PrintedGate { vector: index.value as u8, has_noise: index.value > 0xff, ..PrintedGate::default() };
    if let Some(rest) = rest.strip_prefix("Task Selector") {
        let selector = prefixed(word(after(rest, "=")?).0)?;
        gate.selector = Some(Selector(u16::try_from(selector.value).ok()?));
        gate.kind = "Task Gate".to_owned();
        gate.type_bits = Some(TASK_GATE);
        return Some((gate, None));
    }
    let (offset, rest) = word(rest);
    let offset = number(offset).filter(|hex| matches!(hex.digits, 8 | 16))?;
    let (symbol, rest) = word(rest);
    if !is_wanted && !symbol.contains('!') {
        return None;
    }
    gate.offset = Some(offset.value);
    gate.symbol = (!symbol.is_empty()).then(|| excerpt(symbol).to_owned());
    gate.stack = rest.find("Stack = ").and_then(|at| prefixed(word(&rest[at + 8..]).0)).map(|hex| hex.value);
    Some((gate, Some(offset.digits)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{read, testing::found};
    use proptest::prelude::*;

    fn gates(text: &str) -> Vec<PrintedGate> {
        found(text, |what| if let What::Gate(gate) = what { Some(gate) } else { None })
    }

    #[test]
    fn handlers_tasks_stacks_and_shared_lines() {
        let text = "Dumping IDT: fffff8000a0d1000

02:\tfffff80002be9200 nt!KiNmiInterruptShadow\tStack = 0xFFFFF8000A0D47E0
9d120e4800000008:\tTask Selector = 0x0050
0000002e:   82a5f22e nt!KiSystemService
63: 89b3948c serial!SerialCIsrSw (KINTERRUPT 89b39450)
          USBPORT!USBPORT_InterruptService (KINTERRUPT 898d3308)";
        let gates = gates(text);
        assert_eq!(gates.iter().map(|gate| gate.vector).collect::<Vec<_>>(), [2, 8, 0x2e, 0x63, 0x63]);
        assert_eq!(gates[4].symbol.as_deref(), Some("USBPORT!USBPORT_InterruptService"));
        assert_eq!(gates[0].stack, Some(0xffff_f800_0a0d_47e0));
        assert_eq!((gates[1].selector, gates[1].type_bits), (Some(Selector(0x50)), Some(5)));
        assert_eq!(
            gates.iter().map(|gate| gate.has_noise).collect::<Vec<_>>(),
            [false, true, false, false, false]
        );
        assert_eq!(
            (gates[2].offset, gates[2].symbol.as_deref()),
            (Some(0x82a5_f22e), Some("nt!KiSystemService"))
        );
        assert_eq!(read(text.as_bytes(), None).lines.foreign, 0);
    }

    #[test]
    fn times_and_lists_are_no_vectors() {
        for text in ["12: 34", "10: 20170219 a day", "2e:", "zz: 808655cd nt!x", "é:"] {
            assert_eq!(gates(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(vector: u8, offset: u64, is_wide: bool) {
            let offset = if is_wide { offset } else { offset & 0xffff_ffff };
            let digits = if is_wide { 16 } else { 8 };
            let text = format!("{vector:02x}:\t{offset:0digits$x} nt!KiSystemService");
            let gates = gates(&text);
            prop_assert_eq!(gates.len(), 1);
            prop_assert_eq!((gates[0].vector, gates[0].offset), (vector, Some(offset)));
        }
    }
}
