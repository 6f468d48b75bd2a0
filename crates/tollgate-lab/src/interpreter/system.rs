use iced_x86::Mnemonic as M;
use tollgate_x86::walk::{Exception, Segment, SegmentRegister, TableRegister};
use tollgate_x86::{Cr0, Cr4, Msr, Rflags, Selector};

use super::decoded::{Decoded, Operand, RAX, RBX, RCX, RDX, What};
use super::effect::Effect;
use super::ports::Written;
use super::state::{Done, End, Processor, TableBounds, Trap};
use super::tlb::{Access, is_canonical};

impl Processor {
    pub(super) fn execute_system(&mut self, i: &Decoded) -> Done {
        let [first, second, _] = &i.operands;
        match i.mnemonic {
            M::INVALID | M::Ud0 | M::Ud1 | M::Ud2 => Err(self.invalid_opcode()),
            M::Cli | M::Sti if self.cpl > self.io_level() => Err(self.privileged()),
            M::Cli => self.set_flag(Rflags::IF, false),
            M::Sti => {
                // The next instruction is executed before an interrupt can come.
                self.shadow = !self.flags.has(Rflags::IF);
                self.set_flag(Rflags::IF, true)
            }
            M::Stac | M::Clac if self.cpl != 0 => Err(self.invalid_opcode()),
            M::Stac => self.set_flag(Rflags::AC, true),
            M::Clac => self.set_flag(Rflags::AC, false),
            M::Hlt => {
                self.in_ring_0()?;
                self.halt()
            }
            M::Insb | M::Insw | M::Insd | M::Outsb | M::Outsw | M::Outsd => {
                self.may_use_ports(self.register(RDX) as u16, 1)?;
                Err(self.unknown())
            }
            M::Rdpmc | M::Lmsw => {
                self.in_ring_0()?;
                Err(self.unknown())
            }
            M::In => self.input(first, second),
            M::Out => self.output(first, second),
            M::Cpuid => {
                let answer = self.cpuid(self.register(RAX) as u32, self.register(RCX) as u32);
                for (register, value) in [RAX, RBX, RCX, RDX].into_iter().zip(answer) {
                    self.set_register(register, 0, 4, value.into());
                }
                Ok(())
            }
            M::Rdtsc | M::Rdtscp => {
                if self.cr4.has(Cr4::TSD) {
                    self.in_ring_0()?;
                }
                self.set_halves(self.now());
                if i.mnemonic == M::Rdtscp {
                    self.set_register(RCX, 0, 4, self.msr(Msr::TscAux));
                }
                Ok(())
            }
            M::Rdmsr => {
                let value = self.read_msr(self.register(RCX) as u32)?;
                self.set_halves(value);
                Ok(())
            }
            M::Wrmsr => {
                let value = self.register(RDX) << 32 | self.register(RAX) & 0xffff_ffff;
                self.write_msr(self.register(RCX) as u32, value)
            }
            M::Lgdt => {
                self.gdtr = self.load_table(first)?;
                let TableBounds { base, limit } = self.gdtr;
                self.note(|| Effect::Table { register: TableRegister::Gdtr, base, limit });
                Ok(())
            }
            M::Lidt => {
                self.idtr = self.load_table(first)?;
                let TableBounds { base, limit } = self.idtr;
                self.note(|| Effect::Table { register: TableRegister::Idtr, base, limit });
                Ok(())
            }
            M::Sgdt => self.store_table(first, self.gdtr),
            M::Sidt => self.store_table(first, self.idtr),
            M::Lldt => {
                let selector = self.selector_in(first)?;
                self.load_local_table(selector)
            }
            M::Ltr => {
                let selector = self.selector_in(first)?;
                self.load_task_register(selector)
            }
            M::Sldt => self.store_selector(first, SegmentRegister::Ldtr),
            M::Str => self.store_selector(first, SegmentRegister::Tr),
            M::Smsw => {
                self.without_umip()?;
                self.put(first, self.cr0.0)
            }
            M::Verr | M::Verw => {
                let selector = self.selector_in(first)?;
                let allowed = self.verify(selector, i.mnemonic == M::Verw)?;
                self.set_flag(Rflags::ZF, allowed)
            }
            M::Clts => {
                self.in_ring_0()?;
                self.cr0 = self.cr0.without(Cr0::TS);
                Ok(())
            }
            M::Invlpg => {
                self.in_ring_0()?;
                if let What::Memory(address) = first.what {
                    let segment = match address.segment {
                        segment @ (SegmentRegister::Fs | SegmentRegister::Gs) => self.hidden(segment).base,
                        segment if !self.is_64_bit() => self.hidden(segment).base,
                        _ => 0,
                    };
                    self.translations.flush_page(segment.wrapping_add(self.offset(&address)));
                }
                Ok(())
            }
            M::Invpcid => self.invalidate_pcid(first, second),
            M::Wbinvd | M::Invd => self.in_ring_0(),
            M::Rdfsbase | M::Rdgsbase | M::Wrfsbase | M::Wrgsbase => self.segment_base(i),
            M::Sahf => {
                let changes = 0xd5;
                self.flags.0 = self.flags.0 & !changes | self.register(RAX) >> 8 & changes;
                Ok(())
            }
            M::Lahf => {
                self.set_register(RAX, 8, 1, self.flags.0);
                Ok(())
            }
            M::Wait => Ok(()),
            _ if i.is_x87() && self.cr0.0 & Cr0::EM.with(Cr0::TS).0 != 0 => {
                Err(Trap::Refused(self.exception(Exception(7), None)))
            }
            _ if i.is_elsewhere() => Err(self.unknown()),
            _ if i.is_foreign() => Err(self.invalid_opcode()),
            _ => Err(self.unknown()),
        }
    }

