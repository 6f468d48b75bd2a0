//! Builds a machine and a crossing from arbitrary bytes, for generated inputs.

use crate::{Descriptor, Msr, Selector, Vendor, Width};

use super::{
    Bounds, Crossing, Event, Hidden, Machine, Outcome, Piece, Register, Segment, Size, Sketch, Step, walk,
};

const BASE: u64 = 0x1000;
const MEMORY: usize = 1024;

/// Walks a crossing on a machine built from the bytes. Returns whether it was made, and the number of steps.
#[doc(hidden)]
pub fn walk_generated(bytes: &[u8]) -> (bool, usize) {
    let mut steps = 0;
    let outcome = on_generated(bytes, |_| steps += 1, |machine, crossing| walk(machine, crossing));
    (outcome == Outcome::Done, steps)
}

pub(super) fn on_generated<W: FnMut(&Step), T>(
    bytes: &[u8],
    watch: W,
    work: impl FnOnce(&mut Sketch<'_, W>, Crossing) -> T,
) -> T {
    let mut rest = Rest(bytes);
    let (vendor, width) = (
        if rest.bit() { Vendor::Amd } else { Vendor::Intel },
        if rest.bit() { Width::Long } else { Width::Legacy },
    );
    let crossing = rest.crossing();
    let mut sketch = Sketch::new(vendor, width, watch);
    sketch.cpl = (!rest.bit()).then_some(rest.byte() & 3);
    for register in
        [Register::Rip, Register::Rsp, Register::Rflags, Register::Rcx, Register::Rdx, Register::R11]
    {
        sketch.set_register(register, rest.number());
    }
    sketch.set_register(Register::Cr0, Some(1));
    sketch.set_register(Register::Cr4, rest.number());
    for msr in Msr::ALL {
        sketch.set_register(Register::Msr(msr), rest.number());
    }
    for segment in &mut sketch.segments {
        *segment = rest.segment();
    }
    (sketch.gdt, sketch.idt) = (rest.bounds(), rest.bounds());
    let mut memory = [0; MEMORY];
    for (byte, given) in memory.iter_mut().zip(rest.0.iter().cycle()) {
        *byte = *given;
    }
    let mut pieces = [Piece { address: BASE, bytes: &mut memory }];
    sketch.pieces = &mut pieces;
    work(&mut sketch, crossing)
}

/// The remaining bytes; zeros follow after their end.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl Rest<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn bit(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    fn word(&mut self) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | u64::from(self.byte()))
    }

    fn number(&mut self) -> Option<u64> {
        match self.byte() & 7 {
            0 => None,
            1 | 2 => Some(self.word()),
            _ => Some(BASE + (self.word() & (MEMORY as u64 - 1))),
        }
    }

    fn size(&mut self) -> Size {
        match self.byte() % 3 {
            0 => Size::Word,
            1 => Size::Double,
            _ => Size::Quad,
        }
    }

    fn selector(&mut self) -> Selector {
        let number = self.word() as u16;
        Selector(if number & 0x8000 == 0 { number % 0x90 } else { number })
    }

    pub(super) fn crossing(&mut self) -> Crossing {
        match self.byte() % 15 {
            0 => Crossing::Event(Event::Int(self.byte() & 0x3f)),
            1 => {
                let (vector, code) = (self.byte() & 0x1f, self.bit().then_some(u32::from(self.byte())));
                Crossing::Event(Event::Exception { vector, code })
            }
            2 => Crossing::Event(Event::External { vector: self.byte() & 0x3f }),
            3 => Crossing::FarCall { selector: self.selector(), offset: self.word(), size: self.size() },
            4 => Crossing::FarJump { selector: self.selector(), offset: self.word(), size: self.size() },
            5 => Crossing::FarReturn { size: self.size(), release: u16::from(self.byte()) },
            6 => Crossing::InterruptReturn { size: self.size() },
            7 => Crossing::Sysenter,
            8 => Crossing::Sysexit { wide: self.bit() },
            9 => Crossing::Syscall,
            10 => Crossing::Sysret { wide: self.bit() },
            11 => Crossing::Event(Event::Int1),
            12 => Crossing::Event(Event::Int3),
            13 => Crossing::Event(Event::Into),
            _ => Crossing::Swapgs,
        }
    }

    fn segment(&mut self) -> Segment {
        let descriptor = Descriptor::decode(self.word().to_le_bytes());
        let hidden =
            Hidden { base: self.number().unwrap_or(0), descriptor: Descriptor { p: true, ..descriptor } };
        let selector = self.selector();
        Segment { selector: (self.byte() != 0).then_some(selector), hidden: self.bit().then_some(hidden) }
    }

    fn bounds(&mut self) -> Bounds {
        Bounds { base: self.number(), limit: self.bit().then_some(MEMORY as u32) }
    }
}
