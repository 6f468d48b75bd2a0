//! Finds the tables by the addresses that the processor is given.

use std::collections::BTreeMap;
use std::ops::Range;

use tollgate_x86::Msr;
use tollgate_x86::walk::{SegmentRegister, TableRegister};

use super::Step;
use crate::Effect;

/// A table in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// Page tables.
    Pages,
    /// The global descriptor table.
    Gdt,
    /// The task-state segment.
    Task,
    /// The interrupt descriptor table.
    Idt,
    /// The structure that KERNEL_GS_BASE points to.
    Kernel,
    /// A page of the program of ring 3.
    Program,
}

/// Bits of page-table entries. SDM 3A, "4-level paging".
pub(crate) const PRESENT: u64 = 1;
pub(crate) const USER: u64 = 1 << 2;
pub(crate) const LARGE: u64 = 1 << 7;
pub(crate) const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const PAGE: u64 = 4096;
/// Words of 8 bytes that belong to a processor in the kernel: its stack and the caller's stack pointer.
const KERNEL_WORDS: u64 = 2;

pub(super) struct Places {
    pub(super) gdt: Range<u64>,
    pub(super) idt: Range<u64>,
    pub(super) task: Range<u64>,
    pub(super) kernel: Range<u64>,
    /// The level of each page table, by address; 4 for a root.
    pub(super) tables: BTreeMap<u64, u8>,
    programs: Vec<Range<u64>>,
}

impl Places {
    pub(super) fn new(steps: &[Step], before: &[u8]) -> Self {
        let mut places = Self {
            gdt: 0..0,
            idt: 0..0,
            task: 0..0,
            kernel: 0..0,
            tables: BTreeMap::new(),
            programs: Vec::new(),
        };
        let mut memory = before.to_vec();
        let mut root = None;
        for effect in steps.iter().flat_map(|step| &step.effects) {
            match *effect {
                Effect::Memory { address, bytes, value } => {
                    let begin = address as usize;
                    if let Some(place) = memory.get_mut(begin..begin + usize::from(bytes)) {
                        place.copy_from_slice(&value.to_le_bytes()[..usize::from(bytes)]);
                    }
                }
                Effect::Control { number: 3, value } => root = Some(value & ADDRESS),
                Effect::Msr { msr: Msr::KernelGsBase, value } => {
                    places.kernel = value..value + 8 * KERNEL_WORDS;
                }
                Effect::Table { register, base, limit } => {
                    let range = base..base + u64::from(limit) + 1;
                    match register {
                        TableRegister::Gdtr => places.gdt = range,
                        TableRegister::Idtr => places.idt = range,
                    }
                }
                Effect::Segment { register: SegmentRegister::Tr, hidden, .. } => {
                    let limit = u64::from(hidden.descriptor.effective_limit());
                    places.task = hidden.base..hidden.base + limit + 1;
                }
                _ => {}
            }
        }
        if let Some(root) = root {
            places.descend(&memory, root, 4, 0, true);
            places.other_roots(steps);
        }
        places
    }

    fn descend(&mut self, memory: &[u8], table: u64, level: u8, linear: u64, user: bool) {
        if self.tables.insert(table, level).is_some() {
            return;
        }
        for index in 0..PAGE / 8 {
            let entry = word(memory, table + 8 * index);
            let user = user && entry & USER != 0;
            let shift = 12 + 9 * u32::from(level - 1);
            let linear = linear + (index << shift);
            let is_page = level == 1 || entry & LARGE != 0;
            match entry & PRESENT != 0 {
                true if is_page && user => self.programs.push(linear..linear + (1 << shift)),
                true if !is_page => self.descend(memory, entry & ADDRESS, level - 1, linear, user),
                _ => {}
            }
        }
    }

    /// Adds further roots: tables whose entries lead to one that CR3 leads to.
    fn other_roots(&mut self, steps: &[Step]) {
        for effect in steps.iter().flat_map(|step| &step.effects) {
            let Effect::Memory { address, value, .. } = *effect else { continue };
            let level = self.tables.get(&(value & ADDRESS)).copied();
            if let Some(level) = level.filter(|_| value & PRESENT != 0 && address % PAGE == 0) {
                self.tables.entry(address & ADDRESS).or_insert(level + 1);
            }
        }
    }

    pub(super) fn of_address(&self, address: u64) -> Option<Region> {
        let ranges = [
            (Region::Gdt, &self.gdt),
            (Region::Task, &self.task),
            (Region::Idt, &self.idt),
            (Region::Kernel, &self.kernel),
        ];
        if let Some((place, _)) = ranges.into_iter().find(|(_, range)| range.contains(&address)) {
            return Some(place);
        }
        if self.tables.contains_key(&(address & ADDRESS)) {
            return Some(Region::Pages);
        }
        self.programs.iter().any(|range| range.contains(&address)).then_some(Region::Program)
    }
}

pub(super) fn word(memory: &[u8], address: u64) -> u64 {
    let bytes = usize::try_from(address).ok().and_then(|at| memory.get(at..)?.first_chunk::<8>());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
