//! Copies of a machine that runs programs, so that several successors of one state can be executed.
//!
//! A state is everything that the next steps depend on, in words. It is taken between two instructions of ring 3, when the
//! kernel holds only what `tollgate_guest_system_state` lists: its stack is then empty, and the running thread's saved
//! registers are stale. Clocks and counters are left out because no step reads them; CR2, because the kernel reads it only
//! right after the fault that sets it; and the accessed and dirty bits of page tables, because the kernel does not read them.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use tollgate_x86::walk::Hidden;
use tollgate_x86::{Rflags, Selector, Vendor};

use super::state::{End, Processor};
use super::tlb::Access;
use super::watch::written;
use crate::engine::Counts;
use crate::guest::{self, Image, system_state};
use crate::{LabError, Machine};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StateId(pub(crate) u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// In ring 3.
    Program,
    /// All programs have ended by themselves.
    Over,
    /// A fault ended a program.
    Dead,
}

/// Indexes of a state's parts in its words, after the general registers.
const RIP: usize = 16;
const FLAGS: usize = 17;
const CR3: usize = 18;
/// The index of the segment registers' values, whether interrupts are held back, and the machine's [`Stop`].
const REST: usize = 19;
const SHARED: usize = 20;
/// The kernel's word that holds the running thread, after those that programs share.
const THREAD: usize = SHARED + 6;
/// The kernel's parts in the list, before those of threads.
const KERNEL_PARTS: usize = 4;
/// The words that a program of a lock uses at the end of its stack, and one more.
const STACK: u64 = 4;
const STACK_END: u64 = 0x7fff_f000;
const TIMER: u8 = 0x20;
/// The limit of instructions in the kernel: its longest path writes a record.
const KERNEL: u32 = 200_000;

/// A machine, and every state of it that was met.
pub(crate) struct Explorer {
    machine: Processor,
    counts: Counts,
    parts: Vec<guest::LockWords>,
    /// The words of each thread's saved registers, with the thread's address.
    saved: Vec<(u64, std::ops::Range<usize>)>,
    segments: Vec<[(Selector, Hidden); 8]>,
    states: Vec<Rc<[u64]>>,
    numbers: HashMap<Words, u32>,
}

impl Explorer {
    /// Starts the guest and runs it until it enters the first of `programs` programs.
    pub(crate) fn new(image: &Image, machine: Machine, programs: usize) -> Result<(Self, StateId), LabError> {
        let mut memory = vec![0; machine.memory];
        let begin = guest::BASE as usize;
        match memory.get_mut(begin..begin + image.bytes().len()) {
            Some(place) => place.copy_from_slice(image.bytes()),
            None => return Err(unfinished("it does not fit into memory".to_owned())),
        }
        let mut processor = Processor::new(machine.vendor.unwrap_or(Vendor::Intel), memory, image.entry());
        for _ in 0..machine.instructions {
            if processor.cpl == 3 {
                break;
            }
            processor.step().map_err(ended)?;
        }
        let mut parts = system_state();
        parts.truncate(KERNEL_PARTS + 2 * programs);
        let mut explorer = Self {
            counts: processor.counts,
            machine: processor,
            parts,
            saved: Vec::new(),
            segments: Vec::new(),
            states: Vec::new(),
            numbers: HashMap::new(),
        };
        explorer.find_threads();
        explorer.find_stacks(programs)?;
        let first = explorer.take(Stop::Program)?;
        Ok((explorer, first))
    }

    fn find_threads(&mut self) {
        let mut at = SHARED;
        for (number, part) in self.parts.iter().enumerate() {
            if number >= KERNEL_PARTS && (number - KERNEL_PARTS) % 2 == 1 {
                self.saved.push((self.parts[number - 1].address, at..at + part.words));
            }
            at += part.words;
        }
    }

    /// Adds the ends of the programs' stacks to the state. Each stack is looked up in its program's address space.
    fn find_stacks(&mut self, programs: usize) -> Result<(), LabError> {
        let own = self.machine.cr3;
        let end = STACK_END - 8 * STACK;
        for program in 0..programs {
            let Some((thread, _)) = self.saved.get(program) else { break };
            // A thread's second word points to its program, whose first word is the root of its page tables.
            let memory = &self.machine.memory;
            self.machine.cr3 = memory.read(memory.read(thread + 8, 8), 8);
            self.machine.translations.flush();
            let address = self.machine.translate(end, Access::UserWrite);
            let address = address.map_err(|_| unfinished("a program has no stack".to_owned()))?;
            self.parts.push(guest::LockWords { address, words: STACK as usize });
        }
        self.machine.cr3 = own;
        self.machine.translations.flush();
        Ok(())
    }

    pub(crate) fn place(&self, state: StateId) -> Stop {
        match self.words(state)[REST] & 3 {
            0 => Stop::Program,
            1 => Stop::Over,
            _ => Stop::Dead,
        }
    }

    pub(crate) fn shared(&self, state: StateId, word: usize) -> u32 {
        let both = self.words(state).get(SHARED + word / 2).copied().unwrap_or_default();
        (both >> (word % 2 * 32)) as u32
    }

    pub(crate) fn thread(&self, state: StateId) -> usize {
        let address = self.words(state)[THREAD];
        self.saved.iter().position(|(thread, _)| *thread == address).unwrap_or_default()
    }

    pub(crate) fn can_be_interrupted(&self, state: StateId) -> bool {
        let words = self.words(state);
        words[FLAGS] & Rflags::IF.0 != 0 && words[REST] & HELD_BACK == 0
    }

    pub(crate) fn rip(&self, state: StateId) -> u64 {
        self.words(state)[RIP]
    }

