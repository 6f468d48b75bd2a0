//! Crossings: the processor as the machine that `tollgate-x86` walks on, and the delivery of exceptions.

use tollgate_x86::walk::{
    Bounds, By, Crossing, Event, Exception, Fault, Machine, Miss, Mode, Next, Outcome, Register, Segment,
    SegmentRegister, Step, TableRegister, walk,
};
use tollgate_x86::{Vendor, Width};

use super::decoded::{R11, RCX, RDX, RSP};
use super::state::{Done, End, Processor, Trap};
use super::tlb::Access;

impl Machine for Processor {
    fn vendor(&self) -> Vendor {
        self.vendor
    }

    fn width(&self) -> Width {
        self.width()
    }

    fn register(&self, register: Register) -> Option<u64> {
        Some(match register {
            Register::Rip => self.rip,
            Register::Rsp => self.register(RSP),
            Register::Rflags => self.flags.0,
            Register::Rcx => self.register(RCX),
            Register::Rdx => self.register(RDX),
            Register::R11 => self.register(R11),
            Register::Cr0 => self.cr0.0,
            Register::Cr4 => self.cr4.0,
            Register::Msr(msr) => self.msr(msr),
        })
    }

    fn set_register(&mut self, register: Register, value: Option<u64>) {
        // All values are known here, and the walk derives only known values from them.
        let Some(value) = value else { return };
        let number = match register {
            Register::Rip => return self.rip = value,
            Register::Rflags => return self.flags.0 = value,
            Register::Msr(msr) => return self.set_msr(msr, value),
            // No crossing that is walked loads these.
            Register::Cr0 | Register::Cr4 => return,
            Register::Rsp => RSP,
            Register::Rcx => RCX,
            Register::Rdx => RDX,
            Register::R11 => R11,
        };
        self.set_register(number, 0, 8, value);
    }

    fn segment(&self, register: SegmentRegister) -> Segment {
        Segment { selector: Some(self.selector(register)), hidden: Some(*self.hidden(register)) }
    }

    fn set_segment(&mut self, register: SegmentRegister, segment: Segment) {
        self.load_segment(register, segment);
    }

    fn table(&self, register: TableRegister) -> Bounds {
        let place = match register {
            TableRegister::Gdtr => self.gdtr,
            TableRegister::Idtr => self.idtr,
        };
        Bounds { base: Some(place.base), limit: Some(place.limit.into()) }
    }

    fn read(&mut self, address: u64, size: u8, by: By) -> Result<u64, Miss> {
        let access = if by == By::Ring(3) { Access::UserRead } else { Access::KernelRead };
        self.read_linear(address, size, access).map_err(missed)
    }

    fn write(&mut self, address: u64, size: u8, value: Option<u64>, by: By) -> Result<(), Miss> {
        let access = if by == By::Ring(3) { Access::UserWrite } else { Access::KernelWrite };
        let value = value.ok_or(Miss::Unknown)?;
        self.write_linear(address, size, value, access).map_err(missed)
    }

    fn step(&mut self, step: &Step) {
        if let Some(record) = &mut self.record {
            record.steps.push(*step);
        }
    }

    fn cpl(&self) -> Option<u8> {
        Some(self.cpl)
    }

    fn mode(&self) -> Option<Mode> {
        Some(self.mode)
    }
}

fn missed(fault: Fault) -> Miss {
    match (fault.address, fault.code) {
        (Some(address), Some(code)) => Miss::PageFault { address, code },
        _ => Miss::Unknown,
    }
}

impl Processor {
    pub(super) fn cross(&mut self, crossing: Crossing) -> Done {
        match walk(self, crossing) {
            Outcome::Done => Ok(()),
            Outcome::Fault(fault) if self.refuses(crossing, &fault) => Err(Trap::Refused(fault)),
            Outcome::Fault(fault) => Err(Trap::Fault(fault)),
            other => Err(self.stop(&format!("{crossing}: {other}"))),
        }
    }

    /// Returns whether a crossing was refused because of the instruction itself.
    fn refuses(&self, crossing: Crossing, fault: &Fault) -> bool {
        let for_ring_0 =
            matches!(crossing, Crossing::Sysret { .. } | Crossing::Sysexit { .. } | Crossing::Swapgs);
        fault.exception == Exception::INVALID_OPCODE || for_ring_0 && self.cpl != 0 && !fault.crossed
    }

    /// Delivers an exception, and those that its delivery raises.
    pub(super) fn deliver(&mut self, fault: Fault) -> Result<(), End> {
        if !fault.crossed {
            self.rip = self.start;
        }
        if let Some(address) = fault.address {
            self.cr2 = address;
        }
        self.deliver_event(fault.event())
    }

    pub(super) fn interrupt(&mut self, vector: u8) -> Result<(), End> {
        self.start = self.rip;
        self.deliver_event(Event::External { vector })
    }

    fn deliver_event(&mut self, mut event: Event) -> Result<(), End> {
        loop {
            match walk(self, Crossing::Event(event)) {
                Outcome::Done => return Ok(()),
                Outcome::Fault(second) => {
                    if let Some(address) = second.address {
                        self.cr2 = address;
                    }
                    match Next::after(event, &second) {
                        Next::Deliver(next) => event = next,
                        Next::Shutdown => return Err(self.shut_down(event, second)),
                    }
                }
                other => return Err(End::CutShort(format!("{event:?} at {:x}: {other}", self.start))),
            }
        }
    }

    fn shut_down(&self, event: Event, fault: Fault) -> End {
        let name = |vector| match Exception(vector).mnemonic() {
            Some(name) => format!("#{name}"),
            None => format!("vector {vector:x}"),
        };
        let (event, fault) = (name(event.vector()), name(fault.exception.0));
        let why = format!("the processor shut down: {fault} in the delivery of {event}");
        self.cut_short(&why, self.start)
    }

    pub(super) fn stop(&self, why: &str) -> Trap {
        Trap::Unknown(self.named(why, self.start))
    }

    pub(super) fn cut_short(&self, why: &str, at: u64) -> End {
        End::CutShort(self.named(why, at))
    }

    fn named(&self, why: &str, at: u64) -> String {
        format!("{why}, at {at:x} in {}, ring {}", self.mode, self.cpl)
    }
}
