//! A machine with two threads and a preemptible kernel (`guest/preempted.s`), of which several successors of one state can be
//! executed.
//!
//! A state is everything that the next steps depend on: the registers, the segments with the base of GS and the one that
//! SWAPGS brings, and the kernel's words with all stacks. It is taken between two instructions of a thread, in ring 3 or in
//! ring 0; a timer interrupt is one step.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use tollgate_x86::walk::{Hidden, Segment, SegmentRegister};
use tollgate_x86::{
    Cr0, Descriptor, DescriptorKind, Efer, GateKind, Msr, Rflags, Selector, Star, Vendor, WideGate,
};

use super::explore::{StateId, Words};
use super::state::{End, Processor, TableBounds, WatchedInstruction};
use super::watch::written;
use crate::engine::Counts;
use crate::guest::preempted::{code, part};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Thread,
    Done,
    Timer,
    TimerEnd,
    Strike,
}

const ENTRIES: usize = 5;

const PML4: u64 = 0x1000;
const GDT: u64 = 0x4000;
const IDT: u64 = 0x5000;
const CODE: u64 = 0x7000;
/// The words of the kernel: gs:0 and gs:8, the running thread, each thread's saved registers and end of stack, the word in
/// which the entry finds the running thread's stack, and the base of its GS.
pub(crate) const DATA: u64 = 0x8000;
const SAVED_STACK: u64 = DATA + 8;
const CURRENT: u64 = DATA + 0x10;
const SAVED: u64 = DATA + 0x18;
const STACK: u64 = DATA + 0x28;
const STACK_WORD: u64 = DATA + 0x38;
const GS: u64 = DATA + 0x40;
const TSS: u64 = DATA + 0x80;
const RSP0: u64 = TSS + 4;
const IST1: u64 = TSS + 0x24;
/// The ends of the first thread's stacks in the kernel and in ring 3, and how far above them the second thread's are.
const STACK_ENDS: [u64; 2] = [DATA + 0x400, DATA + 0x780];
const APART: [u64; 2] = [0x300, 0x80];
const WORDS: usize = 0x100;
/// The end of the stack of NMI and #MC. No state has it: it is empty between two instructions of a thread.
const STRIKE_STACK: u64 = 0xa000;
/// The page tables and the memory of a file's program.
const DIRECTORY: u64 = 0xb000;
const PAGES: u64 = 0xc000;
const PROGRAM: u64 = 0x1_0000;
/// The first linear address of the file's program, as of every program of the lab.
const BEGIN: u64 = 0x4000_0000;
/// The most bytes that a file's program can take, and that it can write: the latter are in every state.
pub(crate) const MOST_BYTES: u64 = 2 << 20;
pub(crate) const MOST_DATA: u64 = 4096;
/// The base of GS in ring 3, which has no page.
const NOWHERE: u64 = 1 << 40;
const TIMER: u8 = 0x20;
/// The vectors of NMI and #MC.
pub(crate) const STRIKES: [u8; 2] = [2, 18];
/// More than the timer's handler executes; and the limit for a file's handler of NMI or #MC.
const HANDLER: usize = 64;
const LONGEST: usize = 4096;
/// RIP in the frame of a preempted thread, after fifteen registers.
const FRAME_RIP: u64 = 15 * 8;
const TASK: u16 = 0x30;

const RIP: usize = 16;
const FLAGS: usize = 17;
const KERNEL_GS: usize = 18;
/// The index of the segment registers' values, whether interrupts are held back, whether the machine has stopped, and whether
/// the timer came in ring 0 on a stack that is not the kernel's.
const REST: usize = 19;
const SHARED: usize = 20;
const STOPPED: u64 = 1;
const HELD_BACK: u64 = 2;
const BAD_ARRIVAL: u64 = 4;
const SEGMENTS: u32 = 3;
/// The number of RSP, and of the registers that SYSCALL or its result changes: RAX, RCX and R11.
const RSP: usize = 4;
const CHANGED: [usize; 3] = [0, 1, 11];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stack {
    /// The kernel stack of this thread.
    Kernel(usize),
    /// The ring 3 stack of this thread.
    User(usize),
    Nowhere,
}

