use tollgate_x86::walk::{Exception, Fault, Hidden, Mode, Segment, SegmentRegister, Step};
use tollgate_x86::{Cr0, Descriptor, Efer, Msr, Rflags, Selector, Vendor, Width};

use super::arithmetic::Flags;
use super::decoded::RAX;
use super::effect::Effect;
use super::memory::Memory;
use super::ports::Ports;
use super::tlb::Translations;
use crate::engine::{Counts, Unknown};

#[derive(Debug)]
pub(super) enum Trap {
    /// The processor raises an exception because of the operands; the instruction may be executed again.
    Fault(Fault),
    /// It raises one because of the instruction itself: an invalid opcode, or one for another ring.
    Refused(Fault),
    /// The instruction is not modelled, so the run cannot go on (a clause). In ring 3 the guest may be told instead.
    Unknown(String),
    End(End),
}

#[derive(Debug)]
pub(super) enum End {
    Asked,
    /// The reason, in a clause.
    CutShort(String),
}

pub(super) type Done<T = ()> = Result<T, Trap>;

#[derive(Clone)]
pub(super) struct Processor {
    pub(super) vendor: Vendor,
    /// By number; the last is [`NONE`](super::decoded::NONE).
    pub(super) general: [u64; 17],
    /// While an instruction executes, the address of the next one.
    pub(super) rip: u64,
    pub(super) start: u64,
    pub(super) flags: Flags,
    /// In the order of [`SegmentRegister`].
    pub(super) segments: [(Selector, Hidden); 8],
    pub(super) gdtr: TableBounds,
    pub(super) idtr: TableBounds,
    pub(super) cr0: Cr0,
    pub(super) cr2: u64,
    pub(super) cr3: u64,
    pub(super) cr4: tollgate_x86::Cr4,
    pub(super) cr8: u64,
    /// IA32_SPEC_CTRL, which has no effect here.
    pub(super) spec_ctrl: u64,
    /// In the order of [`Msr::ALL`]; the bases of FS and GS are in the hidden parts instead.
    msrs: [u64; Msr::ALL.len()],
    /// The mode given by CS, CR0 and EFER.
    pub(super) mode: Mode,
    pub(super) cpl: u8,
    pub(super) memory: Memory,
    pub(super) translations: Translations,
    pub(super) ports: Ports,
    pub(super) counts: Counts,
    /// Virtual nanoseconds that the processor has waited, in addition to one per instruction.
    pub(super) waited: u64,
    /// How many instructions may still begin.
    pub(super) budget: u64,
    /// Whether the last instruction holds interrupts back from this one.
    pub(super) shadow: bool,
    pub(super) unknown: Vec<Unknown>,
    pub(super) record: Option<WatchedInstruction>,
}

#[derive(Clone, Default)]
pub(super) struct WatchedInstruction {
    pub(super) bytes: Vec<u8>,
    pub(super) exception: Option<Fault>,
    pub(super) steps: Vec<Step>,
    pub(super) effects: Vec<Effect>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TableBounds {
    pub(super) base: u64,
    pub(super) limit: u16,
}

impl Processor {
    /// Makes a processor in flat 32-bit protected mode, as multiboot leaves it. Multiboot specification 0.6.96, "Machine state".
    pub(super) fn new(vendor: Vendor, memory: Vec<u8>, entry: u64) -> Self {
        let data = Segment::new(Selector(0x10), Descriptor::flat_data(0));
        let task = Descriptor { kind: 0xb, p: true, limit: 0xffff, ..Descriptor::default() };
        let mut processor = Self {
            vendor,
            general: [0; 17],
            rip: entry,
            start: entry,
            flags: Flags(Rflags::FIXED.0),
            segments: [(Selector(0), Hidden::default()); 8],
            gdtr: TableBounds::default(),
            idtr: TableBounds { base: 0, limit: 0 },
            cr0: Cr0::PE.with(Cr0::ET),
            cr2: 0,
            cr3: 0,
            cr4: tollgate_x86::Cr4(0),
            cr8: 0,
            spec_ctrl: 0,
            msrs: [0; Msr::ALL.len()],
            mode: Mode::Protected,
            cpl: 0,
            memory: Memory::new(memory),
            translations: Translations::new(),
            ports: Ports::default(),
            counts: Counts::default(),
            waited: 0,
            budget: 0,
            shadow: false,
            unknown: Vec::new(),
            record: None,
        };
        use SegmentRegister as Is;
        processor.load_segment(Is::Cs, Segment::new(Selector(0x8), Descriptor::flat_code(0, false)));
        for register in [Is::Ss, Is::Ds, Is::Es, Is::Fs, Is::Gs] {
            processor.load_segment(register, data);
        }
        processor.load_segment(Is::Tr, Segment::new(Selector(0), task));
        processor.general[usize::from(RAX)] = 0x2bad_b002;
        processor
    }