    fn selector_in(&mut self, operand: &Operand) -> Done<Selector> {
        Ok(Selector(self.get(operand)? as u16))
    }

    fn set_halves(&mut self, value: u64) {
        self.set_register(RAX, 0, 4, value);
        self.set_register(RDX, 0, 4, value >> 32);
    }

    /// SLDT and STR. A register gets the selector, zero-extended to the operand's size; memory gets 16 bits.
    fn store_selector(&mut self, operand: &Operand, register: SegmentRegister) -> Done {
        self.without_umip()?;
        self.put(operand, self.selector(register).0.into())
    }

    fn input(&mut self, to: &Operand, from: &Operand) -> Done {
        let port = self.get(from)? as u16;
        self.may_use_ports(port, to.bytes)?;
        let now = self.now();
        let value = (0..to.bytes)
            .rev()
            .fold(0, |value, at| value << 8 | u64::from(self.ports.read(port.wrapping_add(at.into()), now)));
        self.put(to, value)
    }

    fn output(&mut self, to: &Operand, from: &Operand) -> Done {
        let (port, value) = (self.get(to)? as u16, self.get(from)?);
        self.may_use_ports(port, from.bytes)?;
        for at in 0..from.bytes {
            let now = self.now();
            let (port, value) = (port.wrapping_add(at.into()), (value >> (8 * at)) as u8);
            self.note(|| Effect::Port { port, value });
            match self.ports.write(port, value, now) {
                Written::GoOn => {}
                Written::Exit => return Err(Trap::End(End::Asked)),
                Written::TooMuch => {
                    let why = "more is written to the serial port than is kept";
                    return Err(Trap::End(self.cut_short(why, self.start)));
                }
            }
        }
        Ok(())
    }

    /// Allows every port up to IOPL; beyond that, those whose bit is clear in the TSS. SDM 1, "I/O permission bit map".
    fn may_use_ports(&mut self, port: u16, count: u8) -> Done {
        if self.cpl <= self.io_level() {
            return Ok(());
        }
        let task = *self.hidden(SegmentRegister::Tr);
        let limit = u64::from(task.descriptor.effective_limit());
        self.demand(task.descriptor.p && limit >= 0x67)?;
        let map =
            self.read_linear(task.base.wrapping_add(0x66), 2, Access::KernelRead).map_err(Trap::Fault)?;
        let offset = map + u64::from(port / 8);
        self.demand(offset < limit)?;
        let address = task.base.wrapping_add(offset);
        let bits = self.read_linear(address, 2, Access::KernelRead).map_err(Trap::Fault)?;
        let asked = ((1 << count) - 1) << (port % 8);
        self.demand(bits & asked == 0)
    }

    /// INVPCID. SDM 2A, INVPCID: all four types flush everything here, which is always allowed.
    fn invalidate_pcid(&mut self, kind: &Operand, descriptor: &Operand) -> Done {
        self.in_ring_0()?;
        let What::Memory(address) = descriptor.what else { return Err(self.invalid_opcode()) };
        let kind = self.get(kind)?;
        let offset = self.offset(&address);
        let identifier = self.load(address.segment, offset, 8)?;
        let linear = self.load(address.segment, offset.wrapping_add(8), 8)?;
        self.demand(kind <= 3 && identifier >> 12 == 0 && (kind != 0 || is_canonical(linear)))?;
        self.demand(kind >= 2 || identifier == 0 || self.cr4.has(Cr4::PCIDE))?;
        self.translations.flush();
        Ok(())
    }

    /// RDFSBASE, RDGSBASE, WRFSBASE and WRGSBASE: #UD unless CR4.FSGSBASE is set.
    fn segment_base(&mut self, i: &Decoded) -> Done {
        let [operand, _, _] = &i.operands;
        if !self.is_64_bit() || !self.cr4.has(Cr4::FSGSBASE) {
            return Err(self.invalid_opcode());
        }
        let register = match i.mnemonic {
            M::Rdfsbase | M::Wrfsbase => SegmentRegister::Fs,
            _ => SegmentRegister::Gs,
        };
        let mut hidden = *self.hidden(register);
        if matches!(i.mnemonic, M::Rdfsbase | M::Rdgsbase) {
            return self.put(operand, hidden.base);
        }
        hidden.base = self.get(operand)?;
        self.demand(is_canonical(hidden.base))?;
        let selector = Some(self.selector(register));
        self.load_segment(register, Segment { selector, hidden: Some(hidden) });
        Ok(())
    }
}
