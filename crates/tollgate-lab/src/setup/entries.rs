use tollgate_x86::{Descriptor, DescriptorKind, Selector, Tss64, WideGate};

use super::places::{Places, Region, word};
use super::{By, Item, Step};
use crate::Effect;

/// Writes to one table, with no other write in between.
pub(super) struct Group {
    place: Region,
    kind: How,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// REP STOS, of zeros.
    Clears,
    /// REP MOVS.
    Copies,
    Stores,
}

impl How {
    fn of(step: &Step) -> Self {
        match step {
            step if step.is_repeated("stos") => Self::Clears,
            step if step.is_repeated("movs") => Self::Copies,
            _ => Self::Stores,
        }
    }
}

struct Entry {
    address: u64,
    by: By,
    /// The last instruction that wrote to it.
    last: u64,
    instructions: u64,
    /// The end of the last byte that was written.
    end: u64,
}

impl Group {
    pub(super) fn new(place: Region, step: &Step) -> Self {
        Self { place, kind: How::of(step), entries: Vec::new() }
    }

    /// Returns whether a write continues the group. One that returns to an earlier entry does not.
    pub(super) fn takes(&self, place: Region, address: u64, step: &Step) -> bool {
        let address = begin(place, address);
        let known = self.entries.iter().rposition(|entry| entry.address == address);
        let is_left = known.is_some_and(|at| at + 1 < self.entries.len());
        place == self.place && How::of(step) == self.kind && !is_left
    }

    pub(super) fn add(&mut self, address: u64, effect: &Effect, step: &Step) {
        let Effect::Memory { bytes, .. } = *effect else { return };
        let (begin, end) = (begin(self.place, address), address + u64::from(bytes));
        match self.entries.last_mut() {
            Some(entry) if entry.address == begin => {
                entry.instructions += u64::from(entry.last != step.by.number);
                entry.last = step.by.number;
                entry.end = entry.end.max(end);
            }
            _ => self.entries.push(Entry {
                address: begin,
                by: step.by.clone(),
                last: step.by.number,
                instructions: 1,
                end,
            }),
        }
    }

    pub(super) fn items(self, places: &Places, memory: &[u8]) -> Vec<(Item, By, u64)> {
        let whole = match (self.place, self.kind) {
            (place, How::Clears) => self.whole(|address, bytes| Item::Cleared { place, address, bytes }),
            (Region::Program, _) => self.whole(|address, bytes| Item::Program { address, bytes }),
            _ => None,
        };
        if let Some(whole) = whole {
            return vec![whole];
        }
        let mut items: Vec<(Item, By, u64)> = Vec::new();
        let mut covered = 0;
        for entry in self.entries {
            if entry.address < covered {
                continue;
            }
            let Some((item, size)) = item(self.place, entry.address, places, memory) else { continue };
            covered = if self.place == Region::Gdt { entry.address + size } else { 0 };
            // A repeated instruction counts once, however many times the interpreter meets it.
            let stores = if self.kind == How::Stores { entry.instructions } else { 1 };
            if let Some((before, by, instructions)) = items.last_mut()
                && joins(before, &item)
            {
                let is_the_same = self.kind != How::Stores && by.address == entry.by.address;
                *instructions += if is_the_same { 0 } else { stores };
            } else {
                items.push((item, entry.by, stores));
            }
        }
        items
    }

    fn whole(&self, item: impl Fn(u64, u64) -> Item) -> Option<(Item, By, u64)> {
        let first = self.entries.first()?;
        let end = self.entries.iter().map(|entry| entry.end).max()?;
        Some((item(first.address, end - first.address), first.by.clone(), 1))
    }
}

/// Returns the beginning of the table entry at an address. TSS fields have several sizes: the written address identifies them.
fn begin(place: Region, address: u64) -> u64 {
    match place {
        Region::Idt => address & !15,
        Region::Pages | Region::Gdt | Region::Kernel => address & !7,
        Region::Task | Region::Program => address,
    }
}

fn item(place: Region, address: u64, places: &Places, memory: &[u8]) -> Option<(Item, u64)> {
    let bytes = |count: usize| memory.get(address as usize..)?.get(..count);
    Some(match place {
        Region::Pages => {
            let table = address & !0xfff;
            let (level, first) = (*places.tables.get(&table)?, (address % 4096 / 8) as u16);
            let value = word(memory, address);
            (Item::Pages { level, table, first, count: 1, value, step: 0 }, 8)
        }
        Region::Gdt => {
            let selector = Selector((address - places.gdt.start) as u16);
            let low = Descriptor::decode(*bytes(8)?.first_chunk()?);
            if low == Descriptor::default() && selector.0 != 0 {
                return Some((Item::Cleared { place, address, bytes: 8 }, 8));
            }
            let is_wide = matches!(low.kind(), DescriptorKind::System(_)) && selector.0 != 0;
            let size = if is_wide { 16 } else { 8 };
            (Item::Descriptor { selector, bytes: bytes(size)?.to_vec() }, size as u64)
        }
        Region::Task => {
            let offset = (address - places.task.start) as usize;
            let field = *Tss64::FIELDS.iter().find(|field| field.offset == offset)?;
            let value = field.read(memory.get(places.task.start as usize..)?)?;
            (Item::Task { field, value }, field.size as u64)
        }
        Region::Idt => {
            let first = u8::try_from((address - places.idt.start) / 16).ok()?;
            let gate = WideGate::decode(*bytes(16)?.first_chunk()?);
            (Item::Gates { first, count: 1, gate, step: 0 }, 16)
        }
        Region::Kernel => {
            let value = word(memory, address);
            (Item::Kernel { offset: address - places.kernel.start, value }, 8)
        }
        Region::Program => return None,
    })
}

/// Extends an item if the next one follows it: adjacent page-table entries and gates that differ only in their target,
/// and empty ones. Returns whether it did.
fn joins(before: &mut Item, next: &Item) -> bool {
    match (before, next) {
        (
            Item::Pages { table, first, count, value, step, .. },
            Item::Pages { table: other, first: index, value: new, .. },
        ) if table == other && *first + *count == *index => {
            let between = new.wrapping_sub(value.wrapping_add(*step * u64::from(*count - 1)));
            goes_on(count, step, between, (*value ^ new) & 0xfff == 0)
        }
        (Item::Gates { first, count, gate, step }, Item::Gates { first: vector, gate: new, .. })
            if u16::from(*first) + *count == u16::from(*vector) =>
        {
            let last = gate.offset().wrapping_add(*step * u64::from(*count - 1));
            let rest = |gate: &WideGate| {
                let low = gate.low;
                (low.selector, low.kind, low.dpl, low.p, gate.ist())
            };
            goes_on(count, step, new.offset().wrapping_sub(last), rest(gate) == rest(new))
        }
        (
            Item::Cleared { place, address, bytes },
            Item::Cleared { place: other, address: next, bytes: more },
        ) if place == other && *address + *bytes == *next => {
            *bytes += more;
            true
        }
        _ => false,
    }
}

/// Counts one more entry if its distance `between` from the last one equals the step of the earlier entries.
fn goes_on(count: &mut u16, step: &mut u64, between: u64, alike: bool) -> bool {
    let joins = alike && (*count == 1 || *step == between);
    if joins {
        *step = between;
        *count += 1;
    }
    joins
}
