//! A machine for tests, with memory at every address.

use std::collections::BTreeMap;
use std::string::{String, ToString};
use std::vec::Vec;

use crate::walk::{
    Bounds, By, Crossing, Fault, Hidden, Machine, Miss, Outcome, Register, Segment, SegmentRegister, Step,
    TableRegister, walk,
};
use crate::{Descriptor, Msr, Selector, Vendor, WideGate, Width};

pub(super) const GDT: u64 = 0x1000;
pub(super) const LDT: u64 = 0x1800;
pub(super) const IDT: u64 = 0x2000;
pub(super) const TSS: u64 = 0x4000;
pub(super) const KERNEL_STACK: u64 = 0x9000;
pub(super) const USER_STACK: u64 = 0x7008;
pub(super) const USER_RIP: u64 = 0x40_1000;

/// The selectors of the tests' GDT.
pub(super) const KERNEL_CODE: u16 = 0x08;
pub(super) const KERNEL_DATA: u16 = 0x10;
pub(super) const USER_CODE: u16 = 0x1b;
pub(super) const USER_DATA: u16 = 0x23;
pub(super) const TASK: u16 = 0x28;
pub(super) const CONFORMING: u16 = 0x38;
pub(super) const ABSENT_CODE: u16 = 0x40;
pub(super) const RING_1_CODE: u16 = 0x48;
pub(super) const USER_CODE_32: u16 = 0x53;
pub(super) const GATE: u16 = 0x58;
pub(super) const READ_ONLY: u16 = 0x68;
pub(super) const ABSENT_DATA: u16 = 0x70;
pub(super) const OTHER_TASK: u16 = 0x78;
pub(super) const RING_1_DATA: u16 = 0x80;
pub(super) const GDT_LIMIT: u32 = 0x8f;

#[derive(Clone)]
pub(super) struct Model {
    pub(super) vendor: Vendor,
    pub(super) width: Width,
    pub(super) registers: BTreeMap<Register, u64>,
    pub(super) segments: [Segment; 8],
    pub(super) gdt: Bounds,
    pub(super) idt: Bounds,
    pub(super) memory: BTreeMap<u64, u8>,
    /// Pages that are not present, by their first address.
    pub(super) missing: Vec<u64>,
    pub(super) steps: Vec<String>,
}

impl Model {
    /// Returns a user program about to enter the kernel, in 64-bit mode or in protected mode.
    pub(super) fn user(width: Width) -> Self {
        let mut model = Self {
            vendor: Vendor::Intel,
            width,
            registers: BTreeMap::new(),
            segments: [Segment::default(); 8],
            gdt: Bounds { base: Some(GDT), limit: Some(GDT_LIMIT) },
            idt: Bounds { base: Some(IDT), limit: Some(0xfff) },
            memory: BTreeMap::new(),
            missing: Vec::new(),
            steps: Vec::new(),
        };
        let long = width == Width::Long;
        for (selector, descriptor) in [
            (KERNEL_CODE, Descriptor::flat_code(0, long)),
            (KERNEL_DATA, Descriptor::flat_data(0)),
            (USER_CODE, Descriptor::flat_code(3, long)),
            (USER_DATA, Descriptor::flat_data(3)),
            (TASK, system(0xb, TSS as u32, 0x67)),
            (CONFORMING, Descriptor { kind: 0xf, ..Descriptor::flat_code(0, long) }),
            (ABSENT_CODE, Descriptor { p: false, ..Descriptor::flat_code(0, long) }),
            (RING_1_CODE, Descriptor::flat_code(1, long)),
            (USER_CODE_32, Descriptor::flat_code(3, false)),
            (READ_ONLY, Descriptor { kind: 0x1, ..Descriptor::flat_data(0) }),
            (ABSENT_DATA, Descriptor { p: false, ..Descriptor::flat_data(0) }),
            (OTHER_TASK, system(0x9, 0x5000, 0x67)),
            (RING_1_DATA, Descriptor::flat_data(1)),
        ] {
            model.set_descriptor(selector, descriptor);
        }
        model.put(TSS + 4, 4, KERNEL_STACK);
        if !long {
            model.put(TSS + 8, 2, u64::from(KERNEL_DATA));
            model.put(TSS + 12, 4, KERNEL_STACK - 0x800);
            model.put(TSS + 16, 2, u64::from(RING_1_DATA) | 1);
        } else {
            model.put(TSS + 12, 8, KERNEL_STACK - 0x800);
        }
        let tr = Hidden { base: TSS, descriptor: system(0xb, TSS as u32, 0x67) };
        model.set_segment(SegmentRegister::Tr, Segment { selector: Some(Selector(TASK)), hidden: Some(tr) });
        model.set_segment(SegmentRegister::Ldtr, Segment::null(Selector(0)));
        model.set_segment(
            SegmentRegister::Cs,
            Segment::new(Selector(USER_CODE), Descriptor::flat_code(3, long)),
        );
        for register in [SegmentRegister::Ss, SegmentRegister::Ds, SegmentRegister::Es] {
            model.set_segment(register, Segment::new(Selector(USER_DATA), Descriptor::flat_data(3)));
        }
        model.set_segment(SegmentRegister::Fs, Segment::null(Selector(0)));
        model.set_segment(SegmentRegister::Gs, Segment::null(Selector(0)));
        for (register, value) in [
            (Register::Rip, USER_RIP),
            (Register::Rsp, USER_STACK),
            (Register::Rflags, 0x202),
            (Register::Cr0, 0x8000_0011),
            (Register::Cr4, 0x20),
            (Register::Msr(Msr::Efer), if long { 0xd01 } else { 1 }),
        ] {
            model.set_register(register, Some(value));
        }
        model
    }

