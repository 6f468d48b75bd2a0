//! Gates of 16 bytes that Bochs up to version 2.6 listed as two entries of 8: `IDT[0x06]` and `IDT[0x07]` are vector 3,
//! the first with the lower half of the offset, and the second with its upper half in the place of a descriptor
//! (bx_debug/dbg_main.cc, `bx_dbg_info_idt_command`).

use std::collections::BTreeMap;

use tollgate_x86::Width;

use crate::joined::{Defect, DefectOf, Joined};
use crate::{printed::PrintedGate, sourced::Sourced};

impl Joined {
    /// Keeps a row of a list in which every 8 bytes are an entry. Whether it can be a vector too.
    pub(crate) fn take_slot(&mut self, gate: &PrintedGate, line: usize) -> bool {
        let Some(slot) = gate.slot else { return true };
        self.gate_slots.insert(slot, Sourced::at(gate.clone(), line));
        slot < 256
    }

    /// In long mode puts the two rows of each gate together.
    pub(crate) fn join_halves(&mut self) {
        let slots = std::mem::take(&mut self.gate_slots);
        let is_half = |(slot, row): (&u16, &Sourced<PrintedGate>)| match row.value.raw {
            Some(raw) => slot % 2 == 0 || raw[4..] == [0; 4],
            None => slot % 2 == 0,
        };
        if self.width.width != Some(Width::Long) || slots.is_empty() || !slots.iter().all(is_half) {
            return;
        }
        let mut gates: BTreeMap<u8, Vec<Sourced<PrintedGate>>> = BTreeMap::new();
        let mut first = Vec::new();
        for (slot, low) in slots.iter().filter(|(slot, row)| *slot % 2 == 0 && row.value.offset.is_some()) {
            let Some(upper) = slots.get(&(slot + 1)) else { continue };
            let high = upper.value.raw.map_or(0, u64::from_le_bytes);
            let gate = PrintedGate {
                vector: (slot / 2) as u8,
                offset: low.value.offset.map(|low| high << 32 | low & 0xffff_ffff),
                slot: None,
                kind: low.value.kind.replace("32-Bit", "64-Bit"),
                ..low.value.clone()
            };
            let lines = [low.lines.as_slice(), &upper.lines].concat();
            first = if first.is_empty() { lines.clone() } else { first };
            gates.insert(gate.vector, vec![Sourced { value: gate, lines }]);
        }
        if !gates.is_empty() {
            self.printed_gates = gates;
            self.defects.push(Defect { lines: first, of: DefectOf::BochsHalvesGates });
        }
    }
}
