use std::collections::BTreeMap;

use tollgate_x86::walk::{
    Bounds, By, Hidden, Machine, Miss, Mode, Register, Segment, SegmentRegister, Step, TableRegister,
};
use tollgate_x86::{Descriptor, Selector, Table, Vendor, Width};

use crate::{Joined, Segmentation};

/// A state that a crossing changes, and the steps that it took.
pub(crate) struct WalkState<'a> {
    text: &'a Joined,
    width: Width,
    /// Mode in which the walk begins. CS in the text may be from another moment.
    mode: Mode,
    cpl: u8,
    vendor: Vendor,
    registers: Vec<(Register, Option<u64>)>,
    segments: Vec<(SegmentRegister, Segment)>,
    /// Bytes that the walk has written; `None` if the value is unknown.
    written: BTreeMap<u64, Option<u8>>,
    task: Vec<(u16, u64, usize)>,
    steps: Vec<String>,
}

impl<'a> WalkState<'a> {
    pub(crate) fn new(text: &'a Joined, width: Width, mode: Mode, vendor: Vendor, cpl: u8) -> Self {
        let fields = match width {
            Width::Legacy => tollgate_x86::Tss32::FIELDS,
            Width::Long => tollgate_x86::Tss64::FIELDS,
        };
        let task = text.task(width).fields.into_iter().filter_map(|(name, value)| {
            let field = fields.iter().find(|field| field.name == name)?;
            Some((u16::try_from(field.offset).ok()?, value.value, field.size))
        });
        Self {
            text,
            width,
            mode,
            cpl,
            vendor,
            registers: Vec::new(),
            segments: Vec::new(),
            written: BTreeMap::new(),
            task: task.collect(),
            steps: Vec::new(),
        }
    }

    pub(crate) fn into_steps(self) -> Vec<String> {
        self.steps
    }

    /// Returns whether the registers in the text can be from the moment at which the walk begins, judging by CS.
    fn is_the_moment(&self) -> bool {
        // The level is 0 in real mode and 3 in virtual-8086 mode, regardless of CS.
        match self.text.segmentation() {
            Segmentation::Real => return true,
            Segmentation::Virtual8086 => return self.cpl == 3,
            Segmentation::Protected => {}
        }
        let cs = self.text.segments.get(&crate::SegmentRegister::Cs);
        cs.is_none_or(|cs| cs.selector.value.rpl() == self.cpl)
    }

    fn byte(&self, address: u64) -> Option<u8> {
        match self.written.get(&address) {
            Some(byte) => *byte,
            None => self.text.memory.byte(address),
        }
    }

    fn system_segment(&self, register: SegmentRegister) -> Segment {
        let kind = match register {
            SegmentRegister::Tr => 0xb,
            _ => 0x2,
        };
        let descriptor = |limit: Option<u64>| Descriptor {
            limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(0xf_ffff),
            kind,
            p: true,
            ..Descriptor::default()
        };
        match register {
            SegmentRegister::Tr => {
                let task = self.text.task(self.width);
                let limit = task.limit.map(|(limit, _)| limit.value);
                // Fields may be known without the address; the walk asks for them by offset.
                let base = task.base.map(|(base, _)| base.value).or((!self.task.is_empty()).then_some(0));
                Segment {
                    selector: task.selector.map(|selector| selector.value),
                    hidden: base.map(|base| Hidden { base, descriptor: descriptor(limit) }),
                }
            }
            _ => {
                let Some(ldtr) = self.text.segments.get(&crate::SegmentRegister::Ldtr) else {
                    return Segment::default();
                };
                let limit = ldtr.limit.as_ref().map(|limit| limit.value.into());
                let base = ldtr.base.as_ref().map(|(base, _)| base.value);
                Segment {
                    selector: Some(ldtr.selector.value),
                    hidden: base.map(|base| Hidden { base, descriptor: descriptor(limit) }),
                }
            }
        }
    }

    fn known_segment(&self, register: SegmentRegister) -> Segment {
        let name = match register {
            SegmentRegister::Cs => crate::SegmentRegister::Cs,
            SegmentRegister::Ss => crate::SegmentRegister::Ss,
            SegmentRegister::Ds => crate::SegmentRegister::Ds,
            SegmentRegister::Es => crate::SegmentRegister::Es,
            SegmentRegister::Fs => crate::SegmentRegister::Fs,
            SegmentRegister::Gs => crate::SegmentRegister::Gs,
            SegmentRegister::Tr | SegmentRegister::Ldtr => return self.system_segment(register),
        };
        let text = self.text.segments.get(&name).filter(|_| self.is_the_moment());
        let Some(text) = text else {
            return self.assumed(register);
        };
        let selector = text.selector.value;
        let hidden = text.rights.as_ref().map(|rights| {
            let limit = text.limit.as_ref().map_or(u32::MAX, |limit| limit.value);
            let base = text.base.as_ref().map_or(0, |(base, _)| base.value);
            Hidden { base, descriptor: rights.value.with_limit(limit) }
        });
        let hidden = hidden.or_else(|| self.assumed(register).hidden);
        Segment { selector: Some(selector), hidden }
    }

    /// Returns the segments of a program at this level in the walk's initial mode, with unknown selectors.
    fn assumed(&self, register: SegmentRegister) -> Segment {
        let descriptor = match register {
            SegmentRegister::Cs => Descriptor::flat_code(self.cpl, self.mode == Mode::Long64),
            SegmentRegister::Ss => Descriptor::flat_data(self.cpl),
            _ => return Segment::default(),
        };
        Segment { selector: None, hidden: Some(Hidden { base: 0, descriptor }) }
    }
}

