//! Finds entries of the GDT and IDT, and the TSS, in a state's memory. The caller chooses the width: if the text does not
//! show it, both readings are possible.

use tollgate_x86::{
    AccessRights, Cr0, Descriptor, DescriptorKind, Field, Rflags, Selector, SystemKind, Tss32, Tss64,
    WideDescriptor, Width,
};

use crate::joined::{GdtEntry, IdtEntry, Joined, Origin, Segmentation, Task};
use crate::piece::{Register, SegmentRegister};
use crate::sourced::Sourced;

/// Entries of a GDT: the index in a selector has 13 bits.
const GDT_ENTRIES: u64 = 8192;
const IDT_ENTRIES: u64 = 256;

impl Joined {
    /// Returns the meaning of segment registers, from CR0 and EFLAGS. Long mode has no virtual-8086 mode.
    pub fn segmentation(&self) -> Segmentation {
        let has = |register, bit| self.registers.get(&register).map(|value| value.value & bit != 0);
        match (has(Register::CR0, Cr0::PE.0), has(Register::RFLAGS, Rflags::VM.0)) {
            (Some(false), _) => Segmentation::Real,
            (_, Some(true)) if self.width.width != Some(Width::Long) => Segmentation::Virtual8086,
            _ => Segmentation::Protected,
        }
    }

    /// Returns the known vectors of real mode, each with the segment and offset of its handler, 4 bytes (SDM 3B, "8086
    /// emulation", "Interrupt and exception handling").
    pub fn vectors(&self) -> Vec<(u8, u16, u16)> {
        let base = self.idtr.base.as_ref().map_or(0, |base| base.value);
        if self.segmentation() != Segmentation::Real || self.memory.is_empty() {
            return Vec::new();
        }
        let within = |last: u64| self.idtr.limit.as_ref().is_none_or(|limit| last <= limit.value.into());
        let vectors =
            (0..=u8::MAX).filter(|vector| within(4 * u64::from(*vector) + 3)).filter_map(|vector| {
                let bytes = self.memory.read(base.checked_add(4 * u64::from(vector))?, 4)?.value;
                let [a, b, c, d] = *bytes.first_chunk()?;
                Some((vector, u16::from_le_bytes([c, d]), u16::from_le_bytes([a, b])))
            });
        vectors.collect()
    }

    /// Returns the address of the TSS or the LDT, from a tool that does not print its selector.
    pub fn base_of(&self, register: SegmentRegister) -> Option<&Sourced<u64>> {
        self.bases.get(&register)?.base.as_ref()
    }

    /// Returns the known entries of the GDT, by selector. An entry of 16 bytes is one entry.
    pub fn gdt(&self, width: Width) -> Vec<GdtEntry> {
        let Some(base) = &self.gdtr.base else { return Vec::new() };
        let mut entries: Vec<GdtEntry> = Vec::new();
        let mut upper_half = None;
        for index in self.indices(base.value, 8, GDT_ENTRIES) {
            if upper_half == Some(index) {
                continue;
            }
            let selector = index * 8;
            let within = |last: u64| {
                self.gdtr.limit.as_ref().is_none_or(|limit| selector + last <= limit.value.into())
            };
            let Some(address) = base.value.checked_add(selector).filter(|_| within(7)) else { break };
            let Some(mut bytes) = self.memory.read(address, 8) else { continue };
            if width == Width::Long && is_wide(&bytes.value) {
                upper_half = Some(index + 1);
                if let Some(both) = self.memory.read(address, 16).filter(|_| within(15)) {
                    bytes = both;
                }
            }
            entries.push(GdtEntry { selector: selector as u16, address, bytes });
        }
        entries
    }

