//! Instructions that load segment registers, except CS (a crossing), and the registers of descriptor tables.

use tollgate_x86::walk::{Exception, Fault, Hidden, Machine, Miss, Segment, SegmentRegister};
use tollgate_x86::{Cr4, Descriptor, DescriptorKind, Selector, SystemKind, Table, WideDescriptor, Width};

use super::decoded::{Operand, What};
use super::state::{Done, Processor, TableBounds, Trap};
use super::tlb::{Access, is_canonical};

impl Processor {
    /// MOV and POP to DS, ES, FS, GS or SS. SDM 2B, MOV, "Loading a segment register while in protected mode".
    pub(super) fn load_data_segment(&mut self, register: SegmentRegister, selector: Selector) -> Done {
        let is_stack = register == SegmentRegister::Ss;
        if register == SegmentRegister::Cs {
            return Err(self.invalid_opcode());
        }
        if selector.is_null() {
            self.demand(!is_stack || self.is_64_bit() && self.cpl < 3 && selector.rpl() == self.cpl)?;
            self.load_segment(register, Segment::null(selector));
            self.shadow |= is_stack;
            return Ok(());
        }
        let mut descriptor = self.descriptor_of(selector)?;
        let (rpl, dpl, cpl) = (selector.rpl(), descriptor.dpl, self.cpl);
        let allowed = match descriptor.kind() {
            DescriptorKind::Data { writable, .. } if is_stack => writable && rpl == cpl && dpl == cpl,
            _ if is_stack => false,
            DescriptorKind::Data { .. } | DescriptorKind::Code { readable: true, conforming: false, .. } => {
                rpl <= dpl && cpl <= dpl
            }
            DescriptorKind::Code { readable, .. } => readable,
            DescriptorKind::System(_) => false,
        };
        if !allowed {
            return Err(self.selector_fault(Exception::GENERAL_PROTECTION, selector));
        }
        if !descriptor.p {
            let exception = if is_stack { Exception::STACK } else { Exception::NOT_PRESENT };
            return Err(self.selector_fault(exception, selector));
        }
        if descriptor.kind & 1 == 0 {
            descriptor.kind |= 1;
            self.set_access(selector.table(), selector.offset(), descriptor.encode()[5])
                .map_err(|miss| self.missed(miss))?;
        }
        self.load_segment(register, Segment::new(selector, descriptor));
        self.shadow |= is_stack;
        Ok(())
    }

    /// LTR. SDM 2A, LTR: in long mode the descriptor has 16 bytes.
    pub(super) fn load_task_register(&mut self, selector: Selector) -> Done {
        self.in_ring_0()?;
        self.demand(!selector.is_null())?;
        let refused = self.selector_fault(Exception::GENERAL_PROTECTION, selector);
        if selector.table() == Table::Ldt {
            return Err(refused);
        }
        let mut descriptor = self.descriptor_of(selector)?;
        let width = self.width();
        let is_free = match descriptor.kind() {
            DescriptorKind::System(
                kind @ (SystemKind::Tss { busy: false } | SystemKind::Tss16 { busy: false }),
            ) => kind.is_in(width),
            _ => false,
        };
        if !is_free {
            return Err(refused);
        }
        if !descriptor.p {
            return Err(self.selector_fault(Exception::NOT_PRESENT, selector));
        }
        let base = self.wide_base(selector, descriptor)?;
        descriptor.kind |= 2;
        self.set_access(Table::Gdt, selector.offset(), descriptor.encode()[5])
            .map_err(|miss| self.missed(miss))?;
        let hidden = Some(Hidden { base, descriptor });
        self.load_segment(SegmentRegister::Tr, Segment { selector: Some(selector), hidden });
        Ok(())
    }

    /// LLDT. SDM 2A, LLDT.
    pub(super) fn load_local_table(&mut self, selector: Selector) -> Done {
        self.in_ring_0()?;
        if selector.is_null() {
            self.load_segment(SegmentRegister::Ldtr, Segment::null(selector));
            return Ok(());
        }
        let refused = self.selector_fault(Exception::GENERAL_PROTECTION, selector);
        if selector.table() == Table::Ldt {
            return Err(refused);
        }
        let descriptor = self.descriptor_of(selector)?;
        if descriptor.kind() != DescriptorKind::System(SystemKind::Ldt) {
            return Err(refused);
        }
        if !descriptor.p {
            return Err(self.selector_fault(Exception::NOT_PRESENT, selector));
        }
        let hidden = Some(Hidden { base: self.wide_base(selector, descriptor)?, descriptor });
        self.load_segment(SegmentRegister::Ldtr, Segment { selector: Some(selector), hidden });
        Ok(())
    }