impl Stack {
    fn at(address: u64) -> Self {
        let [kernel, user] = [0, 1].map(|kind| {
            (0..2).find(|thread| {
                let end = end_of(kind, *thread);
                (end - APART[kind] + 1..=end).contains(&address)
            })
        });
        kernel.map(Self::Kernel).or(user.map(Self::User)).unwrap_or(Self::Nowhere)
    }
}

const fn end_of(kind: usize, thread: usize) -> u64 {
    STACK_ENDS[kind] + APART[kind] * thread as u64
}

fn register_of(thread: usize, number: usize) -> u64 {
    match number {
        0 => 0,
        RSP => end_of(1, thread),
        _ => (10 + thread as u64) << 40 | number as u64,
    }
}

/// The loss that an entry, or an interruption of it, causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The processor shuts down in ring 0, with ring 3's base of GS or for another reason.
    Stops { with_user_gs: bool },
    /// An interruption in ring 0 pushed its frame on the caller's stack.
    Arrival,
    /// The thread returned to ring 3 at another address.
    Place,
    /// It returned with another stack.
    Stack,
    /// It returned with another base of GS.
    Gs,
    /// It returned with other registers, one bit each.
    Registers(u16),
    /// It returned with other flags.
    Flags,
    /// It returned with a CS or SS that the GDT does not have for ring 3: the next IRETQ faults.
    Segment(SegmentRegister, Selector),
    /// It never returns.
    Endless,
}

/// A part of a file's program. The file has the first of its bytes.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_writable: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    pub(crate) entry: u64,
    pub(crate) mask: Rflags,
    pub(crate) star: Star,
    /// Address and limit of the GDT; `None` for the lab's.
    pub(crate) gdt: Option<(u64, u16)>,
    /// The kernel's base of GS, and the word in which its entry finds the stack.
    pub(crate) gs: u64,
    pub(crate) stack_word: u64,
    /// The handlers of NMI and #MC, unless they are the lab's, and whether they have their own stack (IST).
    pub(crate) strikes: [(Option<u64>, bool); 2],
    pub(crate) memory: Vec<Piece>,
}

impl Kernel {
    pub(crate) fn new(entry: u64, mask: Rflags) -> Self {
        let star = Star::new(Selector(0x1b), Selector(0x8), 0);
        let strikes = [(None, true); 2];
        Self { entry, mask, star, gdt: None, gs: DATA, stack_word: DATA, strikes, memory: Vec::new() }
    }

    pub(crate) fn of_place(place: usize, mask: Rflags) -> Self {
        Self::new(part(ENTRIES + place).unwrap_or_default(), mask)
    }
}

/// A machine, and every state of it that was met.
pub(crate) struct Preempted {
    machine: Processor,
    kernel: Kernel,
    /// Values that no state contains, so an entry must not change them.
    fixed: [u64; 9],
    data: Vec<Range<u64>>,
    counts: Counts,
    segments: Vec<[(Selector, Hidden); 8]>,
    states: Vec<Rc<[u64]>>,
    numbers: HashMap<Words, u32>,
    unmodelled: Option<String>,
}

impl Preempted {
    /// Sets the machine up. The first thread is about to begin; the timer preempted the second at the same point. Returns
    /// `None` if the GDT lacks a segment that threads or handlers need.
    pub(crate) fn new(kernel: Kernel) -> Option<(Self, StateId)> {
        let size = if kernel.memory.is_empty() { 0 } else { MOST_BYTES };
        let mut memory = vec![0; (PROGRAM + size) as usize];
        memory[CODE as usize..][..code().len()].copy_from_slice(code());
        let mut machine = Processor::new(Vendor::Intel, memory, 0);
        let data = load(&mut machine, &kernel.memory);
        set_up(&mut machine, &kernel)?;
        let (counts, fixed) = (machine.counts, fixed(&machine));
        let mut made = Self {
            machine,
            kernel,
            fixed,
            data,
            counts,
            segments: Vec::new(),
            states: Vec::new(),
            numbers: HashMap::new(),
            unmodelled: None,
        };
        let first = made.take(0);
        Some((made, first))
    }

    pub(crate) fn unmodelled(&self) -> Option<&str> {
        self.unmodelled.as_deref()
    }

