use crate::{Descriptor, Width};

use super::machine::{By, Machine};
use super::number::Number;
use super::outcome::Unknown;
use super::reading::{Refusal, expect, is_canonical, missed};
use super::registers::{Hidden, Mode, Register, SegmentRegister};
use super::rule::Rule;
use super::step::{Item, Origin, Step};
use super::{Size, Walked};

#[derive(Clone, Copy)]
pub(super) struct Stack {
    base: u64,
    pointer: u64,
    /// The significant bits of the pointer: 16, 32 or all.
    mask: u64,
    /// First and last valid offset; `None` in 64-bit mode, where addresses must be canonical instead.
    limits: Option<(u32, u32)>,
    by: By,
}

impl Stack {
    pub(super) const fn flat(pointer: u64, ring: u8) -> Self {
        Self { base: 0, pointer, mask: u64::MAX, limits: None, by: By::Ring(ring) }
    }

    /// Returns a stack in a segment, whose D/B bit decides the width of the pointer. SDM 3A, "Segment descriptors".
    pub(super) fn segmented(hidden: Hidden, pointer: u64, ring: u8) -> Self {
        let mask = pointer_mask(&hidden.descriptor);
        Self {
            base: hidden.base,
            pointer: pointer & mask,
            mask,
            limits: Some(hidden.descriptor.valid_offsets()),
            by: By::Ring(ring),
        }
    }

    /// Returns the current stack. An unknown segment counts as a flat 32-bit one.
    pub(super) fn current(machine: &mut impl Machine, ring: u8) -> Walked<Self> {
        let pointer = machine.register(Register::Rsp).ok_or(Unknown::Register(Register::Rsp))?;
        if machine.mode().ok_or(Unknown::Mode)? == Mode::Long64 {
            return Ok(Self::flat(pointer, ring));
        }
        let hidden = machine.segment(SegmentRegister::Ss).hidden;
        if hidden.is_none() {
            let missing = Unknown::Hidden(SegmentRegister::Ss);
            machine.step(&Step::Unchecked { whether: "the stack's segment has room", missing });
        }
        let flat = Hidden { base: 0, descriptor: Descriptor::flat_data(ring) };
        Ok(Self::segmented(hidden.unwrap_or(flat), pointer, ring))
    }

    fn at(&self, distance: u64) -> (u64, u64) {
        let offset = self.pointer.wrapping_add(distance) & self.mask;
        let address = self.base.wrapping_add(offset);
        (offset, if self.limits.is_some() { address & 0xffff_ffff } else { address })
    }

    const fn bytes(&self) -> u8 {
        if self.limits.is_some() { 4 } else { 8 }
    }

    fn allows(&self, machine: &impl Machine, distance: u64, size: u64) -> bool {
        let (offset, address) = self.at(distance);
        match self.limits {
            Some((first, last)) => offset >= u64::from(first) && offset + (size - 1) <= u64::from(last),
            None => is_canonical(machine, address) && is_canonical(machine, address.wrapping_add(size - 1)),
        }
    }

    pub(super) fn is_canonical(&self, machine: &mut impl Machine, otherwise: Refusal) -> Walked<()> {
        let canonical = is_canonical(machine, self.pointer);
        expect(machine, Rule::CanonicalStack(self.pointer()), canonical, otherwise)
    }

    /// Checks that `count` slots of `size` bytes below the pointer may be written.
    pub(super) fn has_room(
        &self,
        machine: &mut impl Machine,
        count: u16,
        size: Size,
        otherwise: Refusal,
    ) -> Walked<()> {
        let size = u64::from(size.bytes());
        let room =
            (1..=u64::from(count)).all(|slot| self.allows(machine, (slot * size).wrapping_neg(), size));
        let bytes = count.saturating_mul(size as u16);
        expect(machine, self.room_rule(bytes), room, otherwise)
    }

