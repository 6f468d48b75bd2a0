use tollgate_x86::{
    Descriptor, DescriptorKind, Gate, Msr, Selector, SystemKind, Tss32, Tss64, WideDescriptor, WideGate,
    Width,
};

use super::given;
use super::item::{Item, Position};
use crate::{Joined, PrintedDescriptor, PrintedGate, Segmentation};

pub(crate) fn widths(state: &Joined) -> Vec<Width> {
    match state.width.width {
        Some(width) => vec![width],
        // If no part depends on the width, one is enough.
        None if [Width::Legacy, Width::Long]
            .iter()
            .all(|&width| entries(state, width).is_empty() && loose(state, width).is_empty()) =>
        {
            vec![Width::Legacy]
        }
        None => vec![Width::Legacy, Width::Long],
    }
}

pub(crate) fn items(state: &Joined, width: Width) -> Vec<Item> {
    let mut items = entries(state, width);
    let msrs = state
        .msrs
        .iter()
        .filter_map(|(number, value)| Some(Item::Msr(Msr::by_number(*number)?, value.value)));
    items.extend(msrs);
    items
}

fn entries(state: &Joined, width: Width) -> Vec<Item> {
    let gdt = state.gdt(width);
    let mut items: Vec<Item> = gdt
        .iter()
        .filter(|entry| !is_upper_half(state, entry.selector, width))
        .filter_map(|entry| Item::entry(Some(Selector(entry.selector)), &entry.bytes.value, width))
        .collect();
    let text = state.printed_descriptors.keys().filter(|selector| {
        gdt.iter().all(|entry| !covers(entry.selector, entry.bytes.value.len(), **selector))
    });
    items.extend(text.filter_map(|selector| explained(state, *selector, width)));
    items.sort_by_key(|item| item.selector().map(|selector| selector.0));
    items.extend(state.vectors().into_iter().map(|(at, segment, offset)| Item::Vector(at, segment, offset)));
    let idt = state.idt(width);
    items.extend(idt.iter().filter_map(|entry| gate(entry.vector, &entry.bytes.value, width)));
    // Gates that are not in memory but that a tool explained.
    let is_in_memory = |vector: u8| idt.iter().any(|entry| entry.vector == vector);
    let printed = state.printed_gates.iter().filter(|(vector, _)| !is_in_memory(**vector));
    items.extend(printed.filter_map(|(vector, rows)| {
        let whole = rows.iter().find_map(|row| row.value.gate())?;
        gate(*vector, &whole.encode(), width)
    }));
    items.extend(task(state, width).or_else(|| fields(state, width)));
    items.extend(other_tasks(state, width).into_iter().map(|(_, item)| item));
    items
}

/// Returns what a tool printed about gates beyond [`items`]: handlers of unknown gates, symbols, stacks, and entries that
/// are not gates.
pub(crate) fn handlers(state: &Joined, width: Width) -> Vec<&PrintedGate> {
    let in_memory: Vec<u8> = state.idt(width).iter().map(|entry| entry.vector).collect();
    let rows = state.printed_gates.values().flatten().map(|row| &row.value);
    rows.filter(|gate| {
        let is_item = gate.gate().is_some() || in_memory.contains(&gate.vector);
        !is_item || gate.symbol.is_some() || gate.stack.is_some()
    })
    .collect()
}

