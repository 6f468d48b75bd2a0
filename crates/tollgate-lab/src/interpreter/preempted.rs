//! A machine with two threads whose kernel may be preempted (`guest/preempted.s`), so that it can go on from one state in several ways.
//!
//! A state is all that the next steps depend on: the registers, the segments with the base of GS and the one that SWAPGS brings, and the
//! kernel's words with all stacks. It is taken between two instructions of a thread, in ring 3 or in ring 0; what the timer does is one step.

use std::collections::HashMap;
use std::rc::Rc;

use tollgate_x86::walk::{Hidden, Segment, SegmentRegister};
use tollgate_x86::{Cr0, Descriptor, Efer, GateKind, Msr, Rflags, Selector, Star, Vendor, WideGate};

use super::explore::{State, Words};
use super::state::{Place, Processor};
use super::watch::written;
use crate::engine::Counts;
use crate::guest::preempted::{code, part};

/// The list of `preempted.s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Thread,
    Done,
    Timer,
    TimerEnd,
}

/// Where the entries begin in that list.
const ENTRIES: usize = 4;

const MEMORY: usize = 0x1_0000;
const PML4: u64 = 0x1000;
const GDT: u64 = 0x4000;
const IDT: u64 = 0x5000;
const CODE: u64 = 0x7000;
/// The words of the kernel: gs:0 and gs:8, the thread that runs, and for each thread where its registers are and the end of its stack.
const DATA: u64 = 0x8000;
const SAVED_STACK: u64 = DATA + 8;
const CURRENT: u64 = DATA + 0x10;
const SAVED: u64 = DATA + 0x18;
const STACK: u64 = DATA + 0x28;
const TSS: u64 = DATA + 0x80;
const RSP0: u64 = TSS + 4;
/// The end of the first thread's stack in the kernel and in ring 3; the second one's is so many bytes above.
const STACK_ENDS: [u64; 2] = [DATA + 0x200, DATA + 0x380];
const APART: [u64; 2] = [0x100, 0x80];
/// Words of a state that are in memory.
const WORDS: usize = 0x80;
/// The base of GS in ring 3, where no page is.
const NOWHERE: u64 = 1 << 40;
const TIMER: u8 = 0x20;
/// Instructions of the handler, and some.
const HANDLER: usize = 64;
/// In the frame of a thread that the timer has taken the processor from: RIP, behind four registers.
const FRAME_RIP: u64 = 32;
const KERNEL_CODE: u16 = 0x8;
const USER_DATA: u16 = 0x23;
const USER_CODE: u16 = 0x2b;
const TASK: u16 = 0x30;

/// Where the parts of a state are in its words: the general registers come first.
const RIP: usize = 16;
const FLAGS: usize = 17;
const KERNEL_GS: usize = 18;
/// The number of the segment registers' values, whether interrupts are held back, and whether the machine has stopped.
const REST: usize = 19;
const SHARED: usize = 20;
const STOPPED: u64 = 1;
const HELD_BACK: u64 = 2;

/// The stack that an address is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stack {
    /// Of this thread in the kernel.
    Kernel(usize),
    /// Of this thread in ring 3.
    User(usize),
    /// Of none.
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

/// The end of a thread's stack: in the kernel (0), in ring 3 (1).
const fn end_of(kind: usize, thread: usize) -> u64 {
    STACK_ENDS[kind] + APART[kind] * thread as u64
}

/// The machine, and every state of it that was met.
pub(crate) struct Preempted {
    machine: Processor,
    counts: Counts,
    segments: Vec<[(Selector, Hidden); 8]>,
    states: Vec<Rc<[u64]>>,
    numbers: HashMap<Words, u32>,
}

impl Preempted {
    /// Sets the machine up, with an entry by its place in `preempted.s` and the flags that SYSCALL clears. The first thread is about to
    /// begin, the second one was so when the timer came.
    pub(crate) fn new(entry: usize, mask: Rflags) -> (Self, State) {
        let mut memory = vec![0; MEMORY];
        memory[CODE as usize..][..code().len()].copy_from_slice(code());
        let mut machine = Processor::new(Vendor::Intel, memory, 0);
        set_up(&mut machine, entry, mask);
        let counts = machine.counts;
        let mut made =
            Self { machine, counts, segments: Vec::new(), states: Vec::new(), numbers: HashMap::new() };
        let first = made.take(false);
        (made, first)
    }

    /// Whether the processor has shut down.
    pub(crate) fn is_stopped(&self, state: State) -> bool {
        self.words(state)[REST] & STOPPED != 0
    }