    /// Returns the 8-byte descriptor of a selector in the GDT, from memory or as a tool explained it.
    pub fn descriptor(&self, selector: Selector, width: Width) -> Option<Sourced<Descriptor>> {
        let offset = selector.offset();
        let entries = self.gdt(width);
        if let Some(entry) = entries.iter().find(|entry| entry.selector == offset) {
            let value = Descriptor::decode(*entry.bytes.value.first_chunk()?);
            return Some(Sourced { value, lines: entry.bytes.lines.clone() });
        }
        let rows = self.printed_descriptors.get(&offset)?;
        rows.iter().find_map(|row| Some(Sourced { value: row.value.descriptor()?, lines: row.lines.clone() }))
    }

    /// Returns the known entries of the IDT, by vector, of 8 bytes, or 16 in long mode.
    pub fn idt(&self, width: Width) -> Vec<IdtEntry> {
        let Some(base) = self.idtr.base.as_ref().filter(|_| self.segmentation() != Segmentation::Real) else {
            return Vec::new();
        };
        let size: usize = if width == Width::Long { 16 } else { 8 };
        let mut entries = Vec::new();
        for vector in self.indices(base.value, size as u64, IDT_ENTRIES) {
            let (first, last) = (vector * size as u64, (vector + 1) * size as u64 - 1);
            let within = self.idtr.limit.as_ref().is_none_or(|limit| last <= limit.value.into());
            let Some(address) = base.value.checked_add(first).filter(|_| within) else { break };
            if let Some(bytes) = self.memory.read(address, size) {
                entries.push(IdtEntry { vector: vector as u8, address, bytes });
            }
        }
        entries
    }

    fn indices(&self, base: u64, size: u64, count: u64) -> impl Iterator<Item = u64> {
        let end = base.saturating_add(size * count - 1);
        let mut next = 0;
        self.memory.touching_lines(base, end).flat_map(move |(first, last)| {
            let begin = next.max(first.saturating_sub(base) / size);
            let behind = ((last - base) / size + 1).min(count);
            next = next.max(behind);
            begin..behind
        })
    }

    /// Returns the TSS: its selector, its address, and the known fields.
    pub fn task(&self, width: Width) -> Task {
        let tr =
            self.segments.get(&SegmentRegister::Tr).filter(|_| self.segmentation() != Segmentation::Real);
        let mut task =
            Task { selector: tr.map(|tr| tr.selector.clone()), base: None, limit: None, fields: Vec::new() };
        if let Some(tr) = tr {
            let whole = |bits: u32| bits == 64 || width == Width::Legacy;
            let base = tr.base.as_ref().filter(|(_, bits)| whole(*bits));
            task.base = base.map(|(base, _)| (base.clone(), Origin::Hidden));
            let limit = tr
                .limit
                .as_ref()
                .map(|limit| Sourced { value: limit.value.into(), lines: limit.lines.clone() });
            task.limit = limit.map(|limit| (limit, Origin::Hidden));
            for (segment, origin) in [
                (self.segment_in_memory(tr.selector.value, width), Origin::Bytes),
                (self.segment_explained(tr.selector.value, width), Origin::Explained),
            ] {
                let Some((base, limit)) = segment else { continue };
                task.base = task.base.or(Some((base, origin)));
                task.limit = task.limit.or(Some((limit, origin)));
            }
        }
        task.base = task.base.or_else(|| Some((self.base_of(SegmentRegister::Tr)?.clone(), Origin::Named)));
        task.fields = self.fields(&task, width);
        task
    }

    /// Returns base and limit of a system segment, from its descriptor in memory or as a tool explained it.
    pub fn system_segment(&self, selector: Selector, width: Width) -> Option<(u64, u64)> {
        let found =
            self.segment_in_memory(selector, width).or_else(|| self.segment_explained(selector, width));
        found.map(|(base, limit)| (base.value, limit.value))
    }

