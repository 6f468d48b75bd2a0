//! A machine with an observer of each step.

use crate::{Table, Vendor, Width};

use super::machine::{Bounds, By, Machine, Miss, Mode, Register, Segment, SegmentRegister, TableRegister};
use super::{Crossing, Outcome, Step, walk};

/// Walks one crossing on `machine` and passes each step to `watch`, after the machine itself.
pub fn walk_watched<M, F>(machine: &mut M, crossing: Crossing, watch: F) -> Outcome
where
    M: Machine + ?Sized,
    F: FnMut(&Step),
{
    walk(&mut Watched { machine, watch }, crossing)
}

struct Watched<'m, M: ?Sized, F> {
    machine: &'m mut M,
    watch: F,
}

impl<M: Machine + ?Sized, F: FnMut(&Step)> Machine for Watched<'_, M, F> {
    fn vendor(&self) -> Vendor {
        self.machine.vendor()
    }

    fn width(&self) -> Width {
        self.machine.width()
    }

    fn register(&self, register: Register) -> Option<u64> {
        self.machine.register(register)
    }

    fn set_register(&mut self, register: Register, value: Option<u64>) {
        self.machine.set_register(register, value);
    }

    fn segment(&self, register: SegmentRegister) -> Segment {
        self.machine.segment(register)
    }

    fn set_segment(&mut self, register: SegmentRegister, segment: Segment) {
        self.machine.set_segment(register, segment);
    }

    fn table(&self, register: TableRegister) -> Bounds {
        self.machine.table(register)
    }

    fn read(&mut self, address: u64, size: u8, by: By) -> Result<u64, Miss> {
        self.machine.read(address, size, by)
    }

    fn write(&mut self, address: u64, size: u8, value: Option<u64>, by: By) -> Result<(), Miss> {
        self.machine.write(address, size, value, by)
    }

    fn step(&mut self, step: &Step) {
        self.machine.step(step);
        (self.watch)(step);
    }

    fn cpl(&self) -> Option<u8> {
        self.machine.cpl()
    }

    fn mode(&self) -> Option<Mode> {
        self.machine.mode()
    }

    fn descriptor(&mut self, table: Table, offset: u16) -> Result<u64, Miss> {
        self.machine.descriptor(table, offset)
    }

    fn set_access(&mut self, table: Table, offset: u16, access: u8) -> Result<(), Miss> {
        self.machine.set_access(table, offset, access)
    }

    fn gate(&mut self, offset: u16) -> Result<u64, Miss> {
        self.machine.gate(offset)
    }

    fn task_state(&mut self, offset: u16, size: u8) -> Result<u64, Miss> {
        self.machine.task_state(offset, size)
    }

    fn base_of(&self, table: Table) -> Option<u64> {
        self.machine.base_of(table)
    }
}
