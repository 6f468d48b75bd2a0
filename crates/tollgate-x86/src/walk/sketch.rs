use crate::{Descriptor, Msr, Selector, Table, Vendor, Width};

use super::Step;
use super::machine::{By, Machine, Miss};
use super::registers::{Bounds, Hidden, Mode, Register, Segment, SegmentRegister, TableRegister};

/// A machine of fixed size: registers that may be unknown, pieces of memory, and descriptors whose table address is
/// unknown.
///
/// Memory outside the pieces is unknown, and writes to it are lost. Writing an unknown value cuts off its piece there.
/// All pages are present.
pub struct Sketch<'a, W> {
    /// The processor's vendor.
    pub vendor: Vendor,
    /// Whether tables are those of long mode.
    pub width: Width,
    /// The privilege level if CS is unknown.
    pub cpl: Option<u8>,
    /// RIP.
    pub rip: Option<u64>,
    /// RSP.
    pub rsp: Option<u64>,
    /// RFLAGS.
    pub rflags: Option<u64>,
    /// RCX.
    pub rcx: Option<u64>,
    /// RDX.
    pub rdx: Option<u64>,
    /// R11.
    pub r11: Option<u64>,
    /// CR0.
    pub cr0: Option<u64>,
    /// CR4.
    pub cr4: Option<u64>,
    /// The model-specific registers, in the order of [`Msr::ALL`].
    pub msrs: [Option<u64>; Msr::ALL.len()],
    /// The segment registers, in the order of [`SegmentRegister`].
    pub segments: [Segment; 8],
    /// Base and limit of the GDT.
    pub gdt: Bounds,
    /// Base and limit of the IDT.
    pub idt: Bounds,
    /// Descriptors that are known although their address is not.
    pub descriptors: &'a [(Selector, Descriptor)],
    /// Known memory.
    pub pieces: &'a mut [Piece<'a>],
    /// Receives each step as it is made.
    pub watch: W,
}

/// A known piece of memory.
#[derive(Debug)]
pub struct Piece<'a> {
    /// Linear address of the first byte.
    pub address: u64,
    /// The contents.
    pub bytes: &'a mut [u8],
}

impl<W: FnMut(&Step)> Sketch<'_, W> {
    /// Returns a machine of which only the vendor and the width of the tables are known.
    pub fn new(vendor: Vendor, width: Width, watch: W) -> Self {
        Self {
            vendor,
            width,
            cpl: None,
            rip: None,
            rsp: None,
            rflags: None,
            rcx: None,
            rdx: None,
            r11: None,
            cr0: None,
            cr4: None,
            msrs: [None; Msr::ALL.len()],
            segments: [Segment::default(); 8],
            gdt: Bounds::default(),
            idt: Bounds::default(),
            descriptors: &[],
            pieces: &mut [],
            watch,
        }
    }

    /// Sets a model-specific register.
    pub fn set_msr(&mut self, msr: Msr, value: u64) {
        *self.slot(Register::Msr(msr)) = Some(value);
    }

    /// Puts a program of a level and mode into CS and SS, as flat segments without selectors.
    pub fn set_program(&mut self, ring: u8, mode: Mode) {
        self.cpl = Some(ring);
        let code = Descriptor::flat_code(ring, mode == Mode::Long64);
        for (register, descriptor) in
            [(SegmentRegister::Cs, code), (SegmentRegister::Ss, Descriptor::flat_data(ring))]
        {
            let segment = Segment { selector: None, hidden: Some(Hidden { base: 0, descriptor }) };
            self.set_segment(register, segment);
        }
    }

    fn slot(&mut self, register: Register) -> &mut Option<u64> {
        match register {
            Register::Rip => &mut self.rip,
            Register::Rsp => &mut self.rsp,
            Register::Rflags => &mut self.rflags,
            Register::Rcx => &mut self.rcx,
            Register::Rdx => &mut self.rdx,
            Register::R11 => &mut self.r11,
            Register::Cr0 => &mut self.cr0,
            Register::Cr4 => &mut self.cr4,
            Register::Msr(msr) => &mut self.msrs[msr as usize],
        }
    }

    fn byte(&mut self, address: u64) -> Option<&mut u8> {
        self.pieces.iter_mut().find_map(|piece| {
            let offset = usize::try_from(address.wrapping_sub(piece.address)).ok()?;
            piece.bytes.get_mut(offset)
        })
    }

    /// Cuts a piece off before an address in it: the bytes from there on are unknown.
    fn forget(&mut self, address: u64) {
        for piece in self.pieces.iter_mut() {
            let offset = usize::try_from(address.wrapping_sub(piece.address)).unwrap_or(usize::MAX);
            if offset < piece.bytes.len() {
                let bytes = core::mem::take(&mut piece.bytes);
                piece.bytes = &mut bytes[..offset];
                return;
            }
        }
    }
}

impl<W: FnMut(&Step)> Machine for Sketch<'_, W> {
    fn vendor(&self) -> Vendor {
        self.vendor
    }

    fn width(&self) -> Width {
        self.width
    }

    fn register(&self, register: Register) -> Option<u64> {
        match register {
            Register::Rip => self.rip,
            Register::Rsp => self.rsp,
            Register::Rflags => self.rflags,
            Register::Rcx => self.rcx,
            Register::Rdx => self.rdx,
            Register::R11 => self.r11,
            Register::Cr0 => self.cr0,
            Register::Cr4 => self.cr4,
            Register::Msr(msr) => self.msrs[msr as usize],
        }
    }

    fn set_register(&mut self, register: Register, value: Option<u64>) {
        *self.slot(register) = value;
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

    fn read(&mut self, address: u64, size: u8, _by: By) -> Result<u64, Miss> {
        let width = self.width;
        (0..u64::from(size.min(8))).rev().try_fold(0, |value, at| {
            let byte = self.byte(width.linear(address.wrapping_add(at))).ok_or(Miss::Unknown)?;
            Ok(value << 8 | u64::from(*byte))
        })
    }

    fn write(&mut self, address: u64, size: u8, value: Option<u64>, _by: By) -> Result<(), Miss> {
        let width = self.width;
        for (at, byte) in value.unwrap_or(0).to_le_bytes().into_iter().take(usize::from(size)).enumerate() {
            let address = width.linear(address.wrapping_add(at as u64));
            match (value, self.byte(address)) {
                (Some(_), Some(place)) => *place = byte,
                (None, Some(_)) => self.forget(address),
                (_, None) => {}
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) {
        (self.watch)(step);
    }

    fn cpl(&self) -> Option<u8> {
        self.segment(SegmentRegister::Cs).selector.map(Selector::rpl).or(self.cpl)
    }

    fn descriptor(&mut self, table: Table, offset: u16) -> Result<u64, Miss> {
        let known = self
            .descriptors
            .iter()
            .find(|(selector, _)| selector.table() == table && selector.offset() == offset);
        if let Some((_, descriptor)) = known {
            return Ok(u64::from_le_bytes(descriptor.encode()));
        }
        let base = self.base_of(table).ok_or(Miss::Unknown)?;
        self.read(base.wrapping_add(u64::from(offset)), 8, By::System)
    }
}
