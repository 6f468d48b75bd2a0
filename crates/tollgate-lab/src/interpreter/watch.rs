//! Watches a run step by step: each instruction with its changes, and the checks and loads of each crossing.

use std::ops::ControlFlow;

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use tollgate_x86::walk::{Fault, Mode, Step};
use tollgate_x86::{Msr, Selector};

use super::effect::Effect;
use super::state::{End, Processor, WatchedInstruction};

/// The part of a run that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// RIP at which it begins; `None` for the first instruction of the run.
    pub from: Option<u64>,
    /// How many times RIP passes that address before the window begins.
    pub after: u64,
    /// RIP at which the run stops, before the instruction there is executed.
    pub until: Option<u64>,
    /// The most instructions that are passed to the observer; then the run stops.
    pub at_most: u64,
}

/// One instruction, and its effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// Number of instructions that were completed before it.
    pub number: u64,
    /// Bytes of the instruction; empty if it could not be fetched.
    pub bytes: Vec<u8>,
    /// The instruction in Intel's syntax.
    pub text: String,
    /// Registers before it.
    pub before: Registers,
    /// Registers after it, and after the delivery of its exception.
    pub after: Registers,
    /// The exception that it raised.
    pub exception: Option<Fault>,
    /// Steps of its crossing, or of the delivery of its exception.
    pub steps: Vec<Step>,
    /// Its writes, in order. An instruction that faulted may have made some of them.
    pub effects: Vec<Effect>,
}

/// The registers that instructions change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
    pub general: [u64; 16],
    /// RIP.
    pub rip: u64,
    /// RFLAGS.
    pub rflags: u64,
    /// CS, SS, DS, ES, FS, GS, TR, LDTR.
    pub selectors: [Selector; 8],
    /// FS_BASE, GS_BASE, KERNEL_GS_BASE.
    pub bases: [u64; 3],
    /// CR0, CR2, CR3, CR4.
    pub control: [u64; 4],
    /// Mode of execution.
    pub mode: Mode,
    /// Current privilege level.
    pub cpl: u8,
}

/// A register that changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Register name, in lower case.
    pub register: &'static str,
    /// Value before the instruction.
    pub before: u64,
    /// Value after it.
    pub after: u64,
}

const GENERAL: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
const SELECTORS: [&str; 8] = ["cs", "ss", "ds", "es", "fs", "gs", "tr", "ldtr"];
const BASES: [&str; 3] = ["fs_base", "gs_base", "kernel_gs_base"];
const CONTROL: [&str; 4] = ["cr0", "cr2", "cr3", "cr4"];

impl Registers {
    /// Returns all registers with their names: RIP first, then general registers, flags, selectors, bases and control registers.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let selectors = self.selectors.map(|selector| u64::from(selector.0));
        std::iter::once(("rip", self.rip))
            .chain(GENERAL.into_iter().zip(self.general))
            .chain(std::iter::once(("rflags", self.rflags)))
            .chain(SELECTORS.into_iter().zip(selectors))
            .chain(BASES.into_iter().zip(self.bases))
            .chain(CONTROL.into_iter().zip(self.control))
    }

    /// Returns the registers whose value differs in `after`.
    pub fn changes(&self, after: &Self) -> Vec<Change> {
        self.named()
            .zip(after.named())
            .filter(|((_, before), (_, after))| before != after)
            .map(|((register, before), (_, after))| Change { register, before, after })
            .collect()
    }
}

impl Processor {
    fn registers(&self) -> Registers {
        let [general @ .., _] = self.general;
        Registers {
            general,
            rip: self.rip,
            rflags: self.flags.0,
            selectors: self.segments.map(|(selector, _)| selector),
            bases: [Msr::FsBase, Msr::GsBase, Msr::KernelGsBase].map(|msr| self.msr(msr)),
            control: [self.cr0.0, self.cr2, self.cr3, self.cr4.0],
            mode: self.mode,
            cpl: self.cpl,
        }
    }
}

pub(super) struct Watcher<'w> {
    window: Window,
    count: u64,
    observe: &'w mut dyn FnMut(&Moment) -> ControlFlow<()>,
}

impl<'w> Watcher<'w> {
    pub(super) fn new(window: Window, observe: &'w mut dyn FnMut(&Moment) -> ControlFlow<()>) -> Self {
        Self { window, count: 0, observe }
    }

    pub(super) fn step(&mut self, processor: &mut Processor) -> Result<(), End> {
        if !self.has_begun(processor.rip) {
            return processor.step();
        }
        if self.window.until == Some(processor.rip) || self.count == self.window.at_most {
            return Err(stopped(processor));
        }
        self.count += 1;
        let (number, before) = (processor.counts.instructions, processor.registers());
        processor.record = Some(WatchedInstruction::default());
        let done = processor.step();
        let WatchedInstruction { bytes, exception, steps, effects } =
            processor.record.take().unwrap_or_default();
        let text = text_of(&bytes, &before);
        let after = processor.registers();
        let flow = (self.observe)(&Moment { number, bytes, text, before, after, exception, steps, effects });
        done?;
        if flow.is_break() { Err(stopped(processor)) } else { Ok(()) }
    }

    /// Returns whether the window has begun, and remembers that it has.
    fn has_begun(&mut self, rip: u64) -> bool {
        match self.window.from {
            None => true,
            Some(from) if from != rip => false,
            Some(_) if self.window.after > 0 => {
                self.window.after -= 1;
                false
            }
            Some(_) => {
                self.window.from = None;
                true
            }
        }
    }
}

fn stopped(processor: &Processor) -> End {
    End::CutShort(format!("stopped as asked, at {:x}", processor.rip))
}

fn text_of(bytes: &[u8], registers: &Registers) -> String {
    written(bytes, registers.mode == Mode::Long64, registers.rip).1
}

/// Decodes the first instruction of these bytes: its length, and its text in an assembler's form, even if a prefix or an
/// operand makes it invalid. Empty if there are no bytes.
pub(crate) fn written(bytes: &[u8], is_64_bit: bool, rip: u64) -> (usize, String) {
    let bitness = if is_64_bit { 64 } else { 32 };
    let mut decoder = Decoder::with_ip(bitness, bytes, rip, DecoderOptions::NO_INVALID_CHECK);
    let mut text = String::new();
    if decoder.can_decode() {
        IntelFormatter::new().format(&decoder.decode(), &mut text);
    }
    (decoder.position(), text)
}