fn fields(state: &Joined, width: Width) -> Option<Item> {
    let known = state.task(width).fields.into_iter().map(|(name, value)| (name, value.value));
    let known: Vec<(&'static str, u64)> = known.collect();
    (!known.is_empty()).then_some(Item::Fields(width, known))
}

/// Returns whether a tool took the upper half of the preceding system descriptor for an entry.
fn is_upper_half(state: &Joined, selector: u16, width: Width) -> bool {
    let row = |selector: u16| state.printed_descriptors.get(&selector)?.last().map(|row| &row.value);
    let is_wide = |printed: &PrintedDescriptor| matches!(printed.bits(0x1f), Some(2 | 9 | 0xb | 0xc));
    let is_rest =
        |printed: &PrintedDescriptor| printed.raw.is_some() || printed.kind.starts_with("<Reserved>");
    width == Width::Long
        && row(selector).is_some_and(is_rest)
        && selector.checked_sub(8).and_then(row).is_some_and(is_wide)
}

/// Returns the TSSs of descriptors, except the one of the task register, with their addresses.
fn other_tasks(state: &Joined, width: Width) -> Vec<(u64, Item)> {
    let own = state.task(width).base.map(|(base, _)| base.value);
    let gdt = state.gdt(width).into_iter().map(|entry| entry.selector);
    let selectors = gdt.chain(state.printed_descriptors.keys().copied());
    let mut all: Vec<(u64, Item)> = Vec::new();
    for selector in selectors {
        let is_task =
            |it: Descriptor| matches!(it.kind(), DescriptorKind::System(SystemKind::Tss { .. })) && it.p;
        let descriptor = state.descriptor(Selector(selector), width).map(|known| known.value);
        let Some((base, limit)) = descriptor
            .filter(|it| is_task(*it))
            .and_then(|_| state.system_segment(Selector(selector), width))
        else {
            continue;
        };
        if Some(base) != own && all.iter().all(|(known, _)| *known != base) {
            all.extend(task_at(state, base, Some(limit), width).map(|item| (base, item)));
        }
    }
    all
}

fn explained(state: &Joined, selector: u16, width: Width) -> Option<Item> {
    let text = |selector: u16| {
        state.printed_descriptors.get(&selector)?.iter().find_map(|text| text.value.descriptor())
    };
    let is_wide = |descriptor: &Descriptor| {
        let is_kind = matches!(descriptor.kind(), DescriptorKind::System(kind) if kind.is_in(Width::Long));
        width == Width::Long && is_kind
    };
    if selector.checked_sub(8).and_then(text).is_some_and(|lower| is_wide(&lower)) {
        return None;
    }
    if is_upper_half(state, selector, width) {
        return None;
    }
    let Some(low) = text(selector) else { return in_part(state, selector, width) };
    if !is_wide(&low) {
        return Some(Item::Segment(Some(Selector(selector)), low));
    }
    let Some(upper) = selector.checked_add(8).and_then(text) else {
        return Some(Item::Half(Some(Selector(selector)), low));
    };
    let [a, b, c, d, e, f, g, h] = upper.encode();
    let base_high = u32::from_le_bytes([a, b, c, d]);
    let wide = WideDescriptor { low, base_high, reserved: u32::from_le_bytes([e, f, g, h]) };
    Some(Item::System(Some(Selector(selector)), wide))
}

/// Returns a partly printed descriptor. The base of a system segment is joined from two rows.
fn in_part(state: &Joined, selector: u16, width: Width) -> Option<Item> {
    let mut printed = state.printed_descriptors.get(&selector)?.last()?.value.clone();
    printed.selector = selector;
    if printed.bits(0x10) == Some(0)
        && let Some((base, _)) = state.segment_explained(Selector(selector), width)
    {
        printed.base = Some(base.value);
    }
    Some(Item::Explained(printed))
}

fn covers(first: u16, bytes: usize, selector: u16) -> bool {
    selector >= first && usize::from(selector - first) < bytes
}

fn gate(vector: u8, bytes: &[u8], width: Width) -> Option<Item> {
    Some(match width {
        Width::Legacy => Item::Gate32(Position::Vector(vector), Gate::decode(*bytes.first_chunk()?)),
        Width::Long => Item::Gate64(Position::Vector(vector), WideGate::decode(*bytes.first_chunk()?)),
    })
}

/// Returns the contiguous bytes of the TSS from its beginning; later fields are separate.
fn task(state: &Joined, width: Width) -> Option<Item> {
    let task = state.task(width);
    let base = task.base.as_ref()?.0.value;
    let limit = task.limit.as_ref().map(|(limit, _)| limit.value);
    task_at(state, base, limit, width)
}

fn task_at(state: &Joined, base: u64, limit: Option<u64>, width: Width) -> Option<Item> {
    let last = limit.unwrap_or(u64::MAX);
    let size = match width {
        Width::Legacy => Tss32::SIZE,
        Width::Long => Tss64::SIZE,
    };
    let within = (0..size as u64).take_while(|at| *at <= last);
    let bytes: Vec<u8> = within.map_while(|at| state.memory.byte(base.wrapping_add(at))).collect();
    (!bytes.is_empty()).then_some(match width {
        Width::Legacy => Item::Tss32(bytes, limit),
        Width::Long => Item::Tss64(bytes, limit),
    })
}

pub(crate) struct Loose {
    /// Linear address of the first byte, if known.
    pub address: Option<u64>,
    /// Whether they were written as eight-byte big-endian numbers, and are reversed here.
    pub as_numbers: bool,
    /// The entries; empty if the bytes cannot be a table.
    pub items: Vec<Item>,
    /// Number of bytes left at the end.
    pub left: usize,
}

pub(crate) fn loose(state: &Joined, width: Width) -> Vec<Loose> {
    let known = known_ranges(state, width);
    let is_known = |address: u64| {
        known.iter().any(|(base, last)| address.checked_sub(*base).is_some_and(|at| at <= *last))
    };
    let mut stretches: Vec<(Option<u64>, Vec<u8>)> = Vec::new();
    for (address, bytes, _) in state.memory.stretches().filter(|(address, ..)| !is_known(*address)) {
        match stretches.last_mut() {
            // Lines of one listing are one stretch.
            Some((Some(first), known)) if first.checked_add(known.len() as u64) == Some(address) => {
                known.extend_from_slice(bytes);
            }
            _ => stretches.push((Some(address), bytes.to_vec())),
        }
    }
    let mut all = Vec::new();
    for (address, bytes) in stretches {
        let (items, left) = given::of_table(&bytes, width);
        all.push(if given::is_table(&items) {
            Loose { address, as_numbers: false, items, left }
        } else {
            Loose { address, as_numbers: false, items: Vec::new(), left: bytes.len() }
        });
    }
    for text in &state.loose {
        let of = |bytes: &[u8], as_numbers| {
            let (items, left) = given::of_table(bytes, width);
            Loose { address: None, as_numbers, items, left }
        };
        all.push(of(&text.value, false));
        all.extend(given::as_numbers(&text.value).map(|turned| of(&turned, true)));
    }
    all
}

/// Returns the address ranges of IDT, GDT and TSS, or the largest possible ones.
fn known_ranges(state: &Joined, width: Width) -> Vec<(u64, u64)> {
    // A limit above 256 entries does not add vectors.
    let gates = match (state.segmentation(), width) {
        (Segmentation::Real, _) => 0x3ff,
        (_, Width::Legacy) => 0x7ff,
        (_, Width::Long) => 0xfff,
    };
    let task = state.task(width);
    let text = [
        (state.idtr.base.as_ref(), state.idtr.limit.as_ref().map_or(gates, |it| gates.min(it.value.into()))),
        (state.gdtr.base.as_ref(), state.gdtr.limit.as_ref().map_or(0xffff, |it| it.value.into())),
        (task.base.as_ref().map(|(base, _)| base), task.limit.as_ref().map_or(0x67, |(it, _)| it.value)),
    ];
    let others = other_tasks(state, width).into_iter().map(|(base, item)| (base, item.last_offset()));
    text.into_iter().filter_map(|(base, last)| Some((base?.value, last))).chain(others).collect()
}
