use iced_x86::{Code, Mnemonic as M};
use tollgate_x86::walk::{Crossing, Event, SegmentRegister, Size};
use tollgate_x86::{Rflags, Selector, Vendor};

use super::arithmetic::mask;
use super::decoded::{Decoded, Operand, RBP, RCX, RSP, What};
use super::state::{Done, Processor};
use super::tlb::is_canonical;

impl Processor {
    pub(super) fn execute_jump(&mut self, i: &Decoded) -> Done {
        let [first, _, _] = &i.operands;
        match i.mnemonic {
            M::Push => {
                let value = self.get(first)?;
                self.push(value, i.slot)
            }
            M::Pop => self.pop_to(first, i.slot),
            M::Pushf | M::Pushfd | M::Pushfq => {
                self.push(self.flags.0 & !Rflags::RF.with(Rflags::VM).0, i.slot)
            }
            M::Popf | M::Popfd | M::Popfq => self.pop_flags(i.slot),
            M::Leave => {
                let frame = self.register(RBP);
                let value = self.load(SegmentRegister::Ss, frame & self.stack_mask(), i.slot)?;
                self.set_stack_pointer(frame.wrapping_add(i.slot.into()));
                self.set_register(RBP, 0, i.slot, value);
                Ok(())
            }
            M::Jmp => match self.far_pointer(first, i.code)? {
                Some((selector, offset, size)) => self.cross(Crossing::FarJump { selector, offset, size }),
                None => self.jump_if(true, first),
            },
            M::Call => match self.far_pointer(first, i.code)? {
                Some((selector, offset, size)) => self.cross(Crossing::FarCall { selector, offset, size }),
                None => {
                    let (next, target) = (self.rip, self.target(first)?);
                    self.push(next, i.slot)?;
                    self.rip = target;
                    Ok(())
                }
            },
            M::Ret => {
                let pointer = self.register(RSP);
                let target = self.load(SegmentRegister::Ss, pointer & self.stack_mask(), i.slot)?;
                self.reach(target)?;
                let released = if let What::Immediate(bytes) = first.what { bytes } else { 0 };
                self.set_stack_pointer(pointer.wrapping_add(u64::from(i.slot) + (released & 0xffff)));
                self.rip = target;
                Ok(())
            }
            M::Jcxz | M::Jecxz | M::Jrcxz => self.jump_if(self.register(RCX) & mask(i.address) == 0, first),
            M::Loop | M::Loope | M::Loopne => {
                let count = self.register(RCX).wrapping_sub(1) & mask(i.address);
                let zero = self.flags.has(Rflags::ZF);
                let goes_on = match i.mnemonic {
                    M::Loope => zero,
                    M::Loopne => !zero,
                    _ => true,
                };
                self.jump_if(count != 0 && goes_on, first)?;
                self.set_register(RCX, 0, i.address, count);
                Ok(())
            }
            M::Int => match first.what {
                What::Immediate(vector) => self.cross(Crossing::Event(Event::Int(vector as u8))),
                _ => Err(self.unknown()),
            },
            M::Int3 => self.cross(Crossing::Event(Event::Int3)),
            M::Int1 => self.cross(Crossing::Event(Event::Int1)),
            M::Into if self.flags.has(Rflags::OF) => self.cross(Crossing::Event(Event::Into)),
            M::Into => Ok(()),
            M::Iret => self.cross(Crossing::InterruptReturn { size: Size::Word }),
            M::Iretd => self.cross(Crossing::InterruptReturn { size: Size::Double }),
            M::Iretq => self.cross(Crossing::InterruptReturn { size: Size::Quad }),
            M::Retf => {
                let size = match i.code {
                    Code::Retfq | Code::Retfq_imm16 => Size::Quad,
                    Code::Retfd | Code::Retfd_imm16 => Size::Double,
                    _ => Size::Word,
                };
                let release = if let What::Immediate(bytes) = first.what { bytes as u16 } else { 0 };
                self.cross(Crossing::FarReturn { size, release })
            }
            M::Syscall => self.cross(Crossing::Syscall),
            M::Sysret | M::Sysretq => self.cross(Crossing::Sysret { wide: i.code == Code::Sysretq }),
            M::Sysenter => self.cross(Crossing::Sysenter),
            M::Sysexit | M::Sysexitq => self.cross(Crossing::Sysexit { wide: i.code == Code::Sysexitq }),
            M::Swapgs => self.cross(Crossing::Swapgs),
            _ if i.code.is_jcc_short_or_near() => self.jump_if(self.flags.condition(i.condition), first),
            _ => self.execute_system(i),
        }
    }