impl Machine for WalkState<'_> {
    fn vendor(&self) -> Vendor {
        self.vendor
    }

    fn width(&self) -> Width {
        self.width
    }

    fn register(&self, register: Register) -> Option<u64> {
        if let Some((_, value)) = self.registers.iter().find(|(known, _)| *known == register) {
            return *value;
        }
        let of = |name: &str| {
            let value =
                crate::Register::by_name(name).and_then(|register| self.text.registers.get(&register));
            value.map(|value| value.value)
        };
        let at_this_moment = |name: &str| of(name).filter(|_| self.is_the_moment());
        match register {
            Register::Rip => at_this_moment("rip"),
            Register::Rsp => at_this_moment("rsp"),
            Register::Rflags => at_this_moment("rflags"),
            Register::Rcx => at_this_moment("rcx"),
            Register::Rdx => at_this_moment("rdx"),
            Register::R11 => at_this_moment("r11"),
            Register::Cr0 => of("cr0"),
            Register::Cr4 => of("cr4"),
            Register::Msr(msr) => self.text.msrs.get(&msr.number()).map(|value| value.value),
        }
    }

    fn set_register(&mut self, register: Register, value: Option<u64>) {
        self.registers.retain(|(known, _)| *known != register);
        self.registers.push((register, value));
    }

    fn segment(&self, register: SegmentRegister) -> Segment {
        let set = self.segments.iter().find(|(known, _)| *known == register);
        set.map_or_else(|| self.known_segment(register), |(_, segment)| *segment)
    }

    fn set_segment(&mut self, register: SegmentRegister, segment: Segment) {
        self.segments.retain(|(known, _)| *known != register);
        self.segments.push((register, segment));
        if register == SegmentRegister::Cs
            && let Some(selector) = segment.selector
        {
            self.cpl = selector.rpl();
        }
    }

    fn table(&self, register: TableRegister) -> Bounds {
        let table = match register {
            TableRegister::Gdtr => &self.text.gdtr,
            TableRegister::Idtr => &self.text.idtr,
        };
        Bounds {
            base: table.base.as_ref().map(|base| base.value),
            limit: table.limit.as_ref().map(|limit| limit.value),
        }
    }

    fn read(&mut self, address: u64, size: u8, _by: By) -> Result<u64, Miss> {
        let mut bytes = (0..u64::from(size)).rev().map(|at| self.byte(address.wrapping_add(at)));
        let value = bytes.try_fold(0, |value: u64, byte| Some(value << 8 | u64::from(byte?)));
        value.ok_or(Miss::Unknown)
    }

    fn write(&mut self, address: u64, size: u8, value: Option<u64>, _by: By) -> Result<(), Miss> {
        for at in 0..u64::from(size) {
            let byte = value.map(|value| (value >> (8 * at)) as u8);
            self.written.insert(address.wrapping_add(at), byte);
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) {
        self.steps.push(step.to_string());
    }

    fn cpl(&self) -> Option<u8> {
        Some(self.cpl)
    }

    fn mode(&self) -> Option<Mode> {
        match self.segments.iter().find(|(register, _)| *register == SegmentRegister::Cs) {
            None => Some(self.mode),
            Some((_, cs)) => match self.width {
                Width::Legacy => Some(Mode::Protected),
                Width::Long if cs.hidden?.descriptor.l => Some(Mode::Long64),
                Width::Long => Some(Mode::Compatibility),
            },
        }
    }

    /// From memory, or from a line in which a tool explains it.
    fn descriptor(&mut self, table: Table, offset: u16) -> Result<u64, Miss> {
        if let Some(base) = self.base_of(table) {
            let address = self.width.linear(base.wrapping_add(offset.into()));
            if let Ok(value) = self.read(address, 8, By::System) {
                return Ok(value);
            }
        }
        let text = match table {
            Table::Gdt => self.text.printed_descriptors.get(&Selector(offset).offset()),
            Table::Ldt => None,
        };
        let descriptor = text.and_then(|text| text.iter().find_map(|text| text.value.descriptor()));
        descriptor.map(|it| u64::from_le_bytes(it.encode())).ok_or(Miss::Unknown)
    }

    fn gate(&mut self, offset: u16) -> Result<u64, Miss> {
        if let Some(base) = self.table(TableRegister::Idtr).base {
            let address = self.width.linear(base.wrapping_add(offset.into()));
            if let Ok(value) = self.read(address, 8, By::System) {
                return Ok(value);
            }
        }
        let size: u16 = if self.width == Width::Long { 16 } else { 8 };
        let text = u8::try_from(offset / size).ok().and_then(|vector| self.text.printed_gates.get(&vector));
        let bytes = text.and_then(|text| text.iter().find_map(|text| Some(text.value.gate()?.encode())));
        let half = bytes.as_ref().and_then(|bytes| bytes.get(usize::from(offset % size)..)?.first_chunk());
        half.map(|half| u64::from_le_bytes(*half)).ok_or(Miss::Unknown)
    }

    /// From memory, or from a named field.
    fn task_state(&mut self, offset: u16, size: u8) -> Result<u64, Miss> {
        let base = self.text.task(self.width).base.map(|(base, _)| base.value);
        if let Some(base) = base {
            let address = self.width.linear(base.wrapping_add(offset.into()));
            if let Ok(value) = self.read(address, size, By::System) {
                return Ok(value);
            }
        }
        let field = self.task.iter().find(|(at, _, width)| *at == offset && *width == usize::from(size));
        field.map(|(_, value, _)| *value).ok_or(Miss::Unknown)
    }
}