    /// Checks that `count` slots of `size` bytes, `skip` bytes above the pointer, may be read.
    pub(super) fn holds(
        &self,
        machine: &mut impl Machine,
        skip: u16,
        count: u16,
        size: Size,
        otherwise: Refusal,
    ) -> Walked<()> {
        let size = u64::from(size.bytes());
        let room =
            (0..u64::from(count)).all(|slot| self.allows(machine, u64::from(skip) + slot * size, size));
        let bytes = skip.saturating_add(count.saturating_mul(size as u16));
        expect(machine, self.room_rule(bytes), room, otherwise)
    }

    fn room_rule(&self, bytes: u16) -> Rule {
        let pointer = Number::new(Some(self.pointer), self.bytes());
        match self.limits {
            Some(_) => Rule::Room { bytes, pointer },
            None => Rule::CanonicalStack(pointer),
        }
    }

    pub(super) fn push(
        &mut self,
        machine: &mut impl Machine,
        item: Item,
        value: Option<u64>,
        size: Size,
    ) -> Walked<()> {
        let (offset, address) = self.at(u64::from(size.bytes()).wrapping_neg());
        let value = value.map(|value| size.cut(value));
        if let Err(miss) = machine.write(address, size.bytes(), value, self.by) {
            return Err(missed(machine, miss, Unknown::Stack { address, size: size.bytes() }));
        }
        machine.step(&Step::Push {
            item,
            value: Number::new(value, size.bytes()),
            at: Number::new(Some(address), self.bytes()),
        });
        self.pointer = offset;
        Ok(())
    }

    pub(super) fn save(&mut self, machine: &mut impl Machine, item: Item, size: Size) -> Walked<()> {
        let selector = |register| machine.segment(register).selector.map(|selector| u64::from(selector.0));
        let value = match item {
            Item::Cs => selector(SegmentRegister::Cs),
            Item::Ss => selector(SegmentRegister::Ss),
            Item::Rsp => machine.register(Register::Rsp),
            _ => machine.register(Register::Rip),
        };
        self.push(machine, item, value, size)
    }

    pub(super) fn peek(
        &self,
        machine: &mut impl Machine,
        item: Item,
        distance: u16,
        size: Size,
    ) -> Walked<u64> {
        let (_, address) = self.at(u64::from(distance));
        let value = machine
            .read(address, size.bytes(), self.by)
            .map_err(|miss| missed(machine, miss, Unknown::Stack { address, size: size.bytes() }))?;
        let value = size.cut(value);
        machine.step(&Step::Pop {
            item,
            value: Number::new(Some(value), size.bytes()),
            at: Number::new(Some(address), self.bytes()),
        });
        Ok(value)
    }

    /// Aligns the pointer to 16 bytes, as entries through the IDT do in long mode. SDM 3A, "64-bit mode stack frame".
    pub(super) fn align(&mut self, machine: &mut impl Machine) {
        let aligned = self.pointer & !0xf;
        if aligned != self.pointer {
            let (from, to) = (Number::new(Some(self.pointer), 8), Number::new(Some(aligned), 8));
            machine.step(&Step::Align { from, to });
            self.pointer = aligned;
        }
    }

    pub(super) fn release(&mut self, bytes: u64) {
        self.pointer = self.pointer.wrapping_add(bytes) & self.mask;
    }

    pub(super) const fn pointer(&self) -> Number {
        Number::new(Some(self.pointer), self.bytes())
    }

    /// Loads RSP with the pointer. A 16-bit stack keeps the upper bits.
    pub(super) fn store(&self, machine: &mut impl Machine, origin: Origin) {
        let value = if self.mask == 0xffff {
            machine.register(Register::Rsp).map(|old| old & 0xffff_0000 | self.pointer)
        } else {
            Some(self.pointer)
        };
        machine.set_register(Register::Rsp, value);
        machine.step(&Step::Load { item: Item::Rsp, value: Number::new(value, self.bytes()), origin });
    }
}

pub(super) const fn pointer_mask(descriptor: &Descriptor) -> u64 {
    if descriptor.d { 0xffff_ffff } else { 0xffff }
}

pub(super) fn code_bytes(machine: &impl Machine) -> u8 {
    match (machine.width(), machine.mode()) {
        (Width::Legacy, _) | (_, Some(Mode::Compatibility)) => 4,
        _ => 8,
    }
}