    /// VERR and VERW: whether a segment could be read or written. Nothing is loaded, and only a memory access faults.
    pub(super) fn verify(&mut self, selector: Selector, write: bool) -> Done<bool> {
        if selector.is_null() {
            return Ok(false);
        }
        let descriptor = match self.descriptor_of(selector) {
            Ok(descriptor) => descriptor,
            Err(Trap::Fault(fault)) if fault.exception == Exception::GENERAL_PROTECTION => return Ok(false),
            Err(trap) => return Err(trap),
        };
        let open = selector.rpl() <= descriptor.dpl && self.cpl <= descriptor.dpl;
        Ok(match descriptor.kind() {
            DescriptorKind::Data { writable, .. } => open && (writable || !write),
            DescriptorKind::Code { readable, conforming, .. } => readable && !write && (open || conforming),
            DescriptorKind::System(_) => false,
        })
    }

    /// LGDT and LIDT. SDM 2A, LGDT/LIDT: a limit of 16 bits, and a base of 32 bits, or 64 in 64-bit mode.
    pub(super) fn load_table(&mut self, operand: &Operand) -> Done<TableBounds> {
        self.in_ring_0()?;
        let (limit, base) = self.place_operand(operand, false)?;
        let access = self.data_access(false);
        let wide = self.base_bytes();
        let limit = self.read_linear(limit, 2, access).map_err(Trap::Fault)? as u16;
        let base = self.read_linear(base, wide, access).map_err(Trap::Fault)?;
        self.demand(wide != 8 || is_canonical(base))?;
        Ok(TableBounds { base, limit })
    }

    pub(super) fn store_table(&mut self, operand: &Operand, place: TableBounds) -> Done {
        self.without_umip()?;
        let (limit, base) = self.place_operand(operand, true)?;
        let access = self.data_access(true);
        self.write_linear(limit, 2, place.limit.into(), access).map_err(Trap::Fault)?;
        self.write_linear(base, self.base_bytes(), place.base, access).map_err(Trap::Fault)
    }

    fn base_bytes(&self) -> u8 {
        if self.is_64_bit() { 8 } else { 4 }
    }

    fn place_operand(&self, operand: &Operand, write: bool) -> Done<(u64, u64)> {
        let What::Memory(address) = operand.what else { return Err(self.invalid_opcode()) };
        let offset = self.offset(&address);
        let limit = self.linear(address.segment, offset, 2, write)?;
        let base = offset.wrapping_add(2) & super::arithmetic::mask(address.bytes);
        Ok((limit, self.linear(address.segment, base, self.base_bytes(), write)?))
    }

    /// Reads the descriptor of a selector that is not null: 8 bytes of a table, or #GP if they are beyond its limit.
    fn descriptor_of(&mut self, selector: Selector) -> Done<Descriptor> {
        let limit = match selector.table() {
            Table::Gdt => Some(u32::from(self.gdtr.limit)),
            Table::Ldt => {
                let table = self.hidden(SegmentRegister::Ldtr).descriptor;
                table.p.then(|| table.effective_limit())
            }
        };
        if limit.is_none_or(|limit| u32::from(selector.offset()) + 7 > limit) {
            return Err(self.selector_fault(Exception::GENERAL_PROTECTION, selector));
        }
        let raw = self.descriptor(selector.table(), selector.offset()).map_err(|miss| self.missed(miss))?;
        Ok(Descriptor::decode(raw.to_le_bytes()))
    }

    /// Returns the base of a system segment of the GDT. In long mode its upper half is in a second entry.
    fn wide_base(&mut self, selector: Selector, low: Descriptor) -> Done<u64> {
        if self.width() == Width::Legacy {
            return Ok(low.base.into());
        }
        let refused = self.selector_fault(Exception::GENERAL_PROTECTION, selector);
        let offset = u64::from(selector.offset()) + 8;
        if offset + 7 > u64::from(self.gdtr.limit) {
            return Err(refused);
        }
        let address = self.gdtr.base.wrapping_add(offset);
        let high = self.read_linear(address, 8, Access::KernelRead).map_err(Trap::Fault)?;
        let low = u64::from_le_bytes(low.encode());
        let wide = WideDescriptor::decode((u128::from(low) | u128::from(high) << 64).to_le_bytes());
        if is_canonical(wide.base()) { Ok(wide.base()) } else { Err(refused) }
    }

    fn selector_fault(&self, exception: Exception, selector: Selector) -> Trap {
        self.fault(exception, Some(u32::from(selector.0 & !0b11)))
    }

    fn missed(&self, miss: Miss) -> Trap {
        match miss {
            Miss::PageFault { address, code } => Trap::Fault(Fault::of_page(address, code, Some(self.cpl))),
            Miss::Unknown => self.stop("a descriptor cannot be read"),
        }
    }

    /// Raises #GP outside ring 0 if CR4.UMIP is set.
    pub(super) fn without_umip(&self) -> Done {
        if self.cr4.has(Cr4::UMIP) { self.in_ring_0() } else { Ok(()) }
    }
}