    /// Returns the bits of the stack pointer that matter: SS's D/B bit decides outside 64-bit mode.
    fn stack_mask(&self) -> u64 {
        match (self.is_64_bit(), self.hidden(SegmentRegister::Ss).descriptor.d) {
            (true, _) => u64::MAX,
            (false, true) => 0xffff_ffff,
            (false, false) => 0xffff,
        }
    }

    fn set_stack_pointer(&mut self, value: u64) {
        let bytes = (self.stack_mask().count_ones() / 8) as u8;
        self.set_register(RSP, 0, bytes, value);
    }

    pub(super) fn push(&mut self, value: u64, slot: u8) -> Done {
        let pointer = self.register(RSP).wrapping_sub(slot.into());
        self.store(SegmentRegister::Ss, pointer & self.stack_mask(), slot, value)?;
        self.set_stack_pointer(pointer);
        Ok(())
    }

    /// POP. An address that uses RSP takes its value after the pop; a fault leaves everything unchanged.
    fn pop_to(&mut self, operand: &Operand, slot: u8) -> Done {
        let pointer = self.register(RSP);
        let value = self.load(SegmentRegister::Ss, pointer & self.stack_mask(), slot)?;
        self.set_stack_pointer(pointer.wrapping_add(slot.into()));
        let done = self.put(operand, value);
        if done.is_err() {
            self.set_register(RSP, 0, 8, pointer);
        }
        done
    }

    /// POPF. SDM 2B, POPF, table "Effect of POPF/POPFD on the EFLAGS register".
    fn pop_flags(&mut self, slot: u8) -> Done {
        let pointer = self.register(RSP);
        let value = self.load(SegmentRegister::Ss, pointer & self.stack_mask(), slot)?;
        let mut changes = Rflags(0xcd5).with(Rflags::TF).with(Rflags::NT);
        if slot > 2 {
            changes = changes.with(Rflags::AC).with(Rflags::ID);
        }
        if self.cpl == 0 {
            changes = changes.with_iopl(3);
        }
        if self.cpl <= self.io_level() {
            changes = changes.with(Rflags::IF);
        }
        let cleared = if slot > 2 { Rflags::RF.0 } else { 0 };
        self.flags.0 = self.flags.0 & !(changes.0 | cleared) | value & changes.0;
        self.set_stack_pointer(pointer.wrapping_add(slot.into()));
        Ok(())
    }

    /// Returns IOPL, the level up to which IN, OUT, CLI and STI are allowed.
    pub(super) fn io_level(&self) -> u8 {
        Rflags(self.flags.0).iopl()
    }

    fn target(&mut self, operand: &Operand) -> Done<u64> {
        let target = match operand.what {
            What::Near(distance) => self.start.wrapping_add(distance) & self.address_mask(),
            _ => self.get(operand)?,
        };
        self.reach(target)?;
        Ok(target)
    }

    fn jump_if(&mut self, holds: bool, operand: &Operand) -> Done {
        if holds {
            self.rip = self.target(operand)?;
        }
        Ok(())
    }

    /// Raises #GP if a target is not canonical, or beyond the code segment's limit.
    fn reach(&self, target: u64) -> Done {
        let reachable = if self.is_64_bit() {
            is_canonical(target)
        } else {
            target <= u64::from(self.hidden(SegmentRegister::Cs).descriptor.effective_limit())
        };
        self.demand(reachable)
    }

    /// Reads selector and offset of a far jump or call. AMD processors have no 64-bit offset (APM 3, JMP far).
    fn far_pointer(&mut self, operand: &Operand, code: Code) -> Done<Option<(Selector, u64, Size)>> {
        let size = match code {
            Code::Jmp_m1664 | Code::Call_m1664 if self.vendor == Vendor::Intel => Size::Quad,
            Code::Jmp_m1664 | Code::Call_m1664 | Code::Jmp_m1632 | Code::Call_m1632 => Size::Double,
            Code::Jmp_m1616 | Code::Call_m1616 | Code::Jmp_ptr1616 | Code::Call_ptr1616 => Size::Word,
            Code::Jmp_ptr1632 | Code::Call_ptr1632 => Size::Double,
            _ => return Ok(None),
        };
        match operand.what {
            What::Far(selector, offset) => Ok(Some((selector, offset.into(), size))),
            What::Memory(address) => {
                let at = self.offset(&address);
                let offset = self.load(address.segment, at, size.bytes())?;
                let behind = at.wrapping_add(size.bytes().into()) & mask(address.bytes);
                let selector = self.load(address.segment, behind, 2)?;
                Ok(Some((Selector(selector as u16), offset, size)))
            }
            _ => Err(self.unknown()),
        }
    }
}