    /// Returns the machine in the kernel.
    pub(super) fn kernel(width: Width) -> Self {
        let mut model = Self::user(width);
        let code = Descriptor::flat_code(0, width == Width::Long);
        model.set_segment(SegmentRegister::Cs, Segment::new(Selector(KERNEL_CODE), code));
        model.set_segment(SegmentRegister::Ss, Segment::new(Selector(KERNEL_DATA), Descriptor::flat_data(0)));
        model.set_register(Register::Rsp, Some(KERNEL_STACK - 0x408));
        model
    }

    /// Returns a 32-bit program in long mode.
    pub(super) fn compatibility() -> Self {
        let mut model = Self::user(Width::Long);
        let code = Descriptor::flat_code(3, false);
        model.set_segment(SegmentRegister::Cs, Segment::new(Selector(USER_CODE_32), code));
        model
    }

    pub(super) fn put(&mut self, address: u64, size: u64, value: u64) {
        for at in 0..size {
            self.memory.insert(address.wrapping_add(at), (value >> (8 * at)) as u8);
        }
    }

    pub(super) fn get(&self, address: u64, size: u64) -> u64 {
        (0..size).rev().fold(0, |value, at| {
            value << 8 | u64::from(self.memory.get(&address.wrapping_add(at)).copied().unwrap_or(0))
        })
    }

    pub(super) fn set_descriptor(&mut self, selector: u16, descriptor: Descriptor) {
        let raw = u64::from_le_bytes(descriptor.encode());
        self.put(GDT + u64::from(selector & !7), 8, raw);
    }

    /// Puts a gate into the IDT, of 16 bytes in long mode.
    pub(super) fn set_gate(&mut self, vector: u64, gate: WideGate) {
        match self.width {
            Width::Legacy => self.put(IDT + vector * 8, 8, u64::from_le_bytes(gate.low.encode())),
            Width::Long => self.put_wide(IDT + vector * 16, gate),
        }
    }

    pub(super) fn put_wide(&mut self, address: u64, gate: WideGate) {
        let raw = u128::from_le_bytes(gate.encode());
        self.put(address, 8, raw as u64);
        self.put(address + 8, 8, (raw >> 64) as u64);
    }

    pub(super) fn value(&self, register: Register) -> u64 {
        self.register(register).unwrap()
    }

    pub(super) fn selector(&self, register: SegmentRegister) -> u16 {
        self.segment(register).selector.unwrap().0
    }