    /// The thread that runs.
    pub(crate) fn thread(&self, state: State) -> usize {
        (self.word(state, CURRENT) / 8) as usize & 1
    }

    /// The stack that RSP points to.
    pub(crate) fn stack(&self, state: State) -> Stack {
        Stack::at(self.words(state)[4])
    }

    /// The stack that gs:8 of the kernel points to.
    pub(crate) fn saved_stack(&self, state: State) -> Stack {
        Stack::at(self.word(state, SAVED_STACK))
    }

    /// Whether the thread that runs is in ring 3.
    pub(crate) fn is_in_ring_3(&self, state: State) -> bool {
        let segments = self.segments.get((self.words(state)[REST] >> 2) as usize);
        segments.is_some_and(|all| all[SegmentRegister::Cs as usize].0.rpl() == 3)
    }

    /// Whether both threads are behind their calls.
    pub(crate) fn is_over(&self, state: State) -> bool {
        let saved = self.word(state, SAVED + 8 * (1 - self.thread(state)) as u64);
        let done = address(Part::Done);
        !self.is_stopped(state)
            && self.rip(state) == done
            && Stack::at(saved) != Stack::Nowhere
            && self.word(state, saved + FRAME_RIP) == done
    }

    /// Whether an interrupt can come here.
    pub(crate) fn can_be_interrupted(&self, state: State) -> bool {
        let words = self.words(state);
        words[FLAGS] & Rflags::IF.0 != 0 && words[REST] & (HELD_BACK | STOPPED) == 0
    }

    /// The address of the next instruction.
    pub(crate) fn rip(&self, state: State) -> u64 {
        self.words(state)[RIP]
    }

    /// The next instruction, in Intel's syntax.
    pub(crate) fn text(&mut self, state: State) -> String {
        self.restore(state);
        self.machine.start = self.machine.rip;
        let bytes = self.machine.bytes_here();
        written(&bytes, true, self.machine.rip).1
    }

    /// The state after the next instruction; none where the machine has stopped.
    pub(crate) fn execute(&mut self, state: State) -> Option<State> {
        if self.is_stopped(state) {
            return None;
        }
        self.restore(state);
        let is_stopped = self.machine.step().is_err();
        Some(self.take(is_stopped))
    }

    /// The state after an interrupt of the timer, in the other thread; none where none can come.
    pub(crate) fn preempt(&mut self, state: State) -> Option<State> {
        if !self.can_be_interrupted(state) {
            return None;
        }
        self.restore(state);
        let mut is_stopped = self.machine.interrupt(TIMER).is_err();
        let handler = address(Part::Timer)..address(Part::TimerEnd);
        let mut left = HANDLER;
        while !is_stopped && handler.contains(&self.machine.rip) {
            left -= 1;
            is_stopped = left == 0 || self.machine.step().is_err();
        }
        Some(self.take(is_stopped))
    }

    fn words(&self, state: State) -> &[u64] {
        &self.states[state.0 as usize]
    }

    /// A word of memory; 0 where none is kept.
    fn word(&self, state: State, address: u64) -> u64 {
        let at = address.checked_sub(DATA).filter(|at| at % 8 == 0).map_or(WORDS, |at| at as usize / 8);
        if at < WORDS { self.words(state)[SHARED + at] } else { 0 }
    }

    /// The state that the machine is in. Of one that has stopped nothing else counts than who stopped it.
    fn take(&mut self, is_stopped: bool) -> State {
        let machine = &self.machine;
        let mut words = Vec::with_capacity(SHARED + WORDS);
        words.extend_from_slice(&machine.general[..16]);
        words.extend([machine.rip, machine.flags.0, machine.msr(Msr::KernelGsBase), 0]);
        words.extend((0..WORDS as u64).map(|at| machine.memory.read(DATA + 8 * at, 8)));
        let held_back = if machine.shadow { HELD_BACK } else { 0 };
        words[REST] = self.segments_number() << 2 | held_back | u64::from(is_stopped);
        let words: Rc<[u64]> = words.into();
        let number = self.states.len() as u32;
        let number = *self.numbers.entry(Words(Rc::clone(&words))).or_insert(number);
        if number as usize == self.states.len() {
            self.states.push(words);
        }
        State(number)
    }