    pub(crate) fn loss(&self, state: StateId) -> Option<Loss> {
        let words = self.words(state);
        let segments = self.segments_of(state);
        let (gs, thread) = (segments[SegmentRegister::Gs as usize].1.base, self.thread(state));
        if words[REST] & STOPPED != 0 {
            return Some(Loss::Stops { with_user_gs: !self.is_in_ring_3(state) && gs != self.kernel.gs });
        }
        if words[REST] & BAD_ARRIVAL != 0 {
            return Some(Loss::Arrival);
        }
        if !self.is_in_ring_3(state) {
            return None;
        }
        let other = |number: &usize| words[*number] != register_of(thread, *number);
        let registers = (0..16).filter(|number| !CHANGED.contains(number)).filter(other);
        let bits = registers.fold(0, |bits, number| bits | 1 << number);
        let wrong = [SegmentRegister::Cs, SegmentRegister::Ss].into_iter().find(|register| {
            let selector = segments[*register as usize].0;
            !fits(&self.machine, *register, selector, 3)
        });
        let code = address(Part::Thread)..=address(Part::Done);
        let losses = [
            (!code.contains(&self.rip(state))).then_some(Loss::Place),
            (bits >> RSP & 1 != 0).then_some(Loss::Stack),
            (gs != NOWHERE).then_some(Loss::Gs),
            (bits != 0).then_some(Loss::Registers(bits)),
            (words[FLAGS] != USER_FLAGS.0).then_some(Loss::Flags),
            wrong.map(|register| Loss::Segment(register, segments[register as usize].0)),
        ];
        losses.into_iter().flatten().next()
    }

    pub(crate) fn thread(&self, state: StateId) -> usize {
        (self.word(state, CURRENT) / 8) as usize & 1
    }

    pub(crate) fn stack(&self, state: StateId) -> Stack {
        Stack::at(self.words(state)[RSP])
    }

    /// Returns the stack that gs:8 of the lab's kernel points to.
    pub(crate) fn saved_stack(&self, state: StateId) -> Stack {
        Stack::at(self.word(state, SAVED_STACK))
    }

    pub(crate) fn has_kernel_gs(&self, state: StateId) -> bool {
        self.segments_of(state)[SegmentRegister::Gs as usize].1.base == self.kernel.gs
    }

    pub(crate) fn is_in_ring_3(&self, state: StateId) -> bool {
        self.segments_of(state)[SegmentRegister::Cs as usize].0.rpl() == 3
    }

    /// Returns whether the running thread has made its call.
    pub(crate) fn is_done(&self, state: StateId) -> bool {
        self.words(state)[REST] & STOPPED == 0 && self.rip(state) == address(Part::Done)
    }

    pub(crate) fn is_over(&self, state: StateId) -> bool {
        let saved = self.word(state, SAVED + 8 * (1 - self.thread(state)) as u64);
        self.is_done(state)
            && Stack::at(saved) != Stack::Nowhere
            && self.word(state, saved + FRAME_RIP) == address(Part::Done)
    }

    pub(crate) fn can_be_interrupted(&self, state: StateId) -> bool {
        let words = self.words(state);
        words[FLAGS] & Rflags::IF.0 != 0 && words[REST] & (HELD_BACK | STOPPED) == 0
    }

    pub(crate) fn rip(&self, state: StateId) -> u64 {
        self.words(state)[RIP]
    }

    pub(crate) fn text(&mut self, state: StateId) -> String {
        self.restore(state);
        self.machine.start = self.machine.rip;
        let bytes = self.machine.bytes_here();
        written(&bytes, true, self.machine.rip).1
    }

    pub(crate) fn fault(&mut self, state: StateId) -> Option<String> {
        self.restore(state);
        self.machine.record = Some(WatchedInstruction::default());
        // Whether the exception ends the machine is already known.
        let _ = self.machine.step();
        let fault = self.machine.record.take()?.exception?;
        fault.exception.mnemonic().map(|name| format!("#{name}"))
    }

    pub(crate) fn execute(&mut self, state: StateId) -> Option<StateId> {
        if self.words(state)[REST] & STOPPED != 0 {
            return None;
        }
        self.restore(state);
        let step = self.machine.step();
        let is_stopped = self.stops(step);
        Some(self.take(if is_stopped { STOPPED } else { 0 }))
    }