    pub(crate) fn register(&self, state: StateId, number: usize) -> u64 {
        self.words(state)[number]
    }

    pub(crate) fn text(&mut self, state: StateId) -> String {
        self.restore(state);
        self.machine.start = self.machine.rip;
        let bytes = self.machine.bytes_here();
        written(&bytes, true, self.machine.rip).1
    }

    /// Returns the state after the program's next instruction, and everything that the kernel does for it.
    pub(crate) fn execute(&mut self, state: StateId) -> Result<StateId, LabError> {
        self.restore(state);
        let step = self.machine.step();
        self.back_to_ring_3(step)
    }

    pub(crate) fn preempt(&mut self, state: StateId) -> Result<StateId, LabError> {
        self.restore(state);
        let step = self.machine.interrupt(TIMER);
        self.back_to_ring_3(step)
    }

    fn back_to_ring_3(&mut self, mut step: Result<(), End>) -> Result<StateId, LabError> {
        for _ in 0..KERNEL {
            match step {
                Ok(()) if self.machine.cpl == 3 => return self.arrived(Stop::Program),
                Ok(()) => step = self.machine.step(),
                Err(End::Asked) => return self.arrived(Stop::Over),
                Err(end) => return Err(ended(end)),
            }
        }
        Err(unfinished("the kernel does not return to a program".to_owned()))
    }

    fn arrived(&mut self, place: Stop) -> Result<StateId, LabError> {
        let serial = std::mem::take(&mut self.machine.ports.serial);
        let says = |text: &[u8]| serial.windows(text.len()).any(|part| part == text);
        if says(b"tg1 broken ") {
            return Err(unfinished("a fault of the kernel".to_owned()));
        }
        self.take(if says(b"tg1 dead ") { Stop::Dead } else { place })
    }

    fn words(&self, state: StateId) -> &[u64] {
        &self.states[state.0 as usize]
    }

    fn take(&mut self, place: Stop) -> Result<StateId, LabError> {
        if !self.machine.unknown.is_empty() {
            return Err(unfinished("a program has an instruction unknown to the interpreter".to_owned()));
        }
        let mut words = Vec::with_capacity(self.states.first().map_or(0, |first| first.len()));
        words.extend_from_slice(&self.machine.general[..16]);
        words.extend([self.machine.rip, self.machine.flags.0, self.machine.cr3, 0]);
        for part in &self.parts {
            words.extend((0..part.words).map(|at| self.machine.memory.read(part.address + 8 * at as u64, 8)));
        }
        words[REST] = self.segments_number() << 3 | u64::from(self.machine.shadow) << 2 | place as u64;
        if place == Stop::Program {
            let rsp = self.machine.general[4];
            if !(STACK_END - 8 * STACK..=STACK_END).contains(&rsp) {
                return Err(unfinished(format!(
                    "a program has its stack at {rsp:x}, outside of what is kept"
                )));
            }
            // The registers that it saved at its last entry are stale.
            let thread = words[THREAD];
            if let Some((_, place)) = self.saved.iter().find(|(address, _)| *address == thread) {
                words[place.clone()].fill(0);
            }
        } else {
            words[..REST].fill(0);
        }
        let words: Rc<[u64]> = words.into();
        let key = Words(Rc::clone(&words));
        if let Some(&number) = self.numbers.get(&key) {
            return Ok(StateId(number));
        }
        let number =
            u32::try_from(self.states.len()).map_err(|_| unfinished("too many states".to_owned()))?;
        self.states.push(words);
        self.numbers.insert(key, number);
        Ok(StateId(number))
    }

    fn restore(&mut self, state: StateId) {
        let words = Rc::clone(&self.states[state.0 as usize]);
        let machine = &mut self.machine;
        machine.general[..16].copy_from_slice(&words[..16]);
        machine.rip = words[RIP];
        machine.flags.0 = words[FLAGS];
        if machine.cr3 != words[CR3] {
            machine.cr3 = words[CR3];
            machine.translations.flush();
        }
        machine.shadow = words[REST] & HELD_BACK != 0;
        machine.counts = self.counts;
        if let Some(segments) = self.segments.get((words[REST] >> 3) as usize) {
            machine.segments = *segments;
        }
        machine.mode_changed();
        let mut at = SHARED;
        for part in &self.parts {
            for word in 0..part.words {
                let address = part.address + 8 * word as u64;
                if machine.memory.read(address, 8) != words[at] {
                    machine.memory.write(address, 8, words[at]);
                }
                at += 1;
            }
        }
    }

    /// Returns the index of the segment registers' values. There are few, as all ways into a program give nearly the same.
    fn segments_number(&mut self) -> u64 {
        let segments = self.machine.segments;
        let known = self.segments.iter().position(|known| *known == segments);
        known.unwrap_or_else(|| {
            self.segments.push(segments);
            self.segments.len() - 1
        }) as u64
    }
}

/// The words of a state, as a key. The standard library's hash takes as long for a word as the interpreter for an
/// instruction; no input chooses the states.
#[derive(PartialEq, Eq)]
pub(super) struct Words(pub(super) Rc<[u64]>);

impl Hash for Words {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // 2^64 / φ: an odd number without a pattern.
        let fold = |all: u64, word: &u64| (all.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hasher.write_u64(self.0.iter().fold(0, fold));
    }
}

/// A bit of the word `REST`: the last instruction holds interrupts back.
const HELD_BACK: u64 = 1 << 2;

fn unfinished(why: String) -> LabError {
    LabError::Unfinished { why }
}

fn ended(end: End) -> LabError {
    unfinished(match end {
        End::Asked => "it ended before a program was entered".to_owned(),
        End::CutShort(why) => why,
    })
}