    pub(crate) fn segment_in_memory(
        &self,
        selector: Selector,
        width: Width,
    ) -> Option<(Sourced<u64>, Sourced<u64>)> {
        // A null selector has no descriptor.
        let base = self.gdtr.base.as_ref().filter(|_| !selector.is_null())?;
        let address = base.value.checked_add(selector.offset().into())?;
        let size = if width == Width::Long { 16 } else { 8 };
        let bytes = self.memory.read(address, size)?;
        let (base, low) = match *bytes.value.as_slice() {
            [a, b, c, d, e, f, g, h] => {
                let low = Descriptor::decode([a, b, c, d, e, f, g, h]);
                (low.base.into(), low)
            }
            _ => {
                let wide = WideDescriptor::decode(bytes.value.as_slice().try_into().ok()?);
                (wide.base(), wide.low)
            }
        };
        let limit = Sourced { value: low.effective_limit().into(), lines: bytes.lines.clone() };
        Some((Sourced { value: base, lines: bytes.lines }, limit))
    }

    /// Returns base and limit of a system segment, as a tool explained its descriptor. In long mode the upper half of the
    /// base is in the row that the tool took for the next descriptor.
    pub(crate) fn segment_explained(
        &self,
        selector: Selector,
        width: Width,
    ) -> Option<(Sourced<u64>, Sourced<u64>)> {
        let rows = self.printed_descriptors.get(&selector.offset()).filter(|_| !selector.is_null());
        let row = rows?.last()?;
        let (low, limit) = (row.value.base?, row.value.limit?);
        let limit = Sourced { value: limit, lines: row.lines.clone() };
        if width == Width::Legacy {
            return Some((Sourced { value: low, lines: row.lines.clone() }, limit));
        }
        // The upper half of a truncated base is 0, or copies of bit 31; a newer debugger or a script prints all of it.
        let is_cut = matches!(low >> 32, 0 | 0xffff_ffff);
        if !is_cut {
            return Some((Sourced { value: low, lines: row.lines.clone() }, limit));
        }
        let next = self.printed_descriptors.get(&selector.offset().checked_add(8)?)?.last()?;
        let high = match next.value.raw {
            Some([a, b, c, d, ..]) => u32::from_le_bytes([a, b, c, d]),
            None => upper_base(next.value.base?, next.value.limit?),
        };
        let lines = row.lines.iter().chain(&next.lines).copied().collect();
        Some((Sourced { value: u64::from(high) << 32 | low & 0xffff_ffff, lines }, limit))
    }

    fn fields(&self, task: &Task, width: Width) -> Vec<(&'static str, Sourced<u64>)> {
        let fields: &[Field] = if width == Width::Long { Tss64::FIELDS } else { Tss32::FIELDS };
        let limit = task.limit.as_ref().map_or(u64::MAX, |(limit, _)| limit.value);
        let in_memory = |field: &Field| {
            let address = task.base.as_ref()?.0.value.checked_add(field.offset as u64)?;
            let is_within = (field.offset + field.size - 1) as u64 <= limit;
            let bytes = self.memory.read(address, field.size).filter(|_| is_within)?;
            let value = bytes.value.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
            Some(Sourced { value, lines: bytes.lines })
        };
        let printed = |field: &Field| in_memory(field).or_else(|| self.printed_tss.get(field.name).cloned());
        fields.iter().filter_map(|field| Some((field.name, printed(field)?))).collect()
    }
}

/// Returns bits 63 to 32 of a base, from a tool's reading of the upper 8 bytes as a descriptor: the low 16 bits are in its
/// limit, the high ones in its base.
pub(crate) const fn upper_base(base: u64, limit: u64) -> u32 {
    (base as u32 & 0xffff) << 16 | limit as u32 & 0xffff
}

fn is_wide(bytes: &[u8]) -> bool {
    let Ok(bytes) = <[u8; 8]>::try_from(bytes) else { return false };
    match Descriptor::decode(bytes).kind() {
        DescriptorKind::System(kind) => kind.is_in(Width::Long) && kind != SystemKind::Reserved,
        _ => false,
    }
}

/// Returns type, S, DPL and P, and G, D, L and AVL above them, as `dg` shows them.
pub(crate) const fn flags(rights: AccessRights) -> u16 {
    (rights.0 >> 8 & 0xff | rights.0 >> 12 & 0xf00) as u16
}
