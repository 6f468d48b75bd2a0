//! Data in memory: from an offset in a segment to a linear address, with the checks of the mode, then by paging. SDM 3A,
//! "Limit checking", "Type checking"; SDM 1, "Canonical addressing".

use tollgate_x86::walk::{Exception, Fault, SegmentRegister};
use tollgate_x86::{Cr0, DescriptorKind, Rflags, Selector};

use super::arithmetic::mask;
use super::decoded::{Address, Operand, What};
use super::effect::Effect;
use super::state::{Done, Processor, Trap};
use super::tlb::{Access, is_canonical};

const ALIGNMENT: Exception = Exception(17);

impl Processor {
    #[inline]
    pub(super) fn offset(&self, address: &Address) -> u64 {
        let mut sum = self
            .register(address.base)
            .wrapping_add(self.register(address.index) << address.scale)
            .wrapping_add(address.displacement);
        if address.relative {
            sum = sum.wrapping_add(self.start);
        }
        sum & mask(address.bytes)
    }

    /// Checks `bytes` bytes at an offset in a segment, and returns their linear address.
    #[inline]
    pub(super) fn linear(&self, segment: SegmentRegister, offset: u64, bytes: u8, write: bool) -> Done<u64> {
        let is_stack = segment == SegmentRegister::Ss;
        let exception = if is_stack { Exception::STACK } else { Exception::GENERAL_PROTECTION };
        let refused = || self.fault(exception, Some(0));
        let linear = if self.is_64_bit() {
            let linear = match segment {
                SegmentRegister::Fs | SegmentRegister::Gs => self.hidden(segment).base.wrapping_add(offset),
                _ => offset,
            };
            if !is_canonical(linear) || !is_canonical(linear.wrapping_add(u64::from(bytes) - 1)) {
                return Err(refused());
            }
            linear
        } else {
            let hidden = self.hidden(segment);
            let allowed = hidden.descriptor.p
                && match hidden.descriptor.kind() {
                    DescriptorKind::Data { writable, .. } => writable || !write,
                    DescriptorKind::Code { readable, .. } => readable && !write,
                    DescriptorKind::System(_) => false,
                };
            self.demand(allowed)?;
            let (first, last) = hidden.descriptor.valid_offsets();
            if offset < u64::from(first) || offset + (u64::from(bytes) - 1) > u64::from(last) {
                return Err(refused());
            }
            hidden.base.wrapping_add(offset) & 0xffff_ffff
        };
        if self.flags.has(Rflags::AC)
            && self.cpl == 3
            && self.cr0.has(Cr0::AM)
            && linear & (u64::from(bytes) - 1) != 0
        {
            return Err(self.fault(ALIGNMENT, Some(0)));
        }
        Ok(linear)
    }

    #[inline]
    pub(super) fn read_linear(&mut self, linear: u64, bytes: u8, access: Access) -> Result<u64, Fault> {
        self.counts.reads += 1;
        if (linear & 0xfff) + u64::from(bytes) <= 0x1000 {
            let physical = self.translate(linear, access)?;
            return Ok(self.memory.read(physical, bytes) & mask(bytes));
        }
        (0..u64::from(bytes)).try_fold(0, |value, at| {
            let physical = self.translate(self.width().linear(linear.wrapping_add(at)), access)?;
            Ok(value | (self.memory.read(physical, 1) & 0xff) << (8 * at))
        })
    }

    /// Writes 1, 2, 4 or 8 bytes at a linear address: all of them or none.
    #[inline]
    pub(super) fn write_linear(
        &mut self,
        linear: u64,
        bytes: u8,
        value: u64,
        access: Access,
    ) -> Result<(), Fault> {
        self.counts.writes += 1;
        if (linear & 0xfff) + u64::from(bytes) <= 0x1000 {
            let physical = self.translate(linear, access)?;
            self.note(|| Effect::Memory { address: physical, bytes, value: value & mask(bytes) });
            self.memory.write(physical, bytes, value);
            return Ok(());
        }
        let second = self.width().linear(linear.wrapping_add(u64::from(bytes) - 1)) & !0xfff;
        let first = self.translate(linear, access)?;
        let second = self.translate(second, access)?;
        let split = 0x1000 - (linear & 0xfff);
        for at in 0..u64::from(bytes) {
            let physical = if at < split { first + at } else { second + (at - split) };
            let byte = value >> (8 * at) & 0xff;
            self.note(|| Effect::Memory { address: physical, bytes: 1, value: byte });
            self.memory.write(physical, 1, byte);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn load(&mut self, segment: SegmentRegister, offset: u64, bytes: u8) -> Done<u64> {
        let linear = self.linear(segment, offset, bytes, false)?;
        self.read_linear(linear, bytes, self.data_access(false)).map_err(Trap::Fault)
    }

    #[inline]
    pub(super) fn store(&mut self, segment: SegmentRegister, offset: u64, bytes: u8, value: u64) -> Done {
        let linear = self.linear(segment, offset, bytes, true)?;
        self.write_linear(linear, bytes, value, self.data_access(true)).map_err(Trap::Fault)
    }

    #[inline]
    pub(super) fn get(&mut self, operand: &Operand) -> Done<u64> {
        match operand.what {
            What::Register(number, from_bit) => Ok(self.register(number) >> from_bit & mask(operand.bytes)),
            What::Memory(address) => self.load(address.segment, self.offset(&address), operand.bytes),
            What::Immediate(value) => Ok(value),
            What::Segment(register) => Ok(u64::from(self.selector(register).0)),
            What::Control(number) => self.control(number),
            // Debug registers are not modelled, and no program may use them.
            What::Foreign if self.cpl != 0 => Err(self.privileged()),
            What::Near(_) | What::Far(..) | What::Foreign | What::None => Err(self.unknown()),
        }
    }

    #[inline]
    pub(super) fn put(&mut self, operand: &Operand, value: u64) -> Done {
        match operand.what {
            What::Register(number, from_bit) => {
                self.set_register(number, from_bit, operand.bytes, value);
                Ok(())
            }
            What::Memory(address) => self.store(address.segment, self.offset(&address), operand.bytes, value),
            What::Segment(register) => self.load_data_segment(register, Selector(value as u16)),
            What::Control(number) => self.set_control(number, value),
            What::Foreign if self.cpl != 0 => Err(self.privileged()),
            _ => Err(self.unknown()),
        }
    }
}