    /// Returns CS, RIP, SS, RSP and flags.
    pub(super) fn state(&self) -> (u16, u64, u16, u64, u64) {
        (
            self.selector(SegmentRegister::Cs),
            self.value(Register::Rip),
            self.selector(SegmentRegister::Ss),
            self.value(Register::Rsp),
            self.value(Register::Rflags),
        )
    }

    pub(super) fn walk(&mut self, crossing: Crossing) -> Outcome {
        walk(self, crossing)
    }

    /// Returns the exception and error code that a walk ends in, after checking that only memory below the stacks has
    /// changed.
    pub(super) fn fault(&mut self, crossing: Crossing) -> (&'static str, Option<u32>) {
        let before = self.clone();
        match self.walk(crossing) {
            Outcome::Fault(Fault { exception, code, level, crossed: false, .. }) => {
                assert_eq!(level, before.cpl());
                assert_eq!(self.registers, before.registers, "{:#?}", self.steps);
                assert_eq!(self.segments, before.segments, "{:#?}", self.steps);
                (exception.mnemonic().unwrap(), code)
            }
            outcome => panic!("{outcome:?}, not a fault: {:#?}", self.steps),
        }
    }

    pub(super) fn done(&mut self, crossing: Crossing) {
        let outcome = self.walk(crossing);
        assert_eq!(outcome, Outcome::Done, "{outcome} {:#?}", self.steps);
    }

    fn check_page(&self, address: u64, is_write: bool, by: By) -> Result<(), Miss> {
        if self.missing.contains(&(address & !0xfff)) {
            let user = if by == By::Ring(3) { 4 } else { 0 };
            return Err(Miss::PageFault { address, code: if is_write { 2 } else { 0 } | user });
        }
        Ok(())
    }
}

/// Makes a machine defective.
pub(super) type Spoil = fn(&mut Model);

pub(super) fn system(kind: u8, base: u32, limit: u32) -> Descriptor {
    Descriptor { base, limit, kind, p: true, ..Descriptor::default() }
}

impl Machine for Model {
    fn vendor(&self) -> Vendor {
        self.vendor
    }

    fn width(&self) -> Width {
        self.width
    }

    fn register(&self, register: Register) -> Option<u64> {
        self.registers.get(&register).copied()
    }

    fn set_register(&mut self, register: Register, value: Option<u64>) {
        match value {
            Some(value) => self.registers.insert(register, value),
            None => self.registers.remove(&register),
        };
    }

    fn segment(&self, register: SegmentRegister) -> Segment {
        self.segments[register as usize]
    }

    fn set_segment(&mut self, register: SegmentRegister, segment: Segment) {
        self.segments[register as usize] = segment;
    }

    fn table(&self, register: TableRegister) -> Bounds {
        match register {
            TableRegister::Gdtr => self.gdt,
            TableRegister::Idtr => self.idt,
        }
    }

    fn read(&mut self, address: u64, size: u8, by: By) -> Result<u64, Miss> {
        self.check_page(address, false, by)?;
        Ok(self.get(address, u64::from(size)))
    }

    fn write(&mut self, address: u64, size: u8, value: Option<u64>, by: By) -> Result<(), Miss> {
        self.check_page(address, true, by)?;
        self.put(address, u64::from(size), value.unwrap_or(0xdead_beef_dead_beef));
        Ok(())
    }

    fn step(&mut self, step: &Step) {
        self.steps.push(step.to_string());
    }
}

impl Model {
    pub(super) fn segment_is_usable(&self, register: SegmentRegister) -> bool {
        self.segment(register).hidden.unwrap().descriptor.p
    }

    pub(super) fn set_segment_of(
        &mut self,
        register: SegmentRegister,
        selector: u16,
        descriptor: Descriptor,
    ) {
        self.set_segment(register, Segment::new(Selector(selector), descriptor));
    }

    pub(super) fn set_value(&mut self, register: Register, value: u64) {
        self.set_register(register, Some(value));
    }

    pub(super) fn set_task_limit(&mut self, limit: u32) {
        let descriptor = system(0xb, TSS as u32, limit);
        let hidden = Some(Hidden { base: TSS, descriptor });
        self.segments[SegmentRegister::Tr as usize].hidden = hidden;
    }
}