    fn restore(&mut self, state: State) {
        let words = Rc::clone(&self.states[state.0 as usize]);
        let machine = &mut self.machine;
        machine.general[..16].copy_from_slice(&words[..16]);
        machine.rip = words[RIP];
        machine.flags.0 = words[FLAGS];
        machine.shadow = words[REST] & HELD_BACK != 0;
        machine.counts = self.counts;
        if let Some(segments) = self.segments.get((words[REST] >> 2) as usize) {
            machine.segments = *segments;
        }
        machine.set_msr(Msr::KernelGsBase, words[KERNEL_GS]);
        for (at, word) in (0..).zip(&words[SHARED..]) {
            machine.memory.write(DATA + 8 * at, 8, *word);
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

/// Page tables, GDT, IDT, TSS, the MSRs of SYSCALL, and the threads.
fn set_up(machine: &mut Processor, entry: usize, mask: Rflags) {
    /// Present, writable, for ring 3; and a page of 2 MiB.
    const OPEN: u64 = 0b111;
    const LARGE: u64 = 1 << 7;
    for (at, entry) in [(PML4, 0x2000 | OPEN), (0x2000, 0x3000 | OPEN), (0x3000, OPEN | LARGE)] {
        machine.memory.write(at, 8, entry);
    }
    machine.cr0 = Cr0::PE.with(Cr0::PG).with(Cr0::WP);
    machine.cr3 = PML4;
    machine.cr4 = tollgate_x86::Cr4::PAE;
    machine.set_msr(Msr::Efer, Efer::LME.with(Efer::LMA).with(Efer::SCE).0);
    machine.set_msr(Msr::Star, Star::new(Selector(0x1b), Selector(KERNEL_CODE), 0).0);
    machine.set_msr(Msr::Lstar, part(ENTRIES + entry).unwrap_or_default());
    machine.set_msr(Msr::Fmask, mask.0);
    tables(machine);
    threads(machine);
    machine.set_msr(Msr::GsBase, NOWHERE);
    machine.set_msr(Msr::KernelGsBase, DATA);
}

/// In the order that SYSCALL and SYSRET want: kernel code and data, 32-bit code and data and 64-bit code of ring 3; the task.
fn tables(machine: &mut Processor) {
    let task = Descriptor { base: TSS as u32, limit: 0x67, kind: 0xb, p: true, ..Descriptor::default() };
    let flat = [
        Descriptor::flat_code(0, true),
        Descriptor::flat_data(0),
        Descriptor::flat_code(3, false),
        Descriptor::flat_data(3),
        Descriptor::flat_code(3, true),
        task,
    ];
    for (at, descriptor) in (1..).zip(flat) {
        machine.memory.write(GDT + 8 * at, 8, u64::from_le_bytes(descriptor.encode()));
    }
    machine.gdtr = Place { base: GDT, limit: 0x3f };
    let gate = WideGate::new(GateKind::Interrupt, Selector(KERNEL_CODE), address(Part::Timer), 0, 0).encode();
    for (at, half) in (0..).zip(gate.chunks_exact(8)) {
        let half = half.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        machine.memory.write(IDT + 16 * u64::from(TIMER) + 8 * at, 8, half);
    }
    machine.idtr = Place { base: IDT, limit: 0x20f };
    machine.load_segment(SegmentRegister::Tr, Segment::new(Selector(TASK), task));
    machine.load_segment(SegmentRegister::Ss, Segment::new(Selector(USER_DATA), Descriptor::flat_data(3)));
    machine
        .load_segment(SegmentRegister::Cs, Segment::new(Selector(USER_CODE), Descriptor::flat_code(3, true)));
}

/// The first runs, and the second has the frame that the timer leaves.
fn threads(machine: &mut Processor) {
    let flags = Rflags::FIXED.with(Rflags::IF).0;
    machine.rip = address(Part::Thread);
    machine.flags.0 = flags;
    machine.general[4] = end_of(1, 0);
    for (thread, slot) in [(0, STACK), (1, STACK + 8)] {
        machine.memory.write(slot, 8, end_of(0, thread));
    }
    for place in [DATA, RSP0] {
        machine.memory.write(place, 8, end_of(0, 0));
    }
    let frame = [address(Part::Thread), USER_CODE.into(), flags, end_of(1, 1), USER_DATA.into()];
    let begin = end_of(0, 1) - 8 * frame.len() as u64;
    for (at, word) in (0..).zip(frame) {
        machine.memory.write(begin + 8 * at, 8, word);
    }
    machine.memory.write(SAVED + 8, 8, begin - FRAME_RIP);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_goes_to_ring_0_and_back_and_the_timer_takes_turns() {
        let (mut machine, first) = Preempted::new(1, Rflags::IF);
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
        // The same state is the same number.
        assert_eq!(machine.execute(there), Some(there), "jmp to itself");
    }
}