    /// Returns the time-stamp counter, which is also virtual time in nanoseconds.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.counts.instructions + self.waited
    }

    pub(super) fn efer(&self) -> Efer {
        Efer(self.msrs[Msr::Efer as usize])
    }

    pub(super) fn width(&self) -> Width {
        if self.efer().has(Efer::LMA) { Width::Long } else { Width::Legacy }
    }

    pub(super) fn is_64_bit(&self) -> bool {
        self.mode == Mode::Long64
    }

    pub(super) fn address_mask(&self) -> u64 {
        if self.is_64_bit() { u64::MAX } else { 0xffff_ffff }
    }

    #[inline]
    pub(super) fn hidden(&self, register: SegmentRegister) -> &Hidden {
        &self.segments[register as usize].1
    }

    pub(super) fn selector(&self, register: SegmentRegister) -> Selector {
        self.segments[register as usize].0
    }

    pub(super) fn load_segment(&mut self, register: SegmentRegister, segment: Segment) {
        let loaded = (segment.selector.unwrap_or_default(), segment.hidden.unwrap_or_default());
        self.note(|| Effect::Segment { register, selector: loaded.0, hidden: loaded.1 });
        self.segments[register as usize] = loaded;
        self.mode_changed();
    }

    pub(super) fn msr(&self, msr: Msr) -> u64 {
        match msr {
            Msr::FsBase => self.hidden(SegmentRegister::Fs).base,
            Msr::GsBase => self.hidden(SegmentRegister::Gs).base,
            _ => self.msrs[msr as usize],
        }
    }

    pub(super) fn set_msr(&mut self, msr: Msr, value: u64) {
        match msr {
            Msr::FsBase => self.segments[SegmentRegister::Fs as usize].1.base = value,
            Msr::GsBase => self.segments[SegmentRegister::Gs as usize].1.base = value,
            _ => self.msrs[msr as usize] = value,
        }
        self.mode_changed();
    }

    #[inline]
    pub(super) fn note(&mut self, effect: impl FnOnce() -> Effect) {
        if let Some(record) = &mut self.record {
            record.effects.push(effect());
        }
    }

    /// Derives the level and the mode from CS and EFER.
    pub(super) fn mode_changed(&mut self) {
        let (selector, code) = &self.segments[SegmentRegister::Cs as usize];
        self.cpl = selector.rpl();
        self.mode = match (self.width(), code.descriptor.l) {
            (Width::Legacy, _) => Mode::Protected,
            (Width::Long, true) => Mode::Long64,
            (Width::Long, false) => Mode::Compatibility,
        };
    }

    pub(super) fn register(&self, number: u8) -> u64 {
        self.general[usize::from(number)]
    }

    /// Writes a part of a general register. With 4 bytes the rest becomes 0; with fewer it is unchanged. SDM 1,
    /// "General-purpose registers in 64-bit mode".
    #[inline]
    pub(super) fn set_register(&mut self, number: u8, from_bit: u8, bytes: u8, value: u64) {
        let register = &mut self.general[usize::from(number)];
        *register = match bytes {
            8 => value,
            4 => value & 0xffff_ffff,
            2 => *register & !0xffff | value & 0xffff,
            _ => *register & !(0xff << from_bit) | (value & 0xff) << from_bit,
        };
    }

    pub(super) fn fault(&self, exception: Exception, code: Option<u32>) -> Trap {
        Trap::Fault(self.exception(exception, code))
    }

    pub(super) fn protection(&self) -> Trap {
        self.fault(Exception::GENERAL_PROTECTION, Some(0))
    }

    /// Raises #GP(0) unless something is allowed.
    pub(super) fn demand(&self, allowed: bool) -> Done {
        if allowed { Ok(()) } else { Err(self.protection()) }
    }

    pub(super) fn invalid_opcode(&self) -> Trap {
        Trap::Refused(self.exception(Exception::INVALID_OPCODE, None))
    }

    pub(super) fn exception(&self, exception: Exception, code: Option<u32>) -> Fault {
        Fault { exception, code, address: None, level: Some(self.cpl), crossed: false }
    }

    /// Raises #GP(0) outside ring 0.
    pub(super) fn in_ring_0(&self) -> Done {
        if self.cpl == 0 { Ok(()) } else { Err(self.privileged()) }
    }

    /// Returns #GP(0) for an instruction that needs another ring.
    pub(super) fn privileged(&self) -> Trap {
        Trap::Refused(self.exception(Exception::GENERAL_PROTECTION, Some(0)))
    }
}
