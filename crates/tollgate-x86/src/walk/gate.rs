use crate::{Gate, GateKind, Selector, WideGate, Width};

use super::Size;
use super::Walked;
use super::machine::Machine;
use super::number::Number;
use super::reading::{FoundDescriptor, access, address_bytes};
use super::registers::{Hidden, Segment, SegmentRegister};
use super::stack::Stack;
use super::step::{Origin, Step};
use super::task_stack::{legacy_stack, long_pointer};

#[derive(Clone, Copy)]
pub(super) struct Door {
    pub(super) kind: GateKind,
    pub(super) slot: Size,
    pub(super) selector: Selector,
    pub(super) offset: u64,
    pub(super) dpl: u8,
    pub(super) present: bool,
    /// Number in the interrupt stack table, or 0.
    pub(super) ist: u8,
    pub(super) parameters: u8,
}

impl Door {
    pub(super) fn read(
        machine: &mut impl Machine,
        kind: GateKind,
        is_16_bit: bool,
        low: u64,
        high: u64,
    ) -> Self {
        let width = machine.width();
        let gate = Gate::decode(low.to_le_bytes());
        let wide = WideGate::decode((u128::from(low) | u128::from(high) << 64).to_le_bytes());
        let (slot, offset) = match (width, is_16_bit) {
            (Width::Long, _) => (Size::Quad, wide.offset()),
            (Width::Legacy, false) => (Size::Double, u64::from(gate.offset)),
            (Width::Legacy, true) => (Size::Word, u64::from(gate.offset & 0xffff)),
        };
        let (ist, parameters) = match (width, kind) {
            (Width::Legacy, GateKind::Call) => (0, gate.parameters()),
            (Width::Long, kind) if kind != GateKind::Call => (wide.ist(), 0),
            _ => (0, 0),
        };
        let Gate { selector, dpl, p: present, .. } = gate;
        let number = Number::new(Some(offset), address_bytes(width));
        machine.step(&Step::Gate {
            kind,
            slot,
            present,
            dpl,
            selector,
            offset: number,
            stack: ist,
            parameters,
        });
        Self { kind, slot, selector, offset, dpl, present, ist, parameters }
    }
}

#[derive(Clone, Copy)]
pub(super) enum NewStack {
    /// A null selector with the new level as its RPL.
    Null(Selector),
    /// A segment with a descriptor.
    Found(FoundDescriptor),
}

impl NewStack {
    /// Finds the stack of a more privileged level or of the interrupt stack table. In long mode it has no segment.
    pub(super) fn find(
        machine: &mut impl Machine,
        ring: u8,
        ist: u8,
        external: u32,
    ) -> Walked<(Stack, Self)> {
        if machine.width() == Width::Long {
            let pointer = long_pointer(machine, ring, ist, external)?;
            return Ok((Stack::flat(pointer, ring), Self::Null(Selector(0).with_rpl(ring))));
        }
        let (found, pointer) = legacy_stack(machine, ring, external)?;
        let hidden = Hidden { base: u64::from(found.descriptor.base), descriptor: found.descriptor };
        Ok((Stack::segmented(hidden, pointer, ring), Self::Found(found)))
    }

    pub(super) fn code(&self) -> u32 {
        match self {
            Self::Null(_) => 0,
            Self::Found(found) => u32::from(found.selector.0 & !0b11),
        }
    }

    /// Returns its segment. Setting the accessed bit writes to memory, which may fault.
    pub(super) fn segment(&self, machine: &mut impl Machine) -> Walked<Segment> {
        Ok(match self {
            Self::Null(selector) => Segment::null(*selector),
            Self::Found(found) => Segment::new(found.selector, access(machine, found)?),
        })
    }

    pub(super) fn load(&self, machine: &mut impl Machine, segment: Segment) {
        machine.set_segment(SegmentRegister::Ss, segment);
        let selector = segment.selector.unwrap_or_default();
        machine.step(&match self {
            Self::Null(_) => Step::NullStack { selector },
            Self::Found(_) => {
                Step::LoadSegment { register: SegmentRegister::Ss, selector, origin: Origin::TaskState }
            }
        });
    }
}
