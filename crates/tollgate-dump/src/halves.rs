//! 16-byte gates in 8-byte entries, which are a sign of long mode. Bochs lists them like this up to version 2.6:
//! `IDT[0x06]` and `IDT[0x07]` are vector 3, the first with the lower half of the offset, the second with its upper half in
//! place of a descriptor (bx_debug/dbg_main.cc, `bx_dbg_info_idt_command`).

use std::collections::BTreeMap;

use tollgate_x86::{Gate, GateKind, Width};

use crate::joined::{Defect, DefectOf, Joined, Weight};
use crate::{printed::PrintedGate, sourced::Sourced};

/// Fewer gates show no pattern.
const FEW: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Gate,
    /// Without a type, like the upper half of a gate and like an unused vector.
    Empty,
    Other,
}

impl Entry {
    fn from_bytes(bytes: &[u8]) -> Self {
        let Ok(bytes) = <[u8; 8]>::try_from(bytes) else { return Self::Other };
        let gate = Gate::decode(bytes);
        let kind = gate.gate_kind(Width::Legacy).map(|(kind, _)| kind);
        match kind {
            Some(GateKind::Interrupt | GateKind::Trap) if gate.p && !gate.selector.is_null() => Self::Gate,
            _ if bytes[4..] == [0; 4] => Self::Empty,
            _ => Self::Other,
        }
    }

    fn printed(gate: &PrintedGate) -> Self {
        match gate.raw {
            Some(raw) => Self::from_bytes(&raw),
            None if gate.offset.is_some() => Self::Gate,
            None => Self::Other,
        }
    }
}

impl Joined {
    /// Notes which form the IDT's entries imply: if every second 8 bytes are empty, a gate takes 16.
    pub(crate) fn note_gates(&mut self) {
        let known = self.idt(Width::Legacy);
        let in_memory = known.iter().filter_map(|entry| {
            Some((
                u16::from(entry.vector),
                Entry::from_bytes(&entry.bytes.value),
                *entry.bytes.lines.first()?,
            ))
        });
        let printed = self
            .gate_slots
            .iter()
            .filter_map(|(slot, row)| Some((*slot, Entry::printed(&row.value), *row.lines.first()?)));
        let entries: Vec<(u16, Entry, usize)> = in_memory.chain(printed).collect();
        let count = |odd: u16, kind: Entry| {
            entries.iter().filter(|(slot, entry, _)| slot % 2 == odd && *entry == kind).count()
        };
        let Some((_, _, line)) = entries.iter().find(|(_, entry, _)| *entry == Entry::Gate) else { return };
        if count(0, Entry::Gate) >= FEW && count(1, Entry::Gate) == 0 && count(1, Entry::Empty) >= FEW {
            let why = "every second 8 bytes of the IDT are the upper half of a gate";
            self.width.note(Some(*line), (Width::Long, Weight::Hint, why));
        } else if count(0, Entry::Gate) >= FEW && count(1, Entry::Gate) >= FEW {
            self.width
                .note(Some(*line), (Width::Legacy, Weight::Hint, "the gates of the IDT take 8 bytes each"));
        }
    }

    /// Keeps a row of a list of 8-byte entries. Returns whether it can also be a vector.
    pub(crate) fn take_slot(&mut self, gate: &PrintedGate, line: usize) -> bool {
        let Some(slot) = gate.slot else { return true };
        self.gate_slots.insert(slot, Sourced::at(gate.clone(), line));
        slot < 256
    }

    pub(crate) fn join_halves(&mut self) {
        let slots = std::mem::take(&mut self.gate_slots);
        let is_half = |(slot, row): (&u16, &Sourced<PrintedGate>)| match row.value.raw {
            Some(raw) => slot % 2 == 0 || raw[4..] == [0; 4],
            None => slot % 2 == 0,
        };
        if self.width.width != Some(Width::Long) || slots.is_empty() || !slots.iter().all(is_half) {
            return;
        }
        // The number of a row is not a vector here.
        self.printed_gates.retain(|_, gates| {
            gates.retain(|gate| gate.value.slot.is_none());
            !gates.is_empty()
        });
        let mut gates: BTreeMap<u8, Vec<Sourced<PrintedGate>>> = BTreeMap::new();
        let mut first = Vec::new();
        for (slot, low) in slots.iter().filter(|(slot, row)| *slot % 2 == 0 && row.value.offset.is_some()) {
            let Some(upper) = slots.get(&(slot + 1)) else {
                self.defects.push(Defect { lines: low.lines.clone(), of: DefectOf::BochsHalfGate });
                continue;
            };
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