    /// Returns the state after a timer interrupt, in the other thread; `None` if none can come.
    pub(crate) fn preempt(&mut self, state: StateId) -> Option<StateId> {
        if !self.can_be_interrupted(state) {
            return None;
        }
        self.restore(state);
        let mut marks = if self.is_on_a_stack_of_its_own() { 0 } else { BAD_ARRIVAL };
        let step = self.machine.interrupt(TIMER);
        let mut is_stopped = self.stops(step);
        let handler = address(Part::Timer)..address(Part::TimerEnd);
        let mut left = HANDLER;
        while !is_stopped && handler.contains(&self.machine.rip) {
            left -= 1;
            let step = self.machine.step();
            is_stopped = self.stops(step) || left == 0;
        }
        if is_stopped {
            marks |= STOPPED;
        }
        // When a thread resumes in ring 0, the interrupt's frame below its stack pointer is dead.
        self.bury(self.current(), self.machine.general[RSP]);
        Some(self.take(marks))
    }

    /// Returns what an NMI (0) or a #MC (1) before the next instruction loses. A correct handler restores everything.
    pub(crate) fn strike(&mut self, state: StateId, which: usize) -> Option<Loss> {
        if !self.kernel.strikes[which].1 && !self.restored(state).is_on_a_stack_of_its_own() {
            return Some(Loss::Arrival);
        }
        self.restore(state);
        let looks = |machine: &Processor| (machine.rip, machine.general[RSP], machine.cpl);
        let begin = looks(&self.machine);
        let step = self.machine.interrupt(STRIKES[which]);
        let mut is_stopped = self.stops(step);
        let mut left = LONGEST;
        while !is_stopped && looks(&self.machine) != begin {
            left -= 1;
            if left == 0 {
                return Some(Loss::Endless);
            }
            let step = self.machine.step();
            is_stopped = self.stops(step);
        }
        let machine = &self.machine;
        let gs = machine.msr(Msr::GsBase);
        if is_stopped {
            return Some(Loss::Stops { with_user_gs: gs != self.kernel.gs });
        }
        let words = self.words(state);
        let bits = (0..16).filter(|at| machine.general[*at] != words[*at]).fold(0, |bits, at| bits | 1 << at);
        let was = self.segments_of(state)[SegmentRegister::Gs as usize].1.base;
        match bits {
            _ if gs != was || machine.msr(Msr::KernelGsBase) != words[KERNEL_GS] => Some(Loss::Gs),
            0 if machine.flags.0 != words[FLAGS] => Some(Loss::Flags),
            0 => None,
            bits => Some(Loss::Registers(bits)),
        }
    }

    /// Returns whether a step ends the machine; records why if an instruction is not modelled.
    fn stops(&mut self, step: Result<(), End>) -> bool {
        match step {
            Ok(()) => false,
            Err(End::CutShort(why)) if why.starts_with("the processor shut down") => true,
            Err(End::CutShort(why)) => {
                self.unmodelled.get_or_insert(why);
                true
            }
            Err(End::Asked) => true,
        }
    }

    fn restored(&mut self, state: StateId) -> &Self {
        self.restore(state);
        self
    }

    /// Returns whether an interruption without IST would use a kernel stack.
    fn is_on_a_stack_of_its_own(&self) -> bool {
        let own = Stack::Kernel(self.current());
        self.machine.cpl == 3 || Stack::at(self.machine.general[RSP]) == own
    }

    fn current(&self) -> usize {
        (self.machine.memory.read(CURRENT, 8) / 8) as usize & 1
    }

    /// Clears the dead words below a thread's kernel stack pointer, which would only make states differ.
    fn bury(&mut self, thread: usize, pointer: u64) {
        if Stack::at(pointer) == Stack::Kernel(thread) {
            let begin = end_of(0, thread) - APART[0];
            for at in (begin..pointer & !7).step_by(8) {
                self.machine.memory.write(at, 8, 0);
            }
        }
    }

    fn words(&self, state: StateId) -> &[u64] {
        &self.states[state.0 as usize]
    }

    fn segments_of(&self, state: StateId) -> &[(Selector, Hidden); 8] {
        let number = (self.words(state)[REST] >> SEGMENTS) as usize;
        self.segments.get(number).unwrap_or(&self.machine.segments)
    }

    /// Returns a word of memory; 0 if the state does not have it.
    fn word(&self, state: StateId, address: u64) -> u64 {
        let at = address.checked_sub(DATA).filter(|at| at % 8 == 0).map_or(WORDS, |at| at as usize / 8);
        if at < WORDS { self.words(state)[SHARED + at] } else { 0 }
    }

    fn take(&mut self, marks: u64) -> StateId {
        if fixed(&self.machine) != self.fixed {
            let why = "it changes control registers, tables or MSRs, which stay as they are here";
            self.unmodelled.get_or_insert(why.to_owned());
        }
        // In ring 3 a thread's kernel stack is empty; a thread that does not run has only its frame and the words above.
        let current = self.current();
        if self.machine.cpl == 3 {
            self.bury(current, end_of(0, current));
        }
        self.bury(1 - current, self.machine.memory.read(SAVED + 8 * (1 - current) as u64, 8));
        let machine = &self.machine;
        let mut words = Vec::with_capacity(self.states.first().map_or(0, |first| first.len()));
        words.extend_from_slice(&machine.general[..16]);
        words.extend([machine.rip, machine.flags.0, machine.msr(Msr::KernelGsBase), 0]);
        words.extend(self.addresses().map(|at| machine.memory.read(at, 8)));
        let held_back = if machine.shadow { HELD_BACK } else { 0 };
        words[REST] = self.segments_number() << SEGMENTS | held_back | marks;
        let words: Rc<[u64]> = words.into();
        let number = self.states.len() as u32;
        let number = *self.numbers.entry(Words(Rc::clone(&words))).or_insert(number);
        if number as usize == self.states.len() {
            self.states.push(words);
        }
        StateId(number)
    }

    fn addresses(&self) -> impl Iterator<Item = u64> + use<> {
        let ranges = std::iter::once(DATA..DATA + 8 * WORDS as u64).chain(self.data.clone());
        ranges.flat_map(|range| range.step_by(8))
    }

    fn restore(&mut self, state: StateId) {
        let words = Rc::clone(&self.states[state.0 as usize]);
        let addresses = self.addresses();
        let machine = &mut self.machine;
        machine.general[..16].copy_from_slice(&words[..16]);
        machine.rip = words[RIP];
        machine.flags.0 = words[FLAGS];
        machine.shadow = words[REST] & HELD_BACK != 0;
        machine.counts = self.counts;
        if let Some(segments) = self.segments.get((words[REST] >> SEGMENTS) as usize) {
            machine.segments = *segments;
        }
        machine.set_msr(Msr::KernelGsBase, words[KERNEL_GS]);
        for (at, word) in addresses.zip(&words[SHARED..]) {
            machine.memory.write(at, 8, *word);
        }
    }

    fn segments_number(&mut self) -> u64 {
        let segments = self.machine.segments;
        let known = self.segments.iter().position(|known| *known == segments);
        known.unwrap_or_else(|| {
            self.segments.push(segments);
            self.segments.len() - 1
        }) as u64
    }
}

fn address(of: Part) -> u64 {
    part(of as usize).unwrap_or_default()
}

fn fixed(machine: &Processor) -> [u64; 9] {
    let [efer, star, entry, mask] =
        [Msr::Efer, Msr::Star, Msr::Lstar, Msr::Fmask].map(|msr| machine.msr(msr));
    let tables = [machine.gdtr.base, machine.idtr.base];
    [machine.cr0.0, machine.cr3, machine.cr4.0, tables[0], tables[1], efer, star, entry, mask]
}

const USER_FLAGS: Rflags = Rflags::FIXED.with(Rflags::IF);
/// Bits of page-table entries: present, writable, open to ring 3; and a page of 2 MiB.
const PRESENT: u64 = 1;
const WRITABLE: u64 = 2;
const OPEN: u64 = 0b111;
const LARGE: u64 = 1 << 7;

/// Maps the memory of a file's program page by page; returns the ranges of its data, in whole words.
fn load(machine: &mut Processor, memory: &[Piece]) -> Vec<Range<u64>> {
    let place = |address: u64| PROGRAM + (address - BEGIN);
    for segment in memory {
        let begin = place(segment.address) as usize;
        machine.memory.bytes[begin..begin + segment.bytes.len()].copy_from_slice(&segment.bytes);
        let rights = PRESENT | if segment.is_writable { WRITABLE } else { 0 };
        let first = segment.address & !0xfff;
        for page in (first..segment.address + segment.size).step_by(0x1000) {
            let at = PAGES + (page - BEGIN) / 0x1000 * 8;
            machine.memory.write(at, 8, place(page) | rights);
        }
    }
    let data = memory.iter().filter(|segment| segment.is_writable);
    data.map(|it| place(it.address) & !7..place(it.address + it.size)).collect()
}

fn set_up(machine: &mut Processor, kernel: &Kernel) -> Option<()> {
    let entries = [
        (PML4, 0x2000 | OPEN),
        (0x2000, 0x3000 | OPEN),
        (0x2008, DIRECTORY | OPEN),
        (0x3000, OPEN | LARGE),
        (DIRECTORY, PAGES | OPEN),
    ];
    for (at, entry) in entries {
        machine.memory.write(at, 8, entry);
    }
    machine.cr0 = Cr0::PE.with(Cr0::PG).with(Cr0::WP);
    machine.cr3 = PML4;
    machine.cr4 = tollgate_x86::Cr4::PAE;
    machine.set_msr(Msr::Efer, Efer::LME.with(Efer::LMA).with(Efer::SCE).0);
    machine.set_msr(Msr::Star, kernel.star.0);
    machine.set_msr(Msr::Lstar, kernel.entry);
    machine.set_msr(Msr::Fmask, kernel.mask.0);
    tables(machine, kernel)?;
    machine.set_msr(Msr::GsBase, NOWHERE);
    machine.set_msr(Msr::KernelGsBase, kernel.gs);
    Some(())
}

/// Sets up the GDT: the lab's, in the order that SYSCALL and SYSRET require (kernel code and data, 32-bit code and data and
/// 64-bit code of ring 3), or that of a file. Threads and handlers get suitable segments wherever they are in it.
fn tables(machine: &mut Processor, kernel: &Kernel) -> Option<()> {
    let task = Descriptor { base: TSS as u32, limit: 0x67, kind: 0xb, p: true, ..Descriptor::default() };
    let flat = [
        Descriptor::flat_code(0, true),
        Descriptor::flat_data(0),
        Descriptor::flat_code(3, false),
        Descriptor::flat_data(3),
        Descriptor::flat_code(3, true),
    ];
    for (at, descriptor) in (1..).zip(flat) {
        machine.memory.write(GDT + 8 * at, 8, u64::from_le_bytes(descriptor.encode()));
    }
    let (base, limit) = kernel.gdt.unwrap_or((GDT, 0x2f));
    machine.gdtr = TableBounds { base, limit };
    let find = |machine: &Processor, register, ring: u8| {
        let all = (1..=limit / 8).map(|index| Selector::new(index, tollgate_x86::Table::Gdt, ring));
        all.into_iter().find(|selector| fits(machine, register, *selector, ring))
    };
    let kernel_code = find(machine, SegmentRegister::Cs, 0)?;
    let user_code = find(machine, SegmentRegister::Cs, 3)?;
    let user_data = find(machine, SegmentRegister::Ss, 3)?;
    let strike = |at: usize| {
        let (handler, has_stack) = kernel.strikes[at];
        (STRIKES[at], handler.unwrap_or(address(Part::Strike)), u8::from(has_stack))
    };
    for (vector, handler, stack) in [(TIMER, address(Part::Timer), 0), strike(0), strike(1)] {
        let gate = WideGate::new(GateKind::Interrupt, kernel_code, handler, 0, stack).encode();
        for (at, half) in (0..).zip(gate.chunks_exact(8)) {
            let half = half.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            machine.memory.write(IDT + 16 * u64::from(vector) + 8 * at, 8, half);
        }
    }
    machine.idtr = TableBounds { base: IDT, limit: 0x20f };
    machine.load_segment(SegmentRegister::Tr, Segment::new(Selector(TASK), task));
    machine.load_segment(SegmentRegister::Ss, Segment::new(user_data, Descriptor::flat_data(3)));
    machine.load_segment(SegmentRegister::Cs, Segment::new(user_code, Descriptor::flat_code(3, true)));
    threads(machine, kernel, user_code, user_data);
    Some(())
}

/// Returns whether the GDT has a segment that CS or SS can hold in a ring.
fn fits(machine: &Processor, register: SegmentRegister, selector: Selector, ring: u8) -> bool {
    let TableBounds { base, limit } = machine.gdtr;
    if selector.offset() == 0 || selector.offset().saturating_add(7) > limit {
        return false;
    }
    let at = base + u64::from(selector.offset());
    let at = if at >= BEGIN { at - BEGIN + PROGRAM } else { at };
    let descriptor = Descriptor::decode(machine.memory.read(at, 8).to_le_bytes());
    let is_right = match descriptor.kind() {
        DescriptorKind::Code { conforming: false, .. } => {
            register == SegmentRegister::Cs && descriptor.l && !descriptor.d
        }
        DescriptorKind::Data { writable: true, .. } => register == SegmentRegister::Ss,
        _ => false,
    };
    is_right && descriptor.p && descriptor.dpl == ring && selector.rpl() == ring
}

/// Makes the first thread run, and gives the second the frame that the timer leaves.
fn threads(machine: &mut Processor, kernel: &Kernel, code: Selector, data: Selector) {
    machine.rip = address(Part::Thread);
    machine.flags.0 = USER_FLAGS.0;
    for number in 0..16 {
        machine.general[number] = register_of(0, number);
    }
    let words = [
        (STACK, end_of(0, 0)),
        (STACK + 8, end_of(0, 1)),
        (RSP0, end_of(0, 0)),
        (IST1, STRIKE_STACK),
        (STACK_WORD, kernel.stack_word),
        (GS, kernel.gs),
    ];
    for (at, value) in words {
        machine.memory.write(at, 8, value);
    }
    let word = kernel.stack_word;
    let word = if word >= BEGIN { word - BEGIN + PROGRAM } else { word };
    machine.memory.write(word, 8, end_of(0, 0));
    let registers = (0..16).filter(|number| *number != RSP).map(|number| register_of(1, number));
    let frame = [address(Part::Thread), code.0.into(), USER_FLAGS.0, end_of(1, 1), data.0.into()];
    let frame: Vec<u64> = registers.chain(frame).collect();
    let begin = end_of(0, 1) - 8 * frame.len() as u64;
    for (at, word) in (0..).zip(frame) {
        machine.memory.write(begin + 8 * at, 8, word);
    }
    machine.memory.write(SAVED + 8, 8, begin);
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")] // The guest is code of x86-64.
mod tests {
    use super::*;

    #[test]
    fn a_call_goes_to_ring_0_and_back_and_the_timer_takes_turns() {
        let (mut machine, first) = Preempted::new(Kernel::of_place(1, Rflags::IF)).expect("the lab's GDT");
        assert!(machine.is_in_ring_3(first) && !machine.is_over(first));
        assert_eq!((machine.thread(first), machine.stack(first)), (0, Stack::User(0)));
        assert_eq!(machine.text(first), "syscall");
        let mut at = machine.execute(first).expect("it goes on");
        assert!(!machine.is_in_ring_3(at) && !machine.can_be_interrupted(at), "FMASK has cleared IF");
        while !machine.is_in_ring_3(at) {
            at = machine.execute(at).expect("it goes on");
        }
        assert_eq!((machine.stack(at), machine.saved_stack(at)), (Stack::User(0), Stack::User(0)));
        let mut at = machine.preempt(at).expect("interrupts are on");
        assert_eq!((machine.thread(at), machine.stack(at), machine.is_over(at)), (1, Stack::User(1), false));
        for _ in 0..40 {
            at = machine.execute(at).expect("it goes on");
        }
        assert!(machine.is_over(at));
        let there = machine.preempt(at).expect("interrupts are on");
        assert!(machine.is_over(there) && machine.thread(there) == 0);
        assert_eq!(machine.execute(there), Some(there), "jmp to itself");
    }
}
